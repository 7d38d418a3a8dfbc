/**
 * `{{ .run.kind }}` in a template: field chains and nothing else of Go's template language. What is not understood is
 * refused by name, so that a template never means something else here than where it was written for.
 */
import type { TemplateFacts } from '../contracts/images.js';

export interface Rendered {
  readonly text: string;
  /** Where in the source the character at this offset of the rendered text comes from. */
  sourceOffset(renderedOffset: number): number;
}

/** Called with an offset in the source; always throws. */
export type Refuse = (offset: number, what: string) => never;

const CHAIN = /^\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)$/;
const KEYWORDS = /^(if|else|end|range|with|define|template|block|break|continue|return)\b/;
/** Rendering comes before the YAML is read, so a value that YAML could take for more than itself may not pass (names come from NetBox). */
const HARMLESS = /^[A-Za-z0-9](?:[A-Za-z0-9 ._@/+-]*[A-Za-z0-9._@/+-])?$/;

/** What of Go's template language this is, in words. */
function constructOf(inner: string): string {
  if (inner === '') return 'an empty mark is';
  if (inner.startsWith('-') || inner.endsWith('-')) return 'trim marks ({{- and -}}) are';
  if (inner.startsWith('/*')) return 'comments are';
  if (inner.includes('|')) return 'pipelines (|) are';
  if (inner.includes('$')) return 'variables ($) are';
  if (/["'`]/.test(inner)) return 'text in quotes is';
  const keyword = KEYWORDS.exec(inner)?.[1];
  if (keyword) return `the control structure "${keyword}" is`;
  if (inner === '.') return 'the bare dot is';
  const called = /^[A-Za-z_]\w*/.exec(inner)?.[0];
  return called ? `the function "${called}" is` : 'this is';
}

/** Every fact a mark may name, `.run.kind` and its like. */
const namesOf = (facts: TemplateFacts): string[] =>
  Object.entries(facts).flatMap(([group, fields]) => (fields === null ? [] : Object.keys(fields as object).map((field) => `.${group}.${field}`)));

function lookUp(facts: TemplateFacts, chain: string): unknown {
  let value: unknown = facts;
  for (const key of chain.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

function valueOf(inner: string, facts: TemplateFacts): { text: string } | { problem: string } {
  const chain = CHAIN.exec(inner)?.[1];
  if (chain === undefined) return { problem: `${constructOf(inner)} not supported; only marks like {{ .run.kind }} are` };
  const value = lookUp(facts, chain);
  if (typeof value === 'boolean' || typeof value === 'number') return { text: String(value) };
  if (typeof value !== 'string') return { problem: `there is no fact .${chain}; there are ${namesOf(facts).join(', ')}` };
  if (!HARMLESS.test(value)) return { problem: `the value of .${chain} has characters that may not be put into a template` };
  return { text: value };
}

/** Replaces each mark by its fact. A fact that is missing is an error, never an empty text. */
export function renderMarks(source: string, facts: TemplateFacts, refuse: Refuse): Rendered {
  // Each piece of the output with where it came from: text maps letter by letter, a value as a whole to its mark.
  const pieces: { readonly text: string; readonly from: number; readonly isValue: boolean }[] = [];
  let position = 0;
  for (let open = source.indexOf('{{'); open !== -1; open = source.indexOf('{{', position)) {
    const close = source.indexOf('}}', open + 2);
    const lineEnd = source.indexOf('\n', open);
    if (close === -1 || (lineEnd !== -1 && lineEnd < close)) refuse(open, 'a mark {{ is not closed on its line');
    const value = valueOf(source.slice(open + 2, close).trim(), facts);
    if ('problem' in value) return refuse(open, value.problem);
    pieces.push({ text: source.slice(position, open), from: position, isValue: false }, { text: value.text, from: open, isValue: true });
    position = close + 2;
  }
  pieces.push({ text: source.slice(position), from: position, isValue: false });
  return {
    text: pieces.map((piece) => piece.text).join(''),
    sourceOffset: (offset) => {
      let left = offset;
      for (const piece of pieces) {
        if (left < piece.text.length) return piece.isValue ? piece.from : piece.from + left;
        left -= piece.text.length;
      }
      return source.length;
    },
  };
}
