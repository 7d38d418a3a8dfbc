/** How a run reads on its Temporal page: search attributes for lists, current details for the one page. */
import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import { defineSearchAttributeKey } from '@temporalio/common';
import { PHASES } from '../domain/runs.js';
import { SEARCH_ATTRIBUTES } from '../contracts/messages.js';
import type { RunContext } from './run-context.js';

export const attribute = Object.fromEntries(Object.entries(SEARCH_ATTRIBUTES).map(([name, key]) => [name, defineSearchAttributeKey(key, 'KEYWORD')])) as Record<keyof typeof SEARCH_ATTRIBUTES, ReturnType<typeof defineSearchAttributeKey<'KEYWORD'>>>;

/** `2026-11-30 13:42:07 UTC`, of an instant or of milliseconds: nobody reads a page by milliseconds. */
export const instant = (at: string | number): string => `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;

/** Of an order whose log is worth reading. */
const WENT_WRONG: readonly string[] = ['failed', 'timed-out', 'not-taken', 'unknown'];

/** Markdown: state, since when, what it waits for, what to do. No tables: the UI sets their columns without a gap. */
export function runDetails(run: RunContext): string {
  const { holding: hold, input } = run;
  const lines = [
    `### ${input.kind} of ${input.nodeName}, run ${input.run}`,
    hold ? `**held** in ${run.phase} since ${instant(hold.since)}: \`${hold.code}\` ${hold.message}` : `**${run.phase}** since ${instant(run.since)}: ${PHASES[run.phase].does}`,
    '',
    `**waits for:** ${hold ? 'a person' : run.waitsFor || PHASES[run.phase].doneWhen}`,
    hold ? `**to do:** ${hold.hint} (\`metalflow node ${hold.verb === 'none' ? 'show' : hold.verb} ${input.nodeName}\`)` : '**to do:** nothing; the run goes on by itself',
    '',
    `**power:** ${run.power} · **boot attempt:** ${run.attempt ? `${run.attempt.number} (\`${run.attempt.id}\`)` : 'none'} · **disk:** ${run.disk ?? 'not pinned'} · **proof:** ${run.proof ?? 'not attested'}`,
  ];
  if (run.orders.length > 0) lines.push('', '**orders:**', '', ...run.orders.map((order) => `- ${order.title}: ${order.state}${WENT_WRONG.includes(order.state) ? ` (\`metalflow node logs ${input.nodeName} --run ${input.run}\`)` : ''}`));
  if (run.stop) lines.push('', `stop asked by ${run.stop.by}: at the next safe point`);
  return lines.join('\n');
}

export function showRun(run: RunContext): void {
  setCurrentDetails(runDetails(run));
  upsertSearchAttributes([
    { key: attribute.state, value: run.holding ? 'held' : runState(run) },
    { key: attribute.phase, value: run.phase },
    { key: attribute.power, value: run.power },
    { key: attribute.class, value: run.plan?.nodeClass ?? 'none' },
  ]);
}

const runState = (run: RunContext): string => ({ provision: 'provisioning', reprovision: 'provisioning', wipe: 'wiping', retire: 'retiring' })[run.input.kind];
