import { ask } from '../../src/operatorapi/ask.js';
import { MetalflowError } from '../../src/domain/errors.js';

describe('every port is asked with a limit', () => {
  test('a late answer is named by the port that owed it', async () => {
    await expect(ask('temporal_unavailable', 5, () => new Promise<never>(() => undefined))).rejects.toMatchObject({ code: 'temporal_unavailable', details: { why: 'no answer within 5 ms' } });
  });
  test('an error of ours passes as it is', async () => {
    await expect(ask('store_unavailable', 1000, async () => { throw new MetalflowError('run_not_found', { run: '7/1' }); })).rejects.toMatchObject({ code: 'run_not_found' });
  });
  test("another's error is the cause and not the text", async () => {
    const cause = new Error('password=hunter2');
    const error = await ask('store_unavailable', 1000, () => { throw cause; }).catch((thrown: MetalflowError) => thrown);
    expect(error).toMatchObject({ code: 'store_unavailable', cause });
    expect(String(error)).not.toContain('hunter2');
  });
  test('an answer in time is the answer', async () => {
    expect(await ask('internal', 1000, async () => 7)).toBe(7);
  });
});
