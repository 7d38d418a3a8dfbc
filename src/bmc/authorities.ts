/** The authorities that sign the certificates of a site's BMCs, read again at each opening, so that a renewed file needs no restart. */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { MetalflowError } from '../domain/errors.js';

const LARGEST = 4 * 1024 * 1024;

/** @returns PEM. @throws MetalflowError `setting_invalid` for a file that cannot be read or holds no certificate */
export async function readAuthorities(file: string): Promise<string> {
  const invalid = (why: string): MetalflowError => new MetalflowError('setting_invalid', { name: 'METALFLOW_BMC_CA_FILE', why });
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw invalid(`${file} cannot be read (${error.code})`);
  });
  if (text.length > LARGEST) throw invalid(`${file} is larger than ${LARGEST} bytes`);
  try {
    new X509Certificate(text);
  } catch {
    throw invalid(`${file} holds no certificate in PEM`);
  }
  return text;
}
