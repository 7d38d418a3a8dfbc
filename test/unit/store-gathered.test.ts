/** Many small writes as few commits. */
import { gathered } from '../../src/store/gathered.js';

function gate(): { readonly writes: number[][]; readonly give: (item: number) => Promise<void>; let(error?: Error): void } {
  const writes: number[][] = [];
  const open: ((error?: Error) => void)[] = [];
  const give = gathered<number>((items) => {
    writes.push([...items]);
    return new Promise((resolve, reject) => open.push((error) => (error ? reject(error) : resolve())));
  }, 3);
  return { writes, give, let: (error) => open.shift()!(error) };
}
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a lone item is written at once; what comes meanwhile goes together, so many at most', async () => {
  const { writes, give, let: letGo } = gate();
  const given = [1, 2, 3, 4, 5].map(give);
  expect(writes).toEqual([[1]]);
  letGo();
  await given[0];
  expect(writes).toEqual([[1], [2, 3, 4]]);
  letGo();
  await settled();
  letGo();
  await Promise.all(given);
  expect(writes).toEqual([[1], [2, 3, 4], [5]]);
});

test('a write that fails is told to those who gave to it, and to nobody else', async () => {
  const { give, let: letGo } = gate();
  const [first, second] = [give(1), give(2)];
  letGo(new Error('disk full'));
  await expect(first).rejects.toThrow('disk full');
  letGo();
  await expect(second).resolves.toBeUndefined();
});
