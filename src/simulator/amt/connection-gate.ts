/** Whether anybody hears a connection: the ME may sleep, and the NIC that it shares with the host may be settling. */
import { takeOne, type AmtFaults } from './faults.js';

export interface ConnectionGate {
  /** A connection comes in. One that is not heard may have woken the ME. */
  connected(): 'heard' | 'lost';
  /** A request comes on a connection that stands. */
  requested(): 'heard' | 'lost';
}

export interface ConnectionGateDeps {
  readonly faults: AmtFaults;
  readonly now: () => Date;
  readonly isOff: () => boolean;
  /** Milliseconds since the epoch of the last power change; -Infinity before the first. */
  readonly changedAt: () => number;
}

export function createConnectionGate({ faults, now, isOff, changedAt }: ConnectionGateDeps): ConnectionGate {
  let heardAt = now().getTime();
  /** Connections until it is awake. */
  let toWake = 0;
  let asleep = false;

  const settling = (): boolean => faults.settlingMs > 0 && now().getTime() < changedAt() + faults.settlingMs;

  function sleeps(): boolean {
    if (!asleep && faults.sleepAfterIdleMs > 0 && isOff() && now().getTime() - Math.max(heardAt, changedAt()) >= faults.sleepAfterIdleMs) {
      asleep = true;
      toWake = faults.wakeConnections;
    }
    if (asleep && (toWake <= 0 || !isOff())) asleep = false;
    if (asleep) toWake -= 1;
    return asleep;
  }

  function hear(): 'heard' {
    heardAt = now().getTime();
    return 'heard';
  }

  return {
    connected: () => (takeOne(faults, 'sleepFirstN') || settling() || sleeps() ? 'lost' : hear()),
    requested: () => (settling() ? 'lost' : hear()),
  };
}
