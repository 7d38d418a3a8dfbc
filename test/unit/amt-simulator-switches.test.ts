/** The switches of the simulated AMT as people and programs write them. */
import { FaultChange, NO_FAULTS, shownFaults, type AmtFaults } from '../../src/simulator/amt/faults.js';

describe('switches as JSON', () => {
  test('what is shown is read back as it was', () => {
    const faults: AmtFaults = { ...NO_FAULTS, sleepFirstN: Infinity, lagMs: 3, refuse: { ChangeBootOrder: 2 } };
    const shown = JSON.parse(JSON.stringify(shownFaults(faults, 'all'))) as unknown;
    expect(FaultChange.parse(shown)).toEqual(faults);
    expect(shownFaults(faults, 'thrown')).toEqual({ sleepFirstN: 'always', lagMs: 3, refuse: { ChangeBootOrder: 2 } });
  });
  test.each([
    ['an unknown name', { lag: 1 }], ['a number for a flag', { neverOff: 1 }], ['a negative count', { lagMs: -1 }], ['a choice that is none', { qopProfile: 'basic' }],
    ['a method that is none', { refuse: { SelfDestruct: 1 } }], ['a class that is none', { absentClasses: ['<b>'] }], ['a version that breaks a header', { version: '16\r\nX: y' }], ['no object', 7], ['null', null],
  ])('%s is refused', (_name, change) => {
    expect(FaultChange.safeParse(change).success).toBe(false);
  });
});
