/** How answers go out: whole, in chunks, or spoilt as the fault switches say. */
import type { ServerResponse } from 'node:http';
import type { AmtFaults } from './faults.js';

const HUGE_BYTES = 10 * 1024 * 1024;
const DRIP_MS = 20;
const SOAP = 'application/soap+xml; charset=UTF-8';

const serverOf = ({ version }: AmtFaults): string => `Intel(R) Active Management Technology ${version}.1917`;

const page = (title: string, text: string): string =>
  `<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN"><html><head><title>${title}</title></head><body><h1>${title}</h1><p>${text}</body></html>`;

function end(response: ServerResponse, status: number, body: string, faults: AmtFaults, { challenge, close }: { challenge?: string; close: boolean }): void {
  response.writeHead(status, {
    ...(challenge !== undefined && { 'WWW-Authenticate': challenge }),
    'Content-Type': 'text/html', Server: serverOf(faults), 'Content-Length': Buffer.byteLength(body),
    ...(close && { Connection: 'close' }),
  }).end(body);
}

/** AMT closes after an answer without credentials; clients have to connect again. */
export function sendPage(response: ServerResponse, status: number, title: string, text: string, faults: AmtFaults): void {
  end(response, status, page(title, text), faults, { close: true });
}

export function sendLogonFailed(response: ServerResponse, challenge: string, faults: AmtFaults): void {
  const body = faults.unauthorized === 'empty-close' ? '' : page('Log on failed', 'The user name or the password is wrong, or the account is locked for a while.');
  end(response, 401, body, faults, { challenge, close: faults.unauthorized !== 'html-keep' });
}

export interface SoapAnswer {
  readonly status: number;
  readonly xml: string;
}

export function sendSoap(response: ServerResponse, { status, xml }: SoapAnswer, faults: AmtFaults): void {
  switch (faults.answerAs) {
    case 'html':
      sendPage(response, 200, 'Intel(R) Active Management Technology', 'Log on to Intel AMT.', faults);
      return;
    case 'huge':
      send(response, status, xml.padEnd(HUGE_BYTES, ' '), faults);
      return;
    case 'truncated-xml':
      send(response, status, xml.slice(0, Math.floor(xml.length * 0.8)), faults);
      return;
    case 'torn':
      response.writeHead(status, { 'Content-Type': SOAP, Server: serverOf(faults), 'Content-Length': Buffer.byteLength(xml) });
      response.write(xml.slice(0, Math.floor(xml.length / 2)), () => response.destroy());
      return;
    case 'slow-drip':
      drip(response, status, xml, faults);
      return;
    case 'soap':
      send(response, status, xml, faults);
  }
}

function send(response: ServerResponse, status: number, body: string, faults: AmtFaults): void {
  response.writeHead(status, { 'Content-Type': SOAP, Server: serverOf(faults), ...(faults.framing === 'length' && { 'Content-Length': Buffer.byteLength(body) }) });
  response.write(body);
  response.end();
}

/** One byte at a time: slow enough that no idle timeout ever fires and no client lives to see the end. */
function drip(response: ServerResponse, status: number, xml: string, faults: AmtFaults): void {
  response.writeHead(status, { 'Content-Type': SOAP, Server: serverOf(faults) });
  let at = 0;
  const timer = setInterval(() => (at < xml.length ? response.write(xml[at++]!) : response.end()), DRIP_MS);
  response.on('close', () => clearInterval(timer));
}
