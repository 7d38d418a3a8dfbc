/** POST /v1/attest/hello and /v1/attest/report: how a node says who it is. */
import type { FastifyRequest } from 'fastify';
import { failure, MetalflowError } from '../domain/errors.js';
import { HelloRequest, HelloResponse, RefusedResponse, ReportRequest, ReportResponse } from '../contracts/agent-api.js';
import type { AttestationDesk, VerifyReport } from '../contracts/agent-desk.js';
import type { HttpServer } from '../telemetry/http.js';
import type { Logger } from '../telemetry/log.js';
import { limitKey } from './auth.js';
import type { SenderLimit } from './sender-limit.js';

/** A report carries the node's disks; everything else on this plane is smaller. */
export const REPORT_BODY_LIMIT = 256 * 1024;
/** What a refused node waits before it says hello again: an approval or a fixed field may have changed the answer. */
export const REFUSED_RETRY_SECONDS = 30;

export interface AttestRoutesDeps {
  readonly attestation: AttestationDesk;
  readonly verify: VerifyReport;
  readonly attempts: SenderLimit;
  readonly simulation: boolean;
  readonly log: Logger;
  readonly now: () => Date;
}

export function addAttestRoutes(server: HttpServer, deps: AttestRoutesDeps): void {
  const { attestation, verify, attempts, log, now } = deps;
  // Nobody is known yet on these two routes, so the address is all there is to count by.
  const limited = {
    onRequest: async (request: FastifyRequest): Promise<void> => {
      attempts.check(limitKey(request));
      attempts.count(limitKey(request));
    },
  };

  server.post('/v1/attest/hello', { ...limited, schema: { body: HelloRequest, response: { 200: HelloResponse } } }, async (request) => {
    const { systemUuid, bootMac, akPublic, ekPublic = null, ekCertificate = null } = request.body;
    const challenge = await attestation.openChallenge({ systemUuid, bootMac, akPublic, ekPublic, ekCertificate });
    return { challengeId: challenge.id, nonce: challenge.nonce, expiresAt: challenge.expiresAt };
  });

  server.post('/v1/attest/report', { ...limited, bodyLimit: REPORT_BODY_LIMIT, schema: { body: ReportRequest, response: { 200: ReportResponse, 403: RefusedResponse } } }, async (request, reply) => {
    const { challengeId, report, signature, secret } = request.body;
    const challenge = await attestation.takeChallenge(challengeId);
    if (!challenge) throw new MetalflowError('challenge_unknown');

    const node = await attestation.findNode(challenge.bootMac);
    const { verdict, report: verified } = verify({
      challenge,
      reportBytes: Buffer.from(report, 'base64'),
      signature: Buffer.from(signature, 'base64'),
      secret: secret === undefined ? null : Buffer.from(secret, 'base64'),
      node,
      allowUnproven: deps.simulation,
      now: now(),
    });
    const issued = await attestation.record({ node, challenge, report: verified, verdict, sender: limitKey(request) });
    const facts = { device: node?.deviceId ?? null, mac: challenge.bootMac, attempt: node?.attempt?.bootAttempt ?? null, proof: verdict.proof };

    if (!verdict.accepted) {
      log.warn({ ...facts, reason: verdict.reason }, 'attestation refused');
      const refused = failure('attestation_refused', { reason: verdict.reason ?? 'no reason' });
      return reply.status(403).header('retry-after', REFUSED_RETRY_SECONDS).send({ ...refused, retryAfterSeconds: REFUSED_RETRY_SECONDS });
    }
    if (!node || !issued) throw new MetalflowError('unexpected', { what: 'an accepted attestation opened no session' });
    log.info(facts, 'attestation accepted');
    return reply.status(200).send({
      token: issued.token,
      nodeId: node.deviceId,
      bootAttempt: node.attempt?.bootAttempt ?? null,
      run: node.attempt?.run ?? null,
      ...(issued.installCode !== null && { installCode: issued.installCode }),
      waitFor: node.attempt ? 'orders' : 'intake',
    });
  });
}
