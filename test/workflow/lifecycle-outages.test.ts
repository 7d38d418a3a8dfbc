/** A lifecycle while the store or NetBox is away: it writes nothing it does not know, and catches up. In a server of its own, since time is skipped here. */
import { crashes, fails, lifecycleView, openWorkflowBench, type WorkflowBench } from '../support/workflow-bench.js';
import { until } from '../support/until.js';

let workflows: WorkflowBench;
beforeAll(async () => void (workflows = await openWorkflowBench()));
afterAll(async () => workflows?.close());

test('a lifecycle that cannot recall its state writes none, and recalls it again', async () => {
  let tries = 0;
  const node = workflows.node({ recallDevice: (_input, usual) => { if (++tries === 1) throw crashes('cannot read properties of undefined'); return usual(); } });
  node.asks = 'reprovision';
  await workflows.startLifecycle(node);
  await workflows.skipUntil('recalled', async () => node.called('recallDevice').length > 1);
  await until('the run is done', async () => node.record.lastRun?.outcome.end === 'done' && node.record.state === 'active');
  expect(node.called('keepState').map(({ state }) => state)).not.toContain('planned');
});

test('a run that NetBox kept from being begun for longer than its limit is begun when NetBox is back', async () => {
  let isAway = true;
  const node = workflows.node({ writeStatus: (_input, usual) => { if (isAway) throw fails('netbox_unreachable', { why: 'gone' }, true); return usual(); } });
  node.asks = 'reprovision';
  const handle = await workflows.startLifecycle(node);
  await workflows.skipUntil('given up, and tried again', async () => node.called('writeStatus').length > 2);
  expect((await lifecycleView(handle)).hold).toBeNull();
  isAway = false;
  await workflows.skipUntil('the run is done', async () => node.record.lastRun);
  await until('active is written', async () => node.record.netboxStatus === 'active');
  expect(node.called('writeStatus').at(-1)).toMatchObject({ status: 'active' });
});

test('a retired node is offline in NetBox when NetBox is back, however long it was away', async () => {
  let isAway = true;
  const node = workflows.node({ writeStatus: ({ status }, usual) => { if (isAway && status === 'offline') throw fails('netbox_unreachable', { why: 'gone' }, true); return usual(); }, lookAtDevice: (_input, usual) => (node.record.state === 'retired' ? { kind: 'not-ours' } : usual()) });
  node.asks = 'retire';
  const handle = await workflows.startLifecycle(node);
  await until('it is retired', async () => node.record.state === 'retired' && node.called('writeStatus').length > 1);
  isAway = false;
  await workflows.skipUntil('offline is written', async () => node.record.netboxStatus === 'offline');
  await until('the lifecycle has ended', async () => (await handle.describe()).status.name === 'COMPLETED');
});

test('between two histories a lifecycle shows what it showed last, not a node without a run', async () => {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const node = workflows.node({ recallDevice: async (_input, usual) => { await released; return usual(); } });
  const shown = { deviceId: node.deviceId, node: node.record.name, state: 'provisioning', since: new Date(0).toISOString(), adopted: false, nodeClass: 'talos', site: 'lab', openRun: { run: 7, kind: 'provision', workflowId: 'w' }, lastRun: null, nextRequest: null, power: 'on', hold: null, waitsFor: 'run 7 (provision)' } as const;
  const handle = await workflows.startLifecycle(node, { pendingWake: false, pendingAttestations: [], told: null, shown });
  expect(await lifecycleView(handle)).toEqual(shown);
  release();
  await until('it is recalled', async () => (await lifecycleView(handle)).state === 'active');
});
