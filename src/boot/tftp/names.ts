/** What a client calls a file (field failures T7, T8). Pure: the name is cleaned here and then only looked up in a map. */
import { parseMac } from '../../domain/mac.js';

export type AskedName =
  | { readonly kind: 'name'; readonly path: string; readonly mac: string | null }
  | { readonly kind: 'refused'; readonly why: 'empty' | 'outside' | 'unprintable' | 'too-long' };

const LONGEST = 255;
/** W3C trace context, which a DHCP server of the stack metalflow replaces appends to the file name. */
const TRACE_PARENT = /-[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * The file's name below the root, and the MAC that the path names: as its first folder (`02:01:48:aa:bb:0c/ipxe.efi`, which is
 * then no part of the name) or as a PXELINUX configuration (`pxelinux.cfg/01-02-01-48-aa-bb-0c`, which is).
 * Backslashes are slashes, repeated and leading ones are one, `.` is nothing and `..` goes up, but never above the root.
 */
export function readName(asked: string): AskedName {
  if (asked.length > LONGEST) return { kind: 'refused', why: 'too-long' };
  // Control characters and the replacement mark of broken UTF-8.
  if (/[\u0000-\u001f\u007f\ufffd]/.test(asked)) return { kind: 'refused', why: 'unprintable' };
  const folders: string[] = [];
  for (const part of asked.replace(TRACE_PARENT, '').split(/[\\/]+/)) {
    if (part === '' || part === '.') continue;
    if (part !== '..') folders.push(part);
    else if (folders.pop() === undefined) return { kind: 'refused', why: 'outside' };
  }
  const first = parseMac(folders[0] ?? '');
  const path = (first ? folders.slice(1) : folders).join('/');
  if (path === '') return { kind: 'refused', why: 'empty' };
  const config = folders.at(-2)?.toLowerCase() === 'pxelinux.cfg' ? parseMac(folders.at(-1)!) : null;
  return { kind: 'name', path, mac: first ?? config };
}
