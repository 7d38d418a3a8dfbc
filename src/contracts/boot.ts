/** What the boot plane knows and decides. It answers from the store only. */
import type { LifecycleState } from '../domain/states.js';

/** How unknown MACs are answered, a site's policy (METALFLOW_UNKNOWN_MAC). */
export const UNKNOWN_MAC_POLICIES = ['menu', 'disk', 'silent'] as const;
export type UnknownMacPolicy = (typeof UNKNOWN_MAC_POLICIES)[number];

/** A leased netboot permission. */
export interface Permission {
  readonly run: number;
  readonly bootAttempt: string;
  /** ISO instant; past means no. */
  readonly expiresAt: string;
}

export interface BootSubject {
  readonly deviceId: string;
  readonly name: string;
  readonly state: LifecycleState;
  readonly systemUuid: string | null;
  readonly permission: Permission | null;
  /**
   * Only an address that named this device before the boot attempt that is open now (or long ago, when none is) says that it asks: the
   * address may be another machine's by now.
   */
  readonly byEarlierBoot?: true;
}

/** The store, seen from the boot plane. Any method may throw `store_unavailable`; the answer then is "boot your disk". */
export interface BootDirectory {
  byMac(mac: string): Promise<BootSubject | null>;
  /** NetBox's address of an interface, or the address of the last request that named a MAC. IPv4 text, no `::ffff:`. */
  byAddress(address: string): Promise<BootSubject | null>;
  /**
   * Remembers which MAC spoke from an address: of a declared MAC its newest address, so there are never more rows than declared MACs.
   * @param signal aborted: nobody waits for it any more, and what is not written yet never is
   */
  rememberSender(mac: string, address: string, signal?: AbortSignal): Promise<void>;
  /** A MAC that nobody declared speaks from the address: whoever spoke from it before does so no more. */
  forgetSender(address: string): Promise<void>;
  /**
   * Records that the gate served this attempt its script; the first time only, it becomes a `boot-seen` in the outbox.
   * @param signal aborted: the node was given its disk instead, and what is not written yet never is
   */
  recordBootSeen(bootAttempt: string, signal?: AbortSignal): Promise<void>;
}

/** An offer is the boot file's name in an answer of the proxy DHCP. */
export type Artefact = 'binary' | 'script' | 'asset' | 'offer';
export interface BootRequest {
  readonly artefact: Artefact;
  /** Normalised, when the request named one. */
  readonly mac: string | null;
  readonly sender: string;
  readonly path: string;
}

export type BootDecision =
  | { readonly kind: 'run-boot'; readonly subject: BootSubject; readonly permission: Permission; readonly why: string }
  | { readonly kind: 'wait-menu'; readonly subject: BootSubject | null; readonly why: string }
  | { readonly kind: 'boot-disk'; readonly subject: BootSubject | null; readonly why: string }
  | { readonly kind: 'silent'; readonly subject: BootSubject | null; readonly why: string };

/** The one gate every boot artefact asks. Never throws: what cannot be decided is `boot-disk`. */
export interface BootGate {
  decide(request: BootRequest): Promise<BootDecision>;
}
