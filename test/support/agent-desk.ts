/**
 * The agent plane's store in memory, with the ledger's semantics: challenges are single use, a new boot revokes older sessions, an
 * order is consumed once, only the first report of an order moves anything (G1), an install code has one first use.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { MetalflowError } from '../../src/domain/errors.js';
import { DEFAULT_LIMITS } from '../../src/domain/limits.js';
import type { OrderState } from '../../src/domain/actions.js';
import type { AgentSession, AttestationDesk, AttestationVerdict, AttestingNode, Challenge, OrderDesk, Redemption, SeedDesk, SeedSubject } from '../../src/contracts/agent-desk.js';
import type { ConsumeResponse } from '../../src/contracts/agent-api.js';
import type { AgentAction, Order, OrderProgress, OrderReport } from '../../src/contracts/order.js';

interface DeclaredNode {
  readonly deviceId: string;
  readonly name: string;
  readonly systemUuid: string | null;
  readonly mac: string;
  readonly admitted: boolean;
  readonly declaredEk: string | null;
}

interface Attempt {
  readonly run: number;
  readonly bootAttempt: string;
  readonly allowUnproven: boolean;
  akThumbprint: string | null;
}

interface OrderRow {
  readonly order: Order;
  readonly deviceId: string;
  readonly bootAttempt: string;
  state: OrderState;
  consumed: ConsumeResponse | null;
  consumedBy: string | null;
  progress: OrderProgress | null;
  readonly reports: OrderReport[];
}

interface CodeRow {
  readonly deviceId: string;
  readonly run: number;
  readonly systemUuid: string;
  readonly issuedAt: number;
  first: { readonly at: number; readonly sender: string } | null;
}

export interface FakeDesk {
  readonly attestation: AttestationDesk;
  readonly orders: OrderDesk;
  readonly seeds: SeedDesk;
  /** Every recorded verdict, refusals too. */
  readonly evidence: { deviceId: string | null; verdict: AttestationVerdict; sender: string; hasReport: boolean }[];
  /** What the outbox would tell Temporal. */
  readonly signals: string[];
  readonly senders: string[];
  declare(node: Partial<DeclaredNode> & { deviceId: string; mac: string }): void;
  /** Opens a boot attempt; the sessions of the boot before are revoked. */
  openAttempt(deviceId: string, run: number, options?: { allowUnproven?: boolean }): string;
  queue(deviceId: string, title: string, action?: AgentAction): Order;
  cancel(orderId: string): void;
  /** The order's time limit failed its run: the order is closed. */
  timeOut(orderId: string): void;
  /** The agent fell silent: what became of the order is unknown, and a person waits for it. */
  lose(orderId: string): void;
  row(orderId: string): OrderRow;
  /** Long polls that listen now. */
  waiters(): number;
  changes: EventEmitter;
}

const REBOOT: AgentAction = { name: 'reboot' };

export function createFakeDesk(deps: { now?: () => Date } = {}): FakeDesk {
  const now = deps.now ?? ((): Date => new Date());
  const nodes = new Map<string, DeclaredNode>();
  const attempts = new Map<string, Attempt>();
  const challenges = new Map<string, Challenge>();
  const sessions = new Map<string, AgentSession>();
  const rows = new Map<string, OrderRow>();
  const codes = new Map<string, CodeRow>();
  const changes = new EventEmitter().setMaxListeners(100);
  const evidence: FakeDesk['evidence'] = [];
  const signals: string[] = [];
  const senders: string[] = [];
  let waiting = 0;

  const instant = (seconds = 0): string => new Date(now().getTime() + seconds * 1000).toISOString();
  const nodeOf = (deviceId: string): DeclaredNode => [...nodes.values()].find((node) => node.deviceId === deviceId)!;
  const revoke = (deviceId: string): void => {
    for (const [token, session] of sessions) if (session.deviceId === deviceId) sessions.delete(token);
  };
  const rowFor = (session: AgentSession, orderId: string): OrderRow => {
    const row = rows.get(orderId);
    if (!row || row.deviceId !== session.deviceId) throw new MetalflowError('order_not_found', { order: orderId });
    return row;
  };

  const attestation: AttestationDesk = {
    openChallenge: async (input) => {
      const challenge: Challenge = { ...input, id: randomUUID(), nonce: randomBytes(32).toString('base64'), expiresAt: instant(DEFAULT_LIMITS.challenge) };
      challenges.set(challenge.id, challenge);
      return challenge;
    },
    takeChallenge: async (id) => {
      const challenge = challenges.get(id) ?? null;
      challenges.delete(id);
      return challenge && now().getTime() < Date.parse(challenge.expiresAt) ? challenge : null;
    },
    findNode: async (bootMac): Promise<AttestingNode | null> => {
      const node = nodes.get(bootMac);
      if (!node) return null;
      const { deviceId, name, systemUuid, declaredEk, admitted } = node;
      return { deviceId, name, systemUuid, declaredEk, admitted, attempt: attempts.get(deviceId) ?? null };
    },
    record: async ({ node, challenge, report, verdict, sender }) => {
      evidence.push({ deviceId: node?.deviceId ?? null, verdict, sender, hasReport: report !== null });
      if (!verdict.accepted || !node) return null;
      const attempt = attempts.get(node.deviceId) ?? null;
      if ((attempt?.bootAttempt ?? null) !== (node.attempt?.bootAttempt ?? null)) throw new MetalflowError('attempt_superseded', { attempt: node.attempt?.bootAttempt ?? 'none' });
      if (attempt) attempt.akThumbprint = verdict.akThumbprint;
      revoke(node.deviceId);
      const token = `session-${randomBytes(16).toString('hex')}`;
      sessions.set(token, { id: randomUUID(), deviceId: node.deviceId, nodeName: node.name, run: attempt?.run ?? null, bootAttempt: attempt?.bootAttempt ?? null, akThumbprint: verdict.akThumbprint });
      signals.push(`attested ${attempt?.bootAttempt ?? 'intake'}`);
      if (!attempt) return { token, installCode: null };
      const installCode = `code-${randomBytes(16).toString('hex')}`;
      codes.set(installCode, { deviceId: node.deviceId, run: attempt.run, systemUuid: challenge.systemUuid, issuedAt: now().getTime(), first: null });
      return { token, installCode };
    },
  };

  const orders: OrderDesk = {
    session: async (token) => sessions.get(token) ?? null,
    next: async (session) => [...rows.values()].find((row) => row.deviceId === session.deviceId && row.bootAttempt === session.bootAttempt && row.state === 'queued')?.order ?? null,
    held: async (session, orderId) => {
      const row = rows.get(orderId);
      return row?.state === 'consumed' && row.consumedBy === session.id ? row.order : null;
    },
    waitForChange: async (session, ms, signal) => {
      waiting += 1;
      changes.emit('waiting');
      try {
        await once(changes, session.deviceId, { signal: AbortSignal.any([signal, AbortSignal.timeout(ms)]) });
      } catch (error) {
        if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
      } finally {
        waiting -= 1;
        changes.emit('left');
      }
    },
    consume: async (session, orderId) => {
      const row = rowFor(session, orderId);
      if (row.state === 'consumed' && row.consumed && row.consumedBy === session.id) return row.consumed;
      if (row.state !== 'queued' || row.bootAttempt !== session.bootAttempt) throw new MetalflowError('order_closed', { state: row.state });
      row.state = 'consumed';
      row.consumedBy = session.id;
      row.consumed = { orderId, consumedAt: instant(), deadlineAt: instant(row.order.timeoutSeconds) };
      return row.consumed;
    },
    progress: async (session, orderId, progress) => {
      const row = rowFor(session, orderId);
      row.progress = progress;
      return row.state === 'consumed' ? 'on' : 'stop';
    },
    report: async (session, orderId, report) => {
      const row = rowFor(session, orderId);
      row.reports.push(report);
      if (row.state === 'reported') return 'repeated';
      if (row.state !== 'consumed' && row.state !== 'unknown') return 'late';
      signals.push(`${row.state === 'unknown' ? 'known at last' : 'finished'} ${row.order.title} ${report.result}`);
      row.state = 'reported';
      return 'taken';
    },
  };

  const useCode = (how: string) => async ({ code, systemUuid, sender }: { code: string; systemUuid: string; sender: string }): Promise<Redemption> => {
    senders.push(sender);
    const row = codes.get(code);
    if (!row || row.systemUuid !== systemUuid) return { kind: 'unknown' };
    const at = now().getTime();
    if (row.first) {
      const repeats = row.first.sender === sender && at - row.first.at < DEFAULT_LIMITS.installCodeRepeat * 1000;
      if (!repeats) return { kind: 'spent' };
    } else if (at - row.issuedAt > DEFAULT_LIMITS.installCode * 1000) return { kind: 'spent' };
    const first = row.first === null;
    row.first ??= { at, sender };
    const signal = `${how} ${row.deviceId}/${row.run}`;
    if (!signals.includes(signal)) signals.push(signal);
    return { kind: 'redeemed', deviceId: row.deviceId, nodeName: nodeOf(row.deviceId).name, run: row.run, systemUuid, first };
  };

  const seeds: SeedDesk = {
    redeem: useCode('seed-fetched'),
    seen: useCode('seen'),
    subject: async (deviceId, run): Promise<SeedSubject> => {
      const { name, systemUuid, mac } = nodeOf(deviceId);
      return { deviceId, nodeName: name, systemUuid: systemUuid ?? '', run, instanceId: `${systemUuid}-${run}`, site: 'demo', nodeClass: 'worker', payload: 'talos', seed: null, phoneHome: false, addresses: ['10.0.0.5'], macs: [mac] };
    },
  };

  const changed = (deviceId: string): void => void changes.emit(deviceId);
  const close = (orderId: string, state: OrderState): void => {
    const row = rows.get(orderId)!;
    row.state = state;
    changed(row.deviceId);
  };
  return {
    attestation, orders, seeds, evidence, signals, senders, changes,
    declare: (node) => void nodes.set(node.mac, { name: `node-${node.deviceId}`, systemUuid: null, admitted: false, declaredEk: null, ...node }),
    openAttempt: (deviceId, run, options = {}) => {
      revoke(deviceId);
      const attempt: Attempt = { run, bootAttempt: randomUUID(), allowUnproven: options.allowUnproven ?? true, akThumbprint: null };
      attempts.set(deviceId, attempt);
      for (const row of rows.values()) if (row.deviceId === deviceId && row.state === 'queued') row.state = 'cancelled';
      changed(deviceId);
      return attempt.bootAttempt;
    },
    queue: (deviceId, title, action = REBOOT) => {
      const attempt = attempts.get(deviceId)!;
      const order: Order = { orderId: randomUUID(), run: attempt.run, title, action, timeoutSeconds: 600, destructive: action.name === 'wipe-disk' || action.name === 'write-image', grant: 1 };
      rows.set(order.orderId, { order, deviceId, bootAttempt: attempt.bootAttempt, state: 'queued', consumed: null, consumedBy: null, progress: null, reports: [] });
      changed(deviceId);
      return order;
    },
    cancel: (orderId) => close(orderId, 'cancelled'),
    timeOut: (orderId) => close(orderId, 'cancelled'),
    lose: (orderId) => close(orderId, 'unknown'),
    row: (orderId) => rows.get(orderId)!,
    waiters: () => waiting,
  };
}
