/** Requests as clients of the Ironic family write them, posted with credentials, and what is looked at in the answers. */
import { createHash } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { createConnection } from '../../src/bmc/amt/connection.js';
import { createDigestSession } from '../../src/bmc/amt/digest.js';
import { createTransport } from '../../src/bmc/amt/transport.js';
import type { AmtSimulator } from '../../src/simulator/amt/simulator.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { CREDENTIALS, ROOMY } from './amt.js';

export const S = 'http://www.w3.org/2003/05/soap-envelope';
export const WSA = 'http://schemas.xmlsoap.org/ws/2004/08/addressing';
export const WSMAN = 'http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd';
export const ENUMERATION = 'http://schemas.xmlsoap.org/ws/2004/09/enumeration';
export const GET = 'http://schemas.xmlsoap.org/ws/2004/09/transfer/Get';
export const CIM = 'http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/';
export const AMT = 'http://intel.com/wbem/wscim/1/amt-schema/1/';

/** An envelope as clients of the Ironic family write it: other prefixes, mustUnderstand, a full URL in To. */
export function envelope(action: string, resource: string, body = '', selectors: Record<string, string> = {}): string {
  const set = Object.entries(selectors).map(([name, value]) => `<wsman:Selector Name="${name}">${value}</wsman:Selector>`).join('');
  return `<?xml version="1.0" encoding="UTF-8"?>
<s:Envelope xmlns:s="${S}" xmlns:wsa="${WSA}" xmlns:wsman="${WSMAN}" xmlns:wsen="${ENUMERATION}" xmlns:n1="${resource}"><s:Header>
  <wsa:Action s:mustUnderstand="true">${action}</wsa:Action><wsa:To s:mustUnderstand="true">http://127.0.0.1/wsman</wsa:To>
  <wsman:ResourceURI s:mustUnderstand="true">${resource}</wsman:ResourceURI><wsa:MessageID s:mustUnderstand="true">uuid:1</wsa:MessageID>
  ${set && `<wsman:SelectorSet>${set}</wsman:SelectorSet>`}</s:Header><s:Body>${body}</s:Body></s:Envelope>`;
}
export const reference = (resource: string, selectors: Record<string, string>, attribute = 'wsman:Name'): string =>
  `<wsa:Address>${WSA}/role/anonymous</wsa:Address><wsa:ReferenceParameters><wsman:ResourceURI>${CIM}${resource}</wsman:ResourceURI><wsman:SelectorSet>${
    Object.entries(selectors).map(([name, value]) => `<wsman:Selector ${attribute}="${name}">${value}</wsman:Selector>`).join('')}</wsman:SelectorSet></wsa:ReferenceParameters>`;
export const method = (className: string, name: string, inside: string, selectors: Record<string, string> = {}): string =>
  envelope(`${CIM}${className}/${name}`, `${CIM}${className}`, `<n1:${name}_INPUT>${inside}</n1:${name}_INPUT>`, selectors);
export const power = (state: number, selectors = {}): string =>
  method('CIM_PowerManagementService', 'RequestPowerStateChange', `<n1:PowerState>${state}</n1:PowerState><n1:ManagedElement>${reference('CIM_ComputerSystem', { Name: 'ManagedSystem' })}</n1:ManagedElement>`, selectors);
export const bootSource = (id: string): string => method('CIM_BootConfigSetting', 'ChangeBootOrder', `<n1:Source>${reference('CIM_BootSourceSetting', { InstanceID: id })}</n1:Source>`, { InstanceID: 'Intel(r) AMT: Boot Configuration 0' });
export const role = (value: number, id = 'Intel(r) AMT: Boot Configuration 0'): string =>
  method('CIM_BootService', 'SetBootConfigRole', `<n1:BootConfigSetting>${reference('CIM_BootConfigSetting', { InstanceID: id })}</n1:BootConfigSetting><n1:Role>${value}</n1:Role>`, { Name: 'Intel(r) AMT Boot Service' });
export const PXE = 'Intel(r) AMT: Force PXE Boot';
export const DISK = 'Intel(r) AMT: Force Hard-drive Boot';

/** Posts raw envelopes with credentials. @returns status and body of each */
export async function post(amt: Pick<AmtSimulator, 'host' | 'port'>, ...envelopes: string[]): Promise<{ status: number; body: string }[]> {
  const transport = createTransport({
    connection: createConnection({ origin: `http://${amt.host}:${amt.port}`, timeouts: ROOMY }),
    digest: createDigestSession({ credentials: CREDENTIALS }), timeouts: { ...ROOMY, tries: 1 }, isTls: false, address: 'amt', secret: 'bmc-amt', log: silentLogger(),
  });
  const answers = [];
  for (const text of envelopes) {
    const outcome = await transport.post(text, 'read', AbortSignal.timeout(ROOMY.methodMs));
    if (outcome.kind === 'problem') throw new Error(outcome.problem.why);
    answers.push(outcome.value);
  }
  return answers;
}
export const returnValue = ({ body }: { body: string }): number => Number(/ReturnValue>(\d+)</.exec(body)?.[1]);
export const fault = ({ body }: { body: string }): string | undefined => /<a:Subcode><a:Value[^>]*>f:(\w+)</.exec(body)?.[1];


type Endpoint = Pick<AmtSimulator, 'host' | 'port'>;
const target = ({ host, port }: Endpoint) => ({ host, port, path: '/wsman', method: 'POST', agent: false as const });

/** One request as it is, without credentials. @returns status, headers and body; `lost` when the connection ends first */
export function plainPost(amt: Endpoint, body: string, headers: Record<string, string> = {}): Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; body: string } | 'lost'> {
  return new Promise((resolve) => {
    const request = httpRequest({ ...target(amt), headers: { ...headers, 'Content-Length': Buffer.byteLength(body) } }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString())).on('end', () => resolve({ status: response.statusCode!, headers: response.headers, body: text })).on('error', () => resolve('lost'));
    });
    request.on('error', () => resolve('lost')).end(body);
  });
}

export async function challengeOf(amt: Endpoint): Promise<string> {
  const answer = await plainPost(amt, '');
  return answer === 'lost' ? 'lost' : String(answer.headers['www-authenticate']);
}

/** A request whose body is on its way still. */
export function halfSent(amt: Endpoint): { finish(): Promise<number | undefined> } {
  const request = httpRequest({ ...target(amt), headers: { 'Content-Length': 1 } });
  const status = new Promise<number | undefined>((resolve, reject) => request.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject));
  request.flushHeaders();
  return { finish: () => (request.end('x'), status) };
}

/** What comes off the socket, headers and all, for a request whose digest is over this uri: open-amt's Go client sends an absolute one. */
export async function rawPost(amt: Endpoint, body: string, uri = '/wsman'): Promise<string> {
  const md5 = (text: string): string => createHash('md5').update(text).digest('hex');
  const [, realm, nonce] = /realm="([^"]+)", nonce="([^"]+)"/.exec(await challengeOf(amt))!;
  const response = md5([md5(`${CREDENTIALS.username}:${realm}:${CREDENTIALS.password}`), nonce, '00000001', 'abc', 'auth', md5(`POST:${uri}`)].join(':'));
  const authorization = `Digest username="${CREDENTIALS.username}",realm="${realm}",nonce="${nonce}",uri="${uri}",nc=00000001,cnonce="abc",qop="auth",algorithm="MD5",response="${response}"`;
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(amt.port, amt.host, () => socket.write(`POST /wsman HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ${authorization}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`));
    socket.on('data', (chunk) => (text += chunk.toString())).on('error', () => undefined).on('close', () => resolve(text));
  });
}
