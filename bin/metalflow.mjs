#!/usr/bin/env node
/** Starts metalflow. In a checkout it builds first when dist/ is missing or stale; an installed package brings its dist/. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';

const here = (name) => new URL(`../${name}`, import.meta.url);

try {
  createRequire(import.meta.url).resolve('commander');
} catch {
  console.error('metalflow: its packages are not installed. Run `npm ci` in its folder; `npm run demo` does it too.');
  process.exit(1);
}

if (existsSync(here('src'))) {
  const { build } = await import(here('scripts/build.mjs').href);
  try {
    await build();
  } catch (error) {
    console.error(`metalflow: the build failed.\n${error.message}`);
    process.exit(1);
  }
}

await import(here('dist/bin.js').href);
