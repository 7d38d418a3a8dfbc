/** The store's memory of webhooks: order by `last_updated`, sameness by digest. */
import type { DeviceHint } from '../../src/contracts/operator.js';
import { StoreBench } from '../support/store-bench.js';

let bench: StoreBench;
beforeAll(async () => void (bench = await StoreBench.open()));
beforeEach(() => bench.clean());
afterAll(() => bench.close());

const hint = (lastUpdated: string, digest: string, deviceId = '7'): DeviceHint => ({ deviceId, lastUpdated: `2026-11-30T${lastUpdated}Z`, digest, event: 'updated' });
/** As the webhook route does: judged, and remembered when it was new. */
async function hear(...hints: DeviceHint[]): Promise<string[]> {
  const words: string[] = [];
  for (const one of hints) {
    const word = await bench.store.hooks.judge(one);
    words.push(word);
    if (word === 'new') await bench.store.hooks.remember(one);
  }
  return words;
}

test.each<[string, DeviceHint[], string[]]>([
  ['N1 (a): one save, two webhooks with the same content', [hint('10:00:00.000000', 'a'), hint('10:00:00.020000', 'a')], ['new', 'repeated']],
  ['N1 (a): the second one says more: later data wins', [hint('10:00:00.000000', 'a'), hint('10:00:00.020000', 'b')], ['new', 'new']],
  ['N1 (b): one bulk edit of three devices', [hint('10:00:00.000000', 'a', '7'), hint('10:00:00.000000', 'a', '8'), hint('10:00:00.000000', 'a', '9')], ['new', 'new', 'new']],
  ['N1 (c): the same one an hour later', [hint('10:00:00.000000', 'a'), hint('10:00:00.000000', 'a')], ['new', 'repeated']],
  ['N3: the newer first, then the older, then the older again', [hint('10:00:05.000000', 'retire'), hint('10:00:00.000000', 'provision'), hint('10:00:00.000000', 'provision')], ['new', 'stale', 'stale']],
  ['N3: order within one millisecond', [hint('10:00:05.123456', 'retire'), hint('10:00:05.123455', 'provision')], ['new', 'stale']],
  ['N3: the same instant with other content', [hint('10:00:00.000000', 'a'), hint('10:00:00.000000', 'b')], ['new', 'new']],
])('%s', async (_case, hints, words) => {
  expect(await hear(...hints)).toEqual(words);
});

test('N3: two that are judged before either is remembered leave the newer one remembered', async () => {
  const [newer, older] = [hint('10:00:05.000000', 'retire'), hint('10:00:00.000000', 'provision')];
  expect(await Promise.all([bench.store.hooks.judge(newer), bench.store.hooks.judge(older)])).toEqual(['new', 'new']);
  await bench.store.hooks.remember(newer);
  await bench.store.hooks.remember(older);
  expect(await bench.store.hooks.judge(older)).toBe('stale');
  expect(await bench.store.hooks.judge(newer)).toBe('repeated');
});

test('a hint whose signal failed is new when NetBox sends it again', async () => {
  const one = hint('10:00:00.000000', 'a');
  expect([await bench.store.hooks.judge(one), await bench.store.hooks.judge(one)]).toEqual(['new', 'new']);
});

test('the mark of the reconcile is no hint of a device', async () => {
  expect(await bench.store.devices.reconcileMark()).toBeNull();
  for (const mark of ['2026-11-30T10:00:00.000000Z', '2026-11-30T11:00:00.000000Z']) await bench.store.devices.setReconcileMark(mark);
  expect(await bench.store.devices.reconcileMark()).toBe('2026-11-30T11:00:00.000000Z');
  expect(await hear(hint('09:00:00.000000', 'a'))).toEqual(['new']);
});
