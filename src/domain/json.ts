/** JSON that strangers send: bounded nesting, and no key that could reach a prototype. */

export type JsonReading = { readonly kind: 'read'; readonly value: unknown } | { readonly kind: 'refused'; readonly why: string };

/** Deeper than any message of ours; shallow enough for every recursive reader behind it. */
export const JSON_DEPTH = 32;

const PROTOTYPE_KEYS: readonly string[] = ['__proto__', 'constructor', 'prototype'];

/** The deepest nesting of arrays and objects in the text. Brackets inside strings do not count. */
function nestingOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (inString) {
      if (char === '\\') at += 1;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === '{' || char === '[') deepest = Math.max(deepest, (depth += 1));
    else if (char === '}' || char === ']') depth -= 1;
  }
  return deepest;
}

/** Looks at the parsed keys, not at the text: `\u005f_proto__` is the same key. */
function prototypeKeyIn(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return null;
  for (const key of Object.keys(value)) {
    if (PROTOTYPE_KEYS.includes(key)) return key;
    const inside = prototypeKeyIn((value as Record<string, unknown>)[key]);
    if (inside) return inside;
  }
  return null;
}

/**
 * Parses JSON text of any origin. The reason of a refusal never quotes the text, which may hold a secret.
 * @param depth most levels of nesting, checked before anything is parsed
 */
export function readJson(text: string, depth: number = JSON_DEPTH): JsonReading {
  if (nestingOf(text) > depth) return { kind: 'refused', why: `is nested deeper than ${depth} levels` };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'refused', why: 'is no JSON' };
  }
  const key = prototypeKeyIn(value);
  return key ? { kind: 'refused', why: `the key ${key} is not allowed` } : { kind: 'read', value };
}
