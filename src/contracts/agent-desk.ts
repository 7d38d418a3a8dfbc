/** The store, seen from the agent plane: attestation, orders, codes and seeds. */
import type { AttestationReport, ConsumeResponse } from './agent-api.js';
import type { NetworkStatement, NodeInterface } from './metadata.js';
import type { Order, OrderProgress, OrderReport, SeedFile } from './order.js';

export interface Challenge {
  readonly id: string;
  /** 32 bytes, base64. */
  readonly nonce: string;
  readonly systemUuid: string;
  readonly bootMac: string;
  readonly akPublic: string;
  readonly ekPublic: string | null;
  readonly ekCertificate: string | null;
  readonly expiresAt: string;
}

/** What verification in `attestation/` found; written as evidence either way. */
export interface AttestationVerdict {
  readonly accepted: boolean;
  /** Why it was refused, one word each kind (R1): `signature_wrong`, `nonce_wrong`, … null when accepted. */
  readonly reason: string | null;
  /** `tpm` when the AK is proven by a TPM, else `unproven`. */
  readonly proof: 'tpm' | 'unproven';
  readonly akThumbprint: string;
  readonly neighbour: { readonly chassis: string; readonly port: string; readonly system: string | null } | null;
}

/** Who attests, as the store sees it: the device by MAC and system UUID, and what is open for it. */
export interface AttestingNode {
  readonly deviceId: string;
  readonly name: string;
  readonly systemUuid: string | null;
  readonly declaredEk: string | null;
  /** The open run's attempt that this boot belongs to; null when no run waits (intake). */
  readonly attempt: { readonly run: number; readonly bootAttempt: string; readonly allowUnproven: boolean; readonly akThumbprint: string | null } | null;
  /** Of the device's class, for a boot without a run (intake); a run goes by what it pinned. */
  readonly classAllowsUnproven?: boolean;
  /** Whether intake admits it: a declared planned or available device. */
  readonly admitted: boolean;
}

/** A report as it came, with what it is held against. */
export interface ReportToVerify {
  readonly challenge: Challenge;
  /** The exact bytes that were signed: UTF-8 JSON of an AttestationReport. */
  readonly reportBytes: Uint8Array;
  /** ECDSA P-256/SHA-256, IEEE P1363 (r then s, 64 bytes). */
  readonly signature: Uint8Array;
  /** Answer to the credential of the hello; null when there was none. */
  readonly secret: Uint8Array | null;
  /** null when no device declares the MAC. */
  readonly node: AttestingNode | null;
  /** The simulation: every AK without proof is admitted, and stays marked `unproven`. */
  readonly allowUnproven: boolean;
  readonly now: Date;
}

/** `report` is null unless the AK of the challenge signed those very bytes. */
export interface VerifiedReport {
  readonly verdict: AttestationVerdict;
  readonly report: AttestationReport | null;
}

/** The judge of reports, in `attestation/`: pure, and it never throws for what a node sent. */
export type VerifyReport = (input: ReportToVerify) => VerifiedReport;

export interface AttestationDesk {
  openChallenge(input: Omit<Challenge, 'id' | 'nonce' | 'expiresAt'>): Promise<Challenge>;
  /** Single use: the second take, an expired or unknown one is null. */
  takeChallenge(id: string): Promise<Challenge | null>;
  /** null for a MAC that no device declares. */
  findNode(bootMac: string): Promise<AttestingNode | null>;
  /**
   * Keeps the evidence. When accepted: opens the session (older ones of the device are revoked), issues the install code of a
   * provision's attempt, and queues the `attested` signal, in one transaction. Secrets are returned once and stored hashed.
   * @throws attempt_superseded when the attempt was closed meanwhile
   */
  record(input: {
    node: AttestingNode | null; challenge: Challenge; report: AttestationReport | null; verdict: AttestationVerdict; sender: string;
  }): Promise<{ token: string; installCode: string | null } | null>;
}

/** Whom a session token speaks for. */
export interface AgentSession {
  /** Names the token without being it. */
  readonly id: string;
  readonly deviceId: string;
  readonly nodeName: string;
  readonly run: number | null;
  readonly bootAttempt: string | null;
  readonly akThumbprint: string;
}

export interface OrderDesk {
  /** null for an unknown, expired or revoked token. Records the sign of life. */
  session(token: string): Promise<AgentSession | null>;
  /** The order that is queued for this session's boot; null when there is none. Never changes its state. What was taken is never offered again. */
  next(session: AgentSession): Promise<Order | null>;
  /** The order that this session took and has not reported; null for any other. No offer, unlike `next`: it is in hand already. */
  held(session: AgentSession, orderId: string): Promise<Order | null>;
  /** Resolves when something was queued for the session, when the session was revoked, or after `ms`. */
  waitForChange(session: AgentSession, ms: number, signal: AbortSignal): Promise<void>;
  /** Once; again by the same session the same answer. @throws order_not_found, order_closed */
  consume(session: AgentSession, orderId: string): Promise<ConsumeResponse>;
  /** @returns `stop` when the order was cancelled or its run is over */
  progress(session: AgentSession, orderId: string, progress: OrderProgress): Promise<'on' | 'stop'>;
  /** Always kept when well-formed; only the first report of an order moves anything (G1). @throws order_not_found */
  report(session: AgentSession, orderId: string, report: OrderReport): Promise<'taken' | 'repeated' | 'late'>;
}

/** A redeemed install code. */
export type Redemption =
  | { readonly kind: 'redeemed'; readonly deviceId: string; readonly nodeName: string; readonly run: number; readonly systemUuid: string; readonly first: boolean }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'spent' };

export interface SeedDesk {
  /**
   * First use starts the repeat window for the same UUID from the same address; queues `seed-fetched` once.
   * The code must belong to the UUID.
   */
  redeem(input: { code: string; systemUuid: string; sender: string }): Promise<Redemption>;
  /** As redeem, for POST /v1/seen; queues `seen` once. */
  seen(input: { code: string; systemUuid: string; sender: string }): Promise<Redemption>;
  /** What a seed is rendered from. */
  subject(deviceId: string, run: number): Promise<SeedSubject>;
}

/** The facts a seed template may use. */
export interface SeedSubject {
  readonly deviceId: string;
  readonly nodeName: string;
  readonly systemUuid: string;
  readonly run: number;
  /** `<node uuid>-<run number>`: new after a reprovision, same for a retried action (M3). */
  readonly instanceId: string;
  readonly site: string;
  readonly nodeClass: string;
  readonly payload: string;
  readonly seed: string | null;
  readonly phoneHome: boolean;
  readonly addresses: readonly string[];
  readonly macs: readonly string[];
  /** `secret:<name>`: that file of the secrets folder is the user-data, whatever the seed has. */
  readonly userData?: string | null;
  /** Public keys of people, each one line of authorized_keys. */
  readonly sshKeys?: readonly string[];
  /** The static network, where the site states one; else the system finds its own way (DHCP). */
  readonly network?: { readonly interfaces: readonly NodeInterface[]; readonly statement: NetworkStatement } | null;
}

/** Seeds rendered from the site's templates. @throws seed_invalid */
export interface SeedRenderer {
  /** What `GET /v1/seed/:uuid` serves: JSON for talos, nixos and alpine. */
  document(subject: SeedSubject): Promise<{ contentType: string; body: string }>;
  /** What a write-seed order places. Every path is relative to its place. */
  files(subject: SeedSubject, place: 'efi' | 'nocloud', baseUrl: string): Promise<SeedFile[]>;
}
