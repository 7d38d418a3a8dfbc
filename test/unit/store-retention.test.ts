/** The past is forgotten, the present is not. */
import { StoreBench } from '../support/store-bench.js';

test('journals and evidence older than the retention are forgotten; open attempts keep theirs', async () => {
  const bench = await StoreBench.open();
  await bench.clean();
  try {
    const ref = await bench.begin();
    await bench.boot(ref);
    const evidence = async (): Promise<number> => (await bench.store.nodes.evidence('7')).length;
    const lines = async (): Promise<number> => (await bench.store.nodes.journal('7', 100)).length;
    expect(await evidence()).toBe(1);
    bench.pass(100 * 86_400);
    expect(await bench.store.forget(new Date(bench.now().getTime() - 90 * 86_400_000))).toBeGreaterThan(0);
    expect([await evidence(), await lines()]).toEqual([1, 0]);
    await bench.store.runs.close('7', ref.run, { end: 'failed', failure: null, destroyed: false }, ref);
    await bench.store.forget(new Date(bench.now().getTime() - 90 * 86_400_000));
    expect([await evidence(), await lines()]).toEqual([0, 1]);
  } finally {
    await bench.close();
  }
});
