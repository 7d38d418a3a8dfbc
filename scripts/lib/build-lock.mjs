/** One build at a time: several roles may be started together, and each builds when dist/ is stale. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Stop } from './run.mjs';

const LIMIT_MS = 180_000;

const isAlive = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
};

/** The process that holds the lock; null while it is still writing its number, or when the folder is gone. */
const holderOf = (folder) => {
  try {
    return Number(readFileSync(path.join(folder, 'pid'), 'utf8')) || null;
  } catch {
    return null;
  }
};

/** Runs `work` while nobody else does. A lock whose holder is dead is taken over. */
export async function withLock(folder, work) {
  mkdirSync(path.dirname(folder), { recursive: true });
  const deadline = Date.now() + LIMIT_MS;
  for (;;) {
    try {
      mkdirSync(folder);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    const holder = holderOf(folder);
    if (holder !== null && !isAlive(holder)) rmSync(folder, { recursive: true, force: true });
    else if (Date.now() > deadline) throw new Stop(`build: another build (process ${holder ?? 'unknown'}) holds ${folder}; remove it if none runs`);
    else await sleep(100);
  }
  try {
    writeFileSync(path.join(folder, 'pid'), String(process.pid));
    return await work();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
