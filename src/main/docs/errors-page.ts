/** docs/errors.md: the error table. */
import { ERROR_GROUPS, ERRORS, type ErrorCode, type ErrorRow } from '../../domain/errors.js';
import { code, page, table } from './markdown.js';

const CODES = Object.keys(ERRORS) as ErrorCode[];

/** The codes of a group: from its first to where the next one begins. */
function codesOf(group: number): ErrorCode[] {
  const next = ERROR_GROUPS[group + 1];
  return CODES.slice(CODES.indexOf(ERROR_GROUPS[group]!.first), next ? CODES.indexOf(next.first) : undefined);
}

const errorCells = (name: ErrorCode): string[] => {
  const row: ErrorRow = ERRORS[name];
  // The marks are code: in a table they would read as text.
  return [code(name), row.text.replaceAll(/\{\w+\}/g, (mark) => code(mark)), row.verb === 'none' ? '–' : code(row.verb), row.hint, String(row.http), row.retryable ? 'yes' : 'no'];
};

export const errorsPage = (): string => page(
  'Errors',
  'Every error has one code. The API answers `{code, message, hint, details?}` with the status of the row, the command line prints code and hint and ends with 1, a workflow fails or holds with the code. The verb is what a person says to the node once the hint is done: `metalflow node <verb> <node>`. *Retried* errors are tried again by themselves until the limit of their phase passes.',
  ...ERROR_GROUPS.flatMap(({ title }, group) => [`## ${title}`, table(['code', 'text', 'verb', 'what to do', 'HTTP', 'retried'], codesOf(group).map(errorCells))]),
);
