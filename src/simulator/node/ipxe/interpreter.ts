/**
 * Runs the part of iPXE's script language that boot planes use. An unknown command, a missing label or a refused download
 * fails its line; a failed line that no `||` catches ends the script, and the firmware goes to its next boot device.
 */
import { COMMANDS } from './commands.js';
import type { IpxeContext, IpxeOutcome, Step } from './model.js';
import { commandsOf, MAX_SCRIPT_BYTES, parseScript, type Command, type Script } from './script.js';

/** Lines and commands of one boot: far more than a retry loop needs, and under a second of work for a hostile one. */
export const MAX_STEPS = 100_000;
export const MAX_CHAIN = 8;

const POWERED_OFF: IpxeOutcome = { kind: 'failed', why: 'powered off' };
const TOO_LONG: IpxeOutcome = { kind: 'failed', why: `more than ${MAX_STEPS} steps` };

async function runCommand(command: Command, context: IpxeContext): Promise<Step> {
  const [name, ...args] = command.words.map((word) => context.variables.expand(word));
  if (!name) return { kind: 'done' };
  if (!Object.hasOwn(COMMANDS, name)) return { kind: 'failed', why: `${name.slice(0, 60)}: command not found` };
  return COMMANDS[name]!(args, context);
}

async function runLine(line: string, context: IpxeContext): Promise<Step> {
  let last: Step = { kind: 'done' };
  for (const command of commandsOf(line)) {
    if (context.budget.steps-- <= 0) return { kind: 'leave', outcome: TOO_LONG };
    if (command.when === 'and' && last.kind === 'failed') continue;
    if (command.when === 'or' && last.kind !== 'failed') continue;
    last = await runCommand(command, context);
    if (context.signal.aborted) return { kind: 'leave', outcome: POWERED_OFF };
    if (last.kind === 'failed') context.print(last.why);
    if (last.kind === 'goto' || last.kind === 'leave') return last;
  }
  return last;
}

/** Runs a parsed script to its end. Never throws. */
export async function runScript(script: Script, context: IpxeContext): Promise<IpxeOutcome> {
  // The first line is the magic word.
  for (let index = 1; index < script.lines.length; index++) {
    if (context.budget.steps-- <= 0) return TOO_LONG;
    const step = await runLine(script.lines[index]!, context);
    if (step.kind === 'failed') return step;
    if (step.kind === 'leave') return step.outcome;
    if (step.kind === 'goto') {
      const target = script.labels.get(step.label);
      if (target === undefined) return { kind: 'failed', why: `goto ${step.label.slice(0, 60)}: no such label` };
      index = target;
    }
  }
  return { kind: 'exit', status: 0 };
}

/** Fetches a script and runs it. Never throws. */
export async function runScriptAt(url: string, machine: Pick<IpxeContext, 'variables' | 'downloader' | 'sleep' | 'signal' | 'print'>): Promise<IpxeOutcome> {
  const download = await machine.downloader.get(url, MAX_SCRIPT_BYTES + 1);
  if (download.kind === 'failed') return { kind: 'failed', why: download.why };
  const parsed = parseScript(download.head);
  if (parsed.kind === 'refused') return { kind: 'failed', why: parsed.why };
  return runScript(parsed.script, { ...machine, images: { kernel: null, initrds: [] }, base: download.url, depth: MAX_CHAIN, budget: { steps: MAX_STEPS }, run: runScript });
}
