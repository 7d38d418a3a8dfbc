/** Reads every setting once. Whatever is wrong is said before anything starts. */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { MetalflowError } from '../domain/errors.js';
import type { Limits } from '../domain/limits.js';
import { readLimits } from './limits-file.js';
import { nearest } from './nearest.js';
import { SETTINGS, type SettingKey, type SettingRow, type SettingValues } from './settings.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Which process reads: a check that only concerns another role's doors is not made. `cli` opens none. */
export const CONFIG_ROLES = ['up', 'worker', 'boot', 'agentapi', 'operatorapi', 'cli'] as const;
export type ConfigRole = (typeof CONFIG_ROLES)[number];

export interface Config extends SettingValues {
  readonly role: ConfigRole;
  /** domain/limits.ts, with the overrides of METALFLOW_LIMITS_FILE. */
  readonly limits: Limits;
  readonly temporal: {
    /** True when no TEMPORAL_* setting names a server: `up` then starts the dev server. */
    readonly embedded: boolean;
    /** TEMPORAL_*, for @temporalio/envconfig. */
    readonly env: Readonly<Record<string, string>>;
  };
  /** PATH, where the Temporal program is looked for. */
  readonly searchPath: string;
  /** OTEL_*, for the OpenTelemetry SDK. */
  readonly otel: Readonly<Record<string, string>>;
}

const ROWS = Object.entries(SETTINGS) as [SettingKey, SettingRow][];
const NAMES = ROWS.map(([, row]) => row.name as string);
/** Any of these says where Temporal is. */
const TEMPORAL_ELSEWHERE = ['TEMPORAL_ADDRESS', 'TEMPORAL_PROFILE', 'TEMPORAL_CONFIG_FILE'];

const invalid = (name: string, why: string): MetalflowError => new MetalflowError('setting_invalid', { name, why });

/** An empty value is one that is not set: compose files and shells pass those. */
const present = (value: string | undefined): string | undefined => (value === undefined || value === '' ? undefined : value);

const withPrefix = (env: Environment, prefix: string): Readonly<Record<string, string>> =>
  Object.freeze(Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[0].startsWith(prefix) && present(entry[1]) !== undefined)));

function refuseUnknownNames(env: Environment): void {
  const known = new Set([...NAMES, ...ROWS.filter(([, row]) => row.secret).map(([, row]) => `${row.name}_FILE`)]);
  for (const name of Object.keys(env)) {
    if (!name.startsWith('METALFLOW_') || known.has(name)) continue;
    const guess = nearest(name, [...known]);
    throw new MetalflowError('setting_unknown', { name, guess: guess ? ` (did you mean ${guess}?)` : '' });
  }
}

/** The text of a secret from its file, without the line end that editors add. */
function readSecretFile(setting: string, file: string): string {
  let content: string;
  try {
    content = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw invalid(setting, `the file cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);
  }
  if (content === '') throw invalid(setting, 'the file is empty');
  return content;
}

function givenText(row: SettingRow, env: Environment): string | undefined {
  const direct = present(env[row.name]);
  if (!row.secret) return direct;
  const file = present(env[`${row.name}_FILE`]);
  if (file === undefined) return direct;
  if (direct !== undefined) throw invalid(row.name, `is set, and ${row.name}_FILE too; set one of them`);
  return readSecretFile(`${row.name}_FILE`, file);
}

/** A default's text, with `{NAME}` replaced by that setting's own. */
function defaultText(row: SettingRow, env: Environment): string | null {
  return row.default?.replaceAll(/\{(METALFLOW_[A-Z_]+)\}/g, (_, name: string) => {
    const other = ROWS.find(([, candidate]) => candidate.name === name)![1];
    return present(env[name]) ?? defaultText(other, env) ?? '';
  }) ?? null;
}

function readRow(row: SettingRow, env: Environment): unknown {
  const given = givenText(row, env) ?? defaultText(row, env);
  if (given === null) return null;
  const parsed = row.parse.safeParse(given);
  if (!parsed.success) throw invalid(row.name, parsed.error.issues[0]!.message);
  return parsed.data;
}

export const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || host === '[::1]' || (isIP(host) === 4 && host.startsWith('127.'));

/** What no single setting can tell. Secrets and install codes cross the agent plane, so it is never plain on a network. */
function crossCheck(config: SettingValues, role: ConfigRole): void {
  for (const [plane, cert, key] of [['AGENT', config.agentTlsCert, config.agentTlsKey], ['BOOT', config.bootTlsCert, config.bootTlsKey]] as const) {
    if ((cert === null) === (key === null)) continue;
    const [has, lacks] = cert === null ? (['KEY', 'CERT'] as const) : (['CERT', 'KEY'] as const);
    throw invalid(`METALFLOW_${plane}_TLS_${lacks}`, `is needed with METALFLOW_${plane}_TLS_${has}`);
  }
  if (role === 'up' || role === 'agentapi') {
    if (config.agentTlsCert === null && !isLoopback(config.bindAddress)) {
      throw invalid('METALFLOW_BIND_ADDRESS', 'without METALFLOW_AGENT_TLS_CERT and METALFLOW_AGENT_TLS_KEY the agent plane listens on loopback only');
    }
  }
  if (config.agentUrl !== null && config.agentUrl.startsWith('http:') && !isLoopback(new URL(config.agentUrl).hostname)) {
    throw invalid('METALFLOW_AGENT_URL', 'must be https, except on loopback: install codes pass over it');
  }
  if (config.powerWatchSeconds > 0 && config.powerWatchAtOnce > config.bmcCalls) {
    throw invalid('METALFLOW_POWER_WATCH_AT_ONCE', `is ${config.powerWatchAtOnce}, more than the ${config.bmcCalls} calls of BMCs that METALFLOW_BMC_CALLS allows`);
  }
  if (config.netboxUrl !== null && config.netboxToken === null && role !== 'cli') throw invalid('METALFLOW_NETBOX_TOKEN', 'is needed with METALFLOW_NETBOX_URL');
}

/**
 * Reads and checks every setting; the result is frozen. The only reader of the process's environment in the house.
 * @throws setting_unknown for a METALFLOW_* name that is none, with the nearest one as a guess
 * @throws setting_invalid for a value that cannot be read, or two that do not fit each other
 */
export function readConfig(env: Environment = process.env, role: ConfigRole = 'up'): Config {
  refuseUnknownNames(env);
  const values = Object.fromEntries(ROWS.map(([key, row]) => [key, readRow(row, env)])) as unknown as SettingValues;
  crossCheck(values, role);
  return Object.freeze({
    ...values,
    role,
    limits: Object.freeze(readLimits(values.limitsFile, SETTINGS.limitsFile.name)),
    temporal: Object.freeze({ embedded: TEMPORAL_ELSEWHERE.every((name) => present(env[name]) === undefined), env: withPrefix(env, 'TEMPORAL_') }),
    searchPath: env['PATH'] ?? '',
    otel: withPrefix(env, 'OTEL_'),
  });
}

/** Where programs are looked for, and the one that was named: what a world of its own (the demo) takes over from ours. */
export function programEnvironment(env: Environment = process.env): Readonly<Record<string, string>> {
  const names = ['PATH', SETTINGS.temporalCli.name] as const;
  return Object.fromEntries(names.map((name) => [name, present(env[name])] as const).filter((entry): entry is [typeof entry[0], string] => entry[1] !== undefined));
}

/** The settings as they may be logged: names and values, secrets as `[set]`. */
export function shownConfig(config: Config): Record<string, unknown> {
  return Object.fromEntries(ROWS.map(([key, row]) => [row.name, row.secret && config[key] !== null ? '[set]' : config[key]]));
}
