/**
 * One small file in the root folder of a FAT volume. FAT has no journal, so order is what keeps it whole: content, then the table,
 * then the folder entry in one sector. Whenever the power goes, the file is absent or whole (M3).
 */
import type { DiskHandle } from '../contracts/agent-machine.js';
import { openFatVolume, type FatVolume } from './fat-volume.js';

const SLOT = 32;
const LONG_NAME = 0x0f;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$/;

interface Slot {
  readonly position: number;
  readonly bytes: Buffer;
}
interface Entry {
  readonly name: string;
  readonly slots: readonly Slot[];
  readonly firstCluster: number;
  readonly size: number;
}

async function readSlots(disk: DiskHandle, volume: FatVolume): Promise<Slot[]> {
  const slots: Slot[] = [];
  for (const { position, length } of await volume.rootPieces()) {
    const bytes = await disk.read(position, length);
    for (let at = 0; at < length; at += SLOT) slots.push({ position: position + at, bytes: bytes.subarray(at, at + SLOT) });
  }
  return slots;
}

/** Sum over the 11 bytes of the short name, which ties the slots of a long name to it. */
const checksum = (short: Buffer): number => short.reduce((sum, byte) => (((sum & 1) << 7) + (sum >> 1) + byte) & 0xff, 0);

/** The 13 UTF-16 units of a long-name slot lie in three places. */
const LONG_PARTS = [[1, 11], [14, 26], [28, 32]] as const;

const shortText = (bytes: Buffer): string => [bytes.toString('latin1', 0, 8).trimEnd(), bytes.toString('latin1', 8, 11).trimEnd()].filter(Boolean).join('.');

function entriesOf(slots: readonly Slot[]): Entry[] {
  const entries: Entry[] = [];
  let long: Slot[] = [];
  for (const slot of slots) {
    const { bytes } = slot;
    if (bytes[0] === 0) break;
    if (bytes[0] === 0xe5) long = [];
    else if ((bytes[11]! & 0x3f) === LONG_NAME) long = bytes[0]! & 0x40 ? [slot] : [...long, slot];
    else {
      const fits = long.length > 0 && long.every((part) => part.bytes[13] === checksum(bytes.subarray(0, 11)));
      const text = long.toReversed().map((part) => LONG_PARTS.map(([from, to]) => part.bytes.toString('utf16le', from, to)).join('')).join('');
      // Volume labels (0x08) and folders (0x10) are not files, but their names are taken.
      entries.push({
        name: fits ? text.replace(/\0.*$/s, '') : shortText(bytes),
        slots: fits ? [...long, slot] : [slot],
        firstCluster: bytes[11]! & 0x18 ? -1 : (bytes.readUInt16LE(20) << 16) | bytes.readUInt16LE(26),
        size: bytes.readUInt32LE(28),
      });
      long = [];
    }
  }
  return entries;
}

/** `FLEET-~1JSO`: the generated short name, with a number that no other entry uses. */
function shortNameFor(name: string, slots: readonly Slot[]): Buffer {
  const taken = new Set(slots.filter(({ bytes }) => bytes[0] !== 0 && bytes[0] !== 0xe5).map(({ bytes }) => bytes.toString('latin1', 0, 11)));
  const dot = name.lastIndexOf('.');
  const clean = (text: string): string => text.toUpperCase().replaceAll(/[^A-Z0-9_-]/g, '');
  const base = clean(dot > 0 ? name.slice(0, dot) : name) || '_';
  const extension = dot > 0 ? clean(name.slice(dot + 1)).slice(0, 3) : '';
  for (let number = 1; number < 1000; number += 1) {
    const tail = `~${number}`;
    const short = `${(base.slice(0, 8 - tail.length) + tail).padEnd(8)}${extension.padEnd(3)}`;
    if (!taken.has(short)) return Buffer.from(short, 'latin1');
  }
  throw new Error('every short name is taken');
}

function newSlots(name: string, short: Buffer, file: { firstCluster: number; size: number; at: Date }): Buffer {
  const count = Math.ceil(name.length / 13);
  const units = Buffer.alloc(count * 26, 0xff);
  units.write(name, 'utf16le');
  if (name.length % 13) units.writeUInt16LE(0, name.length * 2);
  const out = Buffer.alloc((count + 1) * SLOT);
  for (let index = 0; index < count; index += 1) {
    const slot = out.subarray((count - 1 - index) * SLOT, (count - index) * SLOT);
    slot[0] = (index + 1) | (index === count - 1 ? 0x40 : 0);
    slot[11] = LONG_NAME;
    slot[13] = checksum(short);
    let from = index * 26;
    for (const [start, end] of LONG_PARTS) {
      units.copy(slot, start, from, from + end - start);
      from += end - start;
    }
  }
  const main = out.subarray(count * SLOT);
  const { at } = file;
  const day = ((Math.max(1980, at.getUTCFullYear()) - 1980) << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate();
  const time = (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1);
  short.copy(main, 0);
  main[11] = 0x20;
  for (const [offset, value] of [[14, time], [16, day], [18, day], [20, file.firstCluster >>> 16], [22, time], [24, day], [26, file.firstCluster & 0xffff]] as const) main.writeUInt16LE(value, offset);
  main.writeUInt32LE(file.size, 28);
  return out;
}

/** A run of free slots inside one 512-byte sector, so that one write makes the file appear. Slots in `ours` count as free. */
function freeRun(slots: readonly Slot[], count: number, ours: readonly Slot[]): Slot[] | null {
  let run: Slot[] = [];
  let beyondEnd = false;
  for (const slot of slots) {
    beyondEnd ||= slot.bytes[0] === 0;
    const sameSector = run.length > 0 && Math.floor(run[0]!.position / 512) === Math.floor(slot.position / 512);
    const isFree = beyondEnd || slot.bytes[0] === 0xe5 || ours.includes(slot);
    run = isFree ? [...(sameSector ? run : []), slot] : [];
    if (run.length === count) return run;
  }
  return null;
}

/**
 * Readers stop at the first slot that begins with 0, and what lies behind it may be anything. A run behind it is cleared together with
 * the slot after it, and only then is the way to it opened with deleted slots.
 */
async function openWayTo(disk: DiskHandle, slots: readonly Slot[], run: readonly Slot[]): Promise<void> {
  const end = slots.findIndex(({ bytes }) => bytes[0] === 0);
  const [first, last] = [slots.indexOf(run[0]!), slots.indexOf(run.at(-1)!)];
  if (end === -1 || end > last) return;
  for (const slot of slots.slice(Math.max(first, end), last + 2)) await disk.write(slot.position, Buffer.alloc(SLOT));
  await disk.flush();
  for (const slot of slots.slice(end, Math.max(first, end))) await disk.write(slot.position, Buffer.alloc(SLOT).fill(0xe5, 0, 1));
}

const find = (slots: readonly Slot[], name: string): Entry | undefined => entriesOf(slots).find((entry) => entry.name.toLowerCase() === name.toLowerCase());

/** Content of a file in the root folder; null when it is not there. */
export async function readFatFile(disk: DiskHandle, partition: { offset: number; sizeBytes: number }, name: string): Promise<Buffer | null> {
  const volume = await openFatVolume(disk, partition);
  const entry = find(await readSlots(disk, volume), name);
  return entry && entry.firstCluster >= 0 ? volume.readChain(entry.firstCluster, entry.size) : null;
}

/**
 * Places or replaces a file in the root folder. The same content again changes nothing.
 * @throws plain errors: a name that is none, a volume that is damaged or full
 */
export async function writeFatFile(disk: DiskHandle, partition: { offset: number; sizeBytes: number }, file: { name: string; content: Buffer; at: Date }): Promise<void> {
  if (!NAME.test(file.name) || file.name.endsWith('.')) throw new Error(`${file.name} is no name for a file in the root folder`);
  const volume = await openFatVolume(disk, partition);
  let slots = await readSlots(disk, volume);
  const old = find(slots, file.name);
  if (old && old.firstCluster < 0) throw new Error(`${file.name} is there and is no file`);
  if (old && (await volume.readChain(old.firstCluster, old.size)).equals(file.content)) return;

  const needed = Math.ceil(file.name.length / 13) + 1;
  if (!freeRun(slots, needed, old?.slots ?? [])) {
    if (!(await volume.growRoot())) throw new Error('the root folder is full');
    slots = await readSlots(disk, volume);
  }
  const firstCluster = await volume.writeChain(file.content);
  // Gone before the new one comes: absent is allowed, two of one name are not.
  const before = find(slots, file.name);
  for (const slot of before?.slots ?? []) {
    slot.bytes[0] = 0xe5;
    await disk.write(slot.position, slot.bytes);
  }
  await disk.flush();
  const run = freeRun(slots, needed, []);
  if (!run) throw new Error('the root folder is full');
  await openWayTo(disk, slots, run);
  await disk.write(run[0]!.position, newSlots(file.name, shortNameFor(file.name, slots), { firstCluster, size: file.content.length, at: file.at }));
  await disk.flush();
  if (before) await volume.freeChain(before.firstCluster);
}
