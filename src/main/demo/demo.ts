/** `metalflow demo`: the main job through the front door, on embedded defaults and simulated machines. */
import { createWriteStream, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DemoOptions } from '../../cli/roles.js';
import { MetalflowError } from '../../domain/errors.js';
import type { Request } from '../../domain/runs.js';
import { lifecycleId } from '../../contracts/messages.js';
import type { RunRow } from '../../contracts/operator.js';
import { createLogger } from '../../telemetry/log.js';
import { createCloser, untilSignal } from '../role.js';
import { startHouse, type House } from '../up.js';
import { lookingAround, writeCommandLineSettings } from './command-line.js';
import { createObserver, type Observer } from './observer.js';
import { createScreen, table, type Screen } from './screen.js';
import { addNode, prepareFiles, startDemoNetbox, type DemoNode } from './world.js';

/** One run, as the summary tells it. */
export interface DemoResult {
  readonly name: string;
  readonly run: string;
  readonly result: string;
  readonly seconds: number;
  readonly digestExpected: string | null;
  readonly digestOnDisk: string | null;
}

/** A demo that takes longer than this has failed. */
const LIMIT_SECONDS = 300;
const LOOK_EVERY_MS = 250;

/** @throws whatever keeps the house from starting; `unexpected` when a run did not end as it should */
export async function runDemo(options: DemoOptions): Promise<void> {
  const closer = createCloser();
  // People read the story on stdout; with --json, stdout's last line is for a program and the story goes to stderr.
  const screen = createScreen(options.json ? process.stderr : process.stdout);
  const dir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'metalflow-demo-'));
  if (!options.dataDir) closer.add(() => rmSync(dir, { recursive: true, force: true, maxRetries: 3 }));
  const isStopped = { yes: false };
  const signalled = untilSignal().then(() => (isStopped.yes = true));
  let results: DemoResult[] = [];
  try {
    const { house, nodes, commandLine, play } = await setTheStage(options, dir, screen, closer);
    results = await play(isStopped);
    const ok = results.every((result) => result.result === 'done' && result.digestExpected === result.digestOnDisk);
    screen.say(`\n${summaryOf(results)}\n`);
    for (const node of nodes) screen.say(`${node.name.padEnd(28)} ${linkOf(house, node)}`);
    if (options.keep && !isStopped.yes) {
      const retired = results.find(({ run }) => run === 'retire')?.name;
      const active = results.find(({ name, result }) => name !== retired && result === 'done');
      screen.say(`\neverything stays up: Temporal UI ${house.temporalUi}, operator plane ${house.operator.url}, data in ${dir}. Ctrl-C ends it.`);
      screen.say(lookingAround(commandLine, active?.name ?? null));
    }
    if (options.json) process.stdout.write(`${JSON.stringify({ ok, temporalUi: house.temporalUi, nodes: results })}\n`);
    if (options.keep && !isStopped.yes) await signalled;
    if (!ok) throw new MetalflowError('unexpected', { what: 'not every run of the demo ended as it should; see above' });
  } finally {
    await closer.close();
  }
}

const short = (digest: string | null): string => (digest ? `${digest.slice(0, 16)}…` : '–');
const summaryOf = (results: readonly DemoResult[]): string =>
  table(
    ['node', 'run', 'result', 'seconds', 'image digest expected', 'found on disk'],
    results.map((r) => [r.name, r.run, r.result, r.seconds.toFixed(1), short(r.digestExpected), short(r.digestOnDisk)]),
  );
const linkOf = (house: House, node: DemoNode): string => `${house.temporalUi}/workflows/${encodeURIComponent(lifecycleId(node.deviceId))}`;

interface Stage {
  readonly house: House;
  readonly nodes: readonly DemoNode[];
  /** File with the settings of a command line that speaks to this demo. */
  readonly commandLine: string;
  play(isStopped: { yes: boolean }): Promise<DemoResult[]>;
}

async function setTheStage(options: DemoOptions, dir: string, screen: Screen, closer: ReturnType<typeof createCloser>): Promise<Stage> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const logFile = createWriteStream(join(dir, 'demo.log'));
  closer.add(() => new Promise((resolve) => logFile.end(resolve)));
  const log = createLogger({ level: 'info', role: 'demo', destination: logFile });
  const { standIn: netbox, token, secret } = await startDemoNetbox(log);
  closer.add(() => netbox.close());
  const { config, operatorToken, expected } = prepareFiles(dir, { url: netbox.url, token, secret });
  const house = await startHouse(config, { placeholders: true, log });
  closer.add(() => house.close());
  const commandLine = writeCommandLineSettings(dir, house.operator.url, { url: netbox.url, token });
  netbox.webhook = { url: `${house.operator.url}/webhooks/netbox`, secret };
  screen.say(`metalflow is up: Temporal UI ${house.temporalUi}, operator plane ${house.operator.url}, NetBox stand-in ${netbox.url}`);

  const nodes: DemoNode[] = [];
  for (let index = 0; index < options.nodes; index++) {
    const node = await addNode(index, dir, house, netbox, log);
    closer.add(() => node.machine.close());
    nodes.push(node);
    screen.say(`${node.name.padEnd(28)} ${linkOf(house, node)}`);
  }
  const observer = createObserver({ url: house.operator.url, token: operatorToken });
  const ask = (node: DemoNode, request: Request): void => netbox.patchDevice(node.deviceId, { custom_fields: { desired_action: request } });

  return {
    house,
    nodes,
    commandLine,
    async play(isStopped) {
      screen.say(`\nprovision: desired_action is set in NetBox, its signed webhook does the rest`);
      for (const node of nodes) ask(node, 'provision');
      const provisioned = await watch(nodes, 'provision', { observer, screen, expected, isStopped });
      const [first] = nodes;
      if (isStopped.yes || provisioned.some((result) => result.result !== 'done')) return provisioned;
      screen.say(`\nretire: ${first!.name} is wiped, powered off, and read off twice`);
      ask(first!, 'retire');
      return [...provisioned, ...(await watch([first!], 'retire', { observer, screen, expected, isStopped }))];
    },
  };
}

interface Watching {
  readonly observer: Observer;
  readonly screen: Screen;
  readonly expected: ReadonlyMap<string, string>;
  readonly isStopped: { yes: boolean };
}

/** Follows each node's run of this kind until it has ended and the lifecycle has settled it. */
async function watch(nodes: readonly DemoNode[], kind: Request, { observer, screen, expected, isStopped }: Watching): Promise<DemoResult[]> {
  const begun = Date.now();
  const ended = new Map<string, { run: RunRow; seconds: number }>();
  const known = new Map<string, number>();
  while (ended.size < nodes.length && !isStopped.yes && Date.now() - begun < LIMIT_SECONDS * 1000) {
    const rows = await observer.nodes();
    const picture = [];
    for (const node of nodes) {
      const row = rows.find((one) => one.deviceId === node.deviceId);
      if (!row) continue;
      if (row.openRun !== null) known.set(node.deviceId, row.openRun);
      const number = known.get(node.deviceId);
      const run = number === undefined ? null : await observer.run(node.deviceId, number);
      const isOver = run?.kind === kind && run.closedAt !== null && row.openRun === null && !['provisioning', 'wiping', 'retiring'].includes(row.state);
      if (isOver && !ended.has(node.deviceId)) ended.set(node.deviceId, { run, seconds: (Date.parse(run.closedAt!) - Date.parse(run.openedAt)) / 1000 });
      picture.push({ node: row, run, seconds: ended.get(node.deviceId)?.seconds ?? (Date.now() - begun) / 1000 });
    }
    screen.show(picture);
    if (ended.size < nodes.length) await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  screen.settle();
  return nodes.map((node) => {
    const end = ended.get(node.deviceId);
    const written = end?.run.orders.findLast((order) => order.action === 'write-image')?.report?.evidence?.['contentDigest'];
    const isInstall = kind === 'provision';
    return {
      name: node.name, run: kind, result: end ? (end.run.failure ? `${end.run.end} (${end.run.failure.code})` : end.run.end!) : 'not ended', seconds: end?.seconds ?? (Date.now() - begun) / 1000,
      digestExpected: isInstall ? expected.get(node.payload)! : null, digestOnDisk: isInstall && typeof written === 'string' ? written : null,
    };
  });
}
