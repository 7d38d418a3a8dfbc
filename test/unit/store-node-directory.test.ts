/** Which node a person means. */
import type { LifecycleState } from '../../src/domain/states.js';
import { StoreBench } from '../support/store-bench.js';

let bench: StoreBench;
beforeAll(async () => { bench = await StoreBench.open(); });
beforeEach(() => bench.clean());
afterAll(() => bench.close());

const NAME = 'rack4-node7';
const declare = (id: string, state: LifecycleState, extra: { name?: string; site?: string } = {}) => bench.declare({ id, name: NAME, macs: [], addresses: [], ...extra }, state);
const found = async (idOrName: string): Promise<string | null> => (await bench.store.nodes.find(idOrName))?.deviceId ?? null;

describe('A7: a name', () => {
  test.each<[string, LifecycleState[], string]>([
    ['that one node has is that node', ['active'], '11'],
    ['that a live node took over from one that ended is the live node', ['retired', 'withdrawn', 'active'], '13'],
    ['of a held node is a live one', ['held', 'retired-unproven'], '11'],
    ['that only an ended node has is still shown', ['retired'], '11'],
  ])('%s', async (_what, states, id) => {
    for (const [n, state] of states.entries()) await declare(String(11 + n), state);
    expect(await found(NAME)).toBe(id);
  });

  test.each<[string, [string, LifecycleState, string][], string]>([
    ['two live nodes', [['11', 'active', 'ams1'], ['12', 'planned', 'fra1'], ['13', 'retired', 'ams1']], '11 (site ams1, active), 12 (site fra1, planned)'],
    ['two nodes that ended, and no live one', [['11', 'retired', 'ams1'], ['12', 'withdrawn', 'fra1']], '11 (site ams1, retired), 12 (site fra1, withdrawn)'],
  ])('of %s is refused, with their ids and sites', async (_what, nodes, listed) => {
    for (const [id, state, site] of nodes) await declare(id, state, { site });
    await expect(bench.store.nodes.find(NAME)).rejects.toMatchObject({ code: 'node_ambiguous', message: `several nodes are called ${NAME}: ${listed}` });
    expect(await found('12')).toBe('12');
  });

  test('that is the id of another device means the id', async () => {
    await declare('11', 'active');
    await declare('12', 'active', { name: '11' });
    expect(await found('11')).toBe('11');
  });
});
