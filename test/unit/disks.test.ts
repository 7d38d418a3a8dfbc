/** Which disk may be written: exactly one, or none at all. */
import { chooseRootDisk, chooseWipeDisks, mayWipe, type Disk, type DiskRule } from '../../src/domain/disks.js';

const disk = (serial: string, extra: Partial<Disk> = {}): Disk => ({ name: 'sda', serial, model: 'EVO', sizeBytes: 1000, bus: 'nvme', ...extra });
const SMALL = disk('S1', { sizeBytes: 500, bus: 'sata', wwn: 'eui.01' });
const LARGE = disk('S2', { sizeBytes: 2000, model: 'PRO' });
const TWIN = disk('S3', { sizeBytes: 2000, model: 'PRO' });
const NAMELESS = disk('', { sizeBytes: 4000, model: 'USB', bus: 'usb' });
const ALL = [SMALL, LARGE, TWIN, NAMELESS];

describe('the root disk', () => {
  test.each<[string, readonly Disk[], DiskRule, string | null, string]>([
    ['the one that is large enough', [SMALL, LARGE], { minBytes: 1000 }, null, 'S2'],
    ['the one that is small enough', [SMALL, LARGE], { maxBytes: 1000 }, null, 'S1'],
    ['a bound is part of the range', [SMALL, LARGE], { minBytes: 500, maxBytes: 500 }, null, 'S1'],
    ['the one of the model', [SMALL, LARGE], { model: 'PRO' }, null, 'S2'],
    ['the one on the bus', [SMALL, LARGE], { bus: 'sata' }, null, 'S1'],
    ['every given field has to fit', [SMALL, LARGE, disk('S4', { sizeBytes: 2000, bus: 'sata' })], { minBytes: 1000, bus: 'sata' }, null, 'S4'],
    ['an empty rule fits a node with one disk', [SMALL], {}, null, 'S1'],
    ['root_disk by serial', ALL, { model: 'EVO' }, 'S3', 'S3'],
    ['root_disk by WWN', ALL, {}, 'eui.01', 'S1'],
    ['root_disk wins over a rule that it does not fit', ALL, { minBytes: 10_000 }, 'S1', 'S1'],
  ])('%s', (_claim, disks, rule, rootDisk, serial) => {
    expect(chooseRootDisk(disks, rule, rootDisk)).toMatchObject({ kind: 'chosen', disk: { serial } });
  });

  test.each<[string, readonly Disk[], DiskRule, string | null, string, string]>([
    ['several fit the rule', ALL, { model: 'PRO' }, null, 'disk_several_match', 'S2'],
    ['an empty rule on a node with two disks', [SMALL, LARGE], {}, null, 'disk_several_match', '2 disks'],
    ['none fits', ALL, { minBytes: 10_000 }, null, 'disk_none_matches', '10000'],
    ['there is no disk at all', [], {}, null, 'disk_none_matches', 'none'],
    ['root_disk is not there, though the rule would fit one', [SMALL], {}, 'S9', 'disk_none_matches', 'root_disk S9'],
    ['root_disk names a prefix of a serial', [disk('S10')], {}, 'S1', 'disk_none_matches', 'root_disk S1'],
    ['root_disk in another case', [SMALL], {}, 's1', 'disk_none_matches', 'root_disk s1'],
    ['root_disk is the name of a device', [SMALL], {}, 'sda', 'disk_none_matches', 'root_disk sda'],
    ['two disks report the same serial', [disk('X'), disk('X')], {}, 'X', 'disk_several_match', '2 disks'],
    ['the only one that fits has neither serial nor WWN', ALL, { bus: 'usb' }, null, 'disk_none_matches', 'with a serial or WWN'],
  ])('is refused when %s', (_claim, disks, rule, rootDisk, code, says) => {
    const choice = chooseRootDisk(disks, rule, rootDisk);
    expect(choice).toMatchObject({ kind: 'refused', failure: { code } });
    expect(choice.kind === 'refused' && choice.failure.message).toContain(says);
  });
});

describe('the disks to be wiped', () => {
  test('are the listed ones that are there, and no other', () => {
    expect(chooseWipeDisks(ALL, ['S3', 'eui.01'])).toEqual({ kind: 'chosen', disks: [TWIN, SMALL] });
    expect(chooseWipeDisks(ALL, [])).toEqual({ kind: 'chosen', disks: [] });
  });
  test('name each disk once, by whatever names it is listed', () => {
    expect(chooseWipeDisks(ALL, ['S1', 'eui.01', 'S1'])).toEqual({ kind: 'chosen', disks: [SMALL] });
  });
  test('a listed disk that is missing is an error: it would stay unwiped', () => {
    expect(chooseWipeDisks(ALL, ['S1', 'S9'])).toMatchObject({ kind: 'refused', failure: { code: 'disk_none_matches', message: expect.stringContaining('wipe_disks S9') } });
  });
  test('a listed serial that two disks report is an error: one of them is not listed', () => {
    expect(chooseWipeDisks([disk('X'), disk('X')], ['X'])).toMatchObject({ kind: 'refused', failure: { code: 'disk_several_match' } });
  });
});

test.each<[Disk, readonly string[], boolean]>([
  [SMALL, ['S1'], true],
  [SMALL, ['eui.01'], true],
  [SMALL, ['S2'], false],
  [SMALL, [], false],
  [NAMELESS, ['S1', 'S2', 'undefined'], false],
])('%# a disk may be destroyed only when it is on the list', (one, listed, may) => {
  expect(mayWipe(one, listed)).toBe(may);
});
