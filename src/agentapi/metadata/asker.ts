/**
 * Who asks for metadata: a session token or an install code says it, else the sender's address does (field failure M1). An address can
 * be taken by a neighbour, so it shows no secret; what is not sure is refused, and nobody is guessed.
 */
import type { FastifyRequest } from 'fastify';
import { MetalflowError } from '../../domain/errors.js';
import type { OrderDesk, SeedDesk } from '../../contracts/agent-desk.js';
import type { MetadataDirectory, MetadataSubject, MetadataTokenPolicy } from '../../contracts/metadata.js';
import type { Logger } from '../../telemetry/log.js';
import { bearerOf, limitKey } from '../auth.js';
import { senderOf } from '../sender.js';
import type { SenderLimit } from '../sender-limit.js';
import type { ImdsTokens } from './imds-token.js';

export type Asker =
  | { readonly proof: 'address' | 'session'; readonly subject: MetadataSubject }
  /** The code that was presented; documents that hold it are filled with it. */
  | { readonly proof: 'code'; readonly subject: MetadataSubject; readonly code: string };

export interface AskerDeps {
  readonly directory: MetadataDirectory;
  readonly orders: Pick<OrderDesk, 'session'>;
  readonly seeds: Pick<SeedDesk, 'redeem'>;
  /** null where none are given: then none is taken either. */
  readonly tokens: ImdsTokens | null;
  readonly tokenPolicy: MetadataTokenPolicy;
  /** Wrong tokens and codes. */
  readonly failures: SenderLimit;
  readonly log: Logger;
}

export interface Askers {
  /** The node at the sender's address. @throws node_not_found, address_ambiguous */
  byAddress(request: FastifyRequest): Promise<MetadataSubject>;
  /**
   * @param named the node whose documents are asked for, where the URL says it; another's are as if they were not there
   * @param urlCode an install code in the URL, for clients that can send no header
   * @throws node_not_found, address_ambiguous, token_unknown, code_unknown, code_spent, metadata_token_needed, metadata_token_wrong, rate_limited
   */
  whoAsks(request: FastifyRequest, named?: { readonly uuid: string }, urlCode?: string): Promise<Asker>;
}

const TOKEN_HEADER = 'x-aws-ec2-metadata-token';

export function createAskers(deps: AskerDeps): Askers {
  const { directory, orders, seeds, tokens, failures, log } = deps;
  const notFound = (node: string): MetalflowError => new MetalflowError('node_not_found', { node });
  const wrong = (request: FastifyRequest, code: 'token_unknown' | 'code_unknown'): MetalflowError => {
    failures.count(limitKey(request));
    log.warn({ sender: limitKey(request) }, `metadata asked for with a wrong credential: ${code}`);
    return new MetalflowError(code);
  };

  async function byAddress(request: FastifyRequest): Promise<MetadataSubject> {
    const sender = senderOf(request);
    const found = sender === null ? { kind: 'unknown' as const } : await directory.byAddress(sender);
    switch (found.kind) {
      case 'found': return found.subject;
      case 'unknown': throw notFound(sender ?? 'at an unreadable address');
      case 'ambiguous':
        log.warn({ sender, devices: found.devices }, 'several devices declare one address: none of them is told anything');
        throw new MetalflowError('address_ambiguous', { address: sender! });
    }
  }

  async function bySession(token: string): Promise<Asker | null> {
    const session = await orders.session(token);
    if (!session) return null;
    const subject = (await directory.byDevice(session.deviceId, session.run)) ?? (await directory.byDevice(session.deviceId, null));
    if (!subject) throw notFound(session.nodeName);
    return { proof: 'session', subject };
  }

  async function byCode(request: FastifyRequest, code: string, systemUuid: string): Promise<Asker | null> {
    const redemption = await seeds.redeem({ code, systemUuid, sender: limitKey(request) });
    if (redemption.kind === 'unknown') return null;
    if (redemption.kind === 'spent') throw new MetalflowError('code_spent');
    const subject = await directory.byDevice(redemption.deviceId, redemption.run);
    if (!subject) throw notFound(redemption.nodeName);
    return { proof: 'code', subject, code };
  }

  async function identify(request: FastifyRequest, uuid: string | undefined, urlCode: string | undefined): Promise<Asker> {
    const bearer = bearerOf(request);
    if (bearer === null && urlCode === undefined) return { proof: 'address', subject: await byAddress(request) };
    failures.check(limitKey(request));
    const known = bearer === null ? null : await bySession(bearer);
    if (known) return known;
    // A code counts for one machine only: the one the URL names, or the one at the address.
    const redeemed = await byCode(request, bearer ?? urlCode!, uuid ?? (await byAddress(request)).systemUuid);
    if (redeemed) return redeemed;
    throw wrong(request, bearer === null ? 'code_unknown' : 'token_unknown');
  }

  return {
    byAddress,
    whoAsks: async (request, named, urlCode) => {
      const asker = await identify(request, named?.uuid, urlCode);
      const { subject, proof } = asker;
      if (named && subject.systemUuid !== named.uuid) throw notFound(named.uuid);
      if (proof === 'address') {
        const token = request.headers[TOKEN_HEADER];
        if (token !== undefined && tokens) tokens.verify(String(token), { deviceId: subject.deviceId, sender: senderOf(request)! });
        else if (deps.tokenPolicy === 'required') throw new MetalflowError('metadata_token_needed');
      }
      return asker;
    },
  };
}
