/** Power as a run needs it, against a BMC that does what a BMC may do. */
import { Context } from '@temporalio/activity';
import { createPowerActivities, type PowerActivities, type PowerChange } from '../../src/activities/power.js';
import type { Bmc, CommandResult, UuidReading } from '../../src/contracts/bmc.js';
import type { BmcAddress } from '../../src/contracts/device.js';
import { approvalOf } from '../../src/power/machine-check.js';
import type { PowerName, PowerReading } from '../../src/domain/power.js';
import { runActivity } from '../support/activity-env.js';
import { VirtualTime } from '../support/power/virtual-time.js';
import { UUID } from '../support/store-bench.js';

const read = (power: PowerName): PowerReading => ({ kind: 'read', power });
const [ON, OFF, OFF_HARD, HIBERNATE, SLEEP] = (['on', 'off-soft', 'off-hard', 'hibernate', 'sleep-deep'] as const).map(read) as [PowerReading, PowerReading, PowerReading, PowerReading, PowerReading];
const AMT: BmcAddress = { type: 'amt', host: '10.0.0.7' };
const SILENT: PowerReading = { kind: 'unknown', code: 'bmc_unreachable', why: 'timeout' };
const LOCKED_OUT: PowerReading = { kind: 'unknown', code: 'bmc_auth_failed', why: '401' };
const OTHER = UUID.replace('4c4c', '5d5d');

const LIMITS = { limitSeconds: 30, settlingSeconds: 50, pollSeconds: 2 };

/** A BMC by script: each reading once, the last one for ever. */
class Bench {
  readonly time = new VirtualTime();
  readings: PowerReading[] = [ON];
  uuid: UuidReading = { kind: 'read', uuid: UUID };
  answer: CommandResult = { kind: 'accepted' };
  /** What the power reads once the command was sent. */
  afterCommand: PowerReading[] | null = null;
  readonly sent: string[] = [];
  readonly conversations: { open: boolean; reads: number }[] = [];
  readonly intents = new Map<string, { answer: CommandResult | null; writtenAt: string }>();
  readonly written: string[] = [];
  lastChangeAt: string | null = null;
  approvedUuid: string | null = null;
  fence: Error | null = null;
  /** What happens elsewhere until the lease is had. */
  atLock = (): void => undefined;
  readonly words: string[] = [];
  readonly heartbeats: unknown[] = [];
  #locked: string | null = null;
  readonly activities: PowerActivities;

  constructor(readonly address: BmcAddress = AMT) {
    this.activities = createPowerActivities({
      lockSeconds: 60,
      clock: { now: () => this.time.now(), after: (ms, call) => this.time.after(ms, call), pause: (ms) => Promise.race([this.time.pause(ms), Context.current().cancelled]) },
      bmc: { open: async (at) => this.#open(at) },
      stores: {
        fence: { enter: async () => { if (this.fence) throw this.fence; return 'held'; } },
        devices: { setPower: async (_id: string, word: string) => void this.words.push(word), find: async () => ({ approvedUuid: this.approvedUuid }) } as never,
        power: {
          intend: async (_ref, { id, command }, lease) => {
            if (lease && this.#locked !== lease.holder) return { kind: 'lease-lost' };
            const there = this.intents.get(id);
            if (there) return { kind: 'again', ...there };
            this.intents.set(id, { answer: null, writtenAt: this.nowText() });
            this.written.push(`intent ${command}`);
            return { kind: 'first' };
          },
          answered: async (id, answer) => void this.intents.set(id, { ...this.intents.get(id)!, answer }),
          lock: async (_bmc, holder) => (this.atLock(), (this.#locked ??= holder) === holder),
          unlock: async () => void (this.#locked = null),
          lastChangeAt: async () => this.lastChangeAt,
        },
      },
    });
  }

  #open(address: BmcAddress): Bmc {
    const conversation = { open: true, reads: 0 };
    this.conversations.push(conversation);
    const command = async (name: string): Promise<CommandResult> => {
      this.sent.push(name);
      this.written.push(`sent ${name}`);
      if (this.afterCommand) this.readings = [...this.afterCommand];
      return this.answer;
    };
    return {
      address,
      observePower: async () => (conversation.reads++, this.readings.length > 1 ? this.readings.shift()! : this.readings[0]!),
      machineUuid: async () => this.uuid,
      powerOn: () => command('on'), powerOff: () => command('off'), bootOnceFromNetwork: () => command('network'),
      identify: async () => null, capabilities: async () => null, diagnose: async () => [],
      close: async () => void (conversation.open = false),
    };
  }

  nowText(): string {
    return new Date(this.time.now()).toISOString();
  }

  cancelAtHeartbeat = false;
  readonly #caller = {
    workflowId: 'node/7/run/1', temporalRunId: 'temporal-run-1',
    onHeartbeat: (details: unknown, cancel: () => void) => {
      this.heartbeats.push(details);
      if (this.cancelAtHeartbeat) cancel();
    },
  };
  change(command: 'on' | 'off', extra: Partial<PowerChange> = {}) {
    return this.#run(this.activities.changePower, { ...LIMITS, deviceId: '7', run: 1, bmc: this.address, command, intent: 'cycle-1/1', ...extra });
  }
  confirmOff() {
    return this.#run(this.activities.confirmOff, { ...LIMITS, deviceId: '7', run: 1, bmc: this.address, systemUuid: UUID, apartSeconds: 5 });
  }
  bootOnce() {
    return this.#run(this.activities.bootOnceFromNetwork, { deviceId: '7', run: 1, bmc: this.address, limitSeconds: 30 });
  }
  checkMachine(systemUuid: string | null = UUID) {
    return this.#run(this.activities.checkMachine, { ...LIMITS, deviceId: '7', run: 1, bmc: this.address, systemUuid });
  }
  #run<Input, Output>(activity: (input: Input) => Promise<Output>, input: Input): Promise<Output> {
    return this.time.run(runActivity(this.#caller, activity, input));
  }
}

let bench: Bench;
beforeEach(() => void (bench = new Bench()));
afterEach(() => expect(bench.conversations.filter((one) => one.open)).toEqual([]));

describe('a power change', () => {
  test.each([['off', OFF], ['off', OFF_HARD], ['on', ON]] as const)('to %s sends nothing when the state is there (A3)', async (command, reading) => {
    bench.readings = [reading];
    expect(await bench.change(command)).toEqual({ kind: 'reached', power: command, commanded: false });
    expect([bench.sent, bench.written]).toEqual([[], []]);
  });
  test('writes its intent before the wire, sends one command, and believes the reading only (A5: on the 4th poll)', async () => {
    bench.afterCommand = [ON, ON, ON, OFF];
    expect(await bench.change('off')).toEqual({ kind: 'reached', power: 'off', commanded: true });
    expect(bench.written).toEqual(['intent off', 'sent off']);
    expect(bench.readings).toEqual([OFF]);
  });
  test.each([['hibernate', HIBERNATE], ['sleep', SLEEP]] as const)('%s is not off (A3, A5): off is asked for, never on or cycle', async (_name, reading) => {
    bench.readings = [reading];
    bench.afterCommand = [OFF];
    expect(await bench.change('off')).toMatchObject({ kind: 'reached', commanded: true });
    expect(bench.sent).toEqual(['off']);
  });
  test.each<['on' | 'off', PowerReading, string]>([['off', ON, 'bmc_still_on'], ['off', HIBERNATE, 'bmc_still_on'], ['on', OFF, 'bmc_still_off'], ['on', SLEEP, 'bmc_still_off']])('to %s that reads %j for ever has one command, and is a named failure (A5)', async (command, reading, code) => {
    bench.readings = [reading];
    expect(await bench.change(command)).toMatchObject({ kind: 'not-reached', answer: 'accepted', failure: { code, message: expect.stringContaining(reading.kind === 'read' ? reading.power : '') } });
    expect(bench.sent).toEqual([command]);
  });
  test('beats its heart with what it sees', async () => {
    bench.afterCommand = [ON, OFF];
    await bench.change('off');
    expect(bench.heartbeats).toEqual([{ asked: 'off', reads: 'on' }, { asked: 'off', reads: 'off' }]);
    expect(bench.words).toEqual(['on', 'on', 'off']);
  });
  test('that the fence refuses reaches no BMC', async () => {
    bench.fence = new Error('stale');
    await expect(bench.change('off')).rejects.toThrow('stale');
    expect(bench.conversations).toEqual([]);
  });
});

describe('one boot from the network', () => {
  test('is armed', async () => {
    expect([await bench.bootOnce(), bench.sent]).toEqual([{ kind: 'armed' }, ['network']]);
  });
  test('is not armed by a run whose fence was taken over while it waited for the lease', async () => {
    bench.atLock = () => void (bench.fence = new Error('stale'));
    await expect(bench.bootOnce()).rejects.toThrow('stale');
    expect(bench.sent).toEqual([]);
  });
});

describe('one command a request, whatever the BMC answers', () => {
  test.each<[string, CommandResult, object]>([
    ['refused (A5)', { kind: 'refused', code: 'bmc_refused', why: 'not ready', details: { value: '2' } }, { kind: 'refused', failure: { code: 'bmc_refused', message: 'the BMC refused power off with 2 (not ready)' } }],
    ['refused for its credentials', { kind: 'refused', code: 'bmc_auth_failed', why: '401' }, { kind: 'refused', failure: { code: 'bmc_auth_failed', message: expect.stringContaining('bmc-amt') } }],
    ['unknown, and the state did not come', { kind: 'unknown', why: 'timeout' }, { kind: 'not-reached', power: 'on', answer: 'unknown', failure: { code: 'bmc_outcome_unknown' } }],
    ['not sent', { kind: 'not-sent', why: 'connection refused' }, { kind: 'not-reached', power: 'on', answer: 'not-sent', failure: { code: 'bmc_not_sent', message: 'power off was not sent to the BMC at 10.0.0.7: connection refused' } }],
  ])('%s', async (_what, answer, expected) => {
    bench.answer = answer;
    expect(await bench.change('off')).toMatchObject(expected);
    // The next try of the same request sends nothing more.
    expect(await bench.change('off')).toMatchObject(expected);
    expect(bench.sent).toEqual(['off']);
  });
  test('an unknown answer whose effect is seen is reached', async () => {
    bench.answer = { kind: 'unknown', why: 'timeout' };
    bench.afterCommand = [OFF];
    expect(await bench.change('off')).toEqual({ kind: 'reached', power: 'off', commanded: true });
  });
});

describe('an attempt that finds an intent without an answer (W3)', () => {
  beforeEach(() => void bench.intents.set('cycle-1/1', { answer: null, writtenAt: bench.nowText() }));
  test('only observes, and sees the effect of the first', async () => {
    bench.readings = [ON, ON, OFF];
    expect(await bench.change('off')).toEqual({ kind: 'reached', power: 'off', commanded: true });
    expect(bench.sent).toEqual([]);
  });
  test('only observes, and says that it does not know', async () => {
    expect(await bench.change('off')).toMatchObject({ kind: 'not-reached', power: 'on', answer: null, failure: { code: 'bmc_outcome_unknown' } });
    expect(bench.sent).toEqual([]);
  });
  test('that was cancelled meanwhile ends at its next heartbeat, and sends nothing', async () => {
    bench.intents.clear();
    bench.readings = [SILENT, ON];
    bench.cancelAtHeartbeat = true;
    const began = bench.time.now();
    await expect(bench.change('off')).rejects.toMatchObject({ name: 'CancelledFailure' });
    expect(bench.time.now()).toBe(began);
    expect([bench.sent, bench.intents.size]).toEqual([[], 0]);
  });
  test('of another request sends its own', async () => {
    bench.afterCommand = [OFF];
    expect(await bench.change('off', { intent: 'cycle-1/2' })).toMatchObject({ kind: 'reached' });
    expect(bench.sent).toEqual(['off']);
  });
});

describe('unreachable is never off', () => {
  test('and is not commanded blindly', async () => {
    bench.readings = [SILENT];
    expect(await bench.change('off')).toMatchObject({ kind: 'not-reached', power: 'unknown', answer: null, failure: { code: 'bmc_unreachable' } });
    expect([bench.sent, bench.intents.size]).toEqual([[], 0]);
  });
  test('a BMC that answers within the limit is commanded then', async () => {
    bench.readings = [SILENT, SILENT, ON];
    bench.afterCommand = [OFF];
    expect(await bench.change('off')).toMatchObject({ kind: 'reached', commanded: true });
  });
  test('a BMC that refuses the credentials is not asked until the limit', async () => {
    bench.readings = [SILENT, LOCKED_OUT];
    const began = bench.time.now();
    expect(await bench.change('off')).toMatchObject({ kind: 'not-reached', power: 'unknown', failure: { code: 'bmc_auth_failed', message: expect.stringContaining('bmc-amt') } });
    expect(bench.time.now() - began).toBe(LIMITS.pollSeconds * 1000);
  });
  test('a BMC that falls silent after the command leaves the power unknown (A5)', async () => {
    bench.afterCommand = [SILENT];
    expect(await bench.change('off')).toMatchObject({ kind: 'not-reached', power: 'unknown', answer: 'accepted', failure: { code: 'bmc_unreachable' } });
  });
  test('a manual node has nothing to read: a person is asked', async () => {
    bench = new Bench({ type: 'manual', host: '' });
    bench.readings = [SILENT];
    bench.answer = { kind: 'refused', code: 'bmc_manual_task', why: 'power it off', details: { task: 'power node-7 off' } };
    expect(await bench.change('off')).toMatchObject({ kind: 'refused', failure: { code: 'bmc_manual_task', message: expect.stringContaining('power node-7 off') } });
  });
});

describe('the silence of an AMT after a power change', () => {
  test('is settling, and has an allowance of its own beside the limit', async () => {
    bench.afterCommand = [...Array.from({ length: 10 }, () => SILENT), OFF];
    bench.lastChangeAt = bench.nowText();
    expect(await bench.change('off', { limitSeconds: 0, settlingSeconds: 60 })).toMatchObject({ kind: 'reached', power: 'off' });
    expect(bench.words).toContain('settling');
  });
  test('before the next command is waited out, and no command is claimed that was never sent', async () => {
    bench.readings = [...Array.from({ length: 10 }, () => SILENT), OFF];
    bench.afterCommand = [ON];
    bench.lastChangeAt = bench.nowText();
    expect(await bench.change('on', { limitSeconds: 0, settlingSeconds: 60 })).toEqual({ kind: 'reached', power: 'on', commanded: true });
    expect(bench.sent).toEqual(['on']);
  });
  test('that lasts longer is unreachable', async () => {
    bench.readings = [SILENT];
    bench.lastChangeAt = bench.nowText();
    expect(await bench.change('on', { settlingSeconds: 20 })).toMatchObject({ kind: 'not-reached', power: 'unknown', failure: { code: 'bmc_unreachable' } });
    expect(bench.sent).toEqual([]);
  });
  test('is no settling long after the change, nor of another kind of BMC, nor when it refuses us', async () => {
    bench.readings = [SILENT];
    bench.lastChangeAt = '2020-01-01T00:00:00.000Z';
    await bench.change('off');
    bench.lastChangeAt = bench.nowText();
    bench.readings = [LOCKED_OUT];
    await bench.change('off', { settlingSeconds: 60 });
    const redfish = new Bench({ type: 'redfish', host: '10.0.0.8' });
    redfish.readings = [SILENT];
    redfish.lastChangeAt = redfish.nowText();
    await redfish.change('off', { settlingSeconds: 60 });
    expect(new Set([...bench.words, ...redfish.words])).toEqual(new Set(['unknown']));
  });
});

describe('confirming that a node is off', () => {
  test('reads twice through fresh connections, each from the right machine', async () => {
    bench.readings = [OFF, OFF_HARD];
    expect(await bench.confirmOff()).toEqual({ kind: 'off-twice' });
    expect(bench.conversations.map((one) => one.reads)).toEqual([1, 1]);
    expect(bench.sent).toEqual([]);
  });
  test.each<[string, PowerReading[], string]>([
    ['on (A5)', [ON], 'bmc_still_on'],
    ['off, then on', [OFF, ON], 'bmc_still_on'],
    ['hibernate (A5)', [HIBERNATE], 'bmc_still_on'],
    ['sleep (A5)', [SLEEP], 'bmc_still_on'],
    ['silent (A5)', [SILENT], 'bmc_unreachable'],
    ['a BMC that refuses us', [LOCKED_OUT], 'bmc_auth_failed'],
    ['off, then silent', [OFF, SILENT], 'bmc_unreachable'],
  ])('%s is not off', async (_what, readings, code) => {
    bench.readings = readings;
    expect(await bench.confirmOff()).toMatchObject({ kind: 'not-off', failure: { code } });
  });
  test('a silence while AMT settles is no answer of either kind: it is asked again', async () => {
    bench.readings = [SILENT, SILENT, OFF];
    bench.lastChangeAt = bench.nowText();
    expect(await bench.confirmOff()).toEqual({ kind: 'off-twice' });
  });
  test('another machine that is off proves nothing of this device', async () => {
    bench.readings = [OFF];
    bench.uuid = { kind: 'read', uuid: OTHER };
    expect(await bench.confirmOff()).toMatchObject({ kind: 'another-machine', found: OTHER, failure: { code: 'bmc_is_another_machine' } });
  });
  test('a manual node cannot be proven off', async () => {
    bench = new Bench({ type: 'manual', host: '' });
    expect(await bench.confirmOff()).toMatchObject({ kind: 'not-off', failure: { code: 'off_unprovable' } });
    expect(bench.conversations).toEqual([]);
  });
});

describe('which machine is behind the BMC', () => {
  test.each<[string, UuidReading, string | null, string | null, object]>([
    ['the device', { kind: 'read', uuid: UUID.toUpperCase() }, UUID, null, { kind: 'same', uuid: UUID }],
    ['another', { kind: 'read', uuid: OTHER }, UUID, null, { kind: 'differs', found: OTHER, failure: { code: 'bmc_is_another_machine' } }],
    ['another that an approver accepted', { kind: 'read', uuid: OTHER }, UUID, OTHER, { kind: 'same', uuid: OTHER }],
    ['another than the one an approver accepted', { kind: 'read', uuid: OTHER }, UUID, UUID.replace('4c4c', '6e6e'), { kind: 'differs' }],
    ['one whose device has no UUID', { kind: 'read', uuid: OTHER }, null, null, { kind: 'differs', found: OTHER, failure: { code: 'bmc_uuid_unreadable' } }],
    ['one that does not say', { kind: 'unreadable', why: 'empty' }, UUID, null, { kind: 'differs', found: '', failure: { code: 'bmc_uuid_unreadable' } }],
    ['one that says zeros', { kind: 'read', uuid: '00000000-0000-0000-0000-000000000000' }, UUID, null, { kind: 'differs', found: '', failure: { code: 'bmc_uuid_unreadable' } }],
    ['one that does not say, and was approved so', { kind: 'unreadable', why: 'empty' }, UUID, approvalOf('', AMT), { kind: 'same', uuid: null }],
    ['one that does not say, where another BMC was approved so', { kind: 'unreadable', why: 'empty' }, UUID, approvalOf('', { ...AMT, host: '10.9.9.9' }), { kind: 'differs', found: '', failure: { code: 'bmc_uuid_unreadable' } }],
    ['one that does not answer', { kind: 'unknown', code: 'bmc_unreachable', why: 'timeout' }, UUID, UUID, { kind: 'unknown', failure: { code: 'bmc_unreachable' } }],
    ['one that refuses us', { kind: 'unknown', code: 'bmc_auth_failed', why: '401' }, UUID, null, { kind: 'unknown', failure: { code: 'bmc_auth_failed' } }],
  ])('%s', async (_what, uuid, systemUuid, approvedUuid, expected) => {
    bench.uuid = uuid;
    bench.approvedUuid = approvedUuid;
    expect(await bench.checkMachine(systemUuid)).toMatchObject(expected);
    expect(bench.sent).toEqual([]);
  });
});
