/**
 * Named points at which a test can kill the process (METALFLOW_TEST_CRASH_POINT=`<name>`, or `<name>#<n>` for the n-th time that
 * the process gets there); each kills once per data folder, so that the restarted process goes on. Without the setting every
 * call is nothing.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CrashPointName } from './crash-points.js';

export type CrashPoint = (name: CrashPointName) => void;

export const noCrash: CrashPoint = () => undefined;

/** The file that says that the process was killed there. */
export const crashMarker = (dataDir: string, wanted: string): string => join(dataDir, `crashed-at-${wanted.replaceAll(/[^A-Za-z0-9-]/g, '_')}`);

export function createCrashPoint(wanted: string | null, dataDir: string): CrashPoint {
  if (!wanted) return noCrash;
  const marker = crashMarker(dataDir, wanted);
  const [name, times = '1'] = wanted.split('#');
  let left = Number(times);
  return (reached) => {
    if (reached !== name || --left > 0 || existsSync(marker)) return;
    writeFileSync(marker, new Date().toISOString());
    process.kill(process.pid, 'SIGKILL');
  };
}
