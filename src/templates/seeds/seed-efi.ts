/** `fleet-seed.json` on the EFI system partition: how an installed system finds its seed. */
import { INSTALL_CODE_MARK, type FleetSeed } from '../../contracts/agent-api.js';
import type { SeedSubject } from '../../contracts/agent-desk.js';
import type { SeedFile } from '../../contracts/order.js';
import { seedUrl, seenUrl } from './seed-urls.js';

export const FLEET_SEED_FILE = 'fleet-seed.json';
/** It holds the install code. */
const SECRET_MODE = 0o600;

/** The one file, with the mark where the agent puts its install code. */
export function efiFiles(subject: SeedSubject, baseUrl: string): SeedFile[] {
  const seed: FleetSeed = {
    version: 1,
    systemUuid: subject.systemUuid,
    seedUrl: seedUrl(baseUrl, subject),
    seenUrl: seenUrl(baseUrl, subject),
    installCode: INSTALL_CODE_MARK,
    nodeName: subject.nodeName,
    instanceId: subject.instanceId,
  };
  return [{ path: FLEET_SEED_FILE, content: `${JSON.stringify(seed, null, 2)}\n`, mode: SECRET_MODE }];
}
