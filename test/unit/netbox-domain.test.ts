import { readDesiredAction } from '../../src/domain/desired-action.js';
import { canonicalInstant } from '../../src/domain/instant.js';

describe('desired_action in every shape NetBox has shown it (N5)', () => {
  test.each([
    ['provision', 'provision', null],
    [{ value: 'provision', label: 'Provision' }, 'provision', null],
    [null, null, null],
    [undefined, null, null],
    ['', null, null],
    [{ value: null, label: null }, null, null],
    ['PROVISION ', null, 'PROVISION '],
    ['explode', null, 'explode'],
    [{ value: 'explode', label: 'Explode' }, null, 'explode'],
    [['provision'], null, '["provision"]'],
    [7, null, '7'],
    [true, null, 'true'],
    [{ label: 'Provision' }, null, '{"label":"Provision"}'],
    ['x'.repeat(500), null, 'x'.repeat(200)],
  ])('%j asks %s and leaves %j unknown', (value, action, unknown) => {
    expect(readDesiredAction(value)).toEqual({ action, unknown });
  });
});

describe('instants of NetBox keep their microseconds and compare as text (N3)', () => {
  test.each([
    ['2021-03-09 17:55:33.968016+00:00', '2021-03-09T17:55:33.968016Z'],
    ['2026-11-30T10:00:05.123456Z', '2026-11-30T10:00:05.123456Z'],
    ['2026-11-30T10:00:05Z', '2026-11-30T10:00:05.000000Z'],
    ['2026-11-30T12:00:05.5+02:00', '2026-11-30T10:00:05.500000Z'],
    ['2026-11-30T12:00:05.123456789+0200', '2026-11-30T10:00:05.123456Z'],
  ])('%s is %s', (text, canonical) => {
    expect(canonicalInstant(text)).toBe(canonical);
  });
  test.each(['', 'yesterday', '2026-11-30', '2026-11-30T10:00:05', '2026-13-30T10:00:05Z', '1796039393'])('%s is none', (text) => {
    expect(canonicalInstant(text)).toBeNull();
  });
  test('two saves within one millisecond keep their order', () => {
    expect(canonicalInstant('2026-11-30T10:00:05.123457Z')! > canonicalInstant('2026-11-30T10:00:05.123456Z')!).toBe(true);
  });
});
