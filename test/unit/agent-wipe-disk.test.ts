import { wipeDisk } from '../../src/agent/actions/wipe-disk.js';
import type { ActionContext, ActionDone } from '../../src/agent/actions/action.js';
import { createExt4Files } from '../../src/agent/ext4-files.js';
import type { AgentDisk, DiskHandle } from '../../src/contracts/agent-machine.js';
import { createTestNode, quickSleep, type TestNode } from '../support/agent-node.js';

const MIB = 1024 * 1024;
let node: TestNode;
let stop: AbortController;
let notes: number[];
beforeEach(() => {
  node = createTestNode();
  stop = new AbortController();
  notes = [];
});
afterEach(() => node.remove());

const wipe = (extra: Partial<ActionContext> = {}): Promise<ActionDone> =>
  wipeDisk({ name: 'wipe-disk', disk: { serial: 'S1' } }, {
    machine: node.machine, signal: stop.signal, progress: ({ done }) => notes.push(done), sleep: quickSleep(), now: () => new Date(), installCode: null, fetchSeed: async () => [], ext4: createExt4Files(), ...extra,
  });
const isZero = (bytes: Buffer): boolean => bytes.every((byte) => byte === 0);

/** The disk's handles with some of their ways changed. */
function withWays(disk: AgentDisk, ways: (handle: DiskHandle) => Partial<DiskHandle>): void {
  const open = disk.open.bind(disk);
  Object.assign(disk, { open: async () => {
    const handle = await open();
    return { ...handle, ...ways(handle) };
  } });
}

it.each([1, 511, 4096, MIB - 1, MIB, MIB + 1, 9 * MIB + 7])('a disk of %d bytes reads zeros all over, and keeps its size', async (size) => {
  await node.addDisk('S1', Buffer.alloc(size, 0xaa));
  const done = await wipe();
  expect(node.contentOf('S1')).toHaveLength(size);
  expect(isZero(node.contentOf('S1'))).toBe(true);
  expect(done.evidence).toMatchObject({ serial: 'S1', method: 'zero', bytes: size });
  expect(notes.at(-1)).toBe(size);
});

it('a device that forgets at our word needs no zeros written', async () => {
  const disk = await node.addDisk('S1', Buffer.alloc(8 * MIB, 0xaa));
  let written = 0;
  withWays(disk, (handle) => ({
    write: async (position, bytes) => {
      written += bytes.length;
      await handle.write(position, bytes);
    },
    discard: async () => {
      await handle.write(0, Buffer.alloc(8 * MIB));
      return true;
    },
  }));
  await expect(wipe()).resolves.toMatchObject({ evidence: { method: 'discard' } });
  expect(written).toBe(2 * MIB);
});

it('a device that says it forgot and still reads data gets zeros written', async () => {
  const disk = await node.addDisk('S1', Buffer.alloc(8 * MIB, 0xaa));
  withWays(disk, () => ({ discard: async () => true }));
  await expect(wipe()).resolves.toMatchObject({ evidence: { method: 'zero' } });
  expect(isZero(node.contentOf('S1'))).toBe(true);
});

it('a disk that keeps its data is told by the byte, and is no success', async () => {
  const disk = await node.addDisk('S1', Buffer.alloc(4 * MIB, 0xaa));
  withWays(disk, (handle) => ({ write: async (position, bytes) => (position === 0 ? undefined : handle.write(position, bytes)) }));
  await expect(wipe()).rejects.toMatchObject({ code: 'disk_wipe_unproven', details: { serial: 'S1', at: 0 } });
});

it('shared storage is not touched', async () => {
  await node.addDisk('S1', Buffer.alloc(MIB, 0xaa), { bus: 'iscsi' });
  await expect(wipe()).rejects.toMatchObject({ code: 'disk_shared' });
  expect(node.contentOf('S1').equals(Buffer.alloc(MIB, 0xaa))).toBe(true);
});

it('a stop is seen at the next chunk', async () => {
  await node.addDisk('S1', Buffer.alloc(12 * MIB, 0xaa));
  await expect(wipe({ progress: ({ done }) => done > 0 && stop.abort(new Error('stop')) })).rejects.toThrow('stop');
  expect(node.contentOf('S1').subarray(4 * MIB, 11 * MIB).equals(Buffer.alloc(7 * MIB, 0xaa))).toBe(true);
});
