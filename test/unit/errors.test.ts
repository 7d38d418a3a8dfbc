/** The error table: every row can be shown to a person, and an error carries its row. */
import { ERRORS, errorText, failure, isErrorCode, isMetalflowError, MetalflowError, type ErrorCode, type ErrorRow } from '../../src/domain/errors.js';

const rows = Object.entries(ERRORS) as [ErrorCode, ErrorRow][];
const marksOf = (text: string): string[] => [...text.matchAll(/\{([^}]*)\}/g)].map((match) => match[1]!);

describe('every row', () => {
  test.each(rows)('%s can be read by a person', (code, { text, hint, http, verb }) => {
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect(text.length).toBeGreaterThan(5);
    expect(hint.length).toBeGreaterThan(5);
    expect(http).toBeGreaterThanOrEqual(400);
    expect(http).toBeLessThan(600);
    expect(verb).toMatch(/^(resume|retry|approve|adopt|maintenance|intake|none)$/);
    for (const mark of marksOf(text)) expect(mark).toMatch(/^[a-z][a-zA-Z]*$/);
  });
  test('no hint has a mark: a hint is shown as it stands', () => {
    expect(rows.filter(([, { hint }]) => marksOf(hint).length > 0).map(([code]) => code)).toEqual([]);
  });
  test('a hint names the verb of its row', () => {
    const silent = rows.filter(([, { verb, hint }]) => verb !== 'none' && !hint.includes(verb));
    expect(silent.map(([code]) => code)).toEqual([]);
  });
  test('no two rows read the same', () => {
    const texts = rows.map(([, { text }]) => text);
    expect(texts.filter((text, at) => texts.indexOf(text) !== at)).toEqual([]);
  });
});

describe('a text', () => {
  test.each<[ErrorCode, Record<string, string | number | boolean>, string]>([
    ['disk_too_small', { serial: 'S1', have: 999, need: 1000 }, 'disk S1 has 999 bytes, the image needs 1000'],
    ['disk_too_small', { serial: 'S1', have: 999 }, 'disk S1 has 999 bytes, the image needs ?'],
    ['action_failed', { action: 'a', exit: 0, tail: '{exit} $& $1' }, 'a failed with exit 0: {exit} $& $1'],
    ['rate_limited', { stray: 'x' }, 'too many requests'],
  ])('of %s with %j', (code, details, text) => {
    expect(errorText(code, details)).toBe(text);
    expect(failure(code, details)).toEqual({ code, message: text, hint: ERRORS[code].hint, details });
  });
  test('a mark never reaches what every object has', () => {
    for (const [code] of rows) expect(errorText(code)).not.toMatch(/function|\[object/);
  });
});

describe('an error of the table', () => {
  const error = new MetalflowError('run_stale', {}, { cause: new Error('why') });
  test('carries its row', () => {
    expect(error).toMatchObject({ name: 'MetalflowError', code: 'run_stale', message: ERRORS.run_stale.text, httpStatus: 409, retryable: false });
    expect(error.toFailure()).toEqual({ code: 'run_stale', message: ERRORS.run_stale.text, hint: ERRORS.run_stale.hint, details: {} });
    expect((error.cause as Error).message).toBe('why');
    expect(new MetalflowError('store_unavailable').retryable).toBe(true);
  });
  test.each<[string, unknown, boolean]>([
    ['one of ours', error, true],
    ['one of ours from another copy of the module', Object.assign(new Error('x'), { name: 'MetalflowError', code: 'run_stale', details: {} }), true],
    ['one with a code the table does not have', Object.assign(new Error('x'), { name: 'MetalflowError', code: 'no_such' }), false],
    ["somebody else's", Object.assign(new Error('x'), { code: 'run_stale' }), false],
    ['no error', { name: 'MetalflowError', code: 'run_stale' }, false],
    ['nothing', undefined, false],
  ])('%s is told from others', (_what, value, is) => {
    expect(isMetalflowError(value)).toBe(is);
  });
  test.each(['toString', '__proto__', 'constructor', '', 7, null])('%j is no code', (value) => {
    expect(isErrorCode(value)).toBe(false);
  });
});
