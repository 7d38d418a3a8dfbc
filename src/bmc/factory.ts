/** Opens the driver that a device's `bmc_type` names, with the credentials of the secret `bmc-<type>` as they are now. */
import { isIP } from 'node:net';
import { z } from 'zod';
import type { BmcCredentials, BmcFactory, SecretReader } from '../contracts/bmc.js';
import type { BmcAddress } from '../contracts/device.js';
import { issuesText } from '../contracts/primitives.js';
import { isMetalflowError, MetalflowError } from '../domain/errors.js';
import type { Logger } from '../telemetry/log.js';
import { createAmtBmc } from './amt/client.js';
import type { Timeouts } from './amt/connection.js';
import { createIpmiBmc } from './ipmi/client.js';
import { createManualBmc } from './manual.js';
import { createRedfishBmc } from './redfish/client.js';

export interface BmcFactoryDeps {
  readonly secrets: SecretReader;
  readonly log: Logger;
  readonly timeouts?: Partial<Timeouts>;
  /** METALFLOW_IPMI_CIPHER_SUITES, in order of preference. */
  readonly ipmiCipherSuites?: readonly number[];
}

const Credentials = z.object({
  // It travels in a header.
  username: z.string().regex(/^[\x20-\x7e]{1,64}$/, 'must be 1 to 64 printable ASCII characters').refine((name) => !name.includes(':'), 'must not hold a colon, which Digest forbids'),
  password: z.string().min(1).max(256),
});

const AMT_TLS_PORT = 16_993;
const HOST_NAME = /^(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})(?:\.[A-Za-z0-9][A-Za-z0-9-]{0,62})*\.?$/;

/**
 * `open` throws MetalflowError
 * - `device_invalid` for a host that is none, and AMT's TLS port
 * - `bmc_auth_failed` when the secret is missing, unreadable or not `{username, password}`
 */
export function createBmcFactory({ secrets, log, timeouts, ipmiCipherSuites }: BmcFactoryDeps): BmcFactory {
  return {
    async open(address) {
      switch (address.type) {
        case 'manual':
          return createManualBmc(address);
        case 'redfish':
          requireHost(address);
          return createRedfishBmc({ address, credentials: await readCredentials(secrets, address), secret: secretName(address), log });
        case 'ipmi':
          requireHost(address);
          return createIpmiBmc({ address, credentials: await readCredentials(secrets, address), secret: secretName(address), log, ...(ipmiCipherSuites && { cipherSuites: ipmiCipherSuites }) });
        case 'amt':
          requireReachable(address);
          return createAmtBmc({ address, credentials: await readCredentials(secrets, address), secret: secretName(address), log, timeouts });
      }
    },
  };
}

const secretName = ({ type }: BmcAddress): string => `bmc-${type}`;

function requireReachable(address: BmcAddress): void {
  requireHost(address);
  if (address.port === AMT_TLS_PORT) throw new MetalflowError('device_invalid', { field: 'BMC port', what: `${AMT_TLS_PORT} is AMT's TLS port, which has no driver yet; use 16992` });
}

function requireHost({ host }: BmcAddress): void {
  if (isIP(host) === 0 && !HOST_NAME.test(host)) throw new MetalflowError('device_invalid', { field: 'BMC address', what: host === '' ? 'is empty' : `${host.slice(0, 100)} is neither an IP address nor a host name` });
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
