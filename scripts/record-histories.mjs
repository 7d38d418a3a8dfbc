/** Records the histories that test/replay replays: builds, plays a small world, writes test/fixtures/histories/. Takes a minute or two. */
import { build } from './build.mjs';
import { inRoot } from './lib/paths.mjs';
import { main, run } from './lib/run.mjs';
import { setUp } from './setup.mjs';

await main(async () => {
  await setUp({ tests: true });
  await build();
  const { code } = await run(process.execPath, [inRoot('node_modules', 'jest', 'bin', 'jest.js'), '--config', inRoot('scripts', 'lib', 'record.jest.config.mjs'), '--runInBand', '--forceExit']);
  return code;
});
