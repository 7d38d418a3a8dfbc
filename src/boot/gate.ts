/** The one gate: what a device that asks for anything bootable is given. Scripts, binaries and assets all ask here. */
import type { Artefact, BootDecision, BootDirectory, BootGate, BootRequest, BootSubject, UnknownMacPolicy } from '../contracts/boot.js';
import { isMetalflowError } from '../domain/errors.js';
import { isOneOf, WAIT_MENU_STATES } from '../domain/states.js';
import type { Logger } from '../telemetry/log.js';
import { within } from './patience.js';
import { plainAddress } from './sender.js';

/** Every reason a decision can carry; few and fixed, so that they can label a metric. */
export const BOOT_WHYS = ['permission_leased', 'permission_expired', 'no_permission', 'waits_for_request', 'unknown_device', 'address_of_earlier_boot', 'store_unavailable'] as const;
export type BootWhy = (typeof BOOT_WHYS)[number];

/** A firmware asks again after about a second and gives up after a few; the store has to be quicker or is taken as away. */
const LOOKUP_MS = 1500;

export interface BootCount {
  readonly artefact: Artefact;
  readonly answer: BootDecision['kind'];
  readonly why: string;
}

const UNKNOWN: Readonly<Record<UnknownMacPolicy, (why: BootWhy) => BootDecision>> = {
  menu: (why) => ({ kind: 'wait-menu', subject: null, why }),
  disk: (why) => ({ kind: 'boot-disk', subject: null, why }),
  silent: (why) => ({ kind: 'silent', subject: null, why }),
};

/**
 * The decision, given what the store knows. An unexpired permission is the only way into a run's boot; a device that waits
 * for a request is given the menu that attests and waits; an unknown one what the site's policy says; every other one its disk.
 * @param subject null for a device that no MAC and no address names
 */
export function decideBoot(subject: BootSubject | null, policy: UnknownMacPolicy, now: Date): BootDecision {
  if (!subject) return UNKNOWN[policy]('unknown_device');
  const { permission } = subject;
  // An instant that cannot be read compares as NaN, which is never later than now: expired.
  if (permission && Date.parse(permission.expiresAt) > now.getTime()) return { kind: 'run-boot', subject, permission, why: 'permission_leased' satisfies BootWhy };
  if (isOneOf(WAIT_MENU_STATES, subject.state)) return { kind: 'wait-menu', subject, why: 'waits_for_request' satisfies BootWhy };
  return { kind: 'boot-disk', subject, why: (permission ? 'permission_expired' : 'no_permission') satisfies BootWhy };
}

export interface BootGateDeps {
  readonly directory: BootDirectory;
  readonly unknownMac: UnknownMacPolicy;
  readonly now: () => Date;
  readonly log: Logger;
  /** Counts decisions; must not throw, and is not trusted not to. */
  readonly count?: (decision: BootCount) => void;
  /** Milliseconds the store may take. */
  readonly lookupMs?: number;
}

/** The gate over a store. `decide` never throws: a store that fails or hangs is answered with the device's own disk. */
export function createBootGate({ directory, unknownMac, now, log, count, lookupMs = LOOKUP_MS }: BootGateDeps): BootGate {
  async function lookUp(request: BootRequest): Promise<BootDecision> {
    try {
      // A MAC that is named but unknown is unknown: its sender's address may belong to another device by now.
      const find = async (): Promise<BootSubject | null> => (request.mac ? directory.byMac(request.mac) : directory.byAddress(plainAddress(request.sender)));
      const subject = await within(lookupMs, find);
      // The first program is the same for every machine, and asks for its script by its own MAC. A script or a kernel given to the
      // machine that has the address now would boot it as another, and tell the other's run that it was seen.
      if (subject?.byEarlierBoot && request.artefact !== 'binary') return UNKNOWN[unknownMac]('address_of_earlier_boot');
      return decideBoot(subject, unknownMac, now());
    } catch (error) {
      log.warn({ code: isMetalflowError(error) ? error.code : 'unexpected', reason: error instanceof Error ? error.message : String(error) }, 'the store did not answer the boot gate');
      return { kind: 'boot-disk', subject: null, why: 'store_unavailable' satisfies BootWhy };
    }
  }

  function record(request: BootRequest, decision: BootDecision): void {
    const line = {
      artefact: request.artefact,
      path: request.path.slice(0, 200),
      mac: request.mac,
      sender: request.sender,
      device: decision.subject?.deviceId ?? null,
      answer: decision.kind,
      why: decision.why,
      ...(decision.kind === 'run-boot' && { run: decision.permission.run, bootAttempt: decision.permission.bootAttempt }),
    };
    log[request.artefact === 'script' ? 'info' : 'debug'](line, 'boot gate');
    count?.({ artefact: request.artefact, answer: decision.kind, why: decision.why });
  }

  return {
    async decide(request) {
      const decision = await lookUp(request);
      try {
        record(request, decision);
      } catch {
        // A broken metric or log must not cost a node its boot.
      }
      return decision;
    },
  };
}
