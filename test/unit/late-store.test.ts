import { openStoreLate } from '../../src/main/late-store.js';
import { MetalflowError } from '../../src/domain/errors.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { fakeBootDirectory, MAC, permitted } from '../support/boot-directory.js';

function bench() {
  const seen = { opened: 0, closed: 0, at: 0, away: true };
  const opened = { boot: fakeBootDirectory({ [MAC]: permitted() }), nodes: { ping: async () => {} }, logs: { keep: async () => {} }, close: async () => void seen.closed++ };
  const open = async () => {
    seen.opened++;
    if (seen.away) throw new MetalflowError('store_unavailable', { why: 'refused' });
    return opened;
  };
  return { seen, store: openStoreLate({ open, log: silentLogger(), now: () => seen.at }) };
}

describe('a store that is away when its role starts', () => {
  test('fails each question with its code, and is not knocked at again within five seconds', async () => {
    const { seen, store } = bench();
    for (let times = 0; times < 3; times++) await expect(store.boot.byMac(MAC)).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(store.nodes.ping()).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(seen.opened).toBe(1);
    await store.close();
    expect(seen.closed).toBe(0);
  });

  test('is used once it is back, opened once for all who ask', async () => {
    const { seen, store } = bench();
    await expect(store.boot.byMac(MAC)).rejects.toThrow();
    Object.assign(seen, { away: false, at: 5000 });
    const answers = await Promise.all([store.boot.byMac(MAC), store.boot.byMac(MAC), store.boot.byAddress('10.0.0.1')]);
    expect([answers[0]?.deviceId, answers[1]?.deviceId, answers[2]]).toEqual(['7', '7', null]);
    expect(seen.opened).toBe(2);
    await store.close();
    expect(seen.closed).toBe(1);
  });
});
