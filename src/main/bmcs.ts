/** The drivers of this site, as the settings have them. */
import { createBmcFactory } from '../bmc/factory.js';
import { createFileSecretReader } from '../bmc/file-secrets.js';
import type { Config } from '../config/index.js';
import type { BmcFactory } from '../contracts/bmc.js';
import { REQUEST_SHARE_OF_LEASE } from '../domain/limits.js';
import type { Logger } from '../telemetry/log.js';

/** Of what a lease holder waits for: a driver ends what it does before it would be hung up on. */
const DRIVER_SHARE = 0.95;
const DRIVER_MOST_MS = 20_000;

export function openBmcs(config: Config, log: Logger): BmcFactory {
  const methodMs = Math.min(DRIVER_MOST_MS, Math.floor(config.limits.bmcLock * 1000 * REQUEST_SHARE_OF_LEASE * DRIVER_SHARE));
  return createBmcFactory({
    secrets: createFileSecretReader(config.secretsDir), log, timeouts: { methodMs }, ipmiCipherSuites: config.ipmiCipherSuites, tls: { caFile: config.bmcCaFile, oldTls: config.bmcOldTls },
  });
}
