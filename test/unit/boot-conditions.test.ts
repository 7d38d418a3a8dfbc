import { rangeApplies, unchanged } from '../../src/boot/assets/conditions.js';
import { readRange } from '../../src/boot/assets/range.js';

describe('ranges of a file of 100 bytes', () => {
  test.each([
    ['bytes=0-0', 0, 0], ['bytes=10-19', 10, 19], ['bytes=90-', 90, 99], ['bytes=90-500', 90, 99], ['bytes=-10', 90, 99], ['bytes=-500', 0, 99], ['Bytes=5-6', 5, 6],
  ])('%s is a part', (header, from, to) => {
    expect(readRange(header, 100)).toEqual({ kind: 'part', from, to });
  });
  test.each([undefined, '', 'bytes', 'bytes=', 'bytes=-', 'bytes=a-b', 'bytes=9-5', 'items=0-1', 'bytes=0-1,5-6', 'bytes=0-99999999999999999999'])('%s is the whole file', (header) => {
    expect(readRange(header, 100)).toEqual({ kind: 'whole' });
  });
  test.each(['bytes=100-', 'bytes=100-200', 'bytes=-0'])('%s cannot be given', (header) => {
    expect(readRange(header, 100)).toEqual({ kind: 'unsatisfiable' });
  });
  test.each(['bytes=0-', 'bytes=-5'])('%s of an empty file cannot be given', (header) => {
    expect(readRange(header, 0)).toEqual({ kind: 'unsatisfiable' });
  });
});

describe('conditions', () => {
  const validators = { etag: '"abc"', modified: new Date('2026-11-20T10:00:00.700Z') };
  const date = 'Fri, 20 Nov 2026 10:00:00 GMT';
  test.each([
    [{ ifNoneMatch: '"abc"' }, true], [{ ifNoneMatch: 'W/"abc"' }, true], [{ ifNoneMatch: '"x", "abc"' }, true], [{ ifNoneMatch: '*' }, true], [{ ifNoneMatch: '"x"' }, false],
    [{ ifNoneMatch: '"x"', ifModifiedSince: date }, false], [{ ifModifiedSince: date }, true], [{ ifModifiedSince: 'Fri, 20 Nov 2026 09:59:59 GMT' }, false], [{ ifModifiedSince: 'never' }, false], [{}, false],
  ])('%j: unchanged is %s', (headers, expected) => {
    expect(unchanged(headers, validators)).toBe(expected);
  });
  test.each([[undefined, true], ['"abc"', true], ['W/"abc"', false], ['"x"', false], [date, true], ['Fri, 20 Nov 2026 10:00:01 GMT', false], ['never', false]])('If-Range %s: the range applies is %s', (header, expected) => {
    expect(rangeApplies(header, validators)).toBe(expected);
  });
  test('while the digest is not known no tag fits', () => {
    expect(unchanged({ ifNoneMatch: '"abc"' }, { ...validators, etag: null })).toBe(false);
    expect(rangeApplies('"abc"', { ...validators, etag: null })).toBe(false);
  });
});
