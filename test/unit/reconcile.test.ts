/** The reconcile tells each lifecycle what it has not been told, and no more. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { createLifecycleActivities, type LifecycleActivitiesDeps } from '../../src/activities/lifecycle.js';

/** NetBox with these devices (id → last_updated), whose lifecycles run unless they are in `gone`. */
function world() {
  const changed = new Map([['1', '2026-01-01T00:00:00.000Z'], ['2', '2026-01-01T00:01:00.000Z']]);
  const gone = new Set<string>();
  const told: string[] = [];
  let mark: string | null = null;
  const deps = {
    netbox: { listChanged: async () => ({ devices: [...changed].map(([id, lastUpdated]) => ({ id, lastUpdated })), newest: '2026-01-01T00:01:00.000Z' }) },
    temporal: {
      look: async (workflowId: string) => (gone.has(workflowId) ? { kind: 'absent' } : { kind: 'running', runId: 'r' }),
      signalLifecycle: async (deviceId: string) => void told.push(deviceId),
    },
    stores: { devices: { reconcileMark: async () => mark, setReconcileMark: async (at: string) => void (mark = at), withOpenWork: async () => [] } },
  } as unknown as LifecycleActivitiesDeps;
  const { reconcile } = createLifecycleActivities(deps);
  const env = new MockActivityEnvironment();
  return {
    changed, gone,
    async reconciled() {
      told.length = 0;
      await env.run(reconcile);
      return [...told];
    },
  };
}

test('a device that has not changed since it was told of is not told of again', async () => {
  const { reconciled } = world();
  expect(await reconciled()).toEqual(['1', '2']);
  expect(await reconciled()).toEqual([]);
});

test('a device that changed is told of again, alone', async () => {
  const { reconciled, changed } = world();
  await reconciled();
  changed.set('2', '2026-01-01T00:01:30.000Z');
  expect(await reconciled()).toEqual(['2']);
});

test('a lifecycle that is gone is told again, though its device has not changed', async () => {
  const { reconciled, gone } = world();
  await reconciled();
  gone.add('node/1');
  expect(await reconciled()).toEqual(['1']);
});
