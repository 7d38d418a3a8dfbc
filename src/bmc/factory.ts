/** Opens the driver that a device's `bmc_type` names, with the credentials of the secret `bmc-<type>` as they are now. */
import { isIP } from 'node:net';
import { z } from 'zod';
import type { BmcCredentials, BmcFactory, SecretReader } from '../contracts/bmc.js';
import type { BmcAddress } from '../contracts/device.js';
import { issuesText } from '../contracts/primitives.js';
import { isMetalflowError, MetalflowError } from '../domain/errors.js';
import type { Logger } from '../telemetry/log.js';
import { AMT_PORT, AMT_TLS_PORT, createAmtBmc } from './amt/client.js';
import type { Timeouts } from './http-once.js';
import { readAuthorities } from './authorities.js';
import { createIpmiBmc } from './ipmi/client.js';
import { createManualBmc } from './manual.js';
import { createRedfishBmc, redfishSpeaksTls } from './redfish/client.js';
import type { Trust } from './trust.js';

export interface BmcFactoryDeps {
  readonly secrets: SecretReader;
  readonly log: Logger;
  /** Of AMT; `methodMs` of every driver. */
  readonly timeouts?: Partial<Timeouts>;
  /** METALFLOW_IPMI_CIPHER_SUITES, in order of preference. */
  readonly ipmiCipherSuites?: readonly number[];
  /** What goes for every BMC over TLS; the pin is the device's own. */
  readonly tls?: {
    /** PEM file of the authorities that count in place of those that Node knows. */
    readonly caFile: string | null;
    readonly oldTls: boolean;
  };
}

const Credentials = z.object({
  // It travels in a header.
  username: z.string().regex(/^[\x20-\x7e]{1,64}$/, 'must be 1 to 64 printable ASCII characters').refine((name) => !name.includes(':'), 'must not hold a colon, which Digest forbids'),
  password: z.string().min(1).max(256),
});

const HOST_NAME = /^(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})(?:\.[A-Za-z0-9][A-Za-z0-9-]{0,62})*\.?$/;

/**
 * `open` throws MetalflowError
 * - `device_invalid` for a host that is none, and a pin without TLS
 * - `setting_invalid` for authorities that cannot be read
 * - `bmc_auth_failed` when the secret is missing, unreadable or not `{username, password}`
 */
export function createBmcFactory({ secrets, log, timeouts, ipmiCipherSuites, tls = { caFile: null, oldTls: false } }: BmcFactoryDeps): BmcFactory {
  const trustOf = async ({ fingerprint }: BmcAddress): Promise<Trust> => ({
    pin: fingerprint ?? null,
    // A pin trusts one certificate, whoever signed it.
    authorities: fingerprint === undefined && tls.caFile !== null ? await readAuthorities(tls.caFile) : null,
    oldTls: tls.oldTls,
  });

  const ofEach = timeouts?.methodMs === undefined ? {} : { timeouts: { methodMs: timeouts.methodMs } };

  return {
    async open(address) {
      const common = async () => ({ address, credentials: await readCredentials(secrets, address), secret: secretName(address), log });
      switch (address.type) {
        case 'manual':
          return createManualBmc(address);
        case 'redfish':
          requireHost(address);
          requireTlsForPin(address, redfishSpeaksTls(address), 'take bmc_tls false or bmc_port 80 out');
          return createRedfishBmc({ ...(await common()), ...ofEach, ...(redfishSpeaksTls(address) && { trust: await trustOf(address) }) });
        case 'ipmi':
          requireHost(address);
          return createIpmiBmc({ ...(await common()), ...ofEach, ...(ipmiCipherSuites && { cipherSuites: ipmiCipherSuites }) });
        case 'amt':
          requireHost(address);
          requireTlsForPin(address, amtSpeaksTls(address), `set bmc_port ${AMT_TLS_PORT}, or bmc_tls`);
          return createAmtBmc({ ...(await common()), timeouts, trust: amtSpeaksTls(address) ? await trustOf(address) : null });
      }
    },
  };
}

const secretName = ({ type }: BmcAddress): string => `bmc-${type}`;

const amtSpeaksTls = ({ port, tls }: BmcAddress): boolean => tls ?? port === AMT_TLS_PORT;

/** Whoever pins a certificate does not mean to speak without one. */
function requireTlsForPin({ fingerprint, port, type }: BmcAddress, speaksTls: boolean, toDo: string): void {
  if (fingerprint === undefined || speaksTls) return;
  const what = `pins a certificate, and ${type} on port ${port ?? (type === 'amt' ? AMT_PORT : 80)} is plain: ${toDo}`;
  throw new MetalflowError('device_invalid', { field: 'config_context.metalflow.bmc_fingerprint', what });
}

function requireHost({ host }: BmcAddress): void {
  if (isIP(host) === 0 && !HOST_NAME.test(host)) {
    throw new MetalflowError('device_invalid', { field: 'BMC address', what: host === '' ? 'is empty' : `${host.slice(0, 100)} is neither an IP address nor a host name` });
  }
}

async function readCredentials(secrets: SecretReader, address: BmcAddress): Promise<BmcCredentials> {
  const name = secretName(address);
  const unusable = (why: string): MetalflowError => new MetalflowError('bmc_auth_failed', { address: address.host, secret: `${name}.json (${why})`, why });
  let found: unknown;
  try {
    found = await secrets.readJson(name);
  } catch (error) {
    throw unusable(isMetalflowError(error) ? String(error.details['why'] ?? error.code) : 'cannot be read');
  }
  if (found === null) throw unusable('there is no such file in the secrets folder');
  const credentials = Credentials.safeParse(found);
  // zod's messages name fields, never their values.
  if (!credentials.success) throw unusable(issuesText(credentials.error));
  return credentials.data;
}
