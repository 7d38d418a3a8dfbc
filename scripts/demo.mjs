/** `npm run demo`: from a fresh clone to a node that is provisioned, reprovisioned and retired. Its words are `metalflow demo`'s. */
import { build } from './build.mjs';
import { inRoot } from './lib/paths.mjs';
import { main, run } from './lib/run.mjs';
import { setUp } from './setup.mjs';

await main(async (args) => {
  await setUp({ tests: false });
  await build();
  return (await run(process.execPath, [inRoot('bin', 'metalflow.mjs'), 'demo', ...args])).code;
});
