/** Does node_modules hold what package-lock.json says? */
import { readFileSync } from 'node:fs';
import { inRoot } from './paths.mjs';
import { run, say, Stop } from './run.mjs';

const packagesOf = (file) => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages ?? null;
  } catch {
    return null;
  }
};

/**
 * Why `npm ci` is needed, or null. npm leaves its own lock file in node_modules; optional packages for other platforms
 * are missing there rightly, and development packages when only a start is meant.
 * @param {Record<string, object> | null} locked of package-lock.json
 * @param {Record<string, object> | null} installed of node_modules/.package-lock.json
 */
export function whyInstall(locked, installed, { dev }) {
  if (installed === null) return 'node_modules is missing';
  for (const [place, wanted] of Object.entries(locked ?? {})) {
    if (place === '') continue;
    const found = installed[place];
    if (found === undefined) {
      if (wanted.optional || wanted.devOptional || (wanted.dev && !dev)) continue;
      return `${place} is missing`;
    }
    if (found.version !== wanted.version || found.integrity !== wanted.integrity) return `${place} is ${found.version}, wanted is ${wanted.version}`;
  }
  return null;
}

/** Installs what is missing. @throws {Stop} when npm cannot */
export async function ensureNodeModules({ dev }) {
  const why = whyInstall(packagesOf(inRoot('package-lock.json')), packagesOf(inRoot('node_modules', '.package-lock.json')), { dev });
  if (why === null) return;
  say(`setup: npm ci (${why})`);
  const { code } = await run('npm', ['ci', '--no-audit', '--no-fund', ...(dev ? [] : ['--omit=dev'])]);
  if (code !== 0) throw new Stop('setup: npm ci failed; see above');
}
