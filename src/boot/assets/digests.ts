/** SHA-256 of assets, for their ETag: hashed once a version, one at a time, never longer waited for than a client would. */
import { createHash } from 'node:crypto';
import type { Logger } from '../../telemetry/log.js';
import type { BootFile, BootFiles } from '../files.js';

export interface Digests {
  /** What is known now; when that is nothing, it is begun to be taken. */
  known(file: BootFile): string | null;
  /** 64 hex digits, or null while a large file is still being hashed; ask again with the next request. */
  of(file: BootFile): Promise<string | null>;
}

/** Hashed between two turns of the event loop: under a millisecond, since scripts are answered in between. */
const CHUNK = 256 * 1024;
const MOST_KEPT = 10_000;

/** @param patienceMs how long a request waits for a hash; below the first byte's time-out of common clients */
export function createDigests({ files, log, patienceMs = 2000 }: { files: BootFiles; log: Logger; patienceMs?: number }): Digests {
  const kept = new Map<string, { digest: string | null; readonly hashing: Promise<string | null> }>();
  let queue: Promise<unknown> = Promise.resolve();

  async function hash(name: string, version: string): Promise<string | null> {
    // Opened anew: the request's own file is closed when its answer is sent.
    const file = await files.open(name);
    if (!file) return null;
    try {
      if (file.version !== version) return null;
      const sum = createHash('sha256');
      const buffer = Buffer.allocUnsafe(CHUNK);
      for (let at = 0; at < file.size; ) {
        const bytes = await file.read(at, Math.min(CHUNK, file.size - at), buffer);
        if (bytes.length === 0) return null;
        sum.update(bytes);
        at += bytes.length;
      }
      return sum.digest('hex');
    } finally {
      await file.close();
    }
  }

  function started(file: BootFile): { readonly digest: string | null; readonly hashing: Promise<string | null> } {
    const key = `${file.name}\0${file.version}`;
    const known = kept.get(key);
    if (known) return known;
    if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value!);
    const hashing = queue
      .then(() => hash(file.name, file.version))
      .catch((error: Error) => {
        log.warn({ name: file.name, reason: error.message }, 'an asset cannot be hashed');
        return null;
      })
      .then((digest) => {
        if (digest === null) kept.delete(key);
        else entry.digest = digest;
        return digest;
      });
    const entry = { digest: null as string | null, hashing };
    queue = hashing;
    kept.set(key, entry);
    return entry;
  }

  return {
    known: (file) => started(file).digest,
    async of(file) {
      const { digest, hashing } = started(file);
      if (digest) return digest;
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<null>((resolve) => {
        timer = setTimeout(() => resolve(null), patienceMs);
      });
      try {
        return await Promise.race([hashing, late]);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
