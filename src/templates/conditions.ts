/** The `if` of an action: a CEL expression over the facts of the run. */
import { celEnv, isCelError, parse, plan } from '@bufbuild/cel';
import type { TemplateFacts } from '../contracts/images.js';

export type Condition = { readonly kind: 'holds' | 'fails' } | { readonly kind: 'problem'; readonly what: string };

/** A condition is a line, not a program: the bound keeps its evaluation short. */
export const MOST_CONDITION_LENGTH = 500;

const environment = celEnv();

/** CEL tells whole numbers from fractions, and JSON does not: numbers of ours are whole. */
const bindings = (facts: TemplateFacts): Record<string, unknown> => ({
  run: { ...facts.run, number: BigInt(facts.run.number) },
  device: { ...facts.device },
  class: facts.class && { ...facts.class },
});

/** Does the condition hold? An unknown field, or an answer other than true or false, is a problem and never "no". */
export function evaluateCondition(expression: string, facts: TemplateFacts): Condition {
  if (expression.length > MOST_CONDITION_LENGTH) return { kind: 'problem', what: `if: is longer than ${MOST_CONDITION_LENGTH} characters` };
  let result: unknown;
  try {
    result = plan(environment, parse(expression))(bindings(facts) as never);
  } catch (error) {
    return { kind: 'problem', what: `if: ${(error as Error).message.replace(/^<input>:\d+:/, 'at character ')}` };
  }
  if (isCelError(result)) return { kind: 'problem', what: `if: ${result.message}` };
  if (typeof result !== 'boolean') return { kind: 'problem', what: 'if: is neither true nor false' };
  return { kind: result ? 'holds' : 'fails' };
}
