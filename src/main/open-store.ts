/** The store, opened by the settings: by a role, which makes it, and by a person's command, which only finds it. */
import { join } from 'node:path';
import type { Config } from '../config/index.js';
import { MetalflowError } from '../domain/errors.js';
import type { TemporalPort } from '../contracts/temporal-port.js';
import { createStore, MEMORY_URL, openDatabase, openMadeDatabase, type Store } from '../store/index.js';
import { createCrashPoint, type CrashPoint } from '../telemetry/crash-point.js';

/** A plane never asks Temporal; one that tried would be a bug. */
const NO_TEMPORAL: Pick<TemporalPort, 'look'> = {
  look: () => Promise.reject(new MetalflowError('temporal_unavailable', { why: 'this role does not speak to Temporal' })),
};

export const crashPointOf = (config: Config): CrashPoint => createCrashPoint(config.testCrashPoint, config.dataDir);

const urlOf = (config: Config): string => config.databaseUrl ?? `sqlite:${join(config.dataDir, 'metalflow.db')}`;

/** What a person calls it; a PostgreSQL without its credentials and options. */
function placeOf(config: Config): string {
  if (config.databaseUrl === null) return join(config.dataDir, 'metalflow.db');
  const { protocol, host, pathname } = new URL(config.databaseUrl);
  return `${protocol}//${host}${pathname}`;
}

/** @throws store_unavailable */
export async function openStore(config: Config, options: { temporal?: Pick<TemporalPort, 'look'>; woken?: () => void } = {}): Promise<Store> {
  const db = await openDatabase(urlOf(config));
  return createStore({ db, temporal: options.temporal ?? NO_TEMPORAL, limits: config.limits, crash: crashPointOf(config), ...(options.woken && { woken: options.woken }) });
}

/** `lacks`: why nothing may be concluded from what the store does not say; null for the store of an installation. */
export interface FoundStore {
  readonly store: Store;
  readonly lacks: MetalflowError | null;
}

/**
 * The store as a person's command finds it. A command from the wrong folder must not make one and believe its silence: no open run, no
 * lease, no device. Where there is none, an empty one in memory stands for it.
 * @throws store_unavailable
 */
export async function findStore(config: Config): Promise<FoundStore> {
  const made = await openMadeDatabase(urlOf(config));
  const store = createStore({ db: made ?? (await openDatabase(MEMORY_URL)), temporal: NO_TEMPORAL, limits: config.limits });
  const lacking = (why: string): FoundStore => ({ store, lacks: new MetalflowError('store_not_found', { where: placeOf(config), why }) });
  if (made === null) return lacking('there is nothing');
  try {
    const installation = await store.installation.read();
    return installation === null || installation.status === 'pending' ? lacking('no worker has confirmed its installation yet') : { store, lacks: null };
  } catch (error) {
    await store.close();
    throw error;
  }
}
