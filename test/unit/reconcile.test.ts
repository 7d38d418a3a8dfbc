/** The reconcile tells each lifecycle what it has not been told, and no more. */
import type { Device } from '../../src/contracts/device.js';
import type { WorkflowLook } from '../../src/contracts/temporal-port.js';
import { createLifecycleActivities, type LifecycleActivitiesDeps } from '../../src/activities/lifecycle.js';

import { MetalflowError } from '../../src/domain/errors.js';
import { runActivity } from '../support/activity-env.js';
import { deviceOf } from '../support/store-bench.js';

/** NetBox with these devices (id → last_updated), whose lifecycles run unless they are in `gone`. */
function world() {
  const changed = new Map([['1', '2026-01-01T00:00:00.000Z'], ['2', '2026-01-01T00:01:00.000Z']]);
  const gone = new Set<string>();
  const closed = new Map<string, WorkflowLook>();
  const told: string[] = [];
  const known: string[] = [];
  const asRegistered = new Set<string>();
  const inNetbox = new Map<string, Device | MetalflowError>();
  let mark: string | null = null;
  let isTemporalAway = false;
  const deps = {
    netbox: {
      readDevices: async (ids: readonly string[]) => new Map(ids.filter((id) => inNetbox.has(id)).map((id) => [id, inNetbox.get(id)!])),
      listChanged: async () => ({ devices: [...changed].map(([id, lastUpdated]) => ({ id, lastUpdated })), newest: '2026-01-01T00:01:00.000Z' }),
    },
    temporal: {
      look: async (workflowId: string) => (gone.has(workflowId) ? { kind: 'absent' } : (closed.get(workflowId) ?? { kind: 'running', runId: 'r' })),
      signalLifecycle: async (deviceId: string) => {
        if (isTemporalAway) throw new MetalflowError('temporal_unavailable', { why: 'a test' });
        told.push(deviceId);
      },
    },
    stores: { devices: { reconcileMark: async () => mark, setReconcileMark: async (at: string) => void (mark = at), withOpenWork: async () => [], nextToCompare: async () => known, isAsRegistered: async ({ id }: Device) => asRegistered.has(id) } },
  } as unknown as LifecycleActivitiesDeps;
  const { reconcile } = createLifecycleActivities(deps);
  return {
    changed, gone, closed, known, asRegistered, inNetbox,
    signalFails(fails: boolean) { isTemporalAway = fails; },
    async reconciled() {
      told.length = 0;
      await runActivity({ workflowId: 'reconcile', temporalRunId: 'r' }, () => reconcile(), undefined);
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

test.each<['completed' | 'terminated' | 'failed', string[]]>([['completed', []], ['terminated', ['1']], ['failed', ['1']]])('B2: of a device whose lifecycle %s, and that has not changed, %j is told again', async (how, again) => {
  const { reconciled, closed } = world();
  await reconciled();
  closed.set('node/1', { kind: 'closed', runId: 'r', how });
  expect(await reconciled()).toEqual(again);
});

describe('B1: of the devices that no list of changed ones shows,', () => {
  /** One known device, unchanged for NetBox's lists. */
  async function quiet() {
    const one = world();
    one.known.push('7');
    one.asRegistered.add('7');
    one.inNetbox.set('7', deviceOf());
    expect(await one.reconciled()).toEqual(['1', '2']);
    return one;
  }

  test('one that is as it was read last is not told of', async () => {
    expect(await (await quiet()).reconciled()).toEqual([]);
  });

  test.each<[string, (one: Awaited<ReturnType<typeof quiet>>) => void]>([
    ['was deleted', ({ inNetbox }) => void inNetbox.delete('7')],
    ['has another MAC', ({ inNetbox, asRegistered }) => void (inNetbox.set('7', deviceOf({ macs: ['02:01:48:aa:bb:ff'] })), asRegistered.delete('7'))],
    ['cannot be read any more', ({ inNetbox }) => void inNetbox.set('7', new MetalflowError('device_invalid', { field: 'oob_ip', what: 'is none' }))],
  ])('one that %s is told of, once', async (_what, change) => {
    const one = await quiet();
    change(one);
    expect(await one.reconciled()).toEqual(['7']);
    expect(await one.reconciled()).toEqual([]);
  });

  test('one that goes on to differ is told of again when NetBox says something else of it', async () => {
    const one = await quiet();
    one.asRegistered.delete('7');
    const readsOn = async (mac: string): Promise<string[]> => {
      one.inNetbox.set('7', deviceOf({ macs: [mac], lastUpdated: mac }));
      return one.reconciled();
    };
    expect([await readsOn('02:00:00:00:00:01'), await readsOn('02:00:00:00:00:01'), await readsOn('02:00:00:00:00:02')]).toEqual([['7'], [], ['7']]);
  });

  test('one that could not be told of is told of the next time', async () => {
    const one = await quiet();
    one.inNetbox.delete('7');
    one.signalFails(true);
    await expect(one.reconciled()).rejects.toMatchObject({ code: 'temporal_unavailable' });
    one.signalFails(false);
    expect(await one.reconciled()).toEqual(['7']);
  });
});
