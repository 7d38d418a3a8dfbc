/** A command as an operator writes it, cut into words. Nothing is expanded: who wants a shell writes `sh -c '…'`. */
import { MetalflowError } from '../../domain/errors.js';

/** One word, quoted parts and escapes included. */
const WORD = /(?:[^\s"'\\]|\\[^]|'[^']*'|"(?:[^"\\]|\\[^])*")+/y;
const PART = /\\([^])|'([^']*)'|"((?:[^"\\]|\\[^])*)"|([^\s"'\\]+)/g;

const unquoted = (word: string): string =>
  word.replaceAll(PART, (_all, escaped?: string, single?: string, double?: string, plain?: string) => escaped ?? single ?? double?.replaceAll(/\\(["\\])/g, '$1') ?? plain ?? '');

/**
 * Words, with '…', "…" and \ as in a shell.
 * @param name what the text is, for the error
 * @throws MetalflowError `setting_invalid` for a quote without an end, a null character, or no word
 */
export function splitCommand(text: string, name: string): [program: string, ...args: string[]] {
  const words: string[] = [];
  for (let at = 0; ;) {
    at += /^\s*/.exec(text.slice(at))![0].length;
    if (at === text.length) break;
    WORD.lastIndex = at;
    const word = WORD.exec(text)?.[0];
    const next = word === undefined ? undefined : text[at + word.length];
    if (word === undefined || (next !== undefined && !/\s/.test(next))) throw new MetalflowError('setting_invalid', { name, why: 'a quote has no end, or a backslash nothing behind it' });
    words.push(unquoted(word));
    at += word.length;
  }
  const [program, ...args] = words;
  if (!program || text.includes('\0')) throw new MetalflowError('setting_invalid', { name, why: 'it names no program' });
  return [program, ...args];
}
