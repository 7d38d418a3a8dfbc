import { createSenderLimit } from '../../src/agentapi/sender-limit.js';

const allows = (limit: ReturnType<typeof createSenderLimit>, sender: string): boolean => {
  try {
    limit.check(sender);
    return true;
  } catch (error) {
    expect(error).toMatchObject({ code: 'rate_limited' });
    return false;
  }
};

describe('the limit of a sender', () => {
  test('checking uses nothing up, counting does, for that sender alone', () => {
    const limit = createSenderLimit({ perMinute: 2, now: () => new Date(0) });
    for (let count = 0; count < 5; count += 1) limit.check('a');
    limit.count('a');
    limit.count('a');
    expect([allows(limit, 'a'), allows(limit, 'b'), allows(limit, '__proto__')]).toEqual([false, true, true]);
  });

  test('a flood of addresses opens a new window instead of filling the memory', () => {
    const limit = createSenderLimit({ perMinute: 1, now: () => new Date(0), mostSenders: 3 });
    for (const sender of ['a', 'b', 'c']) limit.count(sender);
    expect(allows(limit, 'a')).toBe(false);
    limit.count('d');
    expect([allows(limit, 'a'), allows(limit, 'd')]).toEqual([true, false]);
  });

  test('a clock that is set back does not shut a sender out', () => {
    let now = 10_000_000;
    const limit = createSenderLimit({ perMinute: 1, now: () => new Date(now) });
    limit.count('a');
    now = 0;
    expect(allows(limit, 'a')).toBe(true);
  });
});
