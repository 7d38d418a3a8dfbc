/**
 * The house is killed at every point at which an effect happens, once in the provision and once in the retirement of a node, and
 * started again. Whatever died, the node becomes active and is retired, each disk is wiped and written once, and its BMC was
 * asked no more than in peace. What is counted, and why it must be so, is in test/support/world/crash-life.ts.
 */
import { CRASH_WORLD, expectLifeDoneOnce } from '../support/world/crash-life.js';
import { PROVISION_ROWS, RETIRE_ROWS, type CrashRow } from '../support/world/crash-rows.js';
import { openLanes, type Lanes } from '../support/world/lanes.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';

const LANES = 3;

let temporal: TestTemporal;
let lanes: Lanes;
beforeAll(async () => {
  temporal = await startTestTemporal();
  lanes = await openLanes(temporal, LANES, CRASH_WORLD);
});
afterAll(async () => {
  await lanes?.close();
  await temporal?.close();
});

/** A death a run, so that one node serves two rows; the first node lives in peace, and shows what the others are held against. */
const LIVES: readonly (readonly [string, string, CrashRow | null, CrashRow | null])[] = [
  ['nowhere', 'nowhere', null, null],
  ...Array.from({ length: Math.max(PROVISION_ROWS.length, RETIRE_ROWS.length) }, (_, index) => {
    const [provision, retire] = [PROVISION_ROWS[index] ?? null, RETIRE_ROWS[index] ?? null];
    return [provision?.at ?? 'nowhere', retire?.at ?? 'nowhere', provision, retire] as const;
  }),
];

test.concurrent.each(LIVES)('a node becomes active though the house dies at %s, and is retired though it dies at %s', async (_first, _second, provision, retire) => {
  await lanes.take((world) => expectLifeDoneOnce(world, provision, retire));
});
