/** Writes what is drawn from the code (docs, .env.example); with --check, fails when a file is not what the code says. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from './build.mjs';
import { inRoot } from './lib/paths.mjs';
import { main, say } from './lib/run.mjs';
import { setUp } from './setup.mjs';

const load = (...parts) => import(pathToFileURL(inRoot('dist', ...parts)).href);

/** Every generated file by its path in the repository. dist/main/docs.js gives `() => { path: text }` as its default. */
async function generated() {
  const { envExample } = await load('config', 'env-example.js');
  const files = { '.env.example': envExample() };
  if (!existsSync(inRoot('dist', 'main', 'docs.js'))) return files;
  const { default: docs } = await load('main', 'docs.js');
  return { ...files, ...(await docs()) };
}

await main(async (args) => {
  const check = args.includes('--check');
  await setUp({ tests: false });
  await build();
  const stale = Object.entries(await generated()).filter(([name, text]) => !existsSync(inRoot(name)) || readFileSync(inRoot(name), 'utf8') !== text);
  for (const [name, text] of stale) {
    if (check) say(`docs: ${name} is not what the code says`);
    else {
      mkdirSync(path.dirname(inRoot(name)), { recursive: true });
      writeFileSync(inRoot(name), text);
      say(`docs: wrote ${name}`);
    }
  }
  if (check && stale.length > 0) say('docs: run `npm run docs` and commit');
  return check && stale.length > 0 ? 1 : 0;
});
