/**
 * One conversation with one BMC at a time, across all workers: an expiring lease in the store. Each request to the BMC has a limit
 * that is shorter than the lease, and begins only while the lease outlasts it; so a request is never in flight beyond its lease,
 * whatever becomes of this process, and whoever takes the lease over talks to a BMC that nobody else talks to.
 */
import { MetalflowError } from '../domain/errors.js';
import { REQUEST_SHARE_OF_LEASE } from '../domain/limits.js';
import type { Bmc, BmcCapabilities, BmcFactory, BmcFinding, BmcIdentity, CommandResult } from '../contracts/bmc.js';
import { BMC_OWN_PORTS, type BmcAddress } from '../contracts/device.js';
import type { BmcLeaseTerms, PowerStore } from '../contracts/store.js';
import type { Caller, Clock } from './caller.js';

/** A BMC as its lease holder may use it. No request throws for what the BMC does; each throws `bmc_busy` when the lease was lost, and the cancellation once there is one. */
export interface LeasedBmc extends Omit<Bmc, 'powerOn' | 'powerOff' | 'close'> {
  /** null for a node without a BMC: there is no wire to keep others off. */
  readonly lease: BmcLeaseTerms | null;
  /**
   * Sends one power command under the lease that its intent renewed.
   * @param renewedAt clock time before that renewal was asked for; when too much of the lease has passed since, nothing is sent
   */
  send(command: 'on' | 'off', renewedAt: number): Promise<CommandResult>;
}

export interface BmcLeases {
  /** Waits for the lease. @throws bmc_auth_failed, device_invalid as the factory; bmc_busy when the lease was lost, or the caller's patience is over */
  withBmc<R>(address: BmcAddress, work: (bmc: LeasedBmc) => Promise<R>): Promise<R>;
  /** @returns `busy` when somebody else talks to the BMC now */
  withIdleBmc<R>(address: BmcAddress, work: (bmc: LeasedBmc) => Promise<R>): Promise<R | 'busy'>;
}

export interface BmcLeasesDeps {
  readonly bmc: BmcFactory;
  readonly power: Pick<PowerStore, 'lock' | 'unlock'>;
  readonly lockSeconds: number;
  readonly clock: Clock;
  readonly caller: Caller;
}

/** One BMC, however its address is spelt: the name of its lease. */
export const bmcKey = (address: BmcAddress): string => (address.port && BMC_OWN_PORTS[address.type].includes(address.port) ? address.host : bmcName(address)).toLowerCase();
export const bmcName = (address: BmcAddress): string => (address.port ? `${address.host}:${address.port}` : address.host || address.type);

const LOOK_AGAIN_MS = 250;
const BEATS_A_LEASE = 6;
/** A store that stalls for so long that the lease it renewed is nearly over is asked again, so often. */
const RENEWALS = 3;

export function createBmcLeases({ bmc: factory, power, lockSeconds, clock, caller }: BmcLeasesDeps): BmcLeases {
  const leaseMs = lockSeconds * 1000;
  const requestMs = leaseMs * REQUEST_SHARE_OF_LEASE;

  async function converse<R>(address: BmcAddress, lease: BmcLeaseTerms | null, lockedAt: number, work: (bmc: LeasedBmc) => Promise<R>): Promise<R> {
    let heldUntil = lockedAt + leaseMs;
    let open: Bmc | null = null;
    const hangUp = async (): Promise<void> => {
      const former = open;
      open = null;
      await former?.close();
    };
    /** A conversation that was hung up on because nobody wants it any more stays so. */
    const cancelled = caller.cancelled();
    async function opened(): Promise<Bmc> {
      cancelled.throwIfAborted();
      open ??= await factory.open(address);
      cancelled.throwIfAborted();
      return open;
    }
    const hasTime = (): boolean => lease === null || heldUntil - clock.now() >= requestMs;

    async function renew(): Promise<void> {
      for (let tries = 0; !hasTime() && tries < RENEWALS; tries++) {
        const askedAt = clock.now();
        if (!(await power.lock(lease!.bmc, lease!.holder, lockSeconds))) throw new MetalflowError('bmc_busy', { address: bmcName(address) });
        heldUntil = askedAt + leaseMs;
      }
      if (!hasTime()) throw new MetalflowError('bmc_busy', { address: bmcName(address) });
    }

    /** A request that outlives its limit is hung up on, and what comes of it is unknown. */
    async function limited<T>(request: (bmc: Bmc) => Promise<T>, late: T): Promise<T> {
      const bmc = await opened();
      let takeBack = (): void => undefined;
      const tooLate = new Promise<T>((resolve) => void (takeBack = clock.after(requestMs, () => resolve(late))));
      const answer = await Promise.race([request(bmc), tooLate]).finally(() => takeBack());
      if (answer === late) await hangUp();
      return answer;
    }

    const why = `no end within ${Math.round(requestMs / 1000)} s`;
    const reading = { kind: 'unknown', code: 'bmc_unreachable', why } as const;
    const leased: LeasedBmc = {
      address, lease,
      observePower: async () => (await renew(), limited((bmc) => bmc.observePower(), { ...reading })),
      machineUuid: async () => (await renew(), limited((bmc) => bmc.machineUuid(), { ...reading })),
      identify: async () => (await renew(), limited<BmcIdentity | null>((bmc) => bmc.identify(), null)),
      capabilities: async () => (await renew(), limited<BmcCapabilities | null>((bmc) => bmc.capabilities(), null)),
      diagnose: async (host) => (await renew(), limited<BmcFinding[]>((bmc) => bmc.diagnose(host), [{ about: 'version', version: null, result: 'unknown', found: why }])),
      bootOnceFromNetwork: async () => (await renew(), limited((bmc) => bmc.bootOnceFromNetwork(), { kind: 'unknown', why })),
      async send(command, renewedAt) {
        heldUntil = renewedAt + leaseMs;
        if (cancelled.aborted) return { kind: 'not-sent', why: 'given up before it was sent' };
        if (!hasTime()) return { kind: 'not-sent', why: 'the lease on the BMC was nearly over' };
        return limited((bmc) => (command === 'on' ? bmc.powerOn() : bmc.powerOff()), { kind: 'unknown', why });
      },
    };
    const stopBeating = beat(address);
    const letGo = (): void => void hangUp().catch(() => undefined);
    cancelled.addEventListener('abort', letGo, { once: true });
    try {
      // Cancelled while it waited for the lease, it never hears of it: look.
      await opened();
      return await work(leased);
    } finally {
      stopBeating();
      cancelled.removeEventListener('abort', letGo);
      await hangUp();
      if (lease) await power.unlock(lease.bmc, lease.holder);
    }
  }

  /** One request may outlast the silence after which the caller is given up. */
  function beat(address: BmcAddress): () => void {
    const say = caller.teller();
    let stop = (): void => undefined;
    const again = (): void => {
      stop = clock.after(leaseMs / BEATS_A_LEASE, () => {
        say({ talksTo: bmcName(address) });
        again();
      });
    };
    again();
    return () => stop();
  }

  const termsOf = (address: BmcAddress): BmcLeaseTerms => ({ bmc: bmcKey(address), holder: caller.drawHolder(), seconds: lockSeconds });

  return {
    async withBmc(address, work) {
      if (address.type === 'manual') return converse(address, null, clock.now(), work);
      const lease = termsOf(address);
      const patientUntil = clock.now() + (caller.patienceSeconds ?? Infinity) * 1000;
      for (;;) {
        const askedAt = clock.now();
        if (await power.lock(lease.bmc, lease.holder, lockSeconds)) return converse(address, lease, askedAt, work);
        if (clock.now() >= patientUntil) throw new MetalflowError('bmc_busy', { address: bmcName(address) });
        caller.tell({ waitingFor: `another conversation with the BMC ${lease.bmc}` });
        await clock.pause(LOOK_AGAIN_MS);
      }
    },
    async withIdleBmc(address, work) {
      const lease = termsOf(address);
      const askedAt = clock.now();
      return (await power.lock(lease.bmc, lease.holder, lockSeconds)) ? converse(address, lease, askedAt, work) : 'busy';
    },
  };
}
