/** `asset:<path>`: a file of our own asset server, read where it lies. */
import { open, realpath, type FileHandle } from 'node:fs/promises';
import path from 'node:path';

export type AssetFile = { readonly kind: 'open'; readonly handle: FileHandle; readonly bytes: number } | { readonly kind: 'refused'; readonly why: string };

/** The path of an `asset:` source, or null when it is none or would leave the folder. */
export function assetPath(source: string): string | null {
  const relative = /^asset:([A-Za-z0-9._/-]+)$/.exec(source)?.[1];
  if (relative === undefined || relative.startsWith('/')) return null;
  const segments = relative.split('/');
  return segments.some((segment) => segment === '' || segment === '.' || segment === '..') ? null : relative;
}

/**
 * Opens a regular file inside the folder. Symbolic links may move within the folder, never out of it; what is no regular
 * file is refused, since a device file can be read for ever (incident 9 elsewhere).
 */
export async function openAsset(folder: string, relative: string): Promise<AssetFile> {
  try {
    const root = await realpath(folder);
    const real = await realpath(path.join(root, relative));
    if (!real.startsWith(root + path.sep)) return { kind: 'refused', why: 'the path leaves the assets folder' };
    const handle = await open(real, 'r');
    const stat = await handle.stat();
    if (stat.isFile()) return { kind: 'open', handle, bytes: stat.size };
    await handle.close();
    return { kind: 'refused', why: 'it is no regular file' };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { kind: 'refused', why: code === 'ENOENT' ? 'there is no such file in the assets folder' : `the file cannot be opened (${code})` };
  }
}
