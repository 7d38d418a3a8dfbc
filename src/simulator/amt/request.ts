/** One WS-Man request, read from its envelope the way real firmware reads it: most headers are optional. */
import { NS } from './names.js';
import { child, readXml, textOf, type XmlElement } from './xml.js';

export type Selectors = Readonly<Record<string, string>>;

export interface WsmanRequest {
  /** Empty for Identify, which has no headers. */
  readonly action: string;
  readonly resource: string;
  readonly messageId: string;
  readonly selectors: Selectors;
  readonly body: XmlElement;
}

/** @throws XmlProblem; @returns null when the XML is no SOAP 1.2 envelope with a body */
export function readRequest(text: string): WsmanRequest | null {
  const envelope = readXml(text);
  const body = child(envelope, NS.soap, 'Body');
  if (envelope.uri !== NS.soap || envelope.name !== 'Envelope' || !body) return null;
  const header = child(envelope, NS.soap, 'Header');
  return {
    action: textOf(header, NS.addressing, 'Action') ?? '',
    resource: textOf(header, NS.wsman, 'ResourceURI') ?? '',
    messageId: textOf(header, NS.addressing, 'MessageID') ?? '',
    selectors: readSelectors(child(header, NS.wsman, 'SelectorSet')),
    body,
  };
}

/** The attribute is `Name` in any namespace: PyPI amt writes `wsman:Name`. */
function readSelectors(set: XmlElement | undefined): Selectors {
  const selectors = (set?.children ?? []).filter(({ uri, name }) => uri === NS.wsman && name === 'Selector');
  return Object.fromEntries(selectors.map((selector) => [selector.attributes.find(({ name }) => name === 'Name')?.value ?? '', selector.text]));
}

export interface EndpointReference {
  readonly resource: string;
  readonly selectors: Selectors;
}

/** null when the element is no endpoint reference. */
export function readReference(element: XmlElement | undefined): EndpointReference | null {
  const parameters = child(element, NS.addressing, 'ReferenceParameters');
  const resource = textOf(parameters, NS.wsman, 'ResourceURI');
  return resource === undefined ? null : { resource, selectors: readSelectors(child(parameters, NS.wsman, 'SelectorSet')) };
}
