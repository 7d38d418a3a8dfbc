/** Several processes share one SQLite file: what they write at once is all there. */
import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createStore, openDatabase } from '../../src/store/index.js';

const TIMES = 25;
let dir: string;
beforeAll(async () => {
  // Inside the checkout, so that the bundle finds its packages.
  await mkdir('.work', { recursive: true });
  dir = await mkdtemp(join('.work', 'store-processes-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

test('two processes that start and write at once on a new file lose nothing, and draw no run number twice', async () => {
  const program = join(dir, 'store-writer.mjs');
  await build({ entryPoints: ['test/support/store-writer.ts'], outfile: program, bundle: true, platform: 'node', format: 'esm', packages: 'external', logLevel: 'silent' });
  const file = join(dir, 'store.db');
  const write = async (name: string): Promise<number[]> => JSON.parse((await promisify(execFile)(process.execPath, [program, file, name, String(TIMES)], { timeout: 240_000 })).stdout) as number[];

  const drawn = (await Promise.all([write('one'), write('other')])).flat().sort((a, b) => a - b);

  const store = createStore({ db: await openDatabase(`sqlite:${file}`), temporal: { look: async () => ({ kind: 'absent' }) } });
  try {
    expect(drawn).toEqual(Array.from({ length: 2 * TIMES }, (_, at) => at + 1));
    expect(await store.runs.nextNumber('7')).toBe(2 * TIMES + 1);
    const written = (await store.nodes.journal('7', 10_000)).filter((line) => line.kind === 'verb').map((line) => line.text);
    expect(written.sort()).toEqual(['one', 'other'].flatMap((name) => Array.from({ length: TIMES }, (_, turn) => `${name} ${turn}`)).sort());
    expect(await store.installation.read()).toMatchObject({ id: 'installation-a', status: 'confirmed' });
  } finally {
    await store.close();
  }
});
