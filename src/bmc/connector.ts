/** Opens sockets to a BMC for undici: within a limit, over TLS where there is a trust, and never handing out one that is not trusted. */
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { buildConnector } from 'undici';
import { judge, tlsOptions, type Trust } from './trust.js';
import { WireProblem, wireProblem } from './wire-problem.js';

export interface ConnectorDeps {
  /** null for plain TCP. */
  readonly trust: Trust | null;
  /** Milliseconds until the connection stands, TLS included. */
  readonly connectMs: number;
  /** Gives up what is still connecting. */
  readonly signal?: AbortSignal;
}

/** For `connect` of undici's Client and Agent. Fails with WireProblem; whatever fails leaves neither socket nor timer. */
export function createConnector({ trust, connectMs, signal }: ConnectorDeps): buildConnector.connector {
  return ({ hostname, port, protocol }, callback) => {
    const to = { host: hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) };
    // No session is kept: a resumed one would not show its certificate's names again.
    const socket: Socket = trust ? connectTls({ ...tlsOptions(trust), ...to }) : connectPlain(to);
    let isSettled = false;
    let shakesHands = false;
    const settle = (problem: WireProblem | null): void => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
      socket.off('error', fail).off('close', end);
      if (problem === null) return callback(null, socket);
      socket.on('error', () => undefined).destroy();
      callback(problem, null);
    };
    // Firmware that is waking does this, and a plain server that is handed a TLS greeting.
    const lost = (why: string): WireProblem => new WireProblem('bmc_unreachable', shakesHands ? `${why} before TLS stood; the port may be a plain one` : why);
    const fail = (error: Error): void => {
      const problem = wireProblem(error);
      settle(problem.code === 'bmc_unreachable' ? lost(problem.message) : problem);
    };
    const end = (): void => settle(lost('connection closed'));
    const giveUp = (): void => settle(new WireProblem('bmc_unreachable', 'given up: the time for this call is over'));
    const timer = setTimeout(() => settle(new WireProblem('bmc_unreachable', `no ${trust ? 'TLS ' : ''}connection within ${connectMs} ms`)), connectMs);
    signal?.addEventListener('abort', giveUp);
    socket.on('error', fail).on('close', end);
    if (trust) socket.once('connect', () => void (shakesHands = true));
    socket.once(trust ? 'secureConnect' : 'connect', () => settle(trust && judge(socket as TLSSocket, hostname, trust)));
    if (signal?.aborted) giveUp();
  };
}
