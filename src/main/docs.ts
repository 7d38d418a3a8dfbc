/** What is drawn from the code: `npm run docs` writes these files, `npm run docs:check` fails when one is stale. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { amtSimulatorPage } from './docs/amt-simulator-page.js';
import { commandsPage } from './docs/commands-page.js';
import { nodesWay } from './docs/diagrams.js';
import { errorsPage } from './docs/errors-page.js';
import { replaceBlock } from './docs/markdown.js';
import { settingsPage } from './docs/settings-page.js';
import { statesPage } from './docs/states-page.js';

const README = fileURLToPath(new URL('../../README.md', import.meta.url));

/**
 * Every generated file: path in the repository → text. README.md is one of them; only the block of its diagram is replaced.
 * @throws when README.md lost its block
 */
export default async function docs(): Promise<Record<string, string>> {
  return {
    'README.md': replaceBlock(await readFile(README, 'utf8'), 'states', nodesWay()),
    'docs/states.md': statesPage(),
    'docs/errors.md': errorsPage(),
    'docs/settings.md': settingsPage(),
    'docs/commands.md': commandsPage(),
    'docs/amt-simulator.md': amtSimulatorPage(),
  };
}
