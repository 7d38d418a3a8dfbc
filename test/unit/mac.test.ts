import { parseMac } from '../../src/domain/mac.js';

describe('MAC spellings (T8)', () => {
  test.each(['02:01:48:aa:bb:0c', '02-01-48-AA-BB-0C', '020148aabb0c', '0201.48aa.bb0c', '01-02-01-48-aa-bb-0c'])('%s is read', (text) => {
    expect(parseMac(text)).toBe('02:01:48:aa:bb:0c');
  });
  test.each(['02:01:48:aa:bb', '02:01:48:aa:bb:gg', '0:1:48:a:b:c', '', '01:02:01:48:aa:bb:0c'])('%s is none', (text) => {
    expect(parseMac(text)).toBeNull();
  });
});
