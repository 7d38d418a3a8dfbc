/** Counts what reached the AMT; on file too when asked, so that commands can be counted across the deaths of their senders. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';

/** One RequestPowerStateChange that got past the credentials. */
export interface PowerCommand {
  readonly at: string;
  /** What was asked: 2 on, 8 off, 5 cycle … */
  readonly value: number;
  /** What AMT made of it; null when the connection ended before it was looked at. */
  readonly returnValue: number | null;
  /** Whether the answer was thrown away. */
  readonly answerLost: boolean;
}

export interface AmtCounts {
  /** The last thousand. */
  readonly powerCommands: readonly PowerCommand[];
  /** How often each value was asked for, of all. */
  readonly byValue: Readonly<Record<number, number>>;
  /** Other calls with credentials: `Get AMT_BootSettingData`, `Put AMT_BootSettingData`, `ChangeBootOrder` …, in order: the last thousand. */
  readonly calls: readonly string[];
  readonly requests: number;
  readonly refusedLogins: number;
  /** The most requests that were under way at the same time. */
  readonly maxInFlight: number;
}

export interface Journal {
  powerCommand(command: PowerCommand): void;
  call(name: string): void;
  loginRefused(): void;
  /** @returns what ends the request */
  requestBegins(): () => void;
  inFlight(): number;
  counts(): AmtCounts;
  close(): void;
}

/** Calls remembered; a long-lived simulator must not grow. */
const CALLS_KEPT = 1000;

/** @param file JSON lines, one a power command, on the disk before it is answered */
export function createJournal(file?: string): Journal {
  const handle = file === undefined ? null : openSync(file, 'a', 0o644);
  const powerCommands: PowerCommand[] = [];
  const calls: string[] = [];
  const byValue: Record<number, number> = {};
  let [requests, refusedLogins, inFlight, maxInFlight] = [0, 0, 0, 0];
  const keep = <T>(list: T[], item: T): void => {
    list.push(item);
    if (list.length > CALLS_KEPT) list.shift();
  };
  return {
    powerCommand(command) {
      keep(powerCommands, command);
      byValue[command.value] = (byValue[command.value] ?? 0) + 1;
      if (handle === null) return;
      writeSync(handle, `${JSON.stringify(command)}\n`);
      fsyncSync(handle);
    },
    call: (name) => keep(calls, name),
    loginRefused: () => void (refusedLogins += 1),
    requestBegins() {
      requests += 1;
      inFlight += 1;
      maxInFlight = Math.max(maxInFlight, inFlight);
      return () => void (inFlight -= 1);
    },
    inFlight: () => inFlight,
    counts() {
      return { powerCommands: [...powerCommands], byValue: { ...byValue }, calls: [...calls], requests, refusedLogins, maxInFlight };
    },
    close() {
      if (handle !== null) closeSync(handle);
    },
  };
}
