/** Planning: what a run pins before it touches anything. Reads and decides; changes nothing but the run's own row. */
import { failure, isMetalflowError, MetalflowError, type Failure } from '../domain/errors.js';
import { phasesOf, type RunKind, type RunPhase } from '../domain/runs.js';
import { requiresNetboot, requiresWipe } from '../domain/requests.js';
import type { Device } from '../contracts/device.js';
import type { ClassCatalog, ImageStore, TemplateCatalog } from '../contracts/images.js';
import type { NetboxClient } from '../contracts/netbox.js';
import type { NodeClass } from '../contracts/node-class.js';
import type { RunPlanner } from '../contracts/operator.js';
import type { RunPlan } from '../contracts/plan.js';
import type { Stores } from '../contracts/store.js';
import { fenceRef, type RunRef } from './context.js';

export interface PlanningDeps {
  readonly stores: Pick<Stores, 'fence' | 'runs'>;
  readonly netbox: NetboxClient;
  readonly classes: ClassCatalog;
  readonly templates: TemplateCatalog;
  readonly images: Pick<ImageStore, 'urlFor'>;
}

export type Planned = { readonly kind: 'planned'; readonly plan: RunPlan } | { readonly kind: 'refused'; readonly failure: Failure };

const invalid = (field: string, what: string): MetalflowError => new MetalflowError('device_invalid', { field, what });

/** What a provisioned node shows to be called active. */
function confirmBy(kind: RunKind, nodeClass: NodeClass | null): RunPlan['confirmBy'] {
  if (kind === 'retire') return 'power-off';
  if (kind === 'wipe' || !nodeClass) return 'none';
  if (nodeClass.payload !== 'cloud-init-nocloud') return 'seed-fetched';
  return nodeClass.phoneHome ? 'phone-home' : 'seed-written';
}

/** @throws MetalflowError device_invalid, class_unknown, template_invalid */
export async function planFor(device: Device, kind: RunKind, run: number, { classes, templates, images }: Omit<PlanningDeps, 'stores' | 'netbox'>): Promise<RunPlan> {
  if (!device.bmc) throw invalid('oob_ip', 'is empty: without a BMC address only bmc_type manual works');
  const installs = kind === 'provision' || kind === 'reprovision';
  const nodeClass = device.nodeClass ? await classes.find(device.nodeClass) : null;
  if (installs && !device.nodeClass) throw invalid('node_class', 'is empty');
  // Also for a retirement: an unknown class cannot say whether it wipes.
  if (device.nodeClass && !nodeClass) throw new MetalflowError('class_unknown', { class: device.nodeClass });
  const wipes = requiresWipe(kind, nodeClass?.retireWipes ?? false);
  const netboots = requiresNetboot(kind, nodeClass?.retireWipes ?? false);
  if (netboots && device.macs.length === 0) throw invalid('interfaces', 'no interface has a MAC address');
  if (netboots && !device.systemUuid) throw invalid('system_uuid', 'is empty: the attestation could not be held against it');
  if (wipes && device.wipeDisks.length === 0) throw invalid('wipe_disks', 'is empty: nothing may be wiped');
  const template = installs ? nodeClass!.template : netboots ? 'wipe' : null;
  const actions = template
    ? await templates.render(template, {
        run: { kind, number: run, wipes },
        device: { id: device.id, name: device.name, site: device.site },
        class: nodeClass && { name: nodeClass.name, payload: nodeClass.payload },
      })
    : [];
  const image = installs && nodeClass ? nodeClass.image : null;
  return {
    deviceId: device.id, nodeName: device.name, run, kind, site: device.site, systemUuid: device.systemUuid, bmc: device.bmc, wipes, netboots,
    nodeClass: nodeClass?.name ?? null, payload: nodeClass?.payload ?? null, template,
    image: image && {
      source: image.url, url: images.urlFor(image.url), sha256: image.sha256, sizeBytes: image.sizeBytes, compression: image.compression,
      unpackedBytes: image.unpackedBytes ?? image.sizeBytes, ...(image.contentDigest && { contentDigest: image.contentDigest }),
    },
    diskRule: nodeClass?.rootDisk ?? {}, rootDisk: device.rootDisk, wipeDisks: device.wipeDisks, actions, seed: nodeClass?.seed ?? null,
    ...(nodeClass?.sshKeys?.length && { sshKeys: nodeClass.sshKeys }), ...(nodeClass?.userData && { userData: nodeClass.userData }), allowUnproven: nodeClass?.allowUnproven ?? false,
    confirmBy: confirmBy(kind, nodeClass),
  };
}

export function createPlanningActivities(deps: PlanningDeps) {
  return {
    /** Reads the device and pins class, template, digest and disk rule in the run's row. */
    async planRun(input: RunRef & { kind: RunKind }): Promise<Planned> {
      const ref = fenceRef(input);
      await deps.stores.fence.enter(ref);
      const device = await deps.netbox.readDevice(input.deviceId);
      if (!device) return { kind: 'refused', failure: failure('device_not_found', { device: input.deviceId }) };
      try {
        const plan = await planFor(device, input.kind, input.run, deps);
        await deps.stores.runs.pinPlan(ref, plan);
        return { kind: 'planned', plan };
      } catch (error) {
        if (isMetalflowError(error) && !error.retryable) return { kind: 'refused', failure: error.toFailure() };
        throw error;
      }
    },
  };
}
export type PlanningActivities = ReturnType<typeof createPlanningActivities>;

/** `metalflow node plan`: what a run would do. Does nothing. */
export function createRunPlanner(deps: PlanningDeps): RunPlanner {
  return {
    async plan(deviceId, kind) {
      const device = await deps.netbox.readDevice(deviceId);
      if (!device) throw new MetalflowError('device_not_found', { device: deviceId });
      const plan = await planFor(device, kind, await deps.stores.runs.nextNumber(deviceId), deps);
      const phases: readonly RunPhase[] = phasesOf(kind, plan.wipes);
      return { plan, phases, notes: notesOn(plan) };
    },
  };
}

function notesOn(plan: RunPlan): string[] {
  const notes: string[] = [];
  if (plan.wipes) notes.push(`destroys what these disks hold: ${plan.wipeDisks.join(', ')}`);
  if (plan.image) notes.push(`writes ${plan.image.source} (sha256 ${plan.image.sha256}) to ${plan.rootDisk ? `disk ${plan.rootDisk}` : `the one disk that fits ${JSON.stringify(plan.diskRule)}`}`);
  if (plan.bmc.type === 'manual') notes.push('a person has to power the node: the run holds and says when');
  if (plan.allowUnproven) notes.push('the class admits a node whose attestation key has no TPM proof');
  return notes;
}
