/** The drivers of this site, as the settings have them. */
import { createBmcFactory } from '../bmc/factory.js';
import { createFileSecretReader } from '../bmc/file-secrets.js';
import type { Config } from '../config/index.js';
import type { BmcFactory } from '../contracts/bmc.js';
import { bmcTimes } from '../domain/limits.js';
import type { Logger } from '../telemetry/log.js';

export const openBmcs = (config: Config, log: Logger): BmcFactory =>
  createBmcFactory({
    secrets: createFileSecretReader(config.secretsDir), log, timeouts: { methodMs: bmcTimes(config.limits.bmcLock).methodMs }, ipmiCipherSuites: config.ipmiCipherSuites,
    tls: { caFile: config.bmcCaFile, oldTls: config.bmcOldTls },
  });
