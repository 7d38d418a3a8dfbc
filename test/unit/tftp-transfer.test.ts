import type { Timers } from '../../src/boot/patience.js';
import { DEFAULT_TFTP_LIMITS } from '../../src/boot/tftp/limits.js';
import type { TransferTerms } from '../../src/boot/tftp/options.js';
import { readPacket, type TftpPacket } from '../../src/boot/tftp/packet.js';
import { createTransfer, type TransferEnd } from '../../src/boot/tftp/transfer.js';

/** Timers that go off when told. */
function handTimers(): Timers & { pass(ms: number): void; pending(): number } {
  let now = 0;
  const waiting = new Set<{ at: number; call: () => void }>();
  return {
    after(ms, call) {
      const timer = { at: now + ms, call };
      waiting.add(timer);
      return () => waiting.delete(timer);
    },
    pass(ms) {
      // Each rings at its own time, also one that is set by another on the way.
      const until = now + ms;
      for (;;) {
        const next = [...waiting].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
        if (!next) break;
        now = Math.max(now, next.at);
        waiting.delete(next);
        next.call();
      }
      now = until;
    },
    pending: () => waiting.size,
    now: () => now,
  };
}

/** Lets reads that are already answered go on. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function transferOf(bytes: Buffer, terms: Partial<TransferTerms> = {}, inMemory = false) {
  const timers = handTimers();
  const sent: TftpPacket[] = [];
  const ends: TransferEnd[] = [];
  const transfer = createTransfer({
    file: { size: bytes.length, read: async (offset, length) => bytes.subarray(offset, offset + length), ...(inMemory && { bytes }) },
    terms: { blockSize: 512, windowSize: 1, waitMs: 1000, accepted: [], ...terms },
    limits: DEFAULT_TFTP_LIMITS,
    timers,
    send: (packet) => sent.push(readPacket(Buffer.from(packet))),
    ended: (end) => ends.push(end),
  });
  return {
    timers, ends, transfer,
    /** Blocks sent since the last call. */
    async blocks(): Promise<number[]> {
      await settle();
      return sent.splice(0).map((packet) => (packet.kind === 'data' ? packet.block : -1));
    },
    async packets(): Promise<TftpPacket[]> {
      await settle();
      return sent.splice(0);
    },
    ack: (block: number) => transfer.receive({ kind: 'ack', block }),
  };
}
const tenBlocks = Buffer.alloc(9 * 512 + 100, 7);
const WINDOW = { windowSize: 4, accepted: [{ name: 'windowsize', value: '4' }] };

describe('a transfer', () => {
  test('sends each block once per acknowledgement, and nothing for a repeated one (T5 a)', async () => {
    const { transfer, blocks, ack, timers } = transferOf(tenBlocks);
    transfer.start();
    expect(await blocks()).toEqual([1]);
    ack(1);
    expect(await blocks()).toEqual([2]);
    ack(1);
    ack(1);
    expect(await blocks()).toEqual([]);
    timers.pass(100);
    expect(await blocks()).toEqual([2]);
  });

  test('goes back to the block after the one acknowledged in the middle of a window (T5 b)', async () => {
    const { transfer, blocks, packets, ack } = transferOf(tenBlocks, WINDOW);
    transfer.start();
    expect((await packets()).map(({ kind }) => kind)).toEqual(['oack']);
    ack(0);
    expect(await blocks()).toEqual([1, 2, 3, 4]);
    ack(2);
    expect(await blocks()).toEqual([3, 4, 5, 6]);
    ack(6);
    expect(await blocks()).toEqual([7, 8, 9, 10]);
  });

  test('ignores an acknowledgement of what was never sent', async () => {
    const { transfer, blocks, ack, ends } = transferOf(tenBlocks);
    transfer.start();
    await blocks();
    ack(2);
    ack(60_000);
    expect(await blocks()).toEqual([]);
    expect(ends).toEqual([]);
  });

  test('sends nothing twice when the window is acknowledged while the disk still reads', async () => {
    const timers = handTimers();
    const sent: TftpPacket[] = [];
    const reads: (() => void)[] = [];
    // Two blocks are more than is read ahead: each window has to be waited for.
    const large = Buffer.alloc(9 * 40_000 + 100, 7);
    const transfer = createTransfer({
      file: { size: large.length, read: (offset, length) => new Promise((resolve) => reads.push(() => resolve(large.subarray(offset, offset + length)))) },
      terms: { blockSize: 40_000, windowSize: 4, waitMs: 1000, accepted: [{ name: 'windowsize', value: '4' }] },
      limits: DEFAULT_TFTP_LIMITS, timers, send: (packet) => sent.push(readPacket(Buffer.from(packet))), ended: () => {},
    });
    transfer.start();
    transfer.receive({ kind: 'ack', block: 0 });
    reads[0]!();
    await settle();
    transfer.receive({ kind: 'ack', block: 2 });
    transfer.receive({ kind: 'ack', block: 4 });
    reads.forEach((answer) => answer());
    await settle();
    expect(sent.map((packet) => (packet.kind === 'data' ? packet.block : 0))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test('ends as aborted when the client answers the OACK with ERROR 8, and says nothing more (T1)', async () => {
    const { transfer, packets, ends, timers } = transferOf(tenBlocks, { accepted: [{ name: 'tsize', value: '4708' }] });
    transfer.start();
    await packets();
    transfer.receive({ kind: 'error', code: 8, text: 'User aborted the transfer' });
    timers.pass(60_000);
    expect(await packets()).toEqual([]);
    expect(ends).toEqual([{ outcome: 'aborted', blocksAcknowledged: 0, resends: 0 }]);
    expect(timers.pending()).toBe(0);
  });

  test('to a client that never answers is sent three times in seven seconds, and leaves no timer (T5 e)', async () => {
    const { transfer, blocks, ends, timers } = transferOf(tenBlocks);
    transfer.start();
    await blocks();
    for (const wait of [1000, 2000]) {
      timers.pass(wait - 1);
      expect(await blocks()).toEqual([]);
      timers.pass(1);
      expect(await blocks()).toEqual([1]);
    }
    timers.pass(4000);
    expect(ends).toEqual([{ outcome: 'timed-out', blocksAcknowledged: 0, resends: 2 }]);
    expect(timers.pending()).toBe(0);
  });

  test('to a client that has answered is sent again at the pace of its answers first, then ever slower, and is given up after a bounded time', async () => {
    const { transfer, blocks, ack, ends, timers } = transferOf(tenBlocks);
    transfer.start();
    await blocks();
    timers.pass(10);
    ack(1);
    expect(await blocks()).toEqual([2]);
    for (const wait of [100, 200, 400, 1000, 2000, 4000, 4000, 4000]) {
      timers.pass(wait - 1);
      expect(await blocks()).toEqual([]);
      timers.pass(1);
      expect(await blocks()).toEqual([2]);
    }
    timers.pass(3999);
    expect(ends).toEqual([]);
    timers.pass(1);
    expect(ends).toEqual([{ outcome: 'timed-out', blocksAcknowledged: 1, resends: 8 }]);
    expect(timers.pending()).toBe(0);
  });

  test('to a client that asked for a timeout waits that long, however quick its answers are (RFC 2349)', async () => {
    const { transfer, blocks, ack, timers } = transferOf(tenBlocks, { waitMs: 3000, accepted: [{ name: 'TimeOut', value: '3' }] });
    transfer.start();
    ack(0);
    await blocks();
    ack(1);
    expect(await blocks()).toEqual([2]);
    timers.pass(2999);
    expect(await blocks()).toEqual([]);
    timers.pass(1);
    expect(await blocks()).toEqual([2]);
  });

  test('sets no timer for each block', async () => {
    const { transfer, ack, timers, ends } = transferOf(tenBlocks, {}, true);
    let set = 0;
    const { after } = timers;
    timers.after = (ms, call) => (set++, after(ms, call));
    transfer.start();
    for (let block = 1; block <= 10; block++) {
      timers.pass(1);
      ack(block);
    }
    expect(ends).toMatchObject([{ outcome: 'complete', resends: 0 }]);
    expect(timers.pending()).toBe(0);
    expect(set).toBeLessThanOrEqual(3);
  });

  test('ends after the longest time for a whole file, however the client goes on', async () => {
    const { transfer, ack, ends, timers } = transferOf(Buffer.alloc(100 * 512), {}, true);
    transfer.start();
    for (let block = 1; block < 60; block++) {
      ack(block);
      timers.pass(10_000);
    }
    expect(ends).toEqual([]);
    timers.pass(10_000);
    expect(ends).toMatchObject([{ outcome: 'timed-out', blocksAcknowledged: 59 }]);
  });

  test.each([['an empty file', 0, [0]], ['one byte', 1, [1]], ['an exact multiple', 1024, [512, 512, 0]], ['one byte less', 1023, [512, 511]]])('%s ends with a short block', async (_, size, lengths) => {
    const { transfer, packets, ack, ends } = transferOf(Buffer.alloc(size));
    transfer.start();
    const seen: number[] = [];
    for (let block = 1; ends.length === 0 && block < 5; block++) {
      for (const packet of await packets()) if (packet.kind === 'data') seen.push(packet.data.length);
      ack(block);
    }
    expect(seen).toEqual(lengths);
    expect(ends).toMatchObject([{ outcome: 'complete' }]);
  });

  test('numbers blocks past 65535 from 0 on, across a window', async () => {
    const bytes = Buffer.alloc(8 * 65_540 + 3, 1);
    const { transfer, blocks, ack, ends } = transferOf(bytes, { blockSize: 8, windowSize: 16, accepted: [{ name: 'windowsize', value: '16' }] });
    transfer.start();
    await blocks();
    ack(0);
    const seen: number[] = [];
    while (ends.length === 0 && seen.length < 70_000) {
      const window = await blocks();
      seen.push(...window);
      ack(window.at(-1)!);
    }
    expect(seen.length).toBe(65_541);
    expect(seen.slice(65_533, 65_538)).toEqual([65_534, 65_535, 0, 1, 2]);
    expect(ends).toMatchObject([{ outcome: 'complete', resends: 0 }]);
  });

  test('says so and ends when the file becomes shorter meanwhile', async () => {
    const sent: TftpPacket[] = [];
    const ends: TransferEnd[] = [];
    createTransfer({
      file: { size: 5000, read: async () => Buffer.alloc(3) }, terms: { blockSize: 512, windowSize: 1, waitMs: 1000, accepted: [] },
      limits: DEFAULT_TFTP_LIMITS, timers: handTimers(), send: (packet) => sent.push(readPacket(packet)), ended: (end) => ends.push(end),
    }).start();
    await settle();
    expect(sent).toEqual([{ kind: 'error', code: 0, text: 'the file cannot be read' }]);
    expect(ends).toEqual([{ outcome: 'read-failed', blocksAcknowledged: 0, resends: 0 }]);
  });

  test('an ERROR in the middle is the client giving up', async () => {
    const { transfer, packets, ends } = transferOf(tenBlocks);
    transfer.start();
    await packets();
    transfer.receive({ kind: 'error', code: 3, text: 'disk full' });
    expect(ends).toMatchObject([{ outcome: 'client-error' }]);
  });
});
