/** Orders: posting them in the ledger, and mirroring each by an activity that the agent's report completes. */
import { CompleteAsyncError, Context } from '@temporalio/activity';
import { chooseRootDisk, chooseWipeDisks, mayWipe, type Disk } from '../domain/disks.js';
import { ACTIONS } from '../domain/actions.js';
import { failure, type Failure } from '../domain/errors.js';
import type { AgentAction, DiskRef } from '../contracts/order.js';
import type { RunPlan } from '../contracts/plan.js';
import type { OrderResult, Stores } from '../contracts/store.js';
import { fenceRef, type RunRef } from './context.js';

/** An action with its disk pinned, ready to be ordered. */
export interface ReadyAction {
  readonly title: string;
  readonly action: AgentAction;
  readonly destructive: boolean;
  readonly timeoutSeconds: number;
}

export type AcceptedAttestation =
  | { readonly kind: 'accepted'; readonly proof: 'tpm' | 'unproven'; readonly disk: string | null; readonly actions: readonly ReadyAction[] }
  | { readonly kind: 'not-there' }
  | { readonly kind: 'refused'; readonly failure: Failure };

export function createOrderActivities({ stores }: { stores: Pick<Stores, 'fence' | 'attempts' | 'orders'> }) {
  return {
    /** The attestation of this attempt, its inventory, and the orders that follow from plan and inventory. */
    async acceptAttestation(input: RunRef & { bootAttempt: string; plan: RunPlan }): Promise<AcceptedAttestation> {
      const ref = fenceRef(input);
      await stores.fence.enter(ref);
      const attested = await stores.attempts.attested(ref, input.bootAttempt);
      if (!attested) return { kind: 'not-there' };
      const pinned = pinActions(input.plan, attested.disks);
      return pinned.kind === 'refused' ? pinned : { kind: 'accepted', proof: attested.proof, disk: pinned.disk, actions: pinned.actions };
    },

    async postOrder(input: RunRef & { bootAttempt: string; action: ReadyAction; queueSeconds: number; grantUnknown: string | null }): Promise<{ orderId: string; grant: number }> {
      const ref = fenceRef(input);
      await stores.fence.enter(ref);
      const { title, action, destructive, timeoutSeconds } = input.action;
      return stores.orders.post(ref, { bootAttempt: input.bootAttempt, title, action, destructive, timeoutSeconds, queueSeconds: input.queueSeconds, grantUnknown: input.grantUnknown });
    },

    /**
     * Attaches to an order and is completed by its task token when the agent reports, or when a deadline passes. A retry only attaches
     * again: it returns a report that is already there and never queues anything.
     */
    async awaitOrder(input: RunRef & { orderId: string }): Promise<OrderResult> {
      const ref = fenceRef(input);
      await stores.fence.enter(ref);
      const result = await stores.orders.attach(ref, input.orderId, Buffer.from(Context.current().info.taskToken).toString('base64'));
      if (result) return result;
      throw new CompleteAsyncError();
    },

    /** @throws attempt_superseded after a reset: what became of the former run's order says nothing to this one */
    async orderResult(input: RunRef & { bootAttempt: string; orderId: string }): Promise<OrderResult | null> {
      const ref = fenceRef(input);
      await stores.fence.enter(ref);
      await stores.attempts.assertOpen(ref, input.bootAttempt);
      return stores.orders.result(input.deviceId, input.orderId);
    },

    async resolveOrderAsDone(input: RunRef & { orderId: string; by: string }): Promise<void> {
      const ref = fenceRef(input);
      await stores.fence.enter(ref);
      await stores.orders.resolveAsDone(ref, input.orderId, input.by);
    },

    async cancelOrders(input: RunRef & { why: string }): Promise<void> {
      const ref = fenceRef(input);
      await stores.fence.enter(ref);
      await stores.orders.cancelOpen(ref, input.why);
    },
  };
}
export type OrderActivities = ReturnType<typeof createOrderActivities>;

const refOf = (disk: Disk): DiskRef => ({ serial: disk.serial, ...(disk.wwn && { wwn: disk.wwn }) });

/** Pins the disks and expands a wipe to one order a listed disk. Pure. */
export function pinActions(plan: RunPlan, disks: readonly Disk[]): { kind: 'pinned'; disk: string | null; actions: ReadyAction[] } | { kind: 'refused'; failure: Failure } {
  const needsRoot = plan.actions.some((action) => action.name !== 'wipe-disk' && action.name !== 'reboot');
  const root = needsRoot ? chooseRootDisk(disks, plan.diskRule, plan.rootDisk) : null;
  if (root?.kind === 'refused') return root;
  const disk = root?.disk ?? null;
  if (disk && !mayWipe(disk, plan.wipeDisks)) return { kind: 'refused', failure: failure('disk_not_listed', { serial: disk.serial }) };
  if (disk && plan.image && disk.sizeBytes < plan.image.unpackedBytes) return { kind: 'refused', failure: failure('disk_too_small', { serial: disk.serial, have: disk.sizeBytes, need: plan.image.unpackedBytes }) };
  const wipes = chooseWipeDisks(disks, plan.wipeDisks);
  if (plan.wipes && wipes.kind === 'refused') return wipes;

  const actions: ReadyAction[] = [];
  const add = (title: string, action: AgentAction, timeoutSeconds: number): void => void actions.push({ title, action, destructive: ACTIONS[action.name].destructive, timeoutSeconds });
  for (const { title, name, timeoutSeconds } of plan.actions) {
    switch (name) {
      case 'wipe-disk':
        for (const wiped of wipes.kind === 'chosen' ? wipes.disks : []) add(`${title} S/N ${wiped.serial || wiped.wwn}`, { name, disk: refOf(wiped) }, timeoutSeconds);
        break;
      case 'write-image': {
        const { url, sha256, sizeBytes, compression, unpackedBytes, contentDigest } = plan.image!;
        add(title, { name, disk: refOf(disk!), url, sha256, sizeBytes, compression, unpackedBytes, ...(contentDigest && { contentDigest }) }, timeoutSeconds);
        break;
      }
      case 'write-seed':
        add(title, { name, disk: refOf(disk!), place: plan.payload === 'cloud-init-nocloud' ? 'nocloud' : 'efi' }, timeoutSeconds);
        break;
      case 'set-next-boot':
        add(title, { name, disk: refOf(disk!) }, timeoutSeconds);
        break;
      case 'reboot':
        add(title, { name }, timeoutSeconds);
        break;
    }
  }
  return { kind: 'pinned', disk: disk ? disk.serial || disk.wwn! : null, actions };
}
