/** Does this store belong to this Temporal? One id on both sides; anything else holds every device. */
import { randomUUID } from 'node:crypto';
import { WorkflowExecutionAlreadyStartedError, type Client } from '@temporalio/client';
import { INSTALLATION_WORKFLOW_ID, WORKFLOW_QUEUE, WORKFLOWS } from '../contracts/messages.js';
import type { InstallationStore } from '../contracts/store.js';
import type { TemporalPort } from '../contracts/temporal-port.js';
import { noCrash, type CrashPoint } from '../telemetry/crash-point.js';
import type { Logger } from '../telemetry/log.js';

/** The id in the memo, so that no worker is needed to read it; null when Temporal has no installation. */
async function idInTemporal(client: Client, temporal: TemporalPort): Promise<string | null> {
  const look = await temporal.look(INSTALLATION_WORKFLOW_ID);
  if (look.kind !== 'running') return null;
  const { memo } = await client.workflow.getHandle(INSTALLATION_WORKFLOW_ID).describe();
  return (memo?.['installationId'] as string | undefined) ?? null;
}

/** Starts the installation workflow with `ours`, or finds the one that is there. @returns the id Temporal holds afterwards */
export async function linkInstallation(client: Client, temporal: TemporalPort, ours: string): Promise<string> {
  const theirs = await idInTemporal(client, temporal);
  if (theirs) return theirs;
  try {
    await client.workflow.start(WORKFLOWS.installation, {
      workflowId: INSTALLATION_WORKFLOW_ID, taskQueue: WORKFLOW_QUEUE, args: [{ id: ours }], memo: { installationId: ours },
      staticSummary: 'which store this namespace belongs to',
    });
    return ours;
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    return (await idInTemporal(client, temporal)) ?? ours;
  }
}

export interface InstallationLinkDeps {
  readonly client: Client;
  readonly temporal: TemporalPort;
  readonly store: InstallationStore;
  readonly log: Logger;
  readonly crash?: CrashPoint;
}

/** At a worker's start: both new → linked; both the same → good; anything else → every device is held until it is adopted. */
export async function confirmInstallation({ client, temporal, store, log, crash = noCrash }: InstallationLinkDeps): Promise<void> {
  const theirs = await idInTemporal(client, temporal);
  let ours = await store.read();
  if (!ours) {
    await store.begin(randomUUID());
    crash('installation-begun');
    ours = (await store.read())!;
  }
  if (ours.status === 'pending') {
    // Written here first: a crash before Temporal was told is no mismatch.
    if (theirs && theirs !== ours.id) return mismatch(`Temporal belongs to installation ${theirs}, and this store is new`);
    const linked = await linkInstallation(client, temporal, ours.id);
    crash('installation-linked');
    if (linked !== ours.id) return mismatch(`Temporal belongs to installation ${linked}, and this store is new`);
    return store.confirm();
  }
  if (ours.status === 'mismatch') return mismatch(ours.why ?? 'an earlier mismatch was never adopted');
  if (theirs === ours.id) return;
  return mismatch(theirs ? `Temporal belongs to installation ${theirs}, the store to ${ours.id}` : `Temporal knows no installation, the store belongs to ${ours.id}`);

  async function mismatch(why: string): Promise<void> {
    log.error({ why }, 'store and Temporal do not belong together: every device is held until `metalflow node adopt`');
    await store.mismatch(why);
  }
}
