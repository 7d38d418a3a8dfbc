/**
 * Reads and writes files of an ext4 file system inside an open disk, in a thread of its own: the library that does it (libext2fs as
 * WebAssembly) takes over the process's handlers for uncaught errors, and a damaged file system may crash it. Both stay in here.
 *
 * Plain JavaScript, so that node runs it as it lies here; the build bundles it to `ext4-worker.cjs` (see ext4-files.ts).
 *
 * workerData: `{ fd, offset, folder, write: [{ name, content, mode }], read: [name] }`, content as Uint8Array.
 * Answer: `{ kind: 'done', files: [{ name, content, mode }] }`, the files of `read` as they lie on the disk, content null when absent;
 * or `{ kind: 'failed', why }`.
 */
import fs from 'node:fs';
import { promisify } from 'node:util';
import { parentPort, workerData } from 'node:worker_threads';
import { exists, makeFolder, read, remove, rename, withVolume, writeNew } from './ext4-volume.mjs';

const [readAt, writeAt, syncFile] = [promisify(fs.read), promisify(fs.write), promisify(fs.fsync)];

/** The disk as the library wants it; positions in bytes of the disk. */
const disk = {
  async read(buffer, bufferOffset, length, position) {
    const { bytesRead } = await readAt(workerData.fd, buffer, bufferOffset, length, position);
    return { bytesRead, buffer };
  },
  async write(buffer, bufferOffset, length, position) {
    const { bytesWritten } = await writeAt(workerData.fd, buffer, bufferOffset, length, position);
    return { bytesWritten, buffer };
  },
  async discard() {},
  async flush() {
    await syncFile(workerData.fd);
  },
};

/** For reading: the library writes counters and times even then, and they go nowhere. */
const untouched = {
  ...disk,
  async write(buffer, bufferOffset, length) {
    return { bytesWritten: length, buffer };
  },
  async flush() {},
};

async function makeFolders(volume, folder) {
  let path = '';
  for (const step of folder.split('/').filter(Boolean)) {
    path += `/${step}`;
    if (!(await exists(volume, path))) await makeFolder(volume, path, 0o755);
  }
}

/** Whole under another name first: whoever finds the right name finds all of it (M3). */
async function place(volume, path, { content, mode }) {
  const beside = `${path}.new`;
  if (await exists(volume, beside)) await remove(volume, beside);
  await writeNew(volume, beside, content, mode);
  await rename(volume, beside, path);
}

async function work({ offset, folder, write: toWrite, read: toRead }) {
  if (toWrite.length > 0) {
    await withVolume(disk, offset, async (volume) => {
      await makeFolders(volume, folder);
      for (const file of toWrite) await place(volume, `${folder}/${file.name}`, file);
    });
    await disk.flush();
  }
  // Mounted anew: what is read has been on the disk and not in the library's cache.
  return withVolume(untouched, offset, async (volume) => {
    const files = [];
    for (const name of toRead) files.push({ name, ...(await read(volume, `${folder}/${name}`)) });
    return files;
  });
}

work(workerData).then(
  (files) => parentPort.postMessage({ kind: 'done', files }),
  (error) => parentPort.postMessage({ kind: 'failed', why: String(error?.message ?? error).slice(0, 300) }),
);
