/** What people say to a lifecycle: validators say why not, the loop does it. */
import { setHandler, workflowInfo } from '@temporalio/workflow';
import { failure } from '../domain/errors.js';
import { isLegal } from '../domain/transitions.js';
import { Attested, DeviceChanged, TAKING_UP, VERBS, VerbInput, type OperatorVerb } from '../contracts/messages.js';
import { PowerTold } from '../contracts/power-watch.js';
import { issuesText } from '../contracts/primitives.js';
import type { LifecycleContext } from './lifecycle-context.js';
import { endHold, holdWith, move, publish } from './lifecycle-moves.js';
import { askToStop, believeTheStore, startRun } from './lifecycle-steps.js';
import { lifecycleState, signals, verbs } from './messages.js';
import { parsedSignal } from './run-handlers.js';

export function listenForLifecycle(life: LifecycleContext): void {
  setHandler(lifecycleState, () => life.view());
  setHandler(signals.deviceChanged, parsedSignal('deviceChanged', DeviceChanged, () => void (life.wake = true)));
  setHandler(signals.powerSeen, parsedSignal('powerSeen', PowerTold, ({ power }) => {
    // The watch tells changes only; whoever else tells the same again adds nothing.
    if (power === life.power) return;
    life.power = power;
    life.powerNews = true;
  }));
  // An intake: the node waits, attested, without a run.
  setHandler(signals.attested, parsedSignal('attested', Attested, ({ attestationId, accepted, bootAttempt }) => {
    if (!accepted || bootAttempt !== null) return;
    life.waitingNode = { attestationId };
    life.wake = true;
  }));
  for (const verb of VERBS) {
    setHandler(
      verbs[verb],
      (input) => {
        life.said.push({ verb, input: VerbInput.parse(input) });
        return { accepted: true, text: `${verb}: accepted` };
      },
      { validator: (input) => refuseUnlessFits(life, verb, input) },
    );
  }
}

function refuseUnlessFits(life: LifecycleContext, verb: OperatorVerb, raw: VerbInput): void {
  const parsed = VerbInput.safeParse(raw);
  if (!parsed.success) throw new Error(`verb_refused: ${issuesText(parsed.error)}`);
  // Only here, where replay never comes: a reset of the lifecycle applies old updates again, and they were not meant for its new run.
  const { runId } = workflowInfo();
  if (parsed.data.runId !== undefined && parsed.data.runId !== runId) throw new Error(`verb_refused: this was meant for Temporal run ${parsed.data.runId}; the present one is ${runId}`);
  if (!life.takenUp) throw new Error(`verb_refused: ${TAKING_UP}`);
  const why = whyNot(life, verb, parsed.data);
  if (why) throw new Error(`verb_refused: ${why}`);
}

function whyNot(life: LifecycleContext, verb: OperatorVerb, input: VerbInput): string | null {
  switch (verb) {
    case 'hold':
      return isLegal(life.state, 'held') ? null : `a node that is ${life.state} cannot be held here; say it to its open run`;
    case 'resume':
      if (!life.holding) return 'the node is not held';
      return life.holding.code === 'installation_mismatch' ? 'say `adopt` when store and machine belong together' : null;
    case 'cancel':
      return life.openRun ? null : 'no run is open';
    case 'retry':
      return life.state === 'failed' && life.lastRun ? null : 'only a failed node has a run to retry';
    case 'approve':
      if (input.attestRemoved) return isLegal(life.state, 'removal attested') ? null : `a node that is ${life.state} cannot be attested removed`;
      return life.state === 'quarantined' ? null : 'there is nothing to approve';
    case 'adopt':
      return life.holding?.code === 'installation_mismatch' || life.holding?.code === 'netbox_conflict' ? null : 'the node is not held for a mismatch, nor for a status that was changed in NetBox';
    case 'maintenance':
      if (input.on === undefined) return 'say on or off';
      return isLegal(life.state, input.on ? 'maintenance on' : 'maintenance off') ? null : `maintenance ${input.on ? 'on' : 'off'} does not fit a node that is ${life.state}`;
  }
}

/** Does what was said; what no longer fits when its turn comes is dropped, having been answered already. */
export async function doVerb(life: LifecycleContext, { verb, input }: { verb: OperatorVerb; input: VerbInput }): Promise<void> {
  if (whyNot(life, verb, input)) return;
  const because = `${verb}${input.reason ? `: ${input.reason}` : ''}`;
  switch (verb) {
    case 'hold':
      return holdWith(life, failure('held_by_person', { by: input.by, reason: input.reason ?? 'no reason given' }), input.by);
    case 'resume': {
      const wasConflict = life.holding?.code === 'netbox_conflict';
      await endHold(life, because, input.by);
      if (wasConflict) await publish(life, true);
      life.wake = true;
      return;
    }
    case 'cancel':
      return askToStop(life, input.by, null);
    case 'retry':
      return startRun(life, life.lastRun!.kind, { how: 'retry', by: input.by });
    case 'approve':
      if (!input.attestRemoved) return move(life, 'intake approved', because, input.by);
      life.holding = null;
      await move(life, 'removal attested', because, input.by);
      await publish(life, true);
      return;
    case 'adopt':
      if (life.holding?.code === 'netbox_conflict') return letNetboxStand(life, because, input.by);
      await endHold(life, because, input.by);
      await believeTheStore(life, await life.central.adoptDevice({ deviceId: life.deviceId, by: input.by }));
      life.wake = true;
      return;
    case 'maintenance':
      if (input.on) life.holding = null;
      await move(life, input.on ? 'maintenance on' : 'maintenance off', because, input.by);
      await publish(life);
      life.wake = true;
  }
}

async function letNetboxStand(life: LifecycleContext, because: string, by: string): Promise<void> {
  const record = await life.netbox.letNetboxStand({ deviceId: life.deviceId, because, by });
  // A status that says nothing of the node leaves it in its state, held still.
  if (record.state === life.state) await endHold(life, because);
  else life.recall(record);
  life.unpublished = false;
  await life.netbox.writeStatus({ deviceId: life.deviceId, state: life.state, status: null, insist: false });
  life.wake = true;
}
