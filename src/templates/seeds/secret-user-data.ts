/**
 * `secret:<name>`: user-data that stands in no seed folder and in no NetBox, but in `user-data/` of the secrets folder. Only there:
 * whoever may edit a device must not be able to name the BMC's password and have it served.
 */
import { readFile, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { MetalflowError } from '../../domain/errors.js';
import { FILE_LIMIT } from './site-seed.js';

const FOLDER = 'user-data';
/** As SecretReference of the contract; asked again here, where the name becomes a path. */
const REFERENCE = /^secret:([A-Za-z0-9][A-Za-z0-9._-]{0,99})$/;

/**
 * The text byte for byte. Read anew each time, so that a changed secret needs no restart.
 * @throws seed_invalid naming the reference, never a byte of the content
 */
export async function readSecretUserData(secretsFolder: string | undefined, reference: string): Promise<string> {
  const invalid = (what: string, cause?: unknown): MetalflowError => new MetalflowError('seed_invalid', { what: `user-data ${reference.slice(0, 120)} ${what}` }, { cause });
  const name = REFERENCE.exec(reference)?.[1];
  if (name === undefined) throw invalid('is no secret:<name>');
  if (secretsFolder === undefined) throw invalid('cannot be read: there is no secrets folder');
  try {
    // Mounted secrets are symbolic links within the folder; one that leads out of it is not followed.
    const root = await realpath(join(secretsFolder, FOLDER));
    const path = await realpath(join(root, name));
    if (!path.startsWith(root + sep)) throw invalid('leads out of the secrets folder');
    const found = await stat(path);
    if (!found.isFile() || found.size > FILE_LIMIT) throw invalid(`is no file of at most ${FILE_LIMIT} bytes`);
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await readFile(path));
  } catch (error) {
    if (error instanceof MetalflowError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw invalid(`is not there: no file ${FOLDER}/${name} in the secrets folder`);
    throw invalid(code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'is not UTF-8' : `cannot be read (${code})`);
  }
}
