/** The installed system of a simulated node: it boots from its own disk, redeems its seed once, and shows itself. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { redactUrl } from '../../../telemetry/log.js';
import type { Journal } from '../journal.js';
import type { SeedProgress } from '../node-state.js';
import { exchange, type Answer, type Exchange, type ExchangeOptions } from './exchange.js';
import { findSeed, type ReadDiskFile, type Seed } from './seed.js';

/** Milliseconds. */
export interface SeedSettings {
  /** From the start of the system until it asks for its seed. */
  readonly delayMs: number;
  readonly tries: number;
  readonly everyMs: number;
}
export const SEED_DEFAULTS: SeedSettings = { delayMs: 1000, tries: 20, everyMs: 3000 };

export interface InstalledSystemOptions {
  /** Where the system keeps what it got; stands for its own data partition. */
  readonly folder: string;
  readonly diskPath: string;
  readonly readDiskFile: ReadDiskFile;
  readonly journal: Journal;
  readonly http: Pick<ExchangeOptions, 'agent' | 'signal' | 'sleep'>;
  readonly seed: SeedSettings;
  /** Called as the seed's progress changes, `none` or `awaited` first. */
  readonly onProgress: (seed: SeedProgress) => void;
}

/** A seed is known by its bytes: they hold the install code, so a reinstalled disk's is new. */
const seedId = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex').slice(0, 32);

function keep(folder: string, id: string, body: Buffer): void {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, id);
  writeFileSync(`${path}.new`, body, { mode: 0o600, flush: true });
  renameSync(`${path}.new`, path);
}

const tell = (answer: Answer): Record<string, unknown> => {
  switch (answer.kind) {
    case 'answered': return { result: 'answered', bytes: answer.body.length };
    case 'refused': return { result: 'refused', status: answer.status };
    case 'unanswered': return { result: 'unanswered', why: answer.why };
  }
};

/** Runs until the seed is taken, or given up. Never throws; a power cut ends it at once. */
export async function runInstalledSystem({ folder, diskPath, readDiskFile, journal, http, seed: settings, onProgress }: InstalledSystemOptions): Promise<void> {
  const ask = async (name: string, what: Exchange): Promise<Answer> => {
    const answer = await exchange(what, { ...http, tries: settings.tries, everyMs: settings.everyMs });
    journal.write(name, { url: redactUrl(what.url), ...tell(answer) });
    return answer;
  };

  async function redeem(seed: Extract<Seed, { kind: 'fleet' | 'nocloud' }>): Promise<Buffer | null> {
    if (seed.kind === 'nocloud') {
      if (!seed.phoneHome) return seed.bytes;
      const answer = await ask('phone-home', { method: 'POST', url: seed.phoneHome.url, headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: seed.phoneHome.form });
      return answer.kind === 'answered' ? seed.bytes : null;
    }
    const headers = { authorization: `Bearer ${seed.seed.installCode}` };
    const answer = await ask('seed', { method: 'GET', url: seed.seed.seedUrl, headers });
    return answer.kind === 'answered' ? answer.body : null;
  }

  const seed = await findSeed(diskPath, readDiskFile);
  if (http.signal.aborted) return;
  if (seed.kind === 'none' || seed.kind === 'unreadable') {
    if (seed.kind === 'unreadable') journal.write('seed-unreadable', { why: seed.why });
    return onProgress(seed.kind === 'none' ? 'none' : 'not-got');
  }
  const id = seedId(seed.bytes);
  // As the real systems do: a seed is redeemed at first boot, and a later boot uses what it brought.
  if (existsSync(join(folder, id))) return onProgress('taken');
  onProgress('awaited');
  await http.sleep(settings.delayMs, http.signal);
  if (http.signal.aborted) return;
  const body = await redeem(seed);
  if (http.signal.aborted) return;
  if (!body) return onProgress('not-got');
  keep(folder, id, body);
  if (seed.kind === 'fleet') {
    await ask('seen', { method: 'POST', url: seed.seed.seenUrl, headers: { authorization: `Bearer ${seed.seed.installCode}` } });
    if (http.signal.aborted) return;
  }
  onProgress('taken');
}
