/** `npm run bench`: the measurements of test/bench, each with its limit. */
import { runJest } from './lib/jest.mjs';
import { main } from './lib/run.mjs';

await main((args) => runJest('bench', args));
