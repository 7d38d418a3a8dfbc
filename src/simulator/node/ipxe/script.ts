/** An iPXE script, read the way iPXE reads one: lines, labels, and commands joined by `&&`, `||` and `;`. */

export interface Script {
  readonly lines: readonly string[];
  /** Line index by label. */
  readonly labels: ReadonlyMap<string, number>;
}

export type ParsedScript = { readonly kind: 'script'; readonly script: Script } | { readonly kind: 'refused'; readonly why: string };

/** When a command of a line runs, judged by the outcome of what ran before it. */
export type JoinedBy = 'always' | 'and' | 'or';

export interface Command {
  readonly when: JoinedBy;
  /** Not yet expanded. */
  readonly words: readonly string[];
}

/** Ours are under 4 KiB; a larger one is somebody's web page. */
export const MAX_SCRIPT_BYTES = 64 * 1024;

/** Is it an iPXE script at all? The magic word has to be the whole first word. */
export const isScript = (bytes: Uint8Array): boolean => /^#!ipxe(\s|$)/.test(Buffer.from(bytes.subarray(0, 16)).toString('latin1'));

/** Reads a script. Never throws; what is no script is refused with a reason. */
export function parseScript(bytes: Buffer): ParsedScript {
  if (bytes.length === 0) return { kind: 'refused', why: 'an empty script' };
  if (bytes.length > MAX_SCRIPT_BYTES) return { kind: 'refused', why: `a script of more than ${MAX_SCRIPT_BYTES} bytes` };
  if (!isScript(bytes)) return { kind: 'refused', why: 'the first line is not #!ipxe' };
  if (bytes.includes(0)) return { kind: 'refused', why: 'a script with a NUL byte' };
  const lines = bytes.toString('utf8').replaceAll(/\\\r?\n/g, '').split(/\r?\n/);
  const labels = new Map<string, number>();
  for (const [index, line] of lines.entries()) {
    const label = /^:(\S+)\s*$/.exec(line)?.[1];
    // As in iPXE, which searches from the top, the first of two equal labels is the one.
    if (label && !labels.has(label)) labels.set(label, index);
  }
  return { kind: 'script', script: { lines, labels } };
}

const JOINTS: ReadonlyMap<string, JoinedBy> = new Map([['&&', 'and'], ['||', 'or'], [';', 'always']]);

/**
 * The commands of one line. A label is no command, and a word that starts with `#` ends the line.
 * iPXE splits before it expands, so a value with spaces stays one word.
 */
export function commandsOf(line: string): Command[] {
  if (line.startsWith(':')) return [];
  const commands: { when: JoinedBy; words: string[] }[] = [{ when: 'always', words: [] }];
  for (const word of line.split(/\s+/).filter(Boolean)) {
    if (word.startsWith('#')) break;
    const joint = JOINTS.get(word);
    if (joint) commands.push({ when: joint, words: [] });
    else commands.at(-1)!.words.push(word);
  }
  return commands;
}
