/** A sample of what test/e2e/crash-* does at every point; and that no point is forgotten there. */
import { CRASH_WORLD, expectLifeDoneOnce } from '../support/world/crash-life.js';
import { allPoints, ELSEWHERE, pointOf, PROVISION_ROWS, RETIRE_ROWS } from '../support/world/crash-rows.js';
import { openLanes, type Lanes } from '../support/world/lanes.js';
import { startTestTemporal, type TestTemporal } from '../support/world/temporal.js';

let temporal: TestTemporal;
let lanes: Lanes;
beforeAll(async () => {
  temporal = await startTestTemporal();
  lanes = await openLanes(temporal, 2, CRASH_WORLD);
});
afterAll(async () => {
  await lanes?.close();
  await temporal?.close();
});

test('every activity and every named point has a death in the crash tests, or a reason why not', () => {
  const tried = new Set([...PROVISION_ROWS, ...RETIRE_ROWS].map(pointOf));
  expect(allPoints().filter((point) => !tried.has(point) && !(point in ELSEWHERE))).toEqual([]);
  // And the tables name nothing that is not there, and nothing twice.
  const known = new Set(allPoints());
  expect([...tried, ...Object.keys(ELSEWHERE)].filter((point) => !known.has(point))).toEqual([]);
  expect(Object.keys(ELSEWHERE).filter((point) => tried.has(point))).toEqual([]);
});

test.concurrent.each([
  // Before an effect; after the power command that boots the node; a plane in the middle of the wipe; after the wipe's report.
  ['openRun:before', 'order-progress-before-commit'],
  ['changePower:after-effect', 'order-report-before-answer'],
])('a node becomes active though the house dies at %s, and is retired though it dies at %s', async (first, second) => {
  const provision = PROVISION_ROWS.find(({ at }) => at === first)!;
  const retire = RETIRE_ROWS.find(({ at }) => at === second)!;
  await lanes.take((world) => expectLifeDoneOnce(world, provision, retire));
});
