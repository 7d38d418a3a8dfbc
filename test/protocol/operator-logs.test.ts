/** The log of a node over the operator plane. */
import type { KeptLogLine, NodeLogsQuery } from '../../src/contracts/node-logs.js';
import { startOperatorBench, type OperatorBench } from '../support/operator-ports.js';

const line = (id: string, text: string): KeptLogLine => ({
  id: id.padStart(26, '0'), deviceId: '7', run: 3, at: '2026-11-30T10:00:00.000Z', receivedAt: '2026-11-30T10:00:01.000Z', severity: 6, facility: 3, host: 'hook', program: 'agent', text,
});
let bench: OperatorBench;
let asked: [string, NodeLogsQuery][];
let pages: KeptLogLine[][];
beforeAll(async () => {
  bench = await startOperatorBench({
    logs: {
      async read(deviceId, query) {
        asked.push([deviceId, query]);
        const lines = pages.shift() ?? [];
        return { lines, after: lines.at(-1)?.id ?? query.after ?? null };
      },
    },
  });
});
beforeEach(() => {
  asked = [];
  pages = [];
});
afterAll(() => bench.close());

test('a page is read by name or id, with its run and its limit', async () => {
  pages = [[line('a', 'one')]];
  const { status, body } = await bench.call('GET', '/api/v1/nodes/node-7/logs?run=3&limit=10', 'reader');
  expect([status, body]).toEqual([200, { lines: [line('a', 'one')], after: line('a', '').id }]);
  expect(asked).toEqual([['7', { run: 3, limit: 10 }]]);
});

test('who waits gets the first line when it comes, and the cursor stays where it was when none does', async () => {
  pages = [[], [line('b', 'two')]];
  expect((await bench.call('GET', `/api/v1/nodes/7/logs?after=${line('a', '').id}&wait=20`, 'reader')).body.lines.map(({ text }: KeptLogLine) => text)).toEqual(['two']);
  expect(asked).toHaveLength(2);
  expect((await bench.call('GET', `/api/v1/nodes/7/logs?after=${line('b', '').id}`, 'reader')).body).toEqual({ lines: [], after: line('b', '').id });
});

test.each(['run=0', 'run=x', 'limit=0', 'limit=9999999', 'after=zz', "after=' or 1", 'since=yesterday', 'wait=31', 'wait=-1'])('%s is refused, and the store is not asked', async (query) => {
  const { status, body } = await bench.call('GET', `/api/v1/nodes/7/logs?${query}`, 'reader');
  expect([status, body.code, asked]).toEqual([400, 'body_invalid', []]);
});

test('an unknown node has no log', async () => {
  expect((await bench.call('GET', '/api/v1/nodes/nobody/logs', 'reader')).body.code).toBe('node_not_found');
});
