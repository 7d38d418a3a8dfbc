/** What a request does in every state; the table of the design, written out. */
import { REQUESTS, type Request } from '../../src/domain/runs.js';
import { judgeRequest, requiresNetboot, requiresWipe, isRequest, type Judgement } from '../../src/domain/requests.js';
import { LIFECYCLE_STATES, RUNNING_STATES, WAITING_STATES, type LifecycleState } from '../../src/domain/states.js';

type Word = 'start' | 'keep' | 'refuse';
/** By state: what provision, reprovision, wipe and retire do while no run is open. */
const WITHOUT_RUN: Readonly<Record<Exclude<LifecycleState, (typeof RUNNING_STATES)[number]>, readonly [Word, Word, Word, Word]>> = {
  planned: ['start', 'refuse', 'refuse', 'start'],
  available: ['start', 'start', 'start', 'start'],
  active: ['refuse', 'start', 'start', 'start'],
  failed: ['start', 'start', 'start', 'start'],
  queued: ['keep', 'keep', 'keep', 'keep'],
  held: ['keep', 'keep', 'keep', 'keep'],
  quarantined: ['keep', 'keep', 'keep', 'keep'],
  maintenance: ['keep', 'keep', 'keep', 'keep'],
  retired: ['refuse', 'refuse', 'refuse', 'refuse'],
  'retired-unproven': ['refuse', 'refuse', 'refuse', 'refuse'],
  withdrawn: ['refuse', 'refuse', 'refuse', 'refuse'],
};

const rows = Object.entries(WITHOUT_RUN).flatMap(([state, words]) => REQUESTS.map((request, at) => [state as LifecycleState, request, words[at]!] as const));

describe('without an open run', () => {
  test.each(rows)('%s: %s → %s', (state, request, word) => {
    const judgement = judgeRequest(state, request, null);
    expect(judgement.kind).toBe(word);
    if (judgement.kind === 'start') expect(judgement.run).toBe(request);
    if (judgement.kind === 'keep') expect(judgement).toEqual({ kind: 'keep', request, why: `the node is ${state}` });
    if (judgement.kind === 'refuse') expect(judgement.failure).toMatchObject({ code: 'request_refused', message: expect.stringContaining(`${request} is refused in state ${state}`) });
  });
  test.each(LIFECYCLE_STATES)('%s: nothing asked, nothing done', (state) => {
    expect(judgeRequest(state, null, null)).toEqual({ kind: 'nothing' });
  });
  test.each([
    ['active', 'provision', 'it runs; ask for reprovision'],
    ['planned', 'reprovision', 'there is nothing to replace; ask for provision'],
    ['planned', 'wipe', 'there is nothing to wipe'],
    ['retired', 'retire', 'has ended'],
    ['retired', 'provision', 'has ended'],
    ['withdrawn', 'wipe', 'has ended'],
  ] as const)('%s: the refusal of %s says why: %s', (state, request, why) => {
    const judgement = judgeRequest(state, request, null);
    expect(judgement.kind === 'refuse' && judgement.failure.message).toContain(why);
  });
});

describe('with a run open', () => {
  const expected = (request: Request, open: Request): Judgement =>
    request === open ? { kind: 'nothing' }
    : request === 'retire' ? { kind: 'stop-open-run', request }
    : { kind: 'keep', request, why: `a ${open} run is open` };
  // The state beside an open run may be any: a hold stands beside it.
  const states: readonly LifecycleState[] = [...RUNNING_STATES, ...WAITING_STATES, 'active'];
  test.each(states.flatMap((state) => REQUESTS.flatMap((open) => REQUESTS.map((request) => [state, open, request] as const))))('%s with a %s open: %s', (state, open, request) => {
    expect(judgeRequest(state, request, open)).toEqual(expected(request, open));
  });
  test.each(REQUESTS)('the field cleared while a %s is open touches no run', (open) => {
    expect(judgeRequest('provisioning', null, open)).toEqual({ kind: 'nothing' });
  });
  test.each(RUNNING_STATES)('%s without a known run starts nothing over it', (state) => {
    expect(judgeRequest(state, 'wipe', null)).toMatchObject({ kind: 'keep' });
    expect(judgeRequest(state, null, null)).toEqual({ kind: 'nothing' });
  });
});

describe('what a run needs', () => {
  test.each([
    ['provision', false, false, true],
    ['provision', true, false, true],
    ['reprovision', false, true, true],
    ['reprovision', true, true, true],
    ['wipe', false, true, true],
    ['wipe', true, true, true],
    ['retire', false, false, false],
    ['retire', true, true, true],
  ] as const)('%s of a class with retireWipes %s: wipes %s, netboots %s', (kind, retireWipes, wipes, netboots) => {
    expect([requiresWipe(kind, retireWipes), requiresNetboot(kind, retireWipes)]).toEqual([wipes, netboots]);
  });
});

test.each([['provision', true], ['Provision', false], ['', false], ['destroy', false], ['toString', false]])('%j is a request: %s', (text, is) => {
  expect(isRequest(text)).toBe(is);
});
