/** From the receiver to the store and the system journal. */
import type { ChildProcess, spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NodeLogLine } from '../../src/contracts/node-logs.js';
import { createJournalForwarder } from '../../src/boot/syslog/journal.js';
import { createLogKeeper, type KeeperLimits, type LineEnd } from '../../src/boot/syslog/keeper.js';
import { parseSyslog, type SyslogLine } from '../../src/boot/syslog/parse.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { bootSubject, NOW } from '../support/boot-directory.js';
import { until } from '../support/until.js';

const line = (text: string, sender = '10.0.37.16'): SyslogLine => parseSyslog(Buffer.from(`<30>Oct 11 22:14:15 hook agent: ${text}`), sender, NOW)!;

interface Bench {
  readonly kept: NodeLogLine[];
  readonly ends: Map<LineEnd, number>;
  readonly asked: string[];
  isAway: boolean;
  readonly keeper: ReturnType<typeof createLogKeeper>;
}
function open(limits: Partial<KeeperLimits> = {}): Bench {
  const bench: Bench = { kept: [], ends: new Map(), asked: [], isAway: false, keeper: null as never };
  const keeper = createLogKeeper({
    directory: { byAddress: async (address) => { bench.asked.push(address); return address === '10.0.37.16' ? bootSubject({ deviceId: '7' }) : null; } },
    logs: { keep: async (lines) => { if (bench.isAway) throw new Error('locked'); bench.kept.push(...lines); } },
    log: silentLogger(), now: () => NOW, count: (end, lines) => void bench.ends.set(end, (bench.ends.get(end) ?? 0) + lines), limits: { gatherMs: 1, ...limits },
  });
  return Object.assign(bench, { keeper });
}

test('a line is kept under the node whose address it came from; of nobody, none is kept', async () => {
  const { keeper, kept, ends, asked } = open();
  for (const text of ['one', 'two']) keeper.take(line(text));
  keeper.take(line('who am I', '10.9.9.9'));
  await keeper.close();
  expect(kept).toEqual(['one', 'two'].map((text) => ({ deviceId: '7', at: '2026-10-11T22:14:15.000Z', receivedAt: NOW.toISOString(), severity: 6, facility: 3, host: 'hook', program: 'agent', text })));
  expect(Object.fromEntries(ends)).toEqual({ kept: 2, 'of-nobody': 1 });
  // A burst of one node asks for its name once.
  expect(asked).toEqual(['10.0.37.16', '10.9.9.9']);
});

test('what the store cannot take is lost and counted, and what comes after is kept', async () => {
  const bench = open();
  bench.isAway = true;
  bench.keeper.take(line('lost'));
  await until('the line is lost', () => bench.ends.get('lost') === 1);
  bench.isAway = false;
  bench.keeper.take(line('kept'));
  await bench.keeper.close();
  expect(bench.kept.map(({ text }) => text)).toEqual(['kept']);
});

test('no more lines wait than may', async () => {
  const bench = open({ waiting: 3, gatherMs: 60_000 });
  for (let n = 0; n < 10; n++) bench.keeper.take(line(String(n)));
  await bench.keeper.close();
  expect([bench.kept.length, bench.ends.get('dropped')]).toEqual([3, 7]);
});

describe('the system journal', () => {
  let folder: string;
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'metalflow-journal-'))));
  afterEach(() => rmSync(folder, { recursive: true }));
  const program = (script: string): string => {
    const path = join(folder, 'logger');
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
    return path;
  };

  test('gets each line as an entry with the fields of HookOS, and a line break adds none', async () => {
    const forwarder = createJournalForwarder({ program: program(`[ "$1" = --journald ] && cat > ${folder}/entry.$$`), log: silentLogger(), limitMs: 60_000 });
    forwarder.take({ ...line('it works'), text: 'it works\nPRIORITY=0' });
    await until('it is forwarded', () => forwarder.stats().sent === 1);
    await forwarder.close();
    const entry = readdirSync(folder).find((name) => name.startsWith('entry'))!;
    expect(readFileSync(join(folder, entry), 'utf8')).toBe('MESSAGE=it works PRIORITY=0\nPRIORITY=6\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=agent\nHOOKOS_HOST=hook\nHOOKOS_PROGRAM=agent\nHOOKOS_ADDRESS=10.0.37.16\n');
  });

  test.each([
    ['is not there', () => '/nonexistent/logger'],
    ['fails', () => program('exit 3')],
    ['hangs', () => program('exec sleep 60')],
  ])('a program that %s costs its lines, counted, and nothing else', async (_what, make) => {
    const forwarder = createJournalForwarder({ program: make(), log: silentLogger(), atOnce: 1, waiting: 1, limitMs: 200 });
    for (let n = 0; n < 4; n++) forwarder.take(line(String(n)));
    await until('forwarding failed', () => forwarder.stats().failed >= 2);
    await forwarder.close();
    expect(forwarder.stats()).toEqual({ sent: 0, failed: 2, dropped: 2 });
  });

  test.each<[string, () => ChildProcess]>([
    ['gives a child without stdin, as it does when file descriptors run out', () => {
      const child = Object.assign(new EventEmitter(), { stdin: undefined }) as unknown as ChildProcess;
      process.nextTick(() => child.emit('error', new Error('spawn EMFILE')));
      return child;
    }],
    ['throws', () => { throw new Error('no'); }],
  ])('a start that %s is a failure, counted, and the role goes on', async (_what, make) => {
    const forwarder = createJournalForwarder({ program: 'logger', log: silentLogger(), start: make as unknown as typeof spawn });
    for (let n = 0; n < 2; n++) forwarder.take(line(String(n)));
    await until('forwarding failed', () => forwarder.stats().failed === 2);
    await forwarder.close();
    expect(forwarder.stats()).toEqual({ sent: 0, failed: 2, dropped: 0 });
  });
});
