/** The power that the watch tells a lifecycle: shown, searched for, and nothing is done because of it. */
import { SEARCH_ATTRIBUTES, SIGNALS } from '../../src/contracts/messages.js';
import { lifecycleView, openWorkflowBench, type Bench, type WorkflowBench } from '../support/workflow-bench.js';
import { until } from '../support/until.js';
import type { WorkflowHandle } from '@temporalio/client';

let workflows: WorkflowBench;
beforeAll(async () => void (workflows = await openWorkflowBench()));
afterAll(() => workflows?.close());

const tell = (handle: WorkflowHandle, payload: unknown): Promise<void> => handle.signal(SIGNALS.powerSeen.name, payload);
const powerShown = async (handle: WorkflowHandle): Promise<unknown> => (await handle.describe()).searchAttributes[SEARCH_ATTRIBUTES.power]?.[0];

async function idle(): Promise<{ node: Bench; handle: WorkflowHandle }> {
  const node = workflows.node();
  const handle = await workflows.startLifecycle(node);
  await until('NetBox was asked', async () => node.called('lookAtDevice').length > 0);
  await until('it is shown', async () => (await powerShown(handle)) === 'on');
  return { node, handle };
}

test('what the store knew is shown from the take-up on, and a change when it is told; no activity is begun by it', async () => {
  const { node, handle } = await idle();
  const before = node.calls.length;
  await tell(handle, { power: 'off' });
  await until('shown', async () => (await powerShown(handle)) === 'off');
  expect((await lifecycleView(handle)).power).toBe('off');
  expect(node.calls.slice(before)).toEqual([]);
});

test('the same again adds its own signal and nothing else; what cannot be read is passed over', async () => {
  const { node, handle } = await idle();
  const upserts = async (): Promise<number> => (await handle.fetchHistory()).events!.filter((event) => event.upsertWorkflowSearchAttributesEventAttributes).length;
  const before = await upserts();
  for (const payload of [{ power: 'on' }, { power: 'on' }, { power: 'ablaze' }, null, 7]) await tell(handle, payload);
  await tell(handle, { power: 'sleeping' });
  await until('shown', async () => (await powerShown(handle)) === 'sleeping');
  expect(await upserts()).toBe(before + 1);
  expect(node.called('changePower')).toEqual([]);
});

test('a power that flaps for ever does not grow a history for ever', async () => {
  const { node, handle } = await idle();
  const first = (await handle.describe()).runId;
  // What a new history is told after it asked the store is shown, and rightly: here it asks when all is told.
  let letRecall = (): void => undefined;
  const allTold = new Promise<void>((resolve) => (letRecall = resolve));
  node.acts = { recallDevice: async (_input, usual) => (await allTold, usual()) };
  node.record = { ...node.record, power: 'off' };
  // As many as a history may have events; then the lifecycle gets its breath, as it would between two walks.
  for (let sent = 0; sent < 2000; sent += 100) await Promise.all(Array.from({ length: 100 }, (_, index) => tell(handle, { power: index % 2 === 0 ? 'off' : 'sleeping' })));
  // Of those the last to come may have been no news, and a history ends at news.
  await tell(handle, { power: 'on' });
  letRecall();
  await until('a new history', async () => (await handle.describe()).runId !== first, 240);
  await until('it goes on with what the store knows', async () => (await lifecycleView(handle)).power === 'off');
});
