/** Many small writes as few commits. */
import { gathered } from '../../src/store/gathered.js';

interface Gate {
  readonly writes: number[][];
  readonly give: (item: number, signal?: AbortSignal) => Promise<void>;
  /** Gives the first ones, and waits until their write is under way. */
  begin(...items: number[]): Promise<Promise<void>[]>;
  let(error?: Error): void;
}
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function gate(): Gate {
  const writes: number[][] = [];
  const open: ((error?: Error) => void)[] = [];
  const give = gathered<number>((items) => {
    writes.push([...items]);
    return new Promise((resolve, reject) => open.push((error) => (error ? reject(error) : resolve())));
  }, 3, 4);
  return {
    writes, give, let: (error) => open.shift()!(error),
    async begin(...items) {
      const given = items.map((item) => give(item));
      await settled();
      return given;
    },
  };
}

test('what is given in one turn goes together, so many at most; what comes meanwhile goes next', async () => {
  const { writes, give, begin, let: letGo } = gate();
  const given = await begin(1, 2);
  expect(writes).toEqual([[1, 2]]);
  given.push(...[3, 4, 5, 6].map((item) => give(item)));
  await settled();
  expect(writes).toEqual([[1, 2]]);
  letGo();
  await given[0];
  expect(writes).toEqual([[1, 2], [3, 4, 5]]);
  letGo();
  await settled();
  letGo();
  await Promise.all(given);
  expect(writes).toEqual([[1, 2], [3, 4, 5], [6]]);
});

test('a write that fails is told to those who gave to it, and to nobody else', async () => {
  const { give, begin, let: letGo } = gate();
  const [first] = await begin(1);
  const second = give(2);
  letGo(new Error('disk full'));
  await expect(first).rejects.toThrow('disk full');
  letGo();
  await expect(second).resolves.toBeUndefined();
});

test('what its giver has withdrawn is not written, and neither what was given up before it was given', async () => {
  const { writes, give, begin, let: letGo } = gate();
  const impatient = new AbortController();
  const [first] = await begin(1);
  const given = [give(2, impatient.signal), give(3)];
  impatient.abort(new Error('gave up'));
  await expect(give(4, impatient.signal)).rejects.toThrow('gave up');
  letGo();
  await expect(given[0]).rejects.toThrow('gave up');
  letGo();
  await Promise.all([first, given[1]]);
  expect(writes).toEqual([[1], [3]]);
});

test('only so many wait: the next is told that the store is behind, and withdrawn ones make room', async () => {
  const { writes, give, begin, let: letGo } = gate();
  const impatient = new AbortController();
  const given = [...(await begin(1)), ...[2, 3, 4].map((item) => give(item))];
  const withdrawn = give(5, impatient.signal);
  await expect(give(6)).rejects.toMatchObject({ code: 'store_unavailable' });
  impatient.abort(new Error('gave up'));
  given.push(give(7));
  await expect(withdrawn).rejects.toThrow('gave up');
  for (let n = 0; n < 3; n++) {
    letGo();
    await settled();
  }
  await Promise.all(given);
  expect(writes).toEqual([[1], [2, 3, 4], [7]]);
});
