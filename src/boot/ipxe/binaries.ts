/** The iPXE programs that firmware is given first. metalflow ships none: a site takes them from its distribution. */
import { realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { IPXE_PROGRAMS, type IpxeProgramName } from '../../domain/client-arch.js';

export type IpxeBinary = IpxeProgramName;
/** Every name that a client may be given. */
export const IPXE_BINARIES = Object.keys(IPXE_PROGRAMS) as readonly IpxeBinary[];
/** Those a site can do without until it has ARM machines: no Debian package ships them for x86 hosts. */
const ONLY_FOR_ARM = IPXE_BINARIES.filter((name) => IPXE_PROGRAMS[name].buildArch === 'arm64');

export interface IpxeBinariesFound {
  readonly present: readonly { readonly name: IpxeBinary; readonly bytes: number }[];
  /** Of those for x86. */
  readonly missing: readonly IpxeBinary[];
}

/** Which of the programs are in the TFTP roots. An empty file or one that cannot be read is missing; a root that is not there misses all. */
export async function findIpxeBinaries(roots: readonly string[]): Promise<IpxeBinariesFound> {
  const present: { name: IpxeBinary; bytes: number }[] = [];
  const missing: IpxeBinary[] = [];
  for (const name of IPXE_BINARIES) {
    const sizes = await Promise.all(roots.map((root) => sizeIn(root, name)));
    const bytes = sizes.find((size) => size > 0) ?? 0;
    if (bytes > 0) present.push({ name, bytes });
    else if (!ONLY_FOR_ARM.includes(name)) missing.push(name);
  }
  return { present, missing };
}

const sizeIn = async (root: string, name: string): Promise<number> => stat(join(await realpath(root).catch(() => root), name)).then((found) => (found.isFile() ? found.size : 0), () => 0);

/**
 * A stand-in that only the simulated node accepts: it lets the demo go the whole way on a machine without iPXE. Real firmware
 * refuses it, because it is no program, and whoever opens it reads why.
 */
export function placeholderBinary(name: IpxeBinary): Buffer {
  return Buffer.from(
    `metalflow placeholder for ${name}\nThis is not a boot program. Install the package ipxe and point METALFLOW_TFTP_ROOT at its files (Debian: /usr/lib/ipxe).\n`,
    'utf8',
  );
}
