/**
 * src/ to dist/: every file by itself (esbuild, ESM, source maps), the workflow bundle, and the agent as one file.
 * Each of the three is made only when what it is made from has changed.
 */
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { withLock } from './lib/build-lock.mjs';
import { inRoot, isMain } from './lib/paths.mjs';
import { main, say } from './lib/run.mjs';

const SRC = inRoot('src');
const DIST = inRoot('dist');
const STAMPS = path.join(DIST, '.stamps.json');
const TARGET = 'node20';

/** Every file of a folder, as sorted paths relative to src/. */
function filesOf(folder) {
  const root = path.join(SRC, folder);
  if (!existsSync(root)) return [];
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(SRC, path.join(entry.parentPath, entry.name)))
    .sort();
}

/** A digest over contents, not times: a fresh checkout of the same sources is the same. */
function stampOf(files) {
  const hash = createHash('sha256');
  for (const file of [inRoot('package-lock.json'), inRoot('scripts', 'build.mjs'), ...files.map((name) => path.join(SRC, name))]) {
    const content = readFileSync(file);
    hash.update(`${path.relative(SRC, file)}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

const isDeclaration = (file) => file.endsWith('.d.ts');
const isSource = (file) => file.endsWith('.ts') && !isDeclaration(file);

async function buildFiles(esbuild, files) {
  const sources = files.filter(isSource);
  const assets = files.filter((file) => !file.endsWith('.ts'));
  await esbuild.build({ entryPoints: sources.map((file) => path.join(SRC, file)), outdir: DIST, outbase: SRC, format: 'esm', platform: 'node', target: TARGET, sourcemap: true, logLevel: 'warning' });
  for (const file of assets) {
    mkdirSync(path.dirname(path.join(DIST, file)), { recursive: true });
    copyFileSync(path.join(SRC, file), path.join(DIST, file));
  }
  removeLeftovers(new Set([...sources.flatMap((file) => [file.replace(/ts$/, 'js'), file.replace(/ts$/, 'js.map')]), ...assets]));
}

/** Made by the other parts. */
const BUNDLES = ['workflow-bundle.js', 'agent.mjs', 'agent.mjs.map', 'ext4-worker.cjs', 'ext4-worker.cjs.map'];

/** What a source that is gone left behind would still be imported, by a test if by nobody else. */
function removeLeftovers(made) {
  for (const entry of readdirSync(DIST, { recursive: true, withFileTypes: true })) {
    const file = path.relative(DIST, path.join(entry.parentPath, entry.name));
    if (entry.isFile() && !file.startsWith('.') && !BUNDLES.includes(file) && !made.has(file)) rmSync(path.join(DIST, file));
  }
}

/** Workflow code as workers load it: without this file each worker would spend seconds on webpack at its start. */
async function buildWorkflows() {
  const { bundleWorkflowCode, DefaultLogger } = await import('@temporalio/worker');
  const { code } = await bundleWorkflowCode({ workflowsPath: path.join(DIST, 'workflows', 'index.js'), logger: new DefaultLogger('WARN') });
  writeFileSync(path.join(DIST, 'workflow-bundle.js'), code);
}

/** CommonJS packages inside an ES module ask for `require` and `__dirname`. */
const COMMONJS_BANNER = "import { createRequire as __createRequire } from 'node:module'; import { fileURLToPath as __toPath } from 'node:url'; const require = __createRequire(import.meta.url); const __filename = __toPath(import.meta.url); const __dirname = __toPath(new URL('.', import.meta.url));";

/** The agent and the thread it hands ext4 to: what a netboot system carries. */
async function buildAgent(esbuild) {
  const shared = { bundle: true, platform: 'node', target: TARGET, sourcemap: true, logLevel: 'error' };
  await esbuild.build({ ...shared, entryPoints: [path.join(SRC, 'agent', 'main.ts')], outfile: path.join(DIST, 'agent.mjs'), format: 'esm', banner: { js: COMMONJS_BANNER } });
  const worker = path.join(SRC, 'agent', 'ext4-worker', 'ext4-worker.mjs');
  if (existsSync(worker)) await esbuild.build({ ...shared, entryPoints: [worker], outfile: path.join(DIST, 'ext4-worker.cjs'), format: 'cjs' });
}

/** What is made, from which folders, when there is something to make it from. */
const PARTS = [
  { name: 'files', from: [''], needs: '', make: buildFiles },
  { name: 'workflow bundle', from: ['workflows', 'domain', 'contracts'], needs: 'workflows/index.ts', makes: 'workflow-bundle.js', make: buildWorkflows },
  { name: 'agent', from: ['agent', 'domain', 'contracts', 'telemetry'], needs: 'agent/main.ts', makes: 'agent.mjs', make: buildAgent },
];

const readStamps = () => {
  try {
    return JSON.parse(readFileSync(STAMPS, 'utf8'));
  } catch {
    return {};
  }
};

/** The parts that are missing or stale, each with its files and its stamp. */
function staleParts() {
  const stamps = readStamps();
  return PARTS.filter((part) => existsSync(path.join(SRC, part.needs)))
    .map((part) => ({ ...part, files: part.from.flatMap(filesOf) }))
    .map((part) => ({ ...part, stamp: stampOf(part.files) }))
    .filter((part) => stamps[part.name] !== part.stamp || (part.makes !== undefined && !existsSync(path.join(DIST, part.makes))));
}

/** Whether dist/ is what src/ makes. True where there is no src/ (an installed package brings its dist/). */
export const isUpToDate = () => !existsSync(SRC) || staleParts().length === 0;

/** Brings dist/ up to date. @throws when a source does not compile; dist/ then stays stale and is built again next time */
export async function build() {
  if (isUpToDate()) return;
  await withLock(path.join(DIST, '.lock'), async () => {
    const esbuild = await import('esbuild');
    // Looked at again inside the lock: somebody may have built while we waited.
    for (const part of staleParts()) {
      const began = performance.now();
      await part.make(esbuild, part.files);
      writeFileSync(STAMPS, JSON.stringify({ ...readStamps(), [part.name]: part.stamp }));
      say(`build: ${part.name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
    }
  });
}

if (isMain(import.meta)) await main(build);
