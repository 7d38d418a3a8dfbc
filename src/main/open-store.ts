/** The store of a role, opened by its settings. */
import { join } from 'node:path';
import type { Config } from '../config/index.js';
import { MetalflowError } from '../domain/errors.js';
import type { TemporalPort } from '../contracts/temporal-port.js';
import { createStore, openDatabase, type Store } from '../store/index.js';
import { createCrashPoint, type CrashPoint } from '../telemetry/crash-point.js';

/** A plane never asks Temporal; one that tried would be a bug. */
const NO_TEMPORAL: Pick<TemporalPort, 'look'> = {
  look: () => Promise.reject(new MetalflowError('temporal_unavailable', { why: 'this role does not speak to Temporal' })),
};

export const crashPointOf = (config: Config): CrashPoint => createCrashPoint(config.testCrashPoint, config.dataDir);

/** @throws store_unavailable */
export async function openStore(config: Config, options: { temporal?: Pick<TemporalPort, 'look'>; woken?: () => void } = {}): Promise<Store> {
  const db = await openDatabase(config.databaseUrl ?? `sqlite:${join(config.dataDir, 'metalflow.db')}`);
  return createStore({ db, temporal: options.temporal ?? NO_TEMPORAL, limits: config.limits, crash: crashPointOf(config), ...(options.woken && { woken: options.woken }) });
}
