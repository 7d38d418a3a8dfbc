/** One ipmitool command as an outcome: with the cipher suite that the BMC takes, asked again only while it surely had no effect. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { BmcCredentials } from '../../contracts/bmc.js';
import type { BmcAddress } from '../../contracts/device.js';
import { MetalflowError } from '../../domain/errors.js';
import type { Logger } from '../../telemetry/log.js';
import { ok, problem, type Outcome } from '../problem.js';
import type { ProgramEnd, RunProgram } from './program.js';
import { tellingLines, WORDS, type WordsRow } from './words.js';

export const IPMI_PORT = 623;

export interface Timeouts {
  /** Milliseconds of one run of ipmitool, whatever it does. */
  readonly runMs: number;
  /** Milliseconds of one method of the Bmc. Less than an activity may be silent (limit `activityTry`). */
  readonly methodMs: number;
  /** How often a command is tried that is a read or surely had no effect. */
  readonly tries: number;
  readonly pauseMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = { runMs: 12_000, methodMs: 20_000, tries: 2, pauseMs: 1000 };

/** UDP: ipmitool sends again after a second, twice over; a dead BMC costs six seconds. */
const RESEND = ['-N', '1', '-R', '2'] as const;
/** The least that chassis control and boot options ask for (IPMI 2.0 appendix G); an account of a higher level may open it too. */
const PRIVILEGE = 'OPERATOR';

export interface IpmitoolDeps {
  readonly address: BmcAddress;
  readonly credentials: BmcCredentials;
  readonly secret: string;
  readonly run: RunProgram;
  /** In order of preference; the next one is tried only when the BMC says that it does not know the last. */
  readonly cipherSuites: readonly number[];
  readonly timeouts: Timeouts;
  readonly log: Logger;
}

export interface Ipmitool {
  /**
   * @param success finds the answer in what ipmitool printed; only this makes a run good, never its exit
   * @throws MetalflowError bmc_tool_missing
   */
  ask<T>(args: readonly string[], kind: 'read' | 'command', success: (stdout: string) => T | null, signal: AbortSignal): Promise<Outcome<T>>;
}

export function createIpmitool({ address, credentials, secret, run, cipherSuites, timeouts, log }: IpmitoolDeps): Ipmitool {
  const port = address.port ?? IPMI_PORT;
  const shown = `${address.host}:${port}`;
  /** Index of the suite that the BMC has not refused. */
  let suite = 0;

  async function once<T>(args: readonly string[], success: (stdout: string) => T | null, signal: AbortSignal): Promise<{ outcome: Outcome<T>; row: WordsRow | null }> {
    for (;;) {
      const end = await run({
        args: ['-I', 'lanplus', '-H', address.host, '-p', String(port), '-U', credentials.username, '-E', '-L', PRIVILEGE, '-C', String(cipherSuites[suite]), ...RESEND, '-v', ...args],
        password: credentials.password, limitMs: timeouts.runMs, signal,
      });
      const read = readEnd(end, args, success);
      if (!read.row?.tryNextSuite || suite + 1 >= cipherSuites.length) return read;
      suite += 1;
      log.debug({ bmc: shown, suite: cipherSuites[suite] }, 'the BMC does not take the cipher suite: trying the next');
    }
  }

  function readEnd<T>(end: ProgramEnd, args: readonly string[], success: (stdout: string) => T | null): { outcome: Outcome<T>; row: WordsRow | null } {
    if (end.kind === 'missing') throw new MetalflowError('bmc_tool_missing', { program: 'ipmitool', package: 'ipmitool' });
    if (end.kind === 'not-started') return { outcome: problem('bmc_unreachable', end.why, 'none', { address: shown }), row: null };
    const answer = success(end.stdout);
    if (answer !== null) return { outcome: ok(answer), row: null };
    // Cut off, it may have been anywhere.
    if (end.kind === 'cut-off') return { outcome: problem('bmc_unreachable', end.why, 'possible', { address: shown }), row: null };
    const step = args.join(' ');
    const lines = tellingLines(`${end.stderr}\n${end.stdout}`);
    const text = lines.join('\n');
    const row = WORDS.find(({ says }) => says.test(text)) ?? null;
    const said = (lines.at(0) ?? `exit ${end.exit} without a word`).slice(0, 200);
    if (row === null) return { outcome: problem('bmc_answer_invalid', `${step}: ${said}`, 'possible', { address: shown }), row };
    const meaning = row.meaning ?? said;
    const why = row.code === 'bmc_auth_failed' ? `it refuses the credentials of ${secret}: ${meaning}` : row.code === 'bmc_unreachable' ? meaning : `${step}: ${meaning}`;
    return { outcome: problem(row.code, why, row.effect, { address: shown, secret, step, value: said, meaning }), row };
  }

  return {
    async ask(args, kind, success, signal) {
      for (let attempt = 1; ; attempt += 1) {
        if (signal.aborted) return problem('bmc_unreachable', 'given up: the time for this call is over', 'none', { address: shown });
        const { outcome, row } = await once(args, success, signal);
        const found = outcome.kind === 'problem' ? outcome.problem : null;
        log.debug({ bmc: shown, step: args.join(' '), attempt, ...(found && { code: found.code, why: found.why }) }, 'asked the BMC');
        if (!found || !row?.tryAgain || attempt >= timeouts.tries || !(kind === 'read' || found.effect === 'none')) return outcome;
        await sleep(timeouts.pauseMs, undefined, { signal }).catch(() => undefined);
      }
    },
  };
}
