/** The agent says who it is: hello, a report signed by the AK over the plane's nonce, and a session in return. */
import type { ReportResponse, AttestationReport } from '../contracts/agent-api.js';
import type { Logger } from '../telemetry/log.js';
import type { AgentApi, Answer } from './api.js';
import type { AgentMachine } from '../contracts/agent-machine.js';
import type { Sleep } from './sleep.js';

/** What an attested agent holds until its token is revoked. The install code stays in memory only. */
export interface Session {
  readonly token: string;
  readonly installCode: string | null;
  readonly nodeId: string;
  readonly run: number | null;
}

export interface Tries {
  /** Tries of one round. */
  readonly count: number;
  readonly everyMs: number;
  /** Between two rounds of refusals. A node that is kept out asks on, because a person may admit it; it never exits. */
  readonly roundsEveryMs: number;
}
export const DEFAULT_TRIES: Tries = { count: 5, everyMs: 30_000, roundsEveryMs: 300_000 };

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

export interface AttestDeps {
  readonly api: AgentApi;
  readonly machine: AgentMachine;
  /** Name and version that the report carries. */
  readonly agent: AttestationReport['agent'];
}

/** One try, with a fresh nonce and a fresh inventory. */
export async function attestOnce({ api, machine, agent }: AttestDeps): Promise<Answer<ReportResponse>> {
  const { systemUuid, bootMac, endorsementKey } = machine;
  const hello = await api.hello({
    systemUuid,
    bootMac,
    akPublic: base64(machine.akPublic),
    ...(endorsementKey && { ekPublic: base64(endorsementKey.public) }),
    ...(endorsementKey?.certificate && { ekCertificate: base64(endorsementKey.certificate) }),
  });
  if (hello.kind !== 'ok') return hello;
  const [lldp, disks] = [await machine.lldpFrame(), await machine.disks()];
  const report: AttestationReport = {
    version: 1,
    nonce: hello.value.nonce,
    systemUuid,
    bootMac,
    lldpFrame: lldp ? lldp.toString('hex') : null,
    disks: disks.map(({ name, serial, wwn, model, sizeBytes, bus }) => ({ name, serial, ...(wwn !== undefined && { wwn }), model, sizeBytes, bus })),
    agent,
  };
  // Signed as the very bytes that are sent: nobody has to agree on a canonical form.
  const bytes = Buffer.from(JSON.stringify(report), 'utf8');
  const secret = hello.value.credential !== undefined && endorsementKey ? await endorsementKey.activate(Buffer.from(hello.value.credential, 'base64')) : null;
  return api.report({
    challengeId: hello.value.challengeId,
    report: base64(bytes),
    signature: base64(await machine.sign(bytes)),
    ...(secret && { secret: base64(secret) }),
  });
}

/**
 * Tries until a session is there: rounds of `tries.count`, `tries.everyMs` apart, or later when the plane says so. A plane that is
 * away refuses nothing: it is asked at the same pace until it is back, for a run may be waiting.
 * @returns null only when the signal aborted
 */
export async function attest(deps: AttestDeps & { log: Logger; sleep: Sleep; signal: AbortSignal; tries: Tries }): Promise<Session | null> {
  const { log, sleep, signal, tries } = deps;
  let refusals = 0;
  for (let number = 1; !signal.aborted; number += 1) {
    let wait = tries.everyMs;
    try {
      const answer = await attestOnce(deps);
      if (answer.kind === 'ok') {
        const { token, nodeId, run, waitFor, installCode } = answer.value;
        log.info({ nodeId, run, waitFor, try: number }, 'attested');
        return { token, nodeId, run, installCode: installCode ?? null };
      }
      if (answer.kind === 'refused') {
        refusals += 1;
        if (refusals % tries.count === 0) wait = tries.roundsEveryMs;
        if (answer.retryAfterSeconds) wait = Math.max(wait, answer.retryAfterSeconds * 1000);
      }
      log.warn({ try: number, ...answer, nextInMs: wait }, 'not attested');
    } catch (error) {
      // The machine's half: no disks to be read, no signature. It may pass, and exiting would not help.
      log.error({ err: error, try: number, nextInMs: wait }, 'not attested: this machine could not make its report');
    }
    await sleep(wait, signal);
  }
  return null;
}
