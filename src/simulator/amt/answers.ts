/** SOAP answers in the firmware's manner: prefixes `a` to `h`, an action that echoes the request's, faults with HTTP 400. */
import { ANONYMOUS, NS, uriOf } from './names.js';
import type { EndpointReference, WsmanRequest } from './request.js';
import { escapeXml } from './xml.js';

export interface Answer {
  readonly status: 200 | 400 | 500;
  readonly xml: string;
}

/** A property of an instance; one that repeats appears once an item. */
export type Property = readonly [name: string, value: string | EndpointReference];

const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>';

export const referenceXml = ({ resource, selectors }: EndpointReference): string =>
  `<b:Address>${ANONYMOUS}</b:Address><b:ReferenceParameters><c:ResourceURI>${escapeXml(resource)}</c:ResourceURI><c:SelectorSet>` +
  `${Object.entries(selectors).map(([name, value]) => `<c:Selector Name="${escapeXml(name)}">${escapeXml(value)}</c:Selector>`).join('')}</c:SelectorSet></b:ReferenceParameters>`;

/** `<h:Class>…</h:Class>` */
export function instanceXml(className: string, properties: readonly Property[]): string {
  const inside = properties.map(([name, value]) => `<h:${name}>${typeof value === 'string' ? escapeXml(value) : referenceXml(value)}</h:${name}>`).join('');
  return `<h:${className} xmlns:h="${uriOf(className)}">${inside}</h:${className}>`;
}

export interface AnswerWriter {
  ok(request: WsmanRequest, body: string): Answer;
  /** A method's `<Method>_OUTPUT`, its ReturnValue last. */
  output(request: WsmanRequest, method: string, returnValue: number, more?: readonly (readonly [name: string, value: string])[]): Answer;
  identified(version: string): Answer;
  fault(request: WsmanRequest | null, fault: FaultName): Answer;
}

export const FAULTS = {
  DestinationUnreachable: { uri: NS.addressing, status: 400, reason: 'No route can be determined to reach the destination role defined by the WSAddressing To.' },
  ActionNotSupported: { uri: NS.addressing, status: 400, reason: 'The action is not supported by the service.' },
  AccessDenied: { uri: NS.wsman, status: 400, reason: 'The sender was not authorized to access the resource.' },
  InvalidSelectors: { uri: NS.wsman, status: 400, reason: 'The selectors for the resource are not valid.' },
  SchemaValidationError: { uri: NS.wsman, status: 400, reason: 'The supplied SOAP violates the corresponding XML schema definition.' },
  InvalidEnumerationContext: { uri: NS.enumeration, status: 400, reason: 'The supplied enumeration context is invalid.' },
  InternalError: { uri: NS.wsman, status: 500, reason: 'The service cannot comply with the request due to internal processing errors.' },
} as const satisfies Record<string, { uri: string; status: 400 | 500; reason: string }>;
export type FaultName = keyof typeof FAULTS;

export function createAnswerWriter(): AnswerWriter {
  let count = 0;
  const messageId = (): string => `uuid:00000000-8086-8086-8086-${(++count).toString(16).toUpperCase().padStart(12, '0')}`;

  const envelope = (request: WsmanRequest | null, action: string, body: string, resource: string | null): string =>
    `${DECLARATION}<a:Envelope xmlns:a="${NS.soap}" xmlns:b="${NS.addressing}" xmlns:c="${NS.wsman}" xmlns:d="${NS.transfer}" xmlns:e="${NS.identity}" xmlns:g="${NS.enumeration}" ` +
    `xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><a:Header><b:To>${ANONYMOUS}</b:To><b:RelatesTo>${escapeXml(request?.messageId ?? '')}</b:RelatesTo>` +
    `<b:Action a:mustUnderstand="true">${escapeXml(action)}</b:Action><b:MessageID>${messageId()}</b:MessageID>` +
    `${resource === null ? '' : `<c:ResourceURI>${escapeXml(resource)}</c:ResourceURI>`}</a:Header><a:Body>${body}</a:Body></a:Envelope>`;

  return {
    ok: (request, body) => ({ status: 200, xml: envelope(request, `${request.action}Response`, body, request.resource) }),
    output(request, method, returnValue, more = []) {
      const others = more.map(([name, value]) => `<g:${name}>${escapeXml(value)}</g:${name}>`).join('');
      return this.ok(request, `<g:${method}_OUTPUT xmlns:g="${escapeXml(request.resource)}">${others}<g:ReturnValue>${returnValue}</g:ReturnValue></g:${method}_OUTPUT>`);
    },
    identified: (version) => ({
      status: 200,
      xml:
        `${DECLARATION}<a:Envelope xmlns:a="${NS.soap}" xmlns:b="${NS.identity}"><a:Header/><a:Body><b:IdentifyResponse><b:ProtocolVersion>${NS.wsman}</b:ProtocolVersion>` +
        `<b:ProductVendor>Intel(r)</b:ProductVendor><b:ProductVersion>AMT ${version}</b:ProductVersion></b:IdentifyResponse></a:Body></a:Envelope>`,
    }),
    fault(request, name) {
      const { uri, status, reason } = FAULTS[name];
      const side = status === 500 ? 'Receiver' : 'Sender';
      const body =
        `<a:Fault><a:Code><a:Value>a:${side}</a:Value><a:Subcode><a:Value xmlns:f="${uri}">f:${name}</a:Value></a:Subcode></a:Code>` +
        `<a:Reason><a:Text xml:lang="en-US">${reason}</a:Text></a:Reason><a:Detail/></a:Fault>`;
      return { status, xml: envelope(request, `${NS.addressing}/fault`, body, null) };
    },
  };
}
