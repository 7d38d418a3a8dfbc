/** Secrets as JSON files of one folder, read again when they change, so that a rotated password needs no restart. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { SecretReader } from '../contracts/bmc.js';
import { MetalflowError } from '../domain/errors.js';

/** Bytes; a file of credentials is far smaller. */
const LARGEST_SECRET = 64 * 1024;
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;

interface Kept {
  readonly mark: string;
  readonly value: unknown;
}

/**
 * @param folder METALFLOW_SECRETS_DIR
 * @returns a reader whose `readJson` throws MetalflowError `setting_invalid` for a name that could leave the folder and
 *   for a file that cannot be read or parsed. Nothing of a file's content is ever in an error.
 */
export function createFileSecretReader(folder: string): SecretReader {
  const kept = new Map<string, Kept>();
  return {
    async readJson(name) {
      if (!NAME.test(name)) throw invalid(name.slice(0, 100), 'is no name of a secret');
      const file = `${name}.json`;
      const found = await stat(join(folder, file)).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null;
        throw invalid(file, `cannot be read (${error.code})`);
      });
      if (found === null) {
        kept.delete(name);
        return null;
      }
      // The inode too: a secret that is replaced by rename may keep size and time.
      const mark = `${found.ino}/${found.mtimeMs}/${found.size}`;
      const known = kept.get(name);
      if (known?.mark === mark) return known.value;
      if (!found.isFile() || found.size > LARGEST_SECRET) throw invalid(file, `is no file of at most ${LARGEST_SECRET} bytes`);
      const text = await readFile(join(folder, file), 'utf8').catch((error: NodeJS.ErrnoException) => {
        throw invalid(file, `cannot be read (${error.code})`);
      });
      const value = parsed(file, text);
      kept.set(name, { mark, value });
      return value;
    },
  };
}

const invalid = (name: string, why: string): MetalflowError => new MetalflowError('setting_invalid', { name: `secret ${name}`, why });

function parsed(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // JSON.parse quotes what it could not read; that may be the password.
    throw invalid(file, 'is no JSON');
  }
}
