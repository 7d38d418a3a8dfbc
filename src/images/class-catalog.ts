/** The classes a node may become, from one YAML file that may be edited while we run. */
import { readFileSync, statSync } from 'node:fs';
import type { ClassCatalog } from '../contracts/images.js';
import type { NodeClass } from '../contracts/node-class.js';
import { isMetalflowError, MetalflowError, type Failure } from '../domain/errors.js';
import type { Logger } from '../telemetry/log.js';
import { readClasses } from './classes-yaml.js';

/** Enough for thousands of classes; a larger file is a mistake (an image, a log). */
const MOST_BYTES = 4 * 1024 * 1024;

const MISSING = 'missing';

const invalid = (file: string, what: string): MetalflowError => new MetalflowError('class_invalid', { file, what });

/** What tells one version of the file from the next. An editor may replace the file (inode) or write within the same second (size). */
function stampOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat ? `${stat.ino}:${stat.size}:${stat.mtimeMs}:${stat.ctimeMs}` : MISSING;
}

function load(file: string): NodeClass[] {
  try {
    const stat = statSync(file);
    if (!stat.isFile()) throw invalid(file, 'is no file');
    if (stat.size > MOST_BYTES) throw invalid(file, `is larger than ${MOST_BYTES} bytes`);
    return readClasses(file, readFileSync(file, 'utf8'));
  } catch (error) {
    if (isMetalflowError(error)) throw error;
    throw invalid(file, `cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);
  }
}

/**
 * Reads the file now, and again whenever it has changed at the time of a question. A bad edit is logged once and leaves
 * the last good classes in force: a typing slip in one class must not stop the runs of the others.
 * @param deps.mayBeMissing for a file that nobody named: none at the start then means no classes yet, not a mistake
 * @throws class_invalid when the first reading fails: there is no good one to keep
 */
export function createClassCatalog(deps: { file: string; mayBeMissing?: boolean; log: Logger }): ClassCatalog {
  const { file, log } = deps;
  let stamp = stampOf(file);
  let classes = deps.mayBeMissing && stamp === MISSING ? [] : load(file);
  if (stamp === MISSING) log.warn({ file }, 'there is no classes file yet: no class is known');
  let problem: Failure | null = null;

  const refresh = (): void => {
    const now = stampOf(file);
    if (now === stamp) return;
    stamp = now;
    try {
      classes = load(file);
      problem = null;
      log.info({ file, classes: classes.length }, 'classes read again');
    } catch (error) {
      problem = (error as MetalflowError).toFailure();
      log.warn({ file, code: problem.code }, `${problem.message}; the last good classes stay in force`);
    }
  };

  return {
    find: async (name) => {
      refresh();
      return classes.find((candidate) => candidate.name === name) ?? null;
    },
    list: async () => {
      refresh();
      return [...classes];
    },
    lastProblem: () => {
      refresh();
      return problem;
    },
  };
}
