/** A site's own seed: `<folder>/<seed name>/` with files of a closed set of names. Read anew for each rendering. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { MetalflowError } from '../../domain/errors.js';

/** `document.*` is what GET /v1/seed serves; the others are the NoCloud tree. */
export const SITE_FILES = ['document.json', 'document.yaml', 'document.txt', 'user-data', 'meta-data', 'vendor-data', 'network-config'] as const;
export type SiteFile = (typeof SITE_FILES)[number];
/** Texts as they are on the disk. */
export type SiteSeed = ReadonlyMap<SiteFile, string>;

export const NO_SITE_SEED: SiteSeed = new Map();

/** Bytes of one seed file. */
export const FILE_LIMIT = 200_000;

const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
const isSiteFile = (name: string): name is SiteFile => (SITE_FILES as readonly string[]).includes(name);
/** Hidden files are editors' and mounts' (`..data`); a README is for people. */
const isIgnored = (name: string): boolean => name.startsWith('.') || /^readme(\.\w+)?$/i.test(name);

const invalid = (what: string): MetalflowError => new MetalflowError('seed_invalid', { what });

/** The text byte for byte, a BOM and CRLF too. */
async function readText(folder: string, name: string, shown: string): Promise<string> {
  const path = join(folder, name);
  const { size } = await stat(path);
  if (size > FILE_LIMIT) throw invalid(`${shown} is larger than ${FILE_LIMIT} bytes`);
  const bytes = await readFile(path);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw invalid(`${shown} is not UTF-8`);
  }
}

/**
 * The site's seed of this name; null when the folder has none.
 * @throws seed_invalid for a file that nobody would read (a misspelt `userdata` would else be missed in silence), for one that
 *   is too large or not UTF-8, and when the folder cannot be read
 */
export async function readSiteSeed(folder: string, seed: string): Promise<SiteSeed | null> {
  // Names come from the class; anything with a dot or a slash must not become a path.
  if (!NAME.test(seed)) return null;
  const path = join(folder, seed);
  let names: string[];
  try {
    names = await readdir(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    throw new MetalflowError('seed_invalid', { what: `the folder of seed ${seed} cannot be read (${code})` }, { cause });
  }
  const files = new Map<SiteFile, string>();
  for (const name of names.filter((candidate) => !isIgnored(candidate))) {
    if (!isSiteFile(name)) throw invalid(`${seed}/${name} is none of ${SITE_FILES.join(', ')}`);
    try {
      files.set(name, await readText(path, name, `${seed}/${name}`));
    } catch (cause) {
      if (cause instanceof MetalflowError) throw cause;
      throw new MetalflowError('seed_invalid', { what: `${seed}/${name} cannot be read (${(cause as NodeJS.ErrnoException).code})` }, { cause });
    }
  }
  return files;
}
