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
import { fsync, read, write } from 'node:fs';
import { promisify } from 'node:util';
import { parentPort, workerData } from 'node:worker_threads';
import ext2fs from 'ext2fs';

const [readAt, writeAt, syncFile] = [promisify(read), promisify(write), promisify(fsync)];

/** The disk as ext2fs wants it; positions in bytes of the disk. */
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

const isMissing = (error) => error.code === 'ENOENT';

async function makeFolders(fs, folder) {
  let path = '';
  for (const step of folder.split('/').filter(Boolean)) {
    path += `/${step}`;
    // Asked first: mkdir of what is there fails with a number of the library's own, not with EEXIST.
    const there = await fs.stat(path).then(() => true, (error) => !isMissing(error));
    if (!there) await fs.mkdir(path, 0o755);
  }
}

/** Whole under another name first: whoever finds the right name finds all of it (M3). */
async function writeFile(fs, path, { content, mode }) {
  const beside = `${path}.new`;
  await fs.unlink(beside).catch((error) => {
    if (!isMissing(error)) throw error;
  });
  await fs.writeFile(beside, Buffer.from(content), { mode });
  await fs.chmod(beside, mode);
  await fs.rename(beside, path);
}

/** By hand: the library's own readFile makes UTF-8 text of everything, whatever encoding it is given. */
async function readFile(fs, path) {
  let file;
  try {
    file = await fs.open(path, 'r');
  } catch (error) {
    if (isMissing(error)) return { content: null, mode: 0 };
    throw error;
  }
  try {
    const { mode, size } = await file.stat();
    const content = Buffer.alloc(size);
    for (let done = 0; done < size; ) {
      const { bytesRead } = await file.read(content, done, size - done, done);
      if (bytesRead === 0) throw new Error(`${path} ends at byte ${done} of ${size}`);
      done += bytesRead;
    }
    return { content, mode: mode & 0o777 };
  } finally {
    await file.close();
  }
}

async function work({ offset, folder, write: toWrite, read: toRead }) {
  if (toWrite.length > 0) {
    await ext2fs.withMountedDisk(disk, offset, async ({ promises: fs }) => {
      await makeFolders(fs, folder);
      for (const file of toWrite) await writeFile(fs, `${folder}/${file.name}`, file);
    });
    await disk.flush();
  }
  // Mounted anew: what is read has been on the disk and not in the library's cache.
  return ext2fs.withMountedDisk(disk, offset, async ({ promises: fs }) => {
    const files = [];
    for (const name of toRead) files.push({ name, ...(await readFile(fs, `${folder}/${name}`)) });
    return files;
  });
}

work(workerData).then(
  (files) => parentPort.postMessage({ kind: 'done', files }),
  (error) => parentPort.postMessage({ kind: 'failed', why: String(error?.message ?? error).slice(0, 300) }),
);
