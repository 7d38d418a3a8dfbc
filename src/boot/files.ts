/**
 * The files a boot plane may hand out: a map of names over configured folders, drawn from the folders themselves. What a
 * client sends is only ever looked up in the map; it never becomes part of a path.
 */
import { constants } from 'node:fs';
import { open, readdir, realpath, stat, type FileHandle } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { Logger } from '../telemetry/log.js';

/** An open file. Bytes are read by offset; `close` may be called more than once. */
export interface BootFile {
  readonly name: string;
  /** Bytes, as it was when opened. */
  readonly size: number;
  readonly modified: Date;
  /** Changes when the content is replaced; for caches. */
  readonly version: string;
  /** The whole content, when it is kept in memory; shared by all who opened it, never written to. */
  readonly bytes?: Buffer;
  /**
   * Up to `length` bytes from `offset`; fewer when the file has become shorter. They may lie in `into`, which has to be that long, or in memory
   * that is the file's own: they are not to be written to.
   */
  read(offset: number, length: number, into?: Buffer): Promise<Buffer>;
  close(): Promise<void>;
}

export interface BootFiles {
  /** By name relative to a root, with `/` between folders; null when there is none. */
  open(name: string): Promise<BootFile | null>;
  /** Every name there is, sorted. */
  names(): Promise<string[]>;
}

export interface BootFilesDeps {
  /** Folders; the first that has a name wins. One that is missing is empty. */
  readonly roots: readonly string[];
  /** Files that are not on disk. A file of a root goes before one of the same name here. */
  readonly inMemory?: ReadonlyMap<string, Buffer>;
  /**
   * Names whose link may lead out of its root. Debian's package ipxe ships `ipxe.efi` as a link to /boot; a distribution's own names are no
   * way for anybody to let another file out.
   */
  readonly mayLeadOut?: readonly string[];
  readonly log: Logger;
  readonly now?: () => Date;
}

/** Folders below each other, and names in all: a wrong root (`/`) must not be walked for ever. */
const DEEPEST = 8;
const MOST_NAMES = 20_000;
/** A miss walks the folders again, at most this often: a client that asks for nonsense must not keep the disk busy. */
const WALK_AGAIN_MS = 1000;
/** Files up to this size are kept in memory while they do not change: a fleet fetches the same iPXE a thousand times. */
const KEPT_FILE_BYTES = 4 * 1024 * 1024;
const KEPT_BYTES = 32 * 1024 * 1024;

export function createBootFiles({ roots, inMemory = new Map(), mayLeadOut = [], log, now = () => new Date() }: BootFilesDeps): BootFiles {
  const born = now();
  const warned = new Set<string>();
  const kept = createKept();
  let walk: { at: number; paths: Promise<Map<string, string>> } | null = null;

  const paths = (fresh: boolean): Promise<Map<string, string>> => {
    const at = now().getTime();
    if (!walk || (fresh && at - walk.at >= WALK_AGAIN_MS)) walk = { at, paths: walkRoots() };
    return walk.paths;
  };

  async function walkRoots(): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (const root of roots) {
      try {
        await walkFolder(await realpath(root), '', 0, found, root);
      } catch (error) {
        warnOnce(root, { root, reason: (error as NodeJS.ErrnoException).code }, 'a folder of boot files cannot be read; taken as empty');
      }
    }
    return found;
  }

  async function walkFolder(folder: string, prefix: string, depth: number, found: Map<string, string>, root: string): Promise<void> {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (found.size >= MOST_NAMES) return warnOnce(`${root} full`, { root, most: MOST_NAMES }, 'too many boot files; the rest is not served');
      const name = prefix + entry.name;
      const path = join(folder, entry.name);
      if (entry.isDirectory()) {
        if (depth < DEEPEST) await walkFolder(path, `${name}/`, depth + 1, found, root);
      } else if (!found.has(name)) {
        const target = entry.isSymbolicLink() ? await linkedFile(path, name, root) : entry.isFile() ? path : null;
        if (target) found.set(name, target);
      }
    }
  }

  /** Where a link leads, when that is a file of the same root. */
  async function linkedFile(path: string, name: string, root: string): Promise<string | null> {
    try {
      const target = await realpath(path);
      if (!mayLeadOut.includes(name) && !target.startsWith((await realpath(root)) + sep)) {
        warnOnce(path, { root, name }, 'a link leads out of the folder of boot files; refused');
        return null;
      }
      return (await stat(target)).isFile() ? target : null;
    } catch {
      return null;
    }
  }

  function warnOnce(key: string, fields: object, text: string): void {
    if (warned.has(key)) return;
    warned.add(key);
    log.warn(fields, text);
  }

  async function openPath(name: string, path: string): Promise<BootFile | null> {
    let handle: FileHandle | null = null;
    try {
      // The folders may have changed since the walk: what is opened must still be that file, and no link.
      if ((await realpath(path)) !== path) return null;
      handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      const { size, mtime, mtimeMs, ino } = await handle.stat().then((found) => (found.isFile() ? found : Promise.reject(new Error('is no file'))));
      const version = `${ino}-${size}-${mtimeMs}`;
      if (size > KEPT_FILE_BYTES) return fileOnDisk({ name, size, modified: mtime, version }, handle);
      const bytes = await (kept.get(path, version) ?? kept.put(path, version, size, readWhole(handle, size)));
      await handle.close();
      return fileInMemory({ name, modified: mtime, version }, bytes);
    } catch (error) {
      await handle?.close().catch(() => {});
      log.debug({ name, reason: (error as Error).message }, 'a boot file cannot be opened');
      return null;
    }
  }

  return {
    async open(name) {
      for (const fresh of [false, true]) {
        const path = (await paths(fresh)).get(name);
        const file = path === undefined ? null : await openPath(name, path);
        if (file) return file;
      }
      const bytes = inMemory.get(name);
      return bytes ? fileInMemory({ name, modified: born, version: `memory-${bytes.length}` }, bytes) : null;
    },
    async names() {
      return [...new Set([...(await paths(true)).keys(), ...inMemory.keys()])].sort();
    },
  };
}

async function readWhole(handle: FileHandle, size: number): Promise<Buffer> {
  const bytes = Buffer.alloc(size);
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await handle.read(bytes, filled, size - filled, filled);
    if (bytesRead === 0) throw new Error('became shorter while it was read');
    filled += bytesRead;
  }
  return bytes;
}

function fileInMemory(about: Pick<BootFile, 'name' | 'modified' | 'version'>, bytes: Buffer): BootFile {
  return { ...about, size: bytes.length, bytes, read: async (offset, length) => bytes.subarray(offset, offset + length), close: async () => {} };
}

function fileOnDisk(about: Pick<BootFile, 'name' | 'size' | 'modified' | 'version'>, handle: FileHandle): BootFile {
  let closing: Promise<void> | null = null;
  return {
    ...about,
    async read(offset, length, into = Buffer.allocUnsafe(length)) {
      const { buffer, bytesRead } = await handle.read(into, 0, length, offset);
      return buffer.subarray(0, bytesRead);
    },
    close: () => (closing ??= handle.close()),
  };
}

interface Kept {
  get(path: string, version: string): Promise<Buffer> | null;
  put(path: string, version: string, size: number, bytes: Promise<Buffer>): Promise<Buffer>;
}

/** Whole files by path, the longest unused dropped first. One that is being read is there already: a fleet at power-on reads it once. */
function createKept(): Kept {
  const entries = new Map<string, { version: string; size: number; bytes: Promise<Buffer> }>();
  let total = 0;
  const drop = (path: string): void => {
    total -= entries.get(path)?.size ?? 0;
    entries.delete(path);
  };
  return {
    get(path, version) {
      const entry = entries.get(path);
      if (!entry || entry.version !== version) return null;
      entries.delete(path);
      entries.set(path, entry);
      return entry.bytes;
    },
    put(path, version, size, bytes) {
      drop(path);
      entries.set(path, { version, size, bytes });
      total += size;
      bytes.catch(() => entries.get(path)?.bytes === bytes && drop(path));
      for (const oldest of entries.keys()) {
        if (total <= KEPT_BYTES) break;
        drop(oldest);
      }
      return bytes;
    },
  };
}
