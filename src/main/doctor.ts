/** `metalflow doctor`: looks at what the house stands on; changes nothing. */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { findIpxeBinaries } from '../boot/ipxe/binaries.js';
import type { DoctorCheck } from '../cli/roles.js';
import type { Config } from '../config/index.js';
import { ERRORS } from '../domain/errors.js';
import { silentLogger } from '../telemetry/log.js';
import { openNetbox } from './house.js';
import { openLibraries } from './libraries.js';
import { findStore } from './open-store.js';
import { connectTemporal, temporalTarget } from './temporal.js';
import { findTemporalCli } from './temporal-server.js';

type Look = () => Promise<Omit<DoctorCheck, 'name'>>;

const good = (found: string): Omit<DoctorCheck, 'name'> => ({ result: 'good', found });
const bad = (found: string, hint: string): Omit<DoctorCheck, 'name'> => ({ result: 'bad', found, hint });
const warning = (found: string, hint: string): Omit<DoctorCheck, 'name'> => ({ result: 'warning', found, hint });
const isThere = (file: string): Promise<boolean> => access(file).then(() => true, () => false);

export async function doctor(config: Config): Promise<DoctorCheck[]> {
  const looks: Record<string, Look> = {
    'temporal program': async () => {
      const cli = findTemporalCli(config.temporalCli, config.searchPath);
      return cli ? good(cli) : warning('none', 'only `metalflow up` on embedded defaults needs it: node scripts/setup.mjs installs it');
    },
    temporal: async () => {
      if (config.temporal.embedded) return good('embedded: `metalflow up` starts it');
      const temporal = await connectTemporal(temporalTarget(config.temporal.env, null));
      await temporal.close();
      return good(String(config.temporal.env['TEMPORAL_ADDRESS'] ?? 'by profile'));
    },
    store: async () => {
      const { store, lacks } = await findStore(config);
      const installation = await store.installation.read().finally(() => store.close());
      if (lacks) return warning(lacks.message, `the first role that starts makes one; ${ERRORS[lacks.code].hint}`);
      if (installation?.status === 'mismatch') return bad(installation.why ?? 'mismatch', 'store and Temporal do not belong together: look, then `metalflow node adopt`');
      return good(`installation ${installation!.id}`);
    },
    netbox: async () => {
      if (!config.netboxUrl) return warning('not set', 'set METALFLOW_NETBOX_URL and METALFLOW_NETBOX_TOKEN');
      const netbox = openNetbox(config, silentLogger());
      const { devices } = await netbox.listChanged(new Date().toISOString());
      await netbox.close();
      return good(`${config.netboxUrl}: ${devices.length} devices ask for something`);
    },
    classes: async () => {
      const { classes } = openLibraries(config, null, silentLogger());
      const names = (await classes.list()).map((nodeClass) => nodeClass.name);
      const problem = classes.lastProblem();
      if (problem) return bad(problem.message, problem.hint);
      return names.length > 0 ? good(names.join(', ')) : warning('none', `write ${config.classesFile}`);
    },
    'ipxe binaries': async () => {
      const { missing } = await findIpxeBinaries(config.tftpRoots);
      const roots = config.tftpRoots.join(', ');
      return missing.length === 0 ? good(roots) : warning(`${missing.join(', ')} missing in ${roots}`, 'install the Debian package ipxe and set METALFLOW_TFTP_ROOT=/usr/lib/ipxe');
    },
    'BMC secret': async () => {
      const file = join(config.secretsDir, 'bmc-amt.json');
      return (await isThere(file)) ? good('bmc-amt.json') : warning('no bmc-amt.json', `write {"username","password"} to ${file}`);
    },
    'operator tokens': async () => {
      const file = join(config.secretsDir, 'operator-tokens.json');
      return (await isThere(file)) ? good('operator-tokens.json') : warning('none', 'without operator-tokens.json nobody may say anything to a node');
    },
    'webhook secret': async () => (config.netboxWebhookSecret ? good('set') : warning('not set', 'without METALFLOW_NETBOX_WEBHOOK_SECRET only the reconcile brings news')),
  };
  const checks: DoctorCheck[] = [];
  for (const [name, look] of Object.entries(looks)) checks.push({ name, ...(await look().catch((error: Error) => bad(error.message, (error as { hint?: string }).hint ?? 'see the message'))) });
  return checks;
}
