import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { withLock } from '../../scripts/lib/build-lock.mjs';
import { whyInstall } from '../../scripts/lib/node-modules.mjs';

const LOCKED = {
  '': { name: 'metalflow' },
  'node_modules/zod': { version: '4.0.0', integrity: 'a' },
  'node_modules/jest': { version: '30.0.0', integrity: 'b', dev: true },
  'node_modules/@esbuild/aix-ppc64': { version: '1.0.0', integrity: 'c', optional: true },
};
const { 'node_modules/zod': zod, 'node_modules/jest': jester } = LOCKED;

describe('the set-up installs packages', () => {
  test.each<[string, object | null, boolean, string | null]>([
    ['when there are none', null, false, 'node_modules is missing'],
    ['when one is missing', { 'node_modules/jest': jester }, true, 'node_modules/zod is missing'],
    ['when one is of another version', { 'node_modules/zod': { ...zod, version: '4.0.1' } }, false, 'node_modules/zod is 4.0.1, wanted is 4.0.0'],
    ['when one has other contents', { 'node_modules/zod': { ...zod, integrity: 'x' } }, false, 'node_modules/zod is 4.0.0, wanted is 4.0.0'],
    ['when tests need what a start does not', { 'node_modules/zod': zod }, true, 'node_modules/jest is missing'],
    ['not for a start without development packages', { 'node_modules/zod': zod }, false, null],
    ['not for packages of other platforms', { 'node_modules/zod': zod, 'node_modules/jest': jester }, true, null],
  ])('%s', (_, installed, dev, why) => {
    expect(whyInstall(LOCKED, installed as never, { dev })).toBe(why);
  });
});

describe('the build lock', () => {
  let folder: string;
  beforeEach(() => { folder = path.join(mkdtempSync(path.join(tmpdir(), 'metalflow-lock-')), 'dist', '.lock'); });
  afterEach(() => { rmSync(path.dirname(path.dirname(folder)), { recursive: true }); });

  test('lets one work at a time, and is gone afterwards', async () => {
    const said: string[] = [];
    let finish = (): void => {};
    const first = withLock(folder, async () => {
      said.push('first begins');
      await new Promise<void>((resolve) => { finish = resolve; });
      said.push('first ends');
    });
    const second = withLock(folder, async () => { said.push('second'); });
    finish();
    await Promise.all([first, second]);
    expect(said).toEqual(['first begins', 'first ends', 'second']);
    expect(existsSync(folder)).toBe(false);
  });

  test('is taken from a builder that died', async () => {
    await withLock(folder, async () => { writeFileSync(path.join(path.dirname(folder), 'x'), ''); });
    mkdirSync(folder);
    // No process has this number: it is above what Linux gives out.
    writeFileSync(path.join(folder, 'pid'), '4999999');
    expect(await withLock(folder, async () => 'built')).toBe('built');
    expect(readdirSync(path.dirname(folder))).toEqual(['x']);
  });

  test('is given back when the work fails', async () => {
    await expect(withLock(folder, async () => { throw new Error('no such file'); })).rejects.toThrow('no such file');
    expect(existsSync(folder)).toBe(false);
  });
});
