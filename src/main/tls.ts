/** The certificate of a plane, read once at its start. */
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { MetalflowError } from '../domain/errors.js';

export interface TlsFiles {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/**
 * @param plane the word of its settings, `METALFLOW_<plane>_TLS_CERT` and `_KEY`
 * @returns null where none is set
 * @throws setting_invalid when a file cannot be read, is no PEM, or the two do not belong together; before any port is opened
 */
export async function readTls(plane: 'AGENT' | 'BOOT', certFile: string | null, keyFile: string | null): Promise<TlsFiles | null> {
  if (!certFile || !keyFile) return null;
  const read = (suffix: 'CERT' | 'KEY', file: string): Promise<Buffer> =>
    readFile(file).catch((error: NodeJS.ErrnoException) => {
      throw new MetalflowError('setting_invalid', { name: `METALFLOW_${plane}_TLS_${suffix}`, why: `the file cannot be read: ${error.code ?? 'unknown error'}` }, { cause: error });
    });
  const [cert, key] = await Promise.all([read('CERT', certFile), read('KEY', keyFile)]);
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    const why = `certificate and key are no pair of PEM files: ${(error as NodeJS.ErrnoException).code ?? 'unreadable'}`;
    throw new MetalflowError('setting_invalid', { name: `METALFLOW_${plane}_TLS_CERT`, why }, { cause: error });
  }
  return { cert, key };
}
