/** How answers go out: whole, in chunks, or spoilt as the fault switches say. */
import type { ServerResponse } from 'node:http';
import type { AmtFaults } from './faults.js';
import { AMT_VERSION } from './classes.js';

const SERVER = `Intel(R) Active Management Technology ${AMT_VERSION}.1917`;
const HUGE_BYTES = 10 * 1024 * 1024;
const DRIP_MS = 20;

const page = (title: string, text: string): string =>
  `<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN"><html><head><title>${title}</title></head><body><h1>${title}</h1><p>${text}</body></html>`;

/** AMT closes after an answer without credentials; clients have to connect again. */
export function sendPage(response: ServerResponse, status: number, title: string, text: string, headers: Record<string, string> = {}): void {
  const body = page(title, text);
  response.writeHead(status, { ...headers, 'Content-Type': 'text/html', Server: SERVER, 'Content-Length': Buffer.byteLength(body), Connection: 'close' }).end(body);
}

export const sendLogonFailed = (response: ServerResponse, challenge: string): void =>
  sendPage(response, 401, 'Log on failed', 'The user name or the password is wrong, or the account is locked for a while.', { 'WWW-Authenticate': challenge });

export interface SoapAnswer {
  readonly status: number;
  readonly xml: string;
}

/** @param chunked `Transfer-Encoding: chunked`, as real firmware mostly does, or Content-Length */
export function sendSoap(response: ServerResponse, answer: SoapAnswer, chunked: boolean, how: AmtFaults['answerAs']): void {
  switch (how) {
    case 'html':
      sendPage(response, 200, 'Intel(R) Active Management Technology', 'Log on to Intel AMT.');
      return;
    case 'huge':
      send(response, answer.status, answer.xml.padEnd(HUGE_BYTES, ' '), chunked);
      return;
    case 'truncated-xml':
      send(response, answer.status, answer.xml.slice(0, Math.floor(answer.xml.length * 0.8)), chunked);
      return;
    case 'slow-drip':
      drip(response, answer);
      return;
    case 'soap':
      send(response, answer.status, answer.xml, chunked);
  }
}

function send(response: ServerResponse, status: number, body: string, chunked: boolean): void {
  response.writeHead(status, { 'Content-Type': 'application/soap+xml; charset=UTF-8', Server: SERVER, ...(!chunked && { 'Content-Length': Buffer.byteLength(body) }) });
  response.write(body);
  response.end();
}

/** One byte at a time: slow enough that no idle timeout ever fires and no client lives to see the end. */
function drip(response: ServerResponse, { status, xml }: SoapAnswer): void {
  response.writeHead(status, { 'Content-Type': 'application/soap+xml; charset=UTF-8', Server: SERVER });
  let at = 0;
  const timer = setInterval(() => (at < xml.length ? response.write(xml[at++]!) : response.end()), DRIP_MS);
  response.on('close', () => clearInterval(timer));
}
