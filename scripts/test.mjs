/** `npm test` and `npm run test:integration`: node scripts/test.mjs fast|integration [words for jest]. */
import { runJest } from './lib/jest.mjs';
import { main, Stop } from './lib/run.mjs';

const SUITES = ['fast', 'integration'];

await main(([suite, ...args]) => {
  if (!SUITES.includes(suite)) throw new Stop(`usage: node scripts/test.mjs ${SUITES.join('|')} [words for jest]`);
  return runJest(suite, args);
});
