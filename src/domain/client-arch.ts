/**
 * What a client says it is when it asks for a boot file (DHCP option 93), and the iPXE program it is given. The numbers are IANA's "Processor
 * Architecture Types" (RFC 4578 §2.1, RFC 5970 §3.3). The DHCP snippets and the proxy DHCP are drawn from this one table.
 */

export interface IpxeProgram {
  /** Where iPXE names the machine it was built for: `${buildarch}`. A BIOS build is a 32-bit program, also on a 64-bit machine. */
  readonly buildArch: 'i386' | 'x86_64' | 'arm64';
  readonly of: string;
}

export const IPXE_PROGRAMS = {
  'undionly.kpxe': { buildArch: 'i386', of: 'BIOS, with the network driver of the firmware' },
  'ipxe.efi': { buildArch: 'x86_64', of: 'UEFI on x86, with the network drivers of iPXE' },
  'snponly.efi': { buildArch: 'x86_64', of: 'UEFI on x86, with the network driver of the firmware; for a NIC that ipxe.efi does not know' },
  'ipxe-arm64.efi': { buildArch: 'arm64', of: 'UEFI on 64-bit ARM, with the network drivers of iPXE' },
} as const satisfies Readonly<Record<string, IpxeProgram>>;

export type IpxeProgramName = keyof typeof IPXE_PROGRAMS;

export interface ClientArch {
  /** The number in option 93. */
  readonly code: number;
  /** A word for a tag of a DHCP server's configuration. */
  readonly name: string;
  readonly program: IpxeProgramName;
  /** UEFI HTTP boot: the boot file is a URL, and the answer repeats option 60 `HTTPClient`. Otherwise a name, by TFTP. */
  readonly httpBoot: boolean;
  readonly of: string;
}

export const CLIENT_ARCHES = [
  { code: 0, name: 'bios', program: 'undionly.kpxe', httpBoot: false, of: 'BIOS by PXE' },
  { code: 6, name: 'uefi-ia32', program: 'ipxe.efi', httpBoot: false, of: 'UEFI, 32-bit x86 by PXE; firmware that runs 64-bit programs is met that says this' },
  { code: 7, name: 'uefi-x64', program: 'ipxe.efi', httpBoot: false, of: 'UEFI on x86-64 by PXE' },
  { code: 9, name: 'uefi-ebc', program: 'ipxe.efi', httpBoot: false, of: 'EFI byte code in the registry; x86-64 by PXE in firmware that follows the text of RFC 4578' },
  { code: 10, name: 'uefi-arm32', program: 'ipxe-arm64.efi', httpBoot: false, of: 'UEFI, 32-bit ARM by PXE; firmware that runs 64-bit programs is met that says this' },
  { code: 11, name: 'uefi-arm64', program: 'ipxe-arm64.efi', httpBoot: false, of: 'UEFI on 64-bit ARM by PXE' },
  { code: 15, name: 'uefi-ia32-http', program: 'ipxe.efi', httpBoot: true, of: 'UEFI, 32-bit x86 by HTTP' },
  { code: 16, name: 'uefi-x64-http', program: 'ipxe.efi', httpBoot: true, of: 'UEFI on x86-64 by HTTP' },
  { code: 18, name: 'uefi-arm32-http', program: 'ipxe-arm64.efi', httpBoot: true, of: 'UEFI, 32-bit ARM by HTTP' },
  { code: 19, name: 'uefi-arm64-http', program: 'ipxe-arm64.efi', httpBoot: true, of: 'UEFI on 64-bit ARM by HTTP' },
] as const satisfies readonly ClientArch[];

/** The row of a number in option 93; null for one that no program of ours runs on. */
export const clientArch = (code: number): ClientArch | null => CLIENT_ARCHES.find((arch) => arch.code === code) ?? null;
