/** XML as a tree with its namespaces resolved: prefixes are a client's choice, so nothing here may depend on them. */
import { XMLParser, XMLValidator } from 'fast-xml-parser';

export interface XmlElement {
  /** Namespace URI; empty for none. */
  readonly uri: string;
  /** Local name. */
  readonly name: string;
  readonly attributes: readonly { readonly uri: string; readonly name: string; readonly value: string }[];
  readonly children: readonly XmlElement[];
  /** Text of its own, references resolved, blanks around it trimmed. */
  readonly text: string;
}

/** What stands in the way of reading a text as XML. */
export class XmlProblem extends Error {
  override readonly name = 'XmlProblem';
}

const parser = new XMLParser({
  preserveOrder: true, ignoreAttributes: false, attributeNamePrefix: '', parseTagValue: false, parseAttributeValue: false,
  processEntities: false, ignoreDeclaration: true, ignorePiTags: true,
});

type Node = Record<string, unknown>;
type Scope = ReadonlyMap<string, string>;

const ROOT_SCOPE: Scope = new Map([['', ''], ['xml', 'http://www.w3.org/XML/1998/namespace']]);
const REFERENCES: Readonly<Record<string, string>> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&apos;': "'" };
const unescape = (text: string): string => text.replaceAll(/&(?:amp|lt|gt|quot|apos);/g, (reference) => REFERENCES[reference]!);

export const escapeXml = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** @throws XmlProblem for anything but one well-formed element without document type */
export function readXml(text: string): XmlElement {
  if (/<!(?:DOCTYPE|ENTITY)/i.test(text)) throw new XmlProblem('a document type is not allowed');
  const valid = XMLValidator.validate(text);
  if (valid !== true) throw new XmlProblem(valid.err.msg);
  let nodes: Node[];
  try {
    nodes = parser.parse(text) as Node[];
  } catch (error) {
    throw new XmlProblem(String((error as Error).message));
  }
  const roots = nodes.filter((node) => tagOf(node) !== null);
  if (roots.length !== 1) throw new XmlProblem('not exactly one root element');
  return resolve(roots[0]!, ROOT_SCOPE);
}

const tagOf = (node: Node): string | null => Object.keys(node).find((key) => key !== ':@' && key !== '#text' && !key.startsWith('?')) ?? null;

function resolve(node: Node, outer: Scope): XmlElement {
  const tag = tagOf(node)!;
  const attributes = Object.entries((node[':@'] ?? {}) as Record<string, string>).map(([name, value]) => [name, unescape(value)] as const);
  const scope = new Map(outer);
  for (const [name, value] of attributes) {
    if (name === 'xmlns') scope.set('', value);
    else if (name.startsWith('xmlns:')) scope.set(name.slice('xmlns:'.length), value);
  }
  const inside = node[tag] as Node[];
  return {
    ...qualified(tag, scope),
    attributes: attributes
      .filter(([name]) => name !== 'xmlns' && !name.startsWith('xmlns:'))
      // An attribute without a prefix is in no namespace, whatever the default one is.
      .map(([name, value]) => ({ ...(name.includes(':') ? qualified(name, scope) : { uri: '', name }), value })),
    children: inside.filter((child) => tagOf(child) !== null).map((child) => resolve(child, scope)),
    text: unescape(inside.map((child) => String(child['#text'] ?? '')).join('')).trim(),
  };
}

function qualified(name: string, scope: Scope): { uri: string; name: string } {
  const colon = name.indexOf(':');
  const prefix = colon < 0 ? '' : name.slice(0, colon);
  const uri = scope.get(prefix);
  if (uri === undefined) throw new XmlProblem(`prefix ${prefix.slice(0, 40)} is not declared`);
  return { uri, name: name.slice(colon + 1) };
}

export const child = (element: XmlElement | undefined, uri: string, name: string): XmlElement | undefined => element?.children.find((inner) => inner.uri === uri && inner.name === name);
export const textOf = (element: XmlElement | undefined, uri: string, name: string): string | undefined => child(element, uri, name)?.text;
