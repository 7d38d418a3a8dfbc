/** Every move a lifecycle may make, and that no other is made. */
import { REQUESTS, RUN_ENDS, type RunEnd } from '../../src/domain/runs.js';
import { ENDED_STATES, isOneOf, LIFECYCLE_STATES, STATES, WAITING_STATES, WAIT_MENU_STATES, RUNNING_STATES, type LifecycleState } from '../../src/domain/states.js';
import { endEvent, IllegalTransition, isLegal, LIFECYCLE_EVENTS, moved, STARTED_EVENT, TRANSITIONS, type LifecycleEvent, type Place } from '../../src/domain/transitions.js';

const moves = TRANSITIONS.flatMap((row) => row.from.map((from) => [from, row.on, row.to] as const));
const isMove = (state: LifecycleState, event: LifecycleEvent): boolean => moves.some(([from, on]) => from === state && on === event);
const illegal = LIFECYCLE_STATES.flatMap((state) => LIFECYCLE_EVENTS.map((event) => [state, event] as const)).filter(([state, event]) => !isMove(state, event));

describe('the table', () => {
  test.each(moves)('%s on %s → %s', (from, event, to) => {
    expect(isLegal(from, event)).toBe(true);
    expect(moved({ state: from, previous: 'active' }, event).state).toBe(to === 'previous' ? 'active' : to);
  });
  test.each(moves.filter(([, , to]) => to === 'previous'))('%s on %s, where nobody knows any more what was left, reads failed: it claims nothing', (from, event) => {
    expect(moved({ state: from, previous: null }, event)).toEqual({ state: 'failed', previous: null });
  });
  test(`every other pair of state and event throws (${illegal.length} of them)`, () => {
    expect(illegal.length).toBeGreaterThan(200);
    for (const [state, event] of illegal) {
      expect(() => moved({ state, previous: 'active' }, event)).toThrow(new IllegalTransition(state, event));
      expect(isLegal(state, event)).toBe(false);
    }
  });
  test('a state and an event meet in one row only', () => {
    const pairs = moves.map(([from, on]) => `${from} on ${on}`);
    expect(pairs.filter((pair, at) => pairs.indexOf(pair) !== at)).toEqual([]);
  });
  test('every event moves something, and every row says because of what', () => {
    expect(LIFECYCLE_EVENTS.filter((event) => !TRANSITIONS.some((row) => row.on === event))).toEqual([]);
    expect(TRANSITIONS.filter((row) => row.because.length < 10 || row.from.length === 0)).toEqual([]);
  });
});

describe('the way back', () => {
  const BEGINNINGS = ['planned', 'available', 'active', 'failed'] as const satisfies LifecycleState[];
  const isGoneBack = (state: LifecycleState, event: LifecycleEvent): boolean => moves.some(([from, on, to]) => from === state && on === event && to === 'previous');
  const places = new Map<string, Place>();
  const walk = (place: Place): void => {
    const key = `${place.previous} → ${place.state}`;
    if (places.has(key)) return;
    places.set(key, place);
    for (const event of LIFECYCLE_EVENTS) if (isLegal(place.state, event)) walk(moved(place, event));
  };
  for (const state of BEGINNINGS) walk({ state, previous: null });

  test('wherever a lifecycle may have come from, what leads back leads to a state in which nothing is open and nobody is waited for', () => {
    const back = [...places.values()].flatMap((place) => LIFECYCLE_EVENTS.filter((event) => isGoneBack(place.state, event)).map((event) => ({ place, to: moved(place, event).state })));
    expect(back.length).toBeGreaterThan(20);
    expect(back.filter(({ place, to }) => place.previous === null || to !== place.previous || !isOneOf(BEGINNINGS, to))).toEqual([]);
  });
  test('a run that starts where the last one ended is no way back, and remembers what it left', () => {
    const active = moved(moved({ state: 'planned', previous: null }, 'provision started'), 'run done');
    const again = moved(active, 'reprovision started');
    expect(again).toEqual({ state: 'provisioning', previous: 'active' });
    expect(moved(again, 'run cancelled harmlessly').state).toBe('active');
  });
});

describe('the states', () => {
  test.each(ENDED_STATES)('nothing leads out of %s', (state) => {
    expect(LIFECYCLE_EVENTS.filter((event) => isLegal(state, event))).toEqual([]);
    expect(STATES[state].waysOut).toBe('none');
  });
  test.each(LIFECYCLE_STATES.filter((state) => !isOneOf(ENDED_STATES, state)))('something leads out of %s', (state) => {
    expect(LIFECYCLE_EVENTS.some((event) => isLegal(state, event))).toBe(true);
  });
  test('every state but the first can be entered', () => {
    const entered = new Set<string>(TRANSITIONS.map((row) => row.to));
    expect(LIFECYCLE_STATES.filter((state) => !entered.has(state))).toEqual(['planned']);
  });
  test.each(RUNNING_STATES)('%s can end in every way a run can end', (state) => {
    for (const event of ['run done', 'run failed', 'run cancelled midway', 'run cancelled harmlessly', 'run withdrawn'] as const) expect(isLegal(state, event)).toBe(true);
  });
  test('no run starts from a state in which a person is asked, or in which a run is open', () => {
    for (const state of [...WAITING_STATES, ...RUNNING_STATES]) for (const request of REQUESTS) expect(isLegal(state, STARTED_EVENT[request])).toBe(false);
  });
  test('the states that wait for a person leave the NetBox status alone', () => {
    for (const state of WAITING_STATES) expect(STATES[state].netboxStatus).toBeNull();
  });
  test('only a node that runs nothing is given the menu to wait in', () => {
    expect([...WAIT_MENU_STATES]).toEqual(['planned', 'available']);
  });
  test('a failed run never leads to a state that claims success', () => {
    for (const state of RUNNING_STATES) for (const event of ['run failed', 'run cancelled midway'] as const) expect(moved({ state, previous: 'active' }, event).state).toBe('failed');
  });
});

describe("a run's end as an event", () => {
  const ENDS: Readonly<Record<RunEnd, readonly [untouched: LifecycleEvent | null, destroyed: LifecycleEvent | null]>> = {
    done: ['run done', 'run done'],
    failed: ['run failed', 'run failed'],
    cancelled: ['run cancelled harmlessly', 'run cancelled midway'],
    withdrawn: ['run withdrawn', 'run withdrawn'],
    'run-closed': [null, null],
  };
  test.each(Object.keys(RUN_ENDS) as RunEnd[])('%s', (end) => {
    expect([endEvent(end, false), endEvent(end, true)]).toEqual(ENDS[end]);
  });
});
