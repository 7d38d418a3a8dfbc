/** A machine, or its BMC, that a person names anew in NetBox while a run is held: pinned anew, compared, and only then commanded. */
import { failure, type ErrorCode } from '../../src/domain/errors.js';
import type { RunKind } from '../../src/domain/runs.js';
import { runWorkflowId } from '../../src/contracts/messages.js';
import type { BmcAddress } from '../../src/contracts/device.js';
import { endless, fails, openWorkflowBench, untilHeld, type Acts, type ActivityName, type Bench, type WorkflowBench } from '../support/workflow-bench.js';

let workflows: WorkflowBench;
beforeAll(async () => void (workflows = await openWorkflowBench()));
afterAll(async () => workflows?.close());

const NEW_BMC: BmcAddress = { type: 'amt', host: '127.0.0.9' };
const UUID = '4c4c4544-0001-4000-8000-000000000001';
const NEW_UUID = '4c4c4544-0002-4000-8000-000000000002';
const another = { kind: 'differs', found: 'x', failure: failure('bmc_is_another_machine', { found: 'x', expected: 'y' }) } as const;
const unreachable = failure('bmc_unreachable', { address: 'a', seconds: 1 });
const BMC_CALLS: readonly ActivityName[] = ['checkMachine', 'changePower', 'bootOnceFromNetwork', 'confirmOff'];

/** What was asked of which BMC, in order; a pin that was renewed stands between. */
const asked = (node: Bench): string[] => node.calls.flatMap(({ name, input }) => {
  if (name === 'renewPin') return ['renewed'];
  return BMC_CALLS.includes(name) ? [`${name} ${input['command'] ?? ''} ${(input['bmc'] as BmcAddress).host === NEW_BMC.host ? 'new' : 'old'}`.replace(/ +/g, ' ')] : [];
});
/** NetBox as the person left it. */
const named = (systemUuid: string, bmc: BmcAddress = NEW_BMC): Acts => ({ renewPin: () => ({ kind: 'renewed', bmc, systemUuid }) });
const atOld = (bmc: BmcAddress): boolean => bmc.host !== NEW_BMC.host;
/** The BMC of old answers `failing`; the new one does as it should. */
const OLD_FAILS = {
  changePower: (command: 'on' | 'off'): Acts => ({ changePower: (input, usual) => (atOld(input.bmc) && input.command === command ? { kind: 'not-reached', power: 'unknown', answer: null, failure: unreachable } : usual()), waitForPower: endless }),
  arming: (): Acts => ({ bootOnceFromNetwork: (input, usual) => (atOld(input.bmc) ? { kind: 'refused', failure: failure('bmc_refused', { step: 's', value: '2', meaning: 'm' }) } : usual()) }),
  givenUp: (): Acts => ({ bootOnceFromNetwork: (input, usual) => { if (atOld(input.bmc)) throw fails('bmc_unreachable', {}, true); return usual(); } }),
  confirming: (): Acts => ({ confirmOff: (input, usual) => (atOld(input.bmc) ? { kind: 'another-machine', found: 'x', failure: another.failure } : usual()) }),
};

test.each<[string, RunKind, Acts, ErrorCode, readonly string[]]>([
  ['before the first command', 'provision', { checkMachine: (input, usual) => (atOld(input.bmc) ? another : usual()) }, 'bmc_is_another_machine', ['checkMachine old', 'renewed', 'checkMachine new', 'changePower off new', 'bootOnceFromNetwork new', 'changePower on new']],
  ['while it is asked off', 'provision', OLD_FAILS.changePower('off'), 'bmc_unreachable', ['checkMachine old', 'changePower off old', 'renewed', 'checkMachine new', 'changePower off new', 'bootOnceFromNetwork new', 'changePower on new']],
  ['while it is armed', 'provision', OLD_FAILS.arming(), 'bmc_refused', ['checkMachine old', 'changePower off old', 'bootOnceFromNetwork old', 'renewed', 'checkMachine new', 'bootOnceFromNetwork new', 'changePower on new']],
  ['after its BMC was given up', 'provision', OLD_FAILS.givenUp(), 'bmc_unreachable', ['checkMachine old', 'changePower off old', 'bootOnceFromNetwork old', 'renewed', 'checkMachine new', 'changePower off new', 'bootOnceFromNetwork new', 'changePower on new']],
  ['while it is asked on', 'provision', OLD_FAILS.changePower('on'), 'bmc_unreachable', ['checkMachine old', 'changePower off old', 'bootOnceFromNetwork old', 'changePower on old', 'renewed', 'checkMachine new', 'changePower on new']],
  ['at the end of a retirement', 'retire', OLD_FAILS.confirming(), 'bmc_is_another_machine', ['checkMachine old', 'changePower off old', 'confirmOff old', 'renewed', 'checkMachine new', 'confirmOff new']],
])('A6: a BMC address that was corrected %s is compared on resume, and asked from then on', async (_when, kind, acts, code, calls) => {
  const node = workflows.node({ ...acts, ...named(UUID) });
  const handle = await workflows.startRun(node, kind);
  await untilHeld(handle, code);
  await workflows.say(handle, 'resume');
  expect((await workflows.endOf(handle)).end).toBe('done');
  expect(asked(node)).toEqual(calls);
});

test('A6: a system_uuid that was corrected before the first command is what the machine is compared with', async () => {
  const node = workflows.node({ checkMachine: ({ systemUuid }, usual) => (systemUuid === NEW_UUID ? usual() : another), ...named(NEW_UUID) });
  const handle = await workflows.startRun(node);
  await untilHeld(handle, 'bmc_is_another_machine');
  expect(asked(node)).toEqual(['checkMachine old']);
  await workflows.say(handle, 'resume');
  expect((await workflows.endOf(handle)).end).toBe('done');
  expect(node.called('checkMachine').map(({ systemUuid }) => systemUuid)).toEqual([UUID, NEW_UUID]);
});

test('a BMC that was named anew and is another machine gets no command: the run is held until it is the device', async () => {
  let isRight = false;
  const node = workflows.node({ ...OLD_FAILS.changePower('off'), ...named(UUID), checkMachine: (input, usual) => (atOld(input.bmc) || isRight ? usual() : another) });
  const handle = await workflows.startRun(node);
  await untilHeld(handle, 'bmc_unreachable');
  await workflows.say(handle, 'resume');
  await untilHeld(handle, 'bmc_is_another_machine');
  expect(asked(node).slice(2)).toEqual(['renewed', 'checkMachine new']);
  isRight = true;
  await workflows.say(handle, 'resume');
  expect((await workflows.endOf(handle)).end).toBe('done');
  expect(asked(node).slice(4, 7)).toEqual(['renewed', 'checkMachine new', 'changePower off new']);
});

describe('another machine than the one a run began with', () => {
  test('is powered off before it is believed off', async () => {
    const node = workflows.node({ ...OLD_FAILS.confirming(), ...named(NEW_UUID) });
    const handle = await workflows.startRun(node, 'retire');
    await untilHeld(handle, 'bmc_is_another_machine');
    await workflows.say(handle, 'resume');
    expect((await workflows.endOf(handle)).end).toBe('done');
    expect(asked(node).slice(3)).toEqual(['renewed', 'checkMachine new', 'changePower off new', 'confirmOff new']);
  });
  test('ends a run whose orders another one has done', async () => {
    const node = workflows.node({ changePower: (input, usual) => (input.intent.includes('final') ? { kind: 'not-reached', power: 'unknown', answer: null, failure: unreachable } : usual()), waitForPower: endless, ...named(NEW_UUID) });
    const handle = await workflows.startRun(node, 'wipe');
    await untilHeld(handle, 'bmc_unreachable');
    await workflows.say(handle, 'resume');
    expect(await workflows.endOf(handle)).toMatchObject({ end: 'failed', failure: { code: 'machine_changed' }, destroyed: expect.any(Boolean) });
    expect(asked(node).at(-1)).toBe('checkMachine new');
  });
});

test('a device that a person broke meanwhile holds the run until NetBox is fixed; then it goes on by itself', async () => {
  let isBroken = true;
  const node = workflows.node({ ...OLD_FAILS.arming(), renewPin: () => (isBroken ? { kind: 'refused', failure: failure('device_invalid', { field: 'oob_ip', what: 'is empty' }) } : { kind: 'renewed', bmc: NEW_BMC, systemUuid: UUID }) });
  const handle = await workflows.startRun(node);
  await untilHeld(handle, 'bmc_refused');
  await workflows.say(handle, 'resume');
  await untilHeld(handle, 'device_invalid');
  isBroken = false;
  await node.signal(runWorkflowId(node.deviceId, 1), 'deviceChanged', { source: 'webhook' });
  expect((await workflows.endOf(handle)).end).toBe('done');
  expect(asked(node).slice(-3)).toEqual(['checkMachine new', 'bootOnceFromNetwork new', 'changePower on new']);
});
