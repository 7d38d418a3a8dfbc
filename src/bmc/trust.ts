/** Whose certificate a BMC over TLS must show. A BMC is mostly its own authority, so that a pin is the usual case. */
import { isIP } from 'node:net';
import { constants } from 'node:crypto';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { spellFingerprint } from '../domain/fingerprint.js';
import { WireProblem } from './wire-problem.js';

export interface Trust {
  /**
   * SHA-256 of one certificate, 64 lower-case hex digits: exactly that one is trusted. Its names, its signer and its dates are then not
   * looked at; an expired certificate that is pinned goes on being trusted, and one that was renewed is refused until the pin is, too.
   */
  readonly pin: string | null;
  /** PEM of the authorities that count where nothing is pinned; null for those that Node knows. */
  readonly authorities: string | null;
  /** TLS 1.0 and 1.1 too, with the ciphers, key sizes and renegotiation of their time: an ME before 2017 or so has nothing else. */
  readonly oldTls: boolean;
}

const OLD: ConnectionOptions = { minVersion: 'TLSv1', ciphers: 'DEFAULT:@SECLEVEL=0', secureOptions: constants.SSL_OP_LEGACY_SERVER_CONNECT };

/** The handshake goes through with any certificate: `judge` sees it before anything is written. */
export const tlsOptions = ({ authorities, oldTls }: Trust): ConnectionOptions => ({
  rejectUnauthorized: false, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'], ...(authorities !== null && { ca: authorities }), ...(oldTls && OLD),
});

const refused = (why: string, found: string): WireProblem => new WireProblem('bmc_certificate_refused', `${why}; its SHA-256 fingerprint is ${found}`);

/** @returns why the certificate at the other end is not trusted; null when it is */
export function judge(socket: TLSSocket, host: string, { pin }: Trust): WireProblem | null {
  const certificate = socket.getPeerX509Certificate();
  if (!certificate) return new WireProblem('bmc_certificate_refused', 'it shows none');
  const found = certificate.fingerprint256;
  if (pin !== null) return found === spellFingerprint(pin) ? null : refused(`it is not the pinned one (${spellFingerprint(pin)})`, found);
  if (socket.authorized) return null;
  // Typed as an Error; it is the code.
  const code = String((socket.authorizationError as Error & { code?: string } | string as { code?: string }).code ?? socket.authorizationError);
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return refused(`it ended on ${certificate.validTo}`, found);
    case 'CERT_NOT_YET_VALID':
      return refused(`it begins on ${certificate.validFrom}, by our clock in the future`, found);
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return refused(`it is for ${(certificate.subjectAltName ?? certificate.subject).slice(0, 200)}, not for ${isIP(host) ? 'the address' : 'the name'} ${host}`, found);
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
      return refused(code === 'DEPTH_ZERO_SELF_SIGNED_CERT' ? 'it is signed by itself' : 'no authority that is trusted here signed it', found);
    default:
      return refused(code.slice(0, 100), found);
  }
}
