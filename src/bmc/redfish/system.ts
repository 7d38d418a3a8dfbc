/** Which of a service's systems is the machine: the only one, the one that NetBox names, or the one with the device's UUID. */
import type { BmcAddress } from '../../contracts/device.js';
import { MetalflowError } from '../../domain/errors.js';
import { parseUuid } from '../../domain/uuid.js';
import { ok, problem, type Outcome } from '../problem.js';
import type { RedfishService } from './service.js';
import { Collection, ComputerSystem } from './shapes.js';

/** Systems that are looked at in search of a UUID; more than any chassis has. */
const MOST_SYSTEMS = 32;
const MOST_PAGES = 8;

interface Candidate {
  readonly path: string;
  readonly system: ComputerSystem | null;
}

/** As it stands: NetBox names a system as the BMC's own paths do. */
const lastSegment = (path: string): string => path.replace(/\/$/, '').split('/').at(-1)!;

/**
 * @returns the path of the machine's ComputerSystem
 * @throws MetalflowError `device_invalid` naming the systems that there are, when NetBox does not say which one it is
 */
export async function findSystem(service: RedfishService, { system: wanted, systemUuid }: BmcAddress, signal: AbortSignal): Promise<Outcome<string>> {
  const root = await service.root(signal);
  if (root.kind === 'problem') return root;
  const members = await listMembers(service, root.value.Systems['@odata.id'], signal);
  if (members.kind === 'problem') return members;
  const paths = members.value;
  if (paths.length === 0) return problem('bmc_answer_invalid', 'its list of systems is empty', 'none');
  if (wanted === undefined && paths.length === 1) return ok(paths[0]!);
  const named = paths.find((path) => path === wanted || lastSegment(path) === wanted);
  if (named !== undefined) return ok(named);

  const candidates: Candidate[] = [];
  for (const path of paths.slice(0, MOST_SYSTEMS)) {
    const read = await service.get(path, ComputerSystem, signal);
    // One that cannot be read now may be the one.
    if (read.kind === 'problem' && read.problem.code === 'bmc_unreachable') return read;
    candidates.push({ path, system: read.kind === 'ok' ? read.value.value : null });
  }
  const fits = ({ system }: Candidate): boolean =>
    system !== null && (wanted !== undefined ? system.Id === wanted || system.Name === wanted : systemUuid !== undefined && parseUuid(system.UUID ?? '') === systemUuid);
  const fitting = candidates.filter(fits);
  if (fitting.length === 1) return ok(fitting[0]!.path);
  throw undecided(wanted, systemUuid, fitting.length, candidates, paths.length);
}

async function listMembers(service: RedfishService, collection: string, signal: AbortSignal): Promise<Outcome<string[]>> {
  const paths: string[] = [];
  let next: string | undefined = collection;
  for (let page = 0; next !== undefined && page < MOST_PAGES; page += 1) {
    const read: Outcome<{ value: Collection }> = await service.get(next, Collection, signal);
    if (read.kind === 'problem') return read;
    paths.push(...read.value.value.Members.map((member) => member['@odata.id']));
    next = read.value.value['Members@odata.nextLink'];
  }
  return ok(paths);
}

function undecided(wanted: string | undefined, systemUuid: string | undefined, fitting: number, candidates: readonly Candidate[], count: number): MetalflowError {
  const shown = candidates.map(({ path, system }) => `${lastSegment(path)} (UUID ${system?.UUID ?? 'unknown'})`).join(', ');
  const more = count > candidates.length ? `, and ${count - candidates.length} more` : '';
  const number = fitting === 0 ? 'none' : String(fitting);
  const why = wanted !== undefined ? `${number} is called ${wanted}` : systemUuid === undefined ? 'system_uuid is empty' : `${number} has the UUID ${systemUuid}`;
  return new MetalflowError('device_invalid', {
    field: 'config_context.metalflow.bmc_system',
    what: `the BMC has ${count} systems and ${why}; there are: ${shown}${more}`.slice(0, 2000),
  });
}
