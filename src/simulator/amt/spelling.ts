/** Answers that say the same in another spelling: a client that goes by prefixes or by Action fails on them. */
import type { AmtFaults } from './faults.js';

const WORDS: Readonly<Record<string, string>> = { a: 'env', b: 'wsa', c: 'wsman', d: 'wxf', e: 'wsmid', f: 'err', g: 'n1', h: 'n2' };
/** A fault's codes are qualified names in text. */
const CODES = /(?<=:Value(?: [^>]*)?>)[a-h](?=:)/g;
/** Elements, the one attribute with a prefix, and the declarations. Text is escaped, so that no `<` in it begins a name. */
const NAMES = /(?<=<\/?)[a-h](?=:)|(?<=\s)[a-h](?=:mustUnderstand=")|(?<=\sxmlns:)[a-h](?==")/g;

/** @param xml as the answer writer makes it */
export function respell(xml: string, { prefixes, actionWithoutResponse }: Pick<AmtFaults, 'prefixes' | 'actionWithoutResponse'>): string {
  const plain = actionWithoutResponse ? xml.replace(/(<b:Action [^>]*>[^<]*)Response(?=<)/, '$1') : xml;
  if (prefixes === 'letters') return plain;
  const word = (letter: string): string => WORDS[letter]!;
  return plain.replaceAll(CODES, word).replaceAll(NAMES, word);
}
