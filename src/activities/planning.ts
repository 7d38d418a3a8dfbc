/** Planning: what a run pins before it touches anything. Reads and decides; changes nothing but the run's own row. */
import { isDeepStrictEqual } from 'node:util';
import { failure, isMetalflowError, MetalflowError, type Failure } from '../domain/errors.js';
import type { RunKind } from '../domain/runs.js';
import { requiresNetboot, requiresWipe } from '../domain/requests.js';
import type { BmcAddress, Device } from '../contracts/device.js';
import type { ClassCatalog, ImageStore, TemplateCatalog } from '../contracts/images.js';
import type { NetboxClient } from '../contracts/netbox.js';
import type { NodeClass } from '../contracts/node-class.js';
import type { RunPlan } from '../contracts/plan.js';
import type { Stores } from '../contracts/store.js';
import { bmcName } from '../power/lease.js';
import { fenceRef, type RunRef } from './context.js';

export interface PlanningDeps {
  readonly stores: Pick<Stores, 'fence' | 'runs' | 'devices'>;
  readonly netbox: NetboxClient;
  readonly classes: ClassCatalog;
  readonly templates: TemplateCatalog;
  readonly images: Pick<ImageStore, 'urlFor'>;
}

export type Planned = { readonly kind: 'planned'; readonly plan: RunPlan } | { readonly kind: 'refused'; readonly failure: Failure };

/** What of a plan names the machine. */
export interface MachinePin {
  readonly bmc: BmcAddress;
  readonly systemUuid: string | null;
}

export type PinNow = { readonly kind: 'as-before' } | ({ readonly kind: 'renewed' } & MachinePin) | { readonly kind: 'refused'; readonly failure: Failure };

const invalid = (field: string, what: string): MetalflowError => new MetalflowError('device_invalid', { field, what });

/** What a provisioned node shows to be called active. */
function confirmBy(kind: RunKind, nodeClass: NodeClass | null): RunPlan['confirmBy'] {
  if (kind === 'retire') return 'power-off';
  if (kind === 'wipe' || !nodeClass) return 'none';
  if (nodeClass.payload !== 'cloud-init-nocloud') return 'seed-fetched';
  return nodeClass.phoneHome ? 'phone-home' : 'seed-written';
}

/** @throws MetalflowError device_invalid */
function machinePin({ bmc, systemUuid }: Device, netboots: boolean): MachinePin {
  if (!bmc) throw invalid('oob_ip', 'is empty: without a BMC address only bmc_type manual works');
  if (netboots && !systemUuid) throw invalid('system_uuid', 'is empty: the attestation could not be held against it');
  return { bmc, systemUuid };
}

/** @throws MetalflowError device_invalid, class_unknown, template_invalid */
export async function planFor(device: Device, kind: RunKind, run: number, { classes, templates, images }: Omit<PlanningDeps, 'stores' | 'netbox'>): Promise<RunPlan> {
  const installs = kind === 'provision' || kind === 'reprovision';
  const nodeClass = device.nodeClass ? await classes.find(device.nodeClass) : null;
  if (installs && !device.nodeClass) throw invalid('node_class', 'is empty');
  // Also for a retirement: an unknown class cannot say whether it wipes.
  if (device.nodeClass && !nodeClass) throw new MetalflowError('class_unknown', { class: device.nodeClass });
  const wipes = requiresWipe(kind, nodeClass?.retireWipes ?? false);
  const netboots = requiresNetboot(kind, nodeClass?.retireWipes ?? false);
  const pin = machinePin(device, netboots);
  if (netboots && device.macs.length === 0) throw invalid('interfaces', 'no interface has a MAC address');
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
    deviceId: device.id, nodeName: device.name, run, kind, site: device.site, ...pin, wipes, netboots,
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

    /**
     * Reads again what names the machine, and pins it when NetBox says something else now; all else stays as the run pinned it. The
     * machine was not compared yet. With NetBox away the run goes on with what it has: that was compared.
     */
    async renewPin(input: RunRef & MachinePin): Promise<PinNow> {
      const ref = fenceRef(input);
      const { fence, runs, devices } = deps.stores;
      await fence.enter(ref);
      const note = (text: string): Promise<void> => devices.journal(input.deviceId, input.run, 'run', text);
      try {
        const device = await deps.netbox.readDevice(input.deviceId);
        const plan = await runs.plan(input.deviceId, input.run);
        // A device that is gone, or a run without a plan, is the business of others.
        if (!device || !plan) return { kind: 'as-before' };
        const pin = machinePin(device, plan.netboots);
        if (isDeepStrictEqual(asJson(pin), asJson({ bmc: input.bmc, systemUuid: input.systemUuid }))) return { kind: 'as-before' };
        await runs.pinPlan(ref, { ...plan, ...pin });
        await note(`NetBox names the machine anew: ${inWords(pin)}; before: ${inWords(input)}`);
        return { kind: 'renewed', ...pin };
      } catch (error) {
        if (isMetalflowError(error) && error.code === 'device_invalid') return { kind: 'refused', failure: error.toFailure() };
        if (!isMetalflowError(error) || error.code !== 'netbox_unreachable') throw error;
        await note(`NetBox was not read again (${error.message}): the run goes on with ${inWords(input)}`);
        return { kind: 'as-before' };
      }
    },
  };
}
const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const inWords = ({ bmc, systemUuid }: MachinePin): string => `${bmc.type} BMC ${bmcName(bmc)}, system_uuid ${systemUuid ?? 'empty'}`;

export type PlanningActivities = ReturnType<typeof createPlanningActivities>;
