/** Which disk a run may write. None or several matches is a terminal error, never a fallback (incident 3 elsewhere). */
import { failure, type Failure } from './errors.js';

/** A disk as the agent's inventory tells it. Sizes in bytes. */
export interface Disk {
  readonly name: string;
  readonly serial: string;
  readonly wwn?: string;
  readonly model: string;
  readonly sizeBytes: number;
  readonly bus: string;
}

/** A class rule; every given field must fit. */
export interface DiskRule {
  readonly minBytes?: number;
  readonly maxBytes?: number;
  readonly model?: string;
  readonly bus?: string;
}

export type DiskChoice = { readonly kind: 'chosen'; readonly disk: Disk } | { readonly kind: 'refused'; readonly failure: Failure };

const describe = (disks: readonly Disk[]): string => disks.map((d) => `${d.serial || 'no serial'} (${d.model}, ${d.sizeBytes} bytes, ${d.bus})`).join(', ') || 'none';

const fits = (disk: Disk, rule: DiskRule): boolean =>
  (rule.minBytes === undefined || disk.sizeBytes >= rule.minBytes) &&
  (rule.maxBytes === undefined || disk.sizeBytes <= rule.maxBytes) &&
  (rule.model === undefined || disk.model === rule.model) &&
  (rule.bus === undefined || disk.bus === rule.bus);

const isNamed = (disk: Disk, id: string): boolean => disk.serial === id || disk.wwn === id;

/** Which disk is the root disk? `rootDisk` (serial or WWN) of the device wins over the class rule. */
export function chooseRootDisk(disks: readonly Disk[], rule: DiskRule, rootDisk: string | null): DiskChoice {
  const wanted = rootDisk ? `root_disk ${rootDisk}` : `the class rule ${JSON.stringify(rule)}`;
  const matching = disks.filter((disk) => (rootDisk ? isNamed(disk, rootDisk) : fits(disk, rule)));
  if (matching.length === 0) return { kind: 'refused', failure: failure('disk_none_matches', { rule: wanted, disks: describe(disks) }) };
  if (matching.length > 1) return { kind: 'refused', failure: failure('disk_several_match', { count: matching.length, rule: wanted, disks: describe(matching) }) };
  const disk = matching[0]!;
  // A disk without serial and WWN cannot be told apart from its twin after a reboot: it cannot be pinned.
  if (!disk.serial && !disk.wwn) return { kind: 'refused', failure: failure('disk_none_matches', { rule: `${wanted}, with a serial or WWN`, disks: describe(disks) }) };
  return { kind: 'chosen', disk };
}

/** Which of the listed disks are there to be wiped? A listed disk that is missing is an error: it would stay unwiped. */
export function chooseWipeDisks(disks: readonly Disk[], listed: readonly string[]): { kind: 'chosen'; disks: Disk[] } | { kind: 'refused'; failure: Failure } {
  const chosen: Disk[] = [];
  for (const id of listed) {
    const matching = disks.filter((disk) => isNamed(disk, id));
    if (matching.length !== 1) {
      const code = matching.length === 0 ? 'disk_none_matches' : 'disk_several_match';
      return { kind: 'refused', failure: failure(code, { count: matching.length, rule: `wipe_disks ${id}`, disks: describe(disks) }) };
    }
    // Listed by serial and by WWN, it is one disk all the same.
    if (!chosen.includes(matching[0]!)) chosen.push(matching[0]!);
  }
  return { kind: 'chosen', disks: chosen };
}

/** May this disk be destroyed? Only disks on the device's list ever are. */
export const mayWipe = (disk: Disk, listed: readonly string[]): boolean => listed.some((id) => isNamed(disk, id));
