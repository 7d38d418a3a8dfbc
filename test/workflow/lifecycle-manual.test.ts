/** A node without a BMC: each step is a task for a person, whose word is journalled with the name and never becomes a proof. */
import type { WorkflowHandle } from '@temporalio/client';
import { failure } from '../../src/domain/errors.js';
import type { RunKind } from '../../src/domain/runs.js';
import { openWorkflowBench, runView, untilHeld, type Acts, type Bench, type WorkflowBench } from '../support/workflow-bench.js';
import { until } from '../support/until.js';

let workflows: WorkflowBench;
beforeAll(async () => void (workflows = await openWorkflowBench()));
afterAll(async () => workflows?.close());

/** As the activities answer for `bmc_type` manual. */
const MANUAL: Acts = {
  planRun: async (_input, usual) => {
    const planned = await usual();
    return planned.kind === 'planned' ? { ...planned, plan: { ...planned.plan, bmc: { type: 'manual', host: '' } } } : planned;
  },
  changePower: ({ command }) => ({ kind: 'refused', failure: failure('bmc_manual_task', { task: `power the node ${command}` }) }),
  confirmOff: () => ({ kind: 'not-off', power: 'unknown', failure: failure('off_unprovable') }),
};
async function start(kind: RunKind): Promise<{ node: Bench; handle: WorkflowHandle }> {
  const node = workflows.node(MANUAL);
  return { node, handle: await workflows.startRun(node, kind) };
}
const said = (node: Bench): unknown[] => node.called('noteVerb').map(({ text, by }) => [text, by]);

test('a provision shows each task with its verb, goes on by a word only, and never claims to know the power', async () => {
  const { node, handle } = await start('provision');
  const name = `node-${node.deviceId}`;
  const off = await untilHeld(handle, 'bmc_manual_task');
  expect(off!.message).toBe(`a person has to do what the BMC cannot: power ${name} off, then: metalflow node resume ${name}`);
  for (const verb of ['retry', 'approve'] as const) expect(await workflows.say(handle, verb)).toMatch(/ended by resume/);
  await workflows.say(handle, 'resume', { by: 'ada' });
  await until('the next task', async () => (await runView(handle)).phase === 'powering-on');
  expect((await runView(handle)).power).toBe('unknown');
  const on = await untilHeld(handle, 'bmc_manual_task');
  expect(on!.message).toBe(`a person has to do what the BMC cannot: power ${name} on and boot it once from the network, then: metalflow node resume ${name}`);
  await workflows.say(handle, 'resume', { by: 'grace', reason: 'on since noon' });
  expect(await workflows.endOf(handle)).toMatchObject({ end: 'done', failure: null });
  expect(said(node)).toEqual([
    [`resume (says that it is done: power ${name} off)`, 'ada'],
    [`resume: on since noon (says that it is done: power ${name} on and boot it once from the network)`, 'grace'],
  ]);
  expect(node.called('waitForPower')).toEqual([]);
});

test('a retirement is never retired by a word that it is off: only by an approver who attests that it is gone, and then unproven', async () => {
  const { node, handle } = await start('retire');
  expect((await untilHeld(handle, 'bmc_manual_task'))!.message).toContain(`power node-${node.deviceId} off, then: metalflow node resume node-${node.deviceId}`);
  await workflows.say(handle, 'resume', { by: 'ada' });
  const hold = await until('the proof that nobody has', async () => ((await runView(handle)).hold?.code === 'off_unprovable' ? (await runView(handle)).hold : null));
  expect(hold.hint).toContain('metalflow node approve <node> --attest-removed');
  expect(await workflows.say(handle, 'resume')).toMatch(/ended by approve/);
  expect(await workflows.say(handle, 'approve', { reason: 'it is off' })).toMatch(/attestRemoved/);
  expect((await runView(handle)).hold?.code).toBe('off_unprovable');
  await workflows.say(handle, 'approve', { by: 'grace', attestRemoved: true, reason: 'carried out' });
  expect(await workflows.endOf(handle)).toMatchObject({ end: 'done', unproven: true, failure: { code: 'off_unprovable' }, by: 'grace' });
  expect(said(node)).toEqual([[expect.stringMatching(/^resume \(says that it is done/), 'ada'], ['approve: carried out', 'grace']]);
});
