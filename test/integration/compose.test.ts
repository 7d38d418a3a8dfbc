import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { makeSecrets } from '../../scripts/lib/site-secrets.mjs';
import { findTemporal } from '../../scripts/lib/temporal.mjs';
import { CONFIG_ROLES, readConfig, type ConfigRole } from '../../src/config/config.js';
import { SETTING_GROUPS, SETTINGS } from '../../src/config/settings.js';
import { SEARCH_ATTRIBUTES } from '../../src/contracts/messages.js';
import { OperatorTokens } from '../../src/contracts/operator.js';
import { readClasses } from '../../src/images/classes-yaml.js';
import { reservePort } from '../support/ports.js';
import { until } from '../support/until.js';

const ROOT = path.join(__dirname, '../..');
const GIVEN: Record<string, string> = {
  METALFLOW_NETBOX_URL: 'https://netbox.example',
  METALFLOW_AGENT_URL: 'https://10.0.0.1:42114',
  METALFLOW_ASSETS_URL: 'http://10.0.0.1:7080/assets',
  METALFLOW_BIND_ADDRESS: '10.0.0.1',
};

interface Service {
  image: string;
  restart?: string;
  command?: string[];
  /** null: as the environment of compose, or .env, has it. */
  environment?: Record<string, string | null>;
  ports?: string[];
  volumes?: string[];
  secrets?: string[];
  network_mode?: string;
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test?: string[]; disable?: boolean };
}
interface Compose { services: Record<string, Service>; secrets: Record<string, { file: string }>; volumes: Record<string, null> }

/** `${NAME}`, `${NAME:-default}` and `${NAME:?message}`, as compose fills them in. */
function substitute(text: string): string {
  return text.replaceAll(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, name: string, kind: string | undefined, rest: string) => {
    const value = GIVEN[name] ?? (kind === '-' ? rest : undefined);
    if (value === undefined) throw new Error(`${name} is not given`);
    return value;
  });
}

/** `docker compose` or Debian's docker-compose; null when neither is there. */
function findCompose(): string[] | null {
  for (const [program, ...words] of [['docker-compose'], ['docker', 'compose']]) {
    try {
      execFileSync(program!, [...words, 'version'], { stdio: 'ignore', timeout: 120_000 });
      return [program!, ...words];
    } catch {
      continue;
    }
  }
  return null;
}

const SECRETS = new Set<string>(Object.values(SETTINGS).filter(({ secret }) => secret).map(({ name }) => name));
/** The container's own places: what .env says of them is of the host. */
const OF_THE_CONTAINER = ['DATA_DIR', 'SECRETS_DIR', 'CLASSES_FILE', 'TEMPLATES_DIR', 'SEEDS_DIR', 'ASSETS_DIR', 'TFTP_ROOT'].map((name) => `METALFLOW_${name}`);
/** Settings of one role; no other reads them. */
const OF_ONE: Record<string, readonly ConfigRole[]> = {
  METALFLOW_BIND_ADDRESS: ['boot', 'agentapi'], METALFLOW_METRICS_PORT: ['boot'],
  METALFLOW_OPERATOR_BIND_ADDRESS: ['operatorapi'], METALFLOW_AGENT_TLS_CERT: ['agentapi'], METALFLOW_AGENT_TLS_KEY: ['agentapi'],
};
/** Of the embedded Temporal, of a person's command line, and of tests and the demo. */
const OF_NO_CONTAINER = new Set<string>([
  ...Object.values(SETTING_GROUPS['Demo and tests only']), ...Object.values(SETTING_GROUPS['The command line']), SETTINGS.temporalCli, SETTINGS.temporalPort, SETTINGS.temporalUiPort,
].map(({ name }) => name));
/** What .env may say, and every role that knows it is told. */
const OF_THE_SITE = Object.values(SETTINGS).map(({ name }) => name).filter((name) => ![...OF_THE_CONTAINER, ...Object.keys(OF_ONE), ...SECRETS, ...OF_NO_CONTAINER].includes(name));

const read = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');
const compose = parse(substitute(read('docker-compose.yml')), { merge: true }) as Compose;
const services = Object.entries(compose.services);
const ours = services.filter(([, { image }]) => image.startsWith('metalflow')) as [ConfigRole, Service][];
const tool = findCompose();

describe(`docker-compose.yml, judged by rules of our own${tool ? ` and by ${tool.join(' ')}` : '; neither docker-compose nor docker compose is here to judge it too'}`, () => {
  const judge = tool ? test : test.skip;
  judge('compose itself takes it', () => {
    const [program, ...words] = tool!;
    const out = execFileSync(program!, [...words, '-f', path.join(ROOT, 'docker-compose.yml'), 'config'], { env: { PATH: process.env.PATH, HOME: tmpdir(), ...GIVEN }, encoding: 'utf8', timeout: 120_000 });
    expect(Object.keys((parse(out) as Compose).services).sort()).toEqual(services.map(([name]) => name).sort());
  });

  judge.each(Object.keys(GIVEN))('compose refuses to start without %s', (name) => {
    const [program, ...words] = tool!;
    const { [name]: _, ...rest } = GIVEN;
    expect(() => execFileSync(program!, [...words, '-f', path.join(ROOT, 'docker-compose.yml'), 'config'], { env: { PATH: process.env.PATH, HOME: tmpdir(), ...rest }, stdio: 'pipe', timeout: 120_000 })).toThrow(name);
  });

  test('has every part of the house', () => {
    expect(services.map(([name]) => name).sort()).toEqual(['agentapi', 'boot', 'operatorapi', 'store-db', 'temporal', 'temporal-db', 'temporal-namespace', 'temporal-schema', 'temporal-ui', 'worker']);
    expect(ours.map(([name]) => name).sort()).toEqual(CONFIG_ROLES.filter((role) => role !== 'up' && role !== 'cli').sort());
    for (const [name, { command }] of ours) expect(command).toEqual([name]);
  });

  test('every published port is on loopback only', () => {
    const published = services.flatMap(([, { ports = [] }]) => ports);
    expect(published.length).toBeGreaterThan(0);
    for (const port of published) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
  });

  test('only what nodes speak to is on the network of the host', () => {
    expect(services.filter(([, service]) => service.network_mode === 'host').map(([name]) => name).sort()).toEqual(['agentapi', 'boot']);
  });

  test('no password, token or secret is written down: they come as files', () => {
    for (const [name, { environment = {} }] of services) {
      const written = Object.keys(environment).filter((key) => SECRETS.has(key) || (!key.startsWith('METALFLOW_') && /PASSWORD|PWD|TOKEN|SECRET/.test(key) && !key.endsWith('_FILE')));
      expect([name, written]).toEqual([name, []]);
    }
  });

  test('whatever a service mounts or reads is declared and, when it is ours, there', () => {
    for (const [, { secrets = [], volumes = [] }] of services) {
      for (const secret of secrets) expect(Object.keys(compose.secrets)).toContain(secret);
      for (const [source, target, mode] of volumes.map((volume) => volume.split(':'))) {
        expect(target).toMatch(/^\//);
        if (!source!.startsWith('./')) expect(Object.keys(compose.volumes)).toContain(source);
        else {
          expect(mode).toBe('ro');
          expect(source!.startsWith('./deploy/secrets') || existsSync(path.join(ROOT, source!))).toBe(true);
        }
      }
    }
  });

  test('every image has a version', () => {
    for (const [, { image }] of services) expect(image).toMatch(/^[a-z/-]+:(?!latest)[\w.]+$/);
  });

  test('what runs is watched, and jobs run to their end', () => {
    const jobs = services.filter(([, { restart }]) => restart === 'on-failure').map(([name]) => name);
    expect(jobs.sort()).toEqual(['temporal-namespace', 'temporal-schema']);
    const unwatched = services.filter(([name, { healthcheck }]) => !jobs.includes(name) && !healthcheck?.test).map(([name]) => name);
    expect(unwatched).toEqual(['worker']);
  });

  test('nothing starts before what it needs, and nodes are answered without Temporal', () => {
    const needs = Object.fromEntries(services.map(([name, { depends_on = {} }]) => [name, Object.entries(depends_on).map(([other, { condition }]) => `${other} ${condition}`)]));
    expect(needs).toMatchObject({
      'temporal-schema': ['temporal-db service_healthy'],
      temporal: ['temporal-schema service_completed_successfully'],
      'temporal-namespace': ['temporal service_healthy'],
      worker: ['store-db service_healthy', 'temporal-namespace service_completed_successfully'],
      operatorapi: ['store-db service_healthy', 'temporal-namespace service_completed_successfully'],
      boot: ['store-db service_healthy'],
      agentapi: ['store-db service_healthy'],
    });
  });

  test.each(ours.map(([role]) => role))('the settings of %s are read without complaint', (role) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'metalflow-compose-'));
    try {
      writeFileSync(path.join(folder, 'secret'), 'postgres://metalflow:x@store-db:5432/metalflow');
      const environment = Object.entries(compose.services[role]!.environment!).map(([name, value]) => [name, value !== null && name.endsWith('_FILE') && value.startsWith('/run/secrets/') ? path.join(folder, 'secret') : value]);
      expect(readConfig(Object.fromEntries(environment.map(([name, value]) => [name, value ?? undefined])) as Record<string, string | undefined>, role)).toMatchObject({ role, temporal: { embedded: false, env: { TEMPORAL_ADDRESS: 'temporal:7233', TEMPORAL_NAMESPACE: 'metalflow' } }, secretsDir: '/secrets' });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  describe('settings (B9)', () => {
    const own = (name: string): string[] => ours.filter(([, { environment }]) => Object.hasOwn(environment!, name)).map(([role]) => role).sort();
    const everyRole = ours.map(([role]) => role).sort();

    test('each setting of the house is told to the roles that know it; a new one that is forgotten here is named', () => {
      const forgotten = OF_THE_SITE.filter((name) => own(name).length < ours.length);
      const misplaced = Object.entries(OF_ONE).filter(([name, roles]) => own(name).join() !== [...roles].sort().join()).map(([name]) => name);
      const unplaced = OF_THE_CONTAINER.filter((name) => own(name).length < ours.length);
      expect({ forgotten, misplaced, unplaced }).toEqual({ forgotten: [], misplaced: [], unplaced: [] });
    });

    test('secrets come as files to every role, and what is of no container goes to none', () => {
      for (const name of SECRETS) expect([name, own(name), own(`${name}_FILE`)]).toEqual([name, [], OF_NO_CONTAINER.has(name) ? [] : everyRole]);
      expect([...OF_NO_CONTAINER].filter((name) => own(name).length > 0)).toEqual([]);
    });

    test('what .env says is what the roles get: no setting is given a value of its own here, but a default', () => {
      const text = read('docker-compose.yml');
      for (const name of OF_THE_SITE) expect([name, new RegExp(`^ +${name}:( \\$\\{${name}(:[-?][^}]*)?\\})?$`, 'm').test(text)]).toEqual([name, true]);
    });

    judge('and compose passes it on: a line in .env reaches every role, and one that is not there none', () => {
      const [program, ...words] = tool!;
      const folder = mkdtempSync(path.join(tmpdir(), 'metalflow-compose-'));
      try {
        const said = { ...GIVEN, METALFLOW_AGENT_IMAGE: 'registry.example/agent:1', METALFLOW_PROXY_DHCP: 'on', METALFLOW_BMC_CA_FILE: '/site/bmc-ca.pem' };
        writeFileSync(path.join(folder, '.env'), Object.entries(said).map(([name, value]) => `${name}=${value}\n`).join(''));
        const out = execFileSync(program!, [...words, '--env-file', path.join(folder, '.env'), '-f', path.join(ROOT, 'docker-compose.yml'), 'config'], { env: { PATH: process.env.PATH, HOME: tmpdir() }, encoding: 'utf8', timeout: 60_000 });
        for (const role of everyRole) {
          const { environment = {} } = (parse(out) as Compose).services[role]!;
          expect([role, environment]).toEqual([role, expect.objectContaining({ METALFLOW_AGENT_IMAGE: 'registry.example/agent:1', METALFLOW_PROXY_DHCP: 'on', METALFLOW_BMC_CA_FILE: '/site/bmc-ca.pem', METALFLOW_TEMPORAL_UI_URL: expect.stringContaining('/namespaces/metalflow') })]);
          expect(environment.METALFLOW_NETBOOT_UKI ?? null).toBeNull();
        }
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  });

  test('the image has every program that a role calls', () => {
    const packages = /apt-get install -y --no-install-recommends ([^\\\n]+)/.exec(read('Dockerfile'))![1]!.trim().split(' ');
    // ipmitool: the driver of IPMI. ipxe: the programs that TFTP gives out. xz-utils and zstd: what images are packed with.
    expect(packages).toEqual(expect.arrayContaining(['ipmitool', 'ipxe', 'xz-utils', 'zstd']));
  });

  test('the boot role has its metrics on loopback, and is watched for being alive, not for what it needs', () => {
    expect(readConfig({ METALFLOW_METRICS_PORT: compose.services.boot!.environment!.METALFLOW_METRICS_PORT! }, 'boot')).toMatchObject({ metricsPort: 8081, operatorBindAddress: '127.0.0.1' });
    expect(compose.services.boot!.environment).not.toHaveProperty('METALFLOW_OPERATOR_BIND_ADDRESS');
    expect(ours.flatMap(([, { healthcheck }]) => healthcheck?.test?.at(-1) ?? []).filter((url) => !url.endsWith('/healthz'))).toEqual([]);
  });

  test('Temporal is set up for a fleet, at the pace that was measured', () => {
    expect(compose.services.temporal!.environment).toMatchObject({ DB: 'postgres12', NUM_HISTORY_SHARDS: '512', DYNAMIC_CONFIG_FILE_PATH: '/metalflow/dynamicconfig.yaml', VISIBILITY_DB_PORT: '5432' });
    const pace = parse(read('deploy/temporal/dynamicconfig.yaml')) as Record<string, { value: unknown }[]>;
    expect(Object.fromEntries(Object.entries(pace).map(([key, [first]]) => [key, first!.value]))).toMatchObject({
      'history.transferProcessorMaxPollRPS': 2000, 'history.timerProcessorMaxPollRPS': 2000, 'history.visibilityProcessorMaxPollRPS': 2000, 'history.timerProcessorMaxTimeShift': '1ms',
    });
  });

  test('the namespace job makes the search attributes that workflows set', () => {
    const made = /^for name in (.*); do$/m.exec(read('deploy/temporal/namespace.sh'))![1]!.split(' ');
    expect(made.sort()).toEqual(Object.values(SEARCH_ATTRIBUTES).sort());
  });

  test.each(readdirSync(path.join(ROOT, 'deploy/temporal')).filter((name) => name.endsWith('.sh')))('%s is a script that sh can read', (name) => {
    expect(execFileSync('sh', ['-n', path.join(ROOT, 'deploy/temporal', name)], { encoding: 'utf8' })).toBe('');
  });

  test('on a real server the namespace job makes what is missing, and running it again changes nothing', async () => {
    const temporal = findTemporal()!;
    const port = await reservePort();
    const server = spawn(temporal, ['server', 'start-dev', '--headless', '--ip', '127.0.0.1', '--port', String(port), '--log-level', 'never'], { stdio: 'ignore' });
    const ended = once(server, 'exit');
    const env = { PATH: `${path.dirname(temporal)}:${process.env.PATH}`, HOME: tmpdir(), TEMPORAL_ADDRESS: `127.0.0.1:${port}`, TEMPORAL_NAMESPACE: 'metalflow' };
    const run = (program: string, ...args: string[]): Promise<{ stdout: string }> => promisify(execFile)(program, args, { env, timeout: 120_000 });
    try {
      await until('the dev server is up', () => run(temporal, 'operator', 'cluster', 'health'), 120);
      const job = path.join(ROOT, 'deploy/temporal/namespace.sh');
      await run('sh', job);
      expect((await run('sh', job)).stdout).toBe('');
      const { stdout } = await run(temporal, 'operator', 'search-attribute', 'list');
      expect([...stdout.matchAll(/^\s*(Metalflow\w+)\s+Keyword/gm)].map(([, name]) => name).sort()).toEqual(Object.values(SEARCH_ATTRIBUTES).sort());
    } finally {
      server.kill('SIGKILL');
      await ended;
    }
  });

  test('the classes file of a new site can be read', () => {
    expect(readClasses('classes.yaml', read('deploy/site/classes.yaml'))).toEqual([]);
  });

  describe('the secrets of a new site', () => {
    let folder: string;
    beforeEach(() => { folder = path.join(mkdtempSync(path.join(tmpdir(), 'metalflow-secrets-')), 'secrets'); });
    afterEach(() => { rmSync(path.dirname(folder), { recursive: true }); });

    test('are made for their owner only, and fit together', () => {
      const made = makeSecrets(folder);
      expect(made).toEqual(['temporal_db_password', 'store_db_password', 'store_database_url', 'netbox_webhook_secret', 'metalflow/operator-token', 'metalflow/operator-tokens.json']);
      for (const name of made) expect(statSync(path.join(folder, name)).mode & 0o777).toBe(0o600);
      const url = new URL(readFileSync(path.join(folder, 'store_database_url'), 'utf8'));
      expect(url.password).toBe(readFileSync(path.join(folder, 'store_db_password'), 'utf8'));
      expect(OperatorTokens.parse(JSON.parse(readFileSync(path.join(folder, 'metalflow/operator-tokens.json'), 'utf8'))).tokens).toHaveLength(1);
    });

    test('are never changed once they are there', () => {
      makeSecrets(folder);
      const before = readFileSync(path.join(folder, 'store_db_password'), 'utf8');
      expect(makeSecrets(folder)).toEqual([]);
      expect(readFileSync(path.join(folder, 'store_db_password'), 'utf8')).toBe(before);
    });
  });
});
