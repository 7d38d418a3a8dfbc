/** The first sectors of a disk with one EFI system partition: what firmware looks at (UEFI 2.10, §5.3), checksums left out. */
export function partitionTable(): Buffer {
  const bytes = Buffer.alloc(34 * 512);
  bytes.write('EFI PART', 512, 'latin1');
  bytes.writeBigUInt64LE(2n, 512 + 72);
  bytes.writeUInt32LE(128, 512 + 80);
  bytes.writeUInt32LE(128, 512 + 84);
  Buffer.from('28732ac11ff8d211ba4b00a0c93ec93b', 'hex').copy(bytes, 1024);
  return bytes;
}
