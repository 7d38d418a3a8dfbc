/** Every limit of a run passes into its named failure, and every answer of the world into the end it has to have. */
import { failure } from '../../src/domain/errors.js';
import { runWorkflowId, SEARCH_ATTRIBUTES } from '../../src/contracts/messages.js';
import { fails, openWorkflowBench, pageOf, type Acts, type Bench, type WorkflowBench } from '../support/workflow-bench.js';

let workflows: WorkflowBench;
beforeAll(async () => void (workflows = await openWorkflowBench()));
afterAll(async () => workflows?.close());

const opensSilently: Acts['openBootAttempt'] = async () => ({ bootAttempt: 'attempt-1', number: 1 });
const sees: (signals: readonly (readonly ['bootSeen' | 'attested', object])[]) => (node: Bench) => Acts['openBootAttempt'] = (signals) => (node) => async () => {
  for (const [name, payload] of signals) await node.signal(runWorkflowId(node.deviceId, 1), name, { bootAttempt: 'attempt-1', ...payload });
  return { bootAttempt: 'attempt-1', number: 1 };
};
const SEEN = ['bootSeen', {}] as const;
const refused = (reason: string) => ['attested', { attestationId: 'a-1', accepted: false, reason }] as const;

/** Answers of awaitOrder for the action with this title; the rest succeed. */
const orderEnds = (title: string, answer: object): Acts['awaitOrder'] => ({ orderId }, usual) => (orderId.startsWith(title) ? (answer as never) : usual());
const reports = (report: object): object => ({ kind: 'reported', report: { message: 'm', ...report } });

type Row = readonly [what: string, acts: (node: Bench) => Acts, end: string, code: string | null];
const ENDS: readonly Row[] = [
  ['nothing is wrong', () => ({}), 'done', null],
  ['the class names no template that holds', () => ({ planRun: () => ({ kind: 'refused', failure: failure('template_invalid', { file: 't', line: 1, column: 1, what: 'w' }) }) }), 'failed', 'template_invalid'],
  ['the device is gone when the run plans', () => ({ planRun: () => ({ kind: 'refused', failure: failure('device_not_found') }) }), 'withdrawn', 'device_not_found'],
  ['the artefact has another digest', () => ({ checkImage: () => ({ kind: 'bad', failure: failure('image_digest_mismatch') }) }), 'failed', 'image_digest_mismatch'],
  ['the request was taken back', () => ({ takeRequest: () => ({ kind: 'withdrawn', found: 'nothing' }) }), 'withdrawn', 'request_withdrawn'],
  ['the node never asks for its boot file', () => ({ openBootAttempt: opensSilently, confirmBootSeen: () => false }), 'failed', 'boot_not_seen'],
  ['the node never attests', (node) => ({ openBootAttempt: sees([SEEN])(node), acceptAttestation: () => ({ kind: 'not-there' }) }), 'failed', 'attestation_not_seen'],
  ['only a refused attestation comes', (node) => ({ openBootAttempt: sees([SEEN, refused('nonce_wrong')])(node), acceptAttestation: () => ({ kind: 'not-there' }) }), 'failed', 'attestation_refused'],
  ['a signal speaks of an attestation that the store does not have', () => ({ acceptAttestation: () => ({ kind: 'not-there' }) }), 'failed', 'attestation_not_seen'],
  ['no disk fits the rule', () => ({ acceptAttestation: () => ({ kind: 'refused', failure: failure('disk_none_matches') }) }), 'failed', 'disk_none_matches'],
  ['nobody takes the order', () => ({ awaitOrder: orderEnds('wipe', { kind: 'not-taken', seconds: 20 }) }), 'failed', 'order_not_taken'],
  ['the time of an order runs out', () => ({ awaitOrder: orderEnds('image', { kind: 'timed-out', seconds: 60 }) }), 'failed', 'action_timed_out'],
  ['the agent reports a failure of the table', () => ({ awaitOrder: orderEnds('image', reports({ result: 'failed', code: 'image_readback_mismatch' })) }), 'failed', 'image_readback_mismatch'],
  ['the agent reports a code that the table does not have', () => ({ awaitOrder: orderEnds('image', reports({ result: 'failed', code: 'gremlins' })) }), 'failed', 'action_failed'],
  ['the agent reports that its time ran out', () => ({ awaitOrder: orderEnds('wipe', reports({ result: 'timed-out' })) }), 'failed', 'action_timed_out'],
  ['somebody completes the activity of an order by hand, and the ledger knows of no end', () => ({ awaitOrder: orderEnds('wipe', { lgtm: true }) }), 'failed', 'action_failed'],
  ['the run was closed by its lifecycle', () => ({ openBootAttempt: () => { throw fails('run_closed'); } }), 'run-closed', 'run_closed'],
  ['another Temporal run speaks for the run', () => ({ leasePermission: () => { throw fails('run_stale'); } }), 'run-closed', 'run_stale'],
  ['the boot attempt is closed again and again', () => ({ leasePermission: () => { throw fails('attempt_superseded', { attempt: 'a' }); } }), 'failed', 'attempt_superseded'],
];
test.each(ENDS)('%s', async (_what, acts, end, code) => {
  const node = workflows.node();
  node.acts = acts(node);
  const handle = await workflows.startRun(node);
  const outcome = await workflows.endOf(handle);
  expect([outcome.end, outcome.failure?.code ?? null]).toEqual([end, code]);
  // Nobody has to open the history to see it.
  expect((await handle.describe()).searchAttributes[SEARCH_ATTRIBUTES.state]).toEqual([end]);
  const page = await pageOf(handle);
  expect(page).toMatch(new RegExp(`^\\*\\*${end}\\*\\* in [a-z-]+ at .* UTC${code ? `: \`${code}\` .+` : ''}$`, 'm'));
  expect(page).toMatch(/^\*\*waits for:\*\* nothing, it has ended: /m);
  expect(page).toMatch(end === 'failed' ? /^\*\*to do:\*\* .+ \(`metalflow node retry node-\d+`\), unless a later run has done it$/m : /^\*\*to do:\*\* nothing/m);
  // Told to the store once, unless the store itself had the last word.
  expect(node.called('finishRun')).toHaveLength(end === 'run-closed' ? 0 : 1);
});

test('the page of a run that was cancelled behind a destructive order says that the node is failed, and what to do', async () => {
  const node = workflows.node();
  node.acts = { awaitOrder: async (_input, usual) => { await node.signal(runWorkflowId(node.deviceId, 1), 'stopAtSafePoint', { by: 'anna', request: null }); return usual(); }, finishRun: ({ outcome }) => ({ ...outcome, destroyed: true }) };
  const handle = await workflows.startRun(node);
  expect((await workflows.endOf(handle)).end).toBe('cancelled');
  const page = await pageOf(handle);
  expect(page).toMatch(/^\*\*cancelled\*\* in acting at .*: `run_cancelled` cancelled by anna$/m);
  expect(page).toMatch(/^\*\*to do:\*\* something was destroyed, .*`metalflow node retry node-\d+`/m);
  expect(page).not.toContain('stop asked');
});

test('a boot that is not seen is tried three times, each from power off', async () => {
  const node = workflows.node({ openBootAttempt: opensSilently, confirmBootSeen: () => false });
  await workflows.endOf(await workflows.startRun(node));
  expect(node.called('changePower').map(({ command }) => command)).toEqual(['off', 'on', 'off', 'on', 'off', 'on']);
  expect(node.called('enterPhase').filter(({ phase }) => phase === 'acting')).toEqual([]);
});

test('a boot and an attestation whose signals are lost are found in the store', async () => {
  const node = workflows.node({ openBootAttempt: opensSilently });
  expect((await workflows.endOf(await workflows.startRun(node))).end).toBe('done');
});

test('a failed request is taken, so that it does not start the same failure again', async () => {
  const node = workflows.node({ checkImage: () => ({ kind: 'bad', failure: failure('image_unreachable') }) });
  await workflows.endOf(await workflows.startRun(node));
  expect(node.called('takeRequest')).toHaveLength(1);
});

test('permission is withdrawn before the last reboot is handed out', async () => {
  const node = workflows.node();
  await workflows.endOf(await workflows.startRun(node));
  const steps = node.calls.filter(({ name }) => name === 'withdrawPermission' || name === 'postOrder').map(({ name, input }) => (name === 'postOrder' ? (input['action'] as { title: string }).title : name));
  expect(steps).toEqual(['wipe', 'image', 'withdrawPermission', 'reboot']);
});

test('the node of an intake is not power-cycled, and attests again', async () => {
  const node = workflows.node();
  expect((await workflows.endOf(await workflows.startRun(node, 'provision', { attestationId: 'a-0' }))).end).toBe('done');
  expect(node.called('changePower')).toEqual([]);
  expect(node.called('adoptIntakeAttempt')).toMatchObject([{ attestationId: 'a-0' }]);
});

test('the waiting node of an intake that is gone is booted the usual way', async () => {
  const node = workflows.node({ adoptIntakeAttempt: async () => ({ bootAttempt: 'attempt-0', number: 1 }), acceptAttestation: ({ bootAttempt }, usual) => (bootAttempt === 'attempt-0' ? { kind: 'not-there' } : usual()) });
  expect((await workflows.endOf(await workflows.startRun(node, 'provision', { attestationId: 'a-0' }))).end).toBe('done');
  expect(node.called('changePower').map(({ command }) => command)).toEqual(['off', 'on']);
});

test('an intake that may not be taken over, as after a reset, is booted the usual way', async () => {
  const node = workflows.node({ adoptIntakeAttempt: () => { throw fails('attempt_superseded', { attempt: 'a-0' }); } });
  expect((await workflows.endOf(await workflows.startRun(node, 'provision', { attestationId: 'a-0' }))).end).toBe('done');
  expect(node.called('changePower').map(({ command }) => command)).toEqual(['off', 'on']);
});

test('a boot attempt that was closed leads back through power off, and its orders are not taken up', async () => {
  let posts = 0;
  const node = workflows.node({ awaitOrder: (_input, usual) => { if (++posts === 1) throw fails('attempt_superseded', { attempt: 'attempt-1' }); return usual(); } });
  expect((await workflows.endOf(await workflows.startRun(node))).end).toBe('done');
  expect(node.called('postOrder').map(({ bootAttempt }) => bootAttempt)).toEqual(['attempt-1', 'attempt-2', 'attempt-2', 'attempt-2']);
  expect(node.called('changePower').map(({ command }) => command)).toEqual(['off', 'on', 'off', 'on']);
});

test('a boot that never attests is tried again from power off, and the run is done when a later one attests', async () => {
  let asked = 0;
  const node = workflows.node({ acceptAttestation: (_input, usual) => (++asked <= 2 ? { kind: 'not-there' } : usual()) });
  const outcome = await workflows.endOf(await workflows.startRun(node));
  expect(outcome).toMatchObject({ end: 'done', failure: null });
  expect(node.called('changePower').map(({ command }) => command).slice(0, 4)).toEqual(['off', 'on', 'off', 'on']);
});
