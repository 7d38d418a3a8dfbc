/** How a run reads on its Temporal page: search attributes for lists, current details for the one page. */
import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import { defineSearchAttributeKey } from '@temporalio/common';
import { PHASES, RUN_ENDS } from '../domain/runs.js';
import { SEARCH_ATTRIBUTES, type HoldView, type RunOutcome } from '../contracts/messages.js';
import type { RunContext } from './run-context.js';

export const attribute = Object.fromEntries(Object.entries(SEARCH_ATTRIBUTES).map(([name, key]) => [name, defineSearchAttributeKey(key, 'KEYWORD')])) as Record<keyof typeof SEARCH_ATTRIBUTES, ReturnType<typeof defineSearchAttributeKey<'KEYWORD'>>>;

/** `2026-11-30 13:42:07 UTC`, of an instant or of milliseconds: nobody reads a page by milliseconds. */
export const instant = (at: string | number): string => `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;

/** Of an order whose log is worth reading. */
const WENT_WRONG: readonly string[] = ['failed', 'timed-out', 'not-taken', 'unknown'];

/** What to say, and where: a hint alone leaves people to look for the command. */
export const toEndHold = ({ hint, verb }: HoldView, node: string): string => `${hint} (\`metalflow node ${verb === 'none' ? 'show' : verb} ${node}\`)`;

/** Of a failed run nothing is left to resume, whatever its failure's own verb: the node is failed, and `retry` begins a new run. */
export const toMend = ({ failure }: Pick<RunOutcome, 'failure'>, node: string): string => `${failure ? `${failure.hint} ` : ''}(\`metalflow node retry ${node}\`)`;

function afterEnd(outcome: RunOutcome, node: string): string {
  if (outcome.end === 'failed') return `${toMend(outcome, node)}, unless a later run has done it`;
  if (outcome.end === 'cancelled' && outcome.destroyed) return `something was destroyed, and the node is failed: ${toMend(outcome, node)}, unless a later run has done it`;
  return outcome.end === 'cancelled' || outcome.end === 'withdrawn' ? 'nothing; ask again when it is wanted' : 'nothing';
}

const inWords = ({ failure, unproven }: RunOutcome): string => `${unproven ? ', by the word of an approver' : ''}${failure ? `: \`${failure.code}\` ${failure.message}` : ''}`;

/** Markdown: state, since when, what it waits for, what to do. No tables: the UI sets their columns without a gap. */
export function runDetails(run: RunContext): string {
  const { holding: hold, input, outcome } = run;
  const lines = outcome ? [
    `### ${input.kind} of ${input.nodeName}, run ${input.run}`,
    `**${outcome.end}** in ${run.phase} at ${instant(run.since)}${inWords(outcome)}`,
    '',
    `**waits for:** nothing, it has ended: ${RUN_ENDS[outcome.end]}`,
    `**to do:** ${afterEnd(outcome, input.nodeName)}`,
    '',
  ] : [
    `### ${input.kind} of ${input.nodeName}, run ${input.run}`,
    hold ? `**held** in ${run.phase} since ${instant(hold.since)}: \`${hold.code}\` ${hold.message}` : `**${run.phase}** since ${instant(run.since)}: ${PHASES[run.phase].does}`,
    '',
    `**waits for:** ${hold ? 'a person' : run.waitsFor || PHASES[run.phase].doneWhen}`,
    `**to do:** ${hold ? toEndHold(hold, input.nodeName) : 'nothing; the run goes on by itself'}`,
    '',
  ];
  lines.push(
    `**power:** ${run.power} · **boot attempt:** ${run.attempt ? `${run.attempt.number} (\`${run.attempt.id}\`)` : 'none'} · **disk:** ${run.disk ?? 'not pinned'} · **proof:** ${run.proof ?? 'not attested'}`,
  );
  if (run.orders.length > 0) lines.push('', '**orders:**', '', ...run.orders.map((order) => `- ${order.title}: ${order.state}${WENT_WRONG.includes(order.state) ? ` (\`metalflow node logs ${input.nodeName} --run ${input.run}\`)` : ''}`));
  if (run.stop && !outcome) lines.push('', `stop asked by ${run.stop.by}: at the next safe point`);
  return lines.join('\n');
}

export function showRun(run: RunContext): void {
  setCurrentDetails(runDetails(run));
  upsertSearchAttributes([
    { key: attribute.state, value: run.outcome?.end ?? (run.holding ? 'held' : runState(run)) },
    { key: attribute.phase, value: run.phase },
    { key: attribute.power, value: run.power },
    { key: attribute.class, value: run.plan?.nodeClass ?? 'none' },
  ]);
}

const runState = (run: RunContext): string => ({ provision: 'provisioning', reprovision: 'provisioning', wipe: 'wiping', retire: 'retiring' })[run.input.kind];
