/**
 * A FAT16 or FAT32 volume inside a disk (Microsoft FAT specification 1.03; the ESP of UEFI 2.10 §13.3), as far as placing one file
 * in the root folder needs it.
 *
 * Written here and not taken from npm's `fatfs`: that keeps only the first copy of the table, takes the usual end mark of a FAT32
 * root folder (…FFF8) for a reserved cluster, and can neither rename nor delete, so it cannot replace a file safely.
 */
import type { DiskHandle } from '../contracts/agent-machine.js';

export interface FatVolume {
  readonly kind: 16 | 32;
  readonly clusterBytes: number;
  /** The root folder's pieces, in order: byte positions on the disk. */
  rootPieces(): Promise<{ position: number; length: number }[]>;
  /** Makes the root folder one cluster longer; false when it cannot grow (FAT16). */
  growRoot(): Promise<boolean>;
  /** Content of a chain of clusters. */
  readChain(first: number, length: number): Promise<Buffer>;
  /** Content into free clusters that nothing refers to yet, then their chain. @returns its first cluster, 0 for no content */
  writeChain(content: Buffer): Promise<number>;
  freeChain(first: number): Promise<void>;
}

const damaged = (what: string): Error => new Error(`the FAT volume is damaged: ${what}`);

/** @throws plain errors that say what does not fit */
export async function openFatVolume(disk: DiskHandle, volume: { offset: number; sizeBytes: number }): Promise<FatVolume> {
  const boot = await disk.read(volume.offset, 512);
  const sector = boot.readUInt16LE(11);
  const clusterSectors = boot[13]!;
  const reserved = boot.readUInt16LE(14);
  const copies = boot[16]!;
  const rootEntries = boot.readUInt16LE(17);
  const tableSectors = boot.readUInt16LE(22) || boot.readUInt32LE(36);
  const allSectors = boot.readUInt16LE(19) || boot.readUInt32LE(32);
  if (boot.readUInt16LE(510) !== 0xaa55 || ![512, 1024, 2048, 4096].includes(sector) || clusterSectors === 0 || copies === 0 || tableSectors === 0) throw damaged('it has no boot sector');
  if (allSectors * sector > volume.sizeBytes) throw damaged('it is larger than its partition');
  const rootSectors = Math.ceil((rootEntries * 32) / sector);
  const dataSector = reserved + copies * tableSectors + rootSectors;
  const clusters = Math.floor((allSectors - dataSector) / clusterSectors);
  // The count of clusters alone decides the kind (FAT specification, "FAT Type Determination").
  if (clusters < 4085) throw new Error('it is FAT12, which an EFI system partition of a disk should not be');
  const kind = clusters < 65_525 ? 16 : 32;
  const width = kind / 8;
  const endMark = kind === 16 ? 0xffff : 0x0fffffff;
  const clusterBytes = clusterSectors * sector;
  if ((clusters + 2) * width > tableSectors * sector) throw damaged('its table is too short');

  const at = (sectorNumber: number): number => volume.offset + sectorNumber * sector;
  const positionOf = (cluster: number): number => {
    if (cluster < 2 || cluster >= clusters + 2) throw damaged(`there is no cluster ${cluster}`);
    return at(dataSector + (cluster - 2) * clusterSectors);
  };
  const table = await disk.read(at(reserved), tableSectors * sector);
  const get = (cluster: number): number => (kind === 16 ? table.readUInt16LE(cluster * 2) : table.readUInt32LE(cluster * 4) & 0x0fffffff);
  const set = (cluster: number, value: number): void => {
    if (kind === 16) table.writeUInt16LE(value, cluster * 2);
    // The upper four bits are not ours.
    else table.writeUInt32LE(((table.readUInt32LE(cluster * 4) & 0xf0000000) | value) >>> 0, cluster * 4);
  };
  const isEnd = (value: number): boolean => value >= (kind === 16 ? 0xfff8 : 0x0ffffff8);

  /** The table's changed sectors into every copy, and the disk's cache after them. */
  const saveTable = async (changed: readonly number[]): Promise<void> => {
    const sectors = new Set(changed.map((cluster) => Math.floor((cluster * width) / sector)));
    for (const index of sectors) {
      for (let copy = 0; copy < copies; copy += 1) await disk.write(at(reserved + copy * tableSectors + index), table.subarray(index * sector, (index + 1) * sector));
    }
    await disk.flush();
  };
  const chain = (first: number): number[] => {
    const found: number[] = [];
    for (let cluster = first; !isEnd(cluster); cluster = get(cluster)) {
      positionOf(cluster);
      if (found.length > clusters) throw damaged('a chain of clusters runs in a circle');
      found.push(cluster);
    }
    return found;
  };
  const free = (count: number): number[] => {
    const found: number[] = [];
    for (let cluster = 2; cluster < clusters + 2 && found.length < count; cluster += 1) if (get(cluster) === 0) found.push(cluster);
    if (found.length < count) throw new Error('the volume is full');
    return found;
  };
  /** The count of free clusters that FAT32 keeps is only a hint; "unknown" is allowed and never wrong. */
  const forgetFreeCount = async (): Promise<void> => {
    if (kind !== 32) return;
    const info = at(boot.readUInt16LE(48));
    const bytes = await disk.read(info, 512);
    if (bytes.readUInt32LE(0) !== 0x41615252 || bytes.readUInt32LE(484) !== 0x61417272) return;
    bytes.writeUInt32LE(0xffffffff, 488);
    await disk.write(info, bytes);
  };
  const rootCluster = boot.readUInt32LE(44);

  const writeChain = async (content: Buffer): Promise<number> => {
    if (content.length === 0) return 0;
    const taken = free(Math.ceil(content.length / clusterBytes));
    for (const [index, cluster] of taken.entries()) {
      const piece = Buffer.alloc(clusterBytes);
      content.copy(piece, 0, index * clusterBytes);
      await disk.write(positionOf(cluster), piece);
    }
    await forgetFreeCount();
    await disk.flush();
    for (const [index, cluster] of taken.entries()) set(cluster, taken[index + 1] ?? endMark);
    await saveTable(taken);
    return taken[0]!;
  };

  return {
    kind,
    clusterBytes,
    async rootPieces() {
      if (kind === 16) return [{ position: at(reserved + copies * tableSectors), length: rootEntries * 32 }];
      return chain(rootCluster).map((cluster) => ({ position: positionOf(cluster), length: clusterBytes }));
    },
    async growRoot() {
      if (kind === 16) return false;
      const last = chain(rootCluster).at(-1)!;
      const added = await writeChain(Buffer.alloc(clusterBytes));
      set(last, added);
      await saveTable([last]);
      return true;
    },
    async readChain(first, length) {
      if (length === 0) return Buffer.alloc(0);
      const pieces: Buffer[] = [];
      for (const cluster of chain(first)) pieces.push(await disk.read(positionOf(cluster), clusterBytes));
      const all = Buffer.concat(pieces);
      if (all.length < length) throw damaged('a file is longer than its clusters');
      return all.subarray(0, length);
    },
    writeChain,
    async freeChain(first) {
      if (first === 0) return;
      const freed = chain(first);
      for (const cluster of freed) set(cluster, 0);
      await forgetFreeCount();
      await saveTable(freed);
    },
  };
}
