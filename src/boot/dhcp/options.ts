/** The DHCP options that a boot needs (RFC 2132, RFC 3004, RFC 3046, RFC 4578, PXE 2.1 §2.2), and what they say. Pure. */

export const OPTION = {
  pad: 0,
  /** Lease options that only an address server sends. */
  subnetMask: 1, router: 3, leaseSeconds: 51,
  /** PXE's own, in the space of the vendor class. */
  vendorSpecific: 43,
  requestedAddress: 50, overload: 52, messageType: 53, serverId: 54, parameterList: 55,
  vendorClass: 60, tftpServer: 66, bootFile: 67, userClass: 77, relayAgent: 82,
  clientArch: 93, clientInterface: 94, clientUuid: 97,
  /** Of iPXE: what it can do. Nothing else sends it. */
  ipxe: 175,
  end: 255,
} as const;

export const MESSAGE = { discover: 1, offer: 2, request: 3, decline: 4, ack: 5, nak: 6, release: 7, inform: 8 } as const;

export const PXE_CLIENT = 'PXEClient';
export const HTTP_CLIENT = 'HTTPClient';
export type VendorClass = typeof PXE_CLIENT | typeof HTTP_CLIENT;

/** PXE 2.1 §2.2, option 43: discovery control (6), one byte of bits, then the end mark. Bit 3: take the boot file of this offer, look for no boot server. */
export const TAKE_OUR_BOOT_FILE = Buffer.of(6, 1, 8, 255);

type Options = ReadonlyMap<number, Buffer>;

export const messageTypeOf = (options: Options): number | null => options.get(OPTION.messageType)?.[0] ?? null;

/** By its first bytes: firmware writes `PXEClient:Arch:00007:UNDI:003016` and the like. */
export function vendorClassOf(options: Options): VendorClass | null {
  const text = options.get(OPTION.vendorClass)?.toString('latin1') ?? '';
  return text.startsWith(PXE_CLIENT) ? PXE_CLIENT : text.startsWith(HTTP_CLIENT) ? HTTP_CLIENT : null;
}

/** The first of option 93; without one, what the vendor class says of it. */
export function clientArchOf(options: Options): number | null {
  const bytes = options.get(OPTION.clientArch);
  if (bytes && bytes.length >= 2) return bytes.readUInt16BE(0);
  const [, digits] = /:Arch:(\d{5})/.exec(options.get(OPTION.vendorClass)?.toString('latin1') ?? '') ?? [];
  return digits === undefined ? null : Number(digits);
}

/** By its own option, or its user class: bare as iPXE writes it, or with the length before it as RFC 3004 has it. */
export function isIpxe(options: Options): boolean {
  const userClass = options.get(OPTION.userClass)?.toString('latin1');
  return options.has(OPTION.ipxe) || userClass === 'iPXE' || userClass === '\x04iPXE';
}
