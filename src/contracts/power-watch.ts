/** The power watch: what it walks over, what it keeps, what is shown of it. */
import { z } from 'zod';
import { POWER_WORDS, type PowerWord } from '../domain/power.js';
import type { PowerDrift } from '../domain/power-expected.js';
import type { LifecycleState } from '../domain/states.js';
import type { BmcAddress } from './device.js';

/** A node of a site whose BMC can be read, and may be. */
export interface WatchedNode {
  readonly deviceId: string;
  readonly name: string;
  readonly bmc: BmcAddress;
  readonly systemUuid: string | null;
  readonly power: PowerWord;
}

/** What an observation changed. */
export interface PowerNews {
  /** The lifecycle has not been told this power yet; null when there is nothing to tell. */
  readonly tell: PowerWord | null;
  readonly drift: PowerDrift | null;
  readonly driftChanged: boolean;
}

/** Of one walk. `busy`: somebody talked to the BMC, which is observation enough, or this worker had no turn for it. */
export interface PowerWalk {
  readonly observed: number;
  readonly unknown: number;
  readonly busy: number;
  readonly drifted: number;
}

export interface WatchedPower {
  readonly deviceId: string;
  readonly name: string;
  readonly state: LifecycleState;
  readonly power: PowerWord;
  readonly drift: PowerDrift | null;
  /** When the BMC last answered; null when never, or when it has no BMC that could. */
  readonly bmcSeenAt: string | null;
  /** Whether its BMC has to answer: it has one, and the state is neither an end nor maintenance. */
  readonly hasToAnswer: boolean;
}

export interface PowerWatchStore {
  /** Those whose last observation is the oldest come first: a walk that is cut short begins there the next time. */
  nodes(site: string): Promise<WatchedNode[]>;
  /** Keeps what was read, and judges it. A change of the drift is one line in the journal, in the same transaction. */
  saw(deviceId: string, power: PowerWord): Promise<PowerNews>;
  told(deviceId: string, power: PowerWord): Promise<void>;
  /** A watch of this site is wanted at this pace; null: no longer. */
  plan(site: string, everySeconds: number | null): Promise<void>;
  walked(site: string): Promise<void>;
  /** Each site that is to be watched. `walkedAt` null: not once yet. */
  plans(): Promise<{ site: string; everySeconds: number; since: string; walkedAt: string | null }[]>;
  all(): Promise<WatchedPower[]>;
}

/** What the watch tells a lifecycle, when it changed. */
export const PowerTold = z.object({ power: z.enum(POWER_WORDS) });

export interface PowerWatchInput {
  readonly site: string;
  /** BMCs talked to at the same time. */
  readonly atOnce: number;
  /** Longest random wait before each BMC, so that a rack is not asked in one breath. */
  readonly jitterSeconds: number;
  readonly settlingSeconds: number;
}
