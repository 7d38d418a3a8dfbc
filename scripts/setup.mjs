/** Everything a fresh clone needs: the npm packages and the Temporal programs. Does nothing when they are there. */
import { isMain } from './lib/paths.mjs';
import { ensureNodeModules } from './lib/node-modules.mjs';
import { main, Stop } from './lib/run.mjs';
import { ensureTemporal } from './lib/temporal.mjs';

const LEAST_NODE = [20, 18, 1];

function refuseOldNode() {
  const have = process.versions.node.split('.').map(Number);
  const differs = LEAST_NODE.findIndex((wanted, i) => have[i] !== wanted);
  if (differs !== -1 && have[differs] < LEAST_NODE[differs]) throw new Stop(`setup: Node ${LEAST_NODE.join('.')} or newer is needed; this is ${process.versions.node}`);
}

/** @param {{ tests: boolean }} what whether development packages and the test server are wanted too */
export async function setUp({ tests }) {
  refuseOldNode();
  await ensureNodeModules({ dev: tests });
  await ensureTemporal({ tests });
}

if (isMain(import.meta)) await main((args) => setUp({ tests: args.includes('--tests') }));
