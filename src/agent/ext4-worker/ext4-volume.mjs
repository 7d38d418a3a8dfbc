/**
 * The few calls we need of libext2fs (npm `ext2fs`, WebAssembly), made directly and not through that package's fs.js: it turns every
 * file it reads into UTF-8 text, ignores the mode of a new file, and assigns to constants, so that no bundler takes it.
 */
import binding from 'ext2fs/lib/binding.js';
import diskModule from 'ext2fs/lib/disk.js';
import library from 'ext2fs/lib/libext2fs.js';
import util from 'ext2fs/lib/util.js';

const READ_ONLY = 0;
/** O_CREAT | O_EXCL | O_WRONLY, by the library's numbers. */
const CREATE_NEW = 64 | 128 | 1;
/** What goes through the library's memory at a time. */
const CHUNK = 64 * 1024;

const ready = new Promise((resolve) => {
  if (library.calledRun) resolve();
  else library.onRuntimeInitialized = resolve;
});

async function withMemory(length, use) {
  const pointer = await util.ccallThrowAsync('malloc_from_js', 'number', ['number'], [length]);
  try {
    return await use(pointer);
  } finally {
    await util.ccallThrowAsync('free_from_js', 'void', ['number'], [pointer]);
  }
}

/** A view of the library's memory, which moves when it grows: never kept over an await. */
const memoryAt = (pointer, length) => library.getBuffer(pointer, length);

const withPath = (path, use) => {
  const bytes = Buffer.from(`${path}\0`);
  return withMemory(bytes.length, (pointer) => {
    bytes.copy(memoryAt(pointer, bytes.length));
    return use(pointer);
  });
};

async function withFile(volume, path, flags, mode, use) {
  const file = await withPath(path, (pointer) => binding.open(volume, pointer, flags, mode));
  try {
    return await use(file);
  } finally {
    await binding.close(file);
  }
}

/** Mounts the volume at `offset` of the disk, uses it, and unmounts it: only then everything is written. */
export async function withVolume(disk, offset, use) {
  await ready;
  const id = library.setObject(new diskModule.DiskWrapper(disk, offset));
  try {
    const volume = await util.ccallThrowAsync('node_ext2fs_mount', 'number', ['number'], [id]);
    try {
      return await use(volume);
    } finally {
      await util.ccallThrowAsync('node_ext2fs_umount', 'number', ['number'], [volume]);
    }
  } finally {
    library.deleteObject(id);
  }
}

const isMissing = (error) => error.code === 'ENOENT';

export async function exists(volume, path) {
  try {
    return await withFile(volume, path, READ_ONLY, 0, async () => true);
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

export const makeFolder = (volume, path, mode) => withPath(path, (pointer) => binding.mkdir(volume, pointer, mode));

export const remove = (volume, path) => withPath(path, (pointer) => binding.unlink(volume, pointer));

export const rename = (volume, from, to) => withPath(from, (old) => withPath(to, (next) => binding.rename(volume, old, next)));

/** A new file with this content and mode. */
export const writeNew = (volume, path, content, mode) =>
  withFile(volume, path, CREATE_NEW, mode, (file) =>
    withMemory(CHUNK, async (pointer) => {
      for (let done = 0; done < content.length; ) {
        const piece = content.subarray(done, done + CHUNK);
        memoryAt(pointer, piece.length).set(piece);
        const written = await binding.write(file, CREATE_NEW, pointer, piece.length, done);
        if (written === 0) throw new Error(`${path} takes no more than ${done} bytes`);
        done += written;
      }
      await binding.chmod(file, mode);
    }),
  );

/** `{ content, mode }`; content null when there is no such file. */
export async function read(volume, path) {
  try {
    return await withFile(volume, path, READ_ONLY, 0, (file) =>
      withMemory(CHUNK, async (pointer) => {
        const content = Buffer.alloc(await binding.stat_i_size(file));
        for (let done = 0; done < content.length; ) {
          const got = await binding.read(file, READ_ONLY, pointer, Math.min(CHUNK, content.length - done), done);
          if (got === 0) throw new Error(`${path} ends at byte ${done} of ${content.length}`);
          memoryAt(pointer, got).copy(content, done);
          done += got;
        }
        return { content, mode: (await binding.stat_i_mode(file)) & 0o777 };
      }),
    );
  } catch (error) {
    if (isMissing(error)) return { content: null, mode: 0 };
    throw error;
  }
}
