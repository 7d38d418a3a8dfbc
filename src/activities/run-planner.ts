/** `metalflow node plan`: what a run would do, what it would destroy, and whether it would begin at all. Does nothing. */
import { failure, MetalflowError } from '../domain/errors.js';
import { judgeRequest } from '../domain/requests.js';
import { phasesOf, type RunKind } from '../domain/runs.js';
import { ENDED_STATES, isOneOf } from '../domain/states.js';
import type { Device } from '../contracts/device.js';
import type { RunPlanner } from '../contracts/operator.js';
import type { RunPlan } from '../contracts/plan.js';
import type { DeviceRecord, Stores } from '../contracts/store.js';
import { FIRST_STATE } from './netbox.js';
import { planFor, type PlanningDeps } from './planning.js';

export interface RunPlannerDeps extends Omit<PlanningDeps, 'stores'> {
  readonly stores: { readonly runs: Pick<Stores['runs'], 'nextNumber'>; readonly devices: Pick<Stores['devices'], 'find'> };
}

export function createRunPlanner(deps: RunPlannerDeps): RunPlanner {
  return {
    async plan(deviceId, kind) {
      const device = await deps.netbox.readDevice(deviceId);
      if (!device) throw new MetalflowError('device_not_found', { device: deviceId });
      const begins = whenItBegins(device, await deps.stores.devices.find(deviceId), kind);
      const plan = await planFor(device, kind, await deps.stores.runs.nextNumber(deviceId), deps);
      return { begins, plan, phases: phasesOf(kind, plan.wipes), destroys: destroyedBy(plan), notes: notesOn(plan) };
    },
  };
}

/** As the lifecycle would judge the request now. @throws request_refused, device_invalid when it would not begin at all */
function whenItBegins(device: Device, record: DeviceRecord | null, kind: RunKind): string {
  const known = record && !isOneOf(ENDED_STATES, record.state) ? record : null;
  // A device that is new, or declared again, begins where NetBox says.
  const state = known ? known.state : FIRST_STATE[device.status];
  if (!state) throw new MetalflowError('device_invalid', { field: 'status', what: `is ${device.status}, and metalflow has no open history of the device; set planned, inventory, active or failed` });
  const isHeld = known?.hold != null && known.openRun === null;
  const judgement = judgeRequest(isHeld ? 'held' : state, kind, known?.openRun?.kind ?? null);
  switch (judgement.kind) {
    case 'start':
      return 'at once';
    case 'keep':
      return `later: ${judgement.why}`;
    case 'stop-open-run':
      return 'once the open run has stopped at its next safe point';
    case 'refuse':
      throw new MetalflowError(judgement.failure.code, judgement.failure.details);
    default:
      return `not anew: a ${kind} is open`;
  }
}

const rootDiskOf = ({ rootDisk, diskRule }: RunPlan): string => (rootDisk ? `disk ${rootDisk}` : `the one disk that fits ${JSON.stringify(diskRule)}`);

function destroyedBy(plan: RunPlan): string[] {
  return [...(plan.wipes ? plan.wipeDisks.map((disk) => `all of disk ${disk}`) : []), ...(plan.image ? [`what ${rootDiskOf(plan)} holds: the image is written over it`] : [])];
}

function notesOn(plan: RunPlan): string[] {
  const { image, wipeDisks, rootDisk } = plan;
  const notListed = failure('disk_not_listed', { serial: rootDisk ?? 'the root disk' });
  const notes: string[] = [];
  if (image) notes.push(`writes ${image.source} (sha256 ${image.sha256}) to ${rootDiskOf(plan)}`);
  if (image && wipeDisks.length === 0) notes.push(`would fail once the node has attested (${notListed.code}): wipe_disks is empty, and ${notListed.hint}`);
  // A disk has two names, and the list may have it by the other one.
  else if (image && rootDisk && !wipeDisks.includes(rootDisk)) notes.push(`unless wipe_disks has it by its other name, would fail once the node has attested (${notListed.code}): ${notListed.message}`);
  if (plan.bmc.type === 'manual') notes.push('a person has to power the node: the run holds and says when');
  if (plan.allowUnproven) notes.push('the class admits a node whose attestation key has no TPM proof');
  return notes;
}
