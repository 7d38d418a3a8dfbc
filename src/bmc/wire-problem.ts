/** Why there is no connection to a BMC that may be used. Not one byte of a request has left. */
import type { BmcProblemCode } from '../domain/power.js';

export type WireProblemCode = Extract<BmcProblemCode, 'bmc_unreachable' | 'bmc_certificate_refused' | 'bmc_tls_failed'>;

export class WireProblem extends Error {
  override readonly name = 'WireProblem';
  readonly code: WireProblemCode;
  constructor(code: WireProblemCode, why: string) {
    super(why);
    this.code = code;
  }
}

/** What Node calls it → what it is. */
const SYSTEM: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the network',
  ETIMEDOUT: 'no connection in time',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name cannot be looked up',
  UND_ERR_SOCKET: 'connection closed before the answer',
  UND_ERR_INFO: 'connection closed before the answer',
  ABORT_ERR: 'given up',
};

/** OpenSSL's words, in its code or its message → what they mean at a BMC. */
const TLS: readonly (readonly [RegExp, string])[] = [
  [/alert.protocol.version|unsupported.protocol|version.too.low/i, 'it speaks nothing newer than TLS 1.1, which METALFLOW_BMC_OLD_TLS has to allow'],
  [/wrong.version.number|packet.length.too.long|http.request|unknown.protocol/i, 'what answers there does not speak TLS'],
  [/dh.key.too.small|ee.key.too.small|ca.md.too.weak|legacy.sigalg|legacy.renegotiation/i, 'its keys or signatures are of old, which METALFLOW_BMC_OLD_TLS has to allow'],
  [/handshake.failure|no.shared.cipher|no.ciphers/i, 'no cipher in common'],
];

/** An error of a socket, of TLS or of undici in the house's words; an unknown one as it is. */
export function wordsOf(error: unknown): string {
  const { code, name, message, errors } = error as { code?: unknown; name?: string; message?: string; errors?: readonly unknown[] };
  if (name === 'AbortError' || name === 'TimeoutError') return 'given up: the time for this call is over';
  if (typeof code === 'string' && SYSTEM[code]) return SYSTEM[code];
  // A name with several addresses, and none of them answered.
  if (errors?.length) return wordsOf(errors[0]);
  return String(message || error).slice(0, 200);
}

/** A socket's error while it connects. */
export function wireProblem(error: Error & { code?: string }): WireProblem {
  if (error instanceof WireProblem) return error;
  const said = `${error.code} ${error.message}`;
  if (/^(?:ERR_SSL|EPROTO|ERR_TLS)/.test(error.code ?? '')) return new WireProblem('bmc_tls_failed', TLS.find(([words]) => words.test(said))?.[1] ?? said.slice(0, 200));
  return new WireProblem('bmc_unreachable', wordsOf(error));
}
