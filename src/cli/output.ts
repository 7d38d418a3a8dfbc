/** What a command prints: JSON when asked, tables for people on a terminal, tab-separated lines elsewhere. */
import { errorText, ERRORS, isMetalflowError } from '../domain/errors.js';

export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Whether `out` is looked at by a person. */
  readonly isTerminal: boolean;
}

/** Control characters (ESC among them) in a name from NetBox must not steer the terminal of whoever lists nodes. */
export const printable = (text: string): string => text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '?');

const cell = (value: unknown): string => (value === null || value === undefined || value === '' ? '-' : printable(String(value)));

/** Columns under their titles on a terminal; elsewhere one line a row, tabs between, so that `cut -f` works. */
export function table(titles: readonly string[], rows: readonly (readonly unknown[])[], isTerminal: boolean): string {
  const lines = [titles, ...rows].map((row) => row.map(cell));
  if (!isTerminal) return lines.map((row) => `${row.join('\t')}\n`).join('');
  const widths = titles.map((_, column) => Math.max(...lines.map((row) => row[column]!.length)));
  return lines.map((row) => `${row.map((text, column) => text.padEnd(widths[column]!)).join('  ').trimEnd()}\n`).join('');
}

/** `name  value` lines; an absent value is left out. */
export function facts(pairs: readonly (readonly [string, unknown])[], isTerminal: boolean): string {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== '');
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${isTerminal ? name.padEnd(width) + '  ' : name + '\t'}${cell(value)}\n`).join('');
}

export const asJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

export interface PrintedError {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Any thrown thing as code, message and hint; what is none of ours is `internal`, with its message and no stack. */
export function errorOf(thrown: unknown): PrintedError {
  if (isMetalflowError(thrown)) return thrown.toFailure();
  return { code: 'internal', message: `${errorText('internal')}: ${thrown instanceof Error ? thrown.message : String(thrown)}`, hint: ERRORS.internal.hint };
}

export function printError(terminal: Terminal, error: PrintedError, json: boolean): void {
  if (json) terminal.out(asJson({ error }));
  else terminal.err(`${printable(error.code)}: ${printable(error.message)}\n${error.hint ? `  ${printable(error.hint)}\n` : ''}`);
}
