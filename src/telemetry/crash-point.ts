/**
 * Named points at which a test can kill the process (METALFLOW_TEST_CRASH_POINT=`<name>`); each kills once per data folder, so that
 * the restarted process goes on. Without the setting every call is nothing.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type CrashPoint = (name: string) => void;

export const noCrash: CrashPoint = () => undefined;

export function createCrashPoint(wanted: string | null, dataDir: string): CrashPoint {
  if (!wanted) return noCrash;
  const marker = join(dataDir, `crashed-at-${wanted.replaceAll(/[^A-Za-z0-9-]/g, '_')}`);
  return (name) => {
    if (name !== wanted || existsSync(marker)) return;
    writeFileSync(marker, new Date().toISOString());
    process.kill(process.pid, 'SIGKILL');
  };
}
