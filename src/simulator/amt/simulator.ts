/** An Intel AMT, on plain HTTP or on TLS, that drives a simulated machine, with the faults of the field as switches. */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { MetalflowError } from '../../domain/errors.js';
import type { PowerName } from '../../domain/power.js';
import type { Logger } from '../../telemetry/log.js';
import { createAnswerWriter } from './answers.js';
import { createBootOrder, type ArmedBoot } from './boot-order.js';
import { createClasses } from './classes.js';
import { createConnectionGate } from './connection-gate.js';
import { createDigestGuard } from './digest-guard.js';
import { NO_FAULTS, takeOne, type AmtFaults } from './faults.js';
import { createJournal, type AmtCounts } from './journal.js';
import { createOperations, requestedPower, type Performed } from './operations.js';
import { openListener, type AmtTls } from './listener.js';
import { createPowerState, isOff, type SimulatedMachine } from './power-state.js';
import { readRequest } from './request.js';
import { respell } from './spelling.js';
import { sendLogonFailed, sendPage, sendSoap } from './wire.js';
import { XmlProblem } from './xml.js';

export type { AmtTls } from './listener.js';

export interface AmtSimulatorOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free one. */
  readonly port?: number;
  /** Without it, plain HTTP. */
  readonly tls?: AmtTls;
  /** Default admin. */
  readonly username?: string;
  /** Default `P@ssw0rd1`. */
  readonly password?: string;
  /** Text form; answered as PlatformGUID. */
  readonly machineUuid: string;
  /** Default off-soft. */
  readonly initialPower?: PowerName;
  readonly faults?: Partial<AmtFaults>;
  /** The machine behind it. */
  readonly power: SimulatedMachine;
  readonly log: Logger;
  readonly now?: () => Date;
  /** Power commands are appended here as JSON lines, synchronously. */
  readonly journalFile?: string;
  /** Overrides of AMT_BootSettingData, e.g. what a careless tool left behind. */
  readonly bootSettings?: Readonly<Record<string, string>>;
}

export interface AmtSimulator {
  readonly host: string;
  readonly port: number;
  /** `http://host:port/wsman`, with TLS `https:` */
  readonly url: string;
  readonly machineUuid: string;
  /** Merges; resolves when the listener is as `unreachable` and `powerLost` say. */
  setFaults(change: Partial<AmtFaults>): Promise<void>;
  /** A copy. */
  faults(): AmtFaults;
  counts(): AmtCounts;
  /** What the machine really is, whatever a read would show. */
  power(): PowerName;
  /** A person presses the button. Uses up what is armed, as any boot does. @throws MetalflowError `request_refused` without mains */
  setPower(power: PowerName): void;
  armed(): ArmedBoot;
  /** Resolves when all power effects so far have been carried out. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

/** Bytes of a request; AMT itself takes little more. */
const LARGEST_REQUEST = 64 * 1024;

/** @throws MetalflowError `port_in_use` when it cannot listen */
export async function startAmtSimulator(options: AmtSimulatorOptions): Promise<AmtSimulator> {
  const { machineUuid, power: machine, log, now = (): Date => new Date(), host = '127.0.0.1' } = options;
  const faults: AmtFaults = { ...NO_FAULTS, ...options.faults };
  if (isGone(faults)) throw new MetalflowError('setting_invalid', { name: 'faults', why: 'set unreachable and powerLost after the start: a simulator takes its port first' });
  const realm = createHash('md5').update(machineUuid).digest('hex').toUpperCase();
  const journal = createJournal(options.journalFile);
  const write = createAnswerWriter();
  const bootOrder = createBootOrder({ faults, initial: options.bootSettings });
  const guard = createDigestGuard({ username: options.username ?? 'admin', password: options.password ?? 'P@ssw0rd1', realm, faults });

  // The machine obeys in order, however long each step takes it; AMT does not wait for it.
  let effects: Promise<void> = Promise.resolve();
  const power = createPowerState({
    initial: options.initialPower ?? 'off-soft', bootOrder, faults, now,
    effect(effect) {
      effects = effects
        .then(() => (effect.kind === 'on' ? machine.powerOn(effect.boot) : machine.powerOff()))
        .catch((error: unknown) => log.error({ err: error, effect: effect.kind }, 'the simulated machine failed'));
    },
  });
  const operations = createOperations({ classes: createClasses({ machineUuid, realm, power, bootOrder, faults, host }), power, bootOrder, faults, write, now });

  const gate = createConnectionGate({ faults, now, isOff: () => isOff(power.actual()), changedAt: () => power.changedAt() });

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (gate.requested() === 'lost' || (faults.oneAtATime && journal.inFlight() > 1)) return void response.destroy();
    const body = await readAll(request);
    if (body === null) return void response.destroy();
    if (request.url?.replace(/^https?:\/\/[^/]+/, '') !== '/wsman') return sendPage(response, 404, 'Not found', 'There is nothing here.', faults);
    if (request.method !== 'POST') return sendPage(response, 405, 'Method not allowed', 'Use POST.', faults);
    if (!guard.admits({ method: 'POST', authorization: request.headers.authorization, body })) {
      if (request.headers.authorization) journal.loginRefused();
      return sendLogonFailed(response, guard.challenge(), faults);
    }
    const text = body.toString('utf8');
    if (takeOne(faults, 'dropBefore')) {
      const value = powerAsked(text);
      if (value !== null) journal.powerCommand({ at: now().toISOString(), value, returnValue: null, answerLost: true });
      return void response.destroy();
    }
    const performed = perform(text);
    const lost = performed.power ? takeOne(faults, 'acceptThenDrop') || faults.dropAnswersOf === performed.call : faults.dropAnswersOf === performed.call.split(' ')[0];
    if (performed.power) journal.powerCommand({ at: now().toISOString(), ...performed.power, answerLost: lost });
    journal.call(performed.call);
    log.debug({ call: performed.call, power: performed.power }, 'asked');
    if (lost) return void response.destroy();
    if (faults.answerDelayMs > 0) await delay(response, faults.answerDelayMs);
    if (!faults.silent && !response.destroyed) sendSoap(response, { status: performed.answer.status, xml: respell(performed.answer.xml, faults) }, faults);
  }

  function perform(text: string): Performed {
    try {
      const request = readRequest(text);
      return request ? operations.perform(request) : { answer: write.fault(null, 'SchemaValidationError'), call: 'no envelope' };
    } catch (error) {
      if (error instanceof XmlProblem) return { answer: write.fault(null, 'SchemaValidationError'), call: 'no XML' };
      log.error({ err: error }, 'request failed');
      return { answer: write.fault(null, 'InternalError'), call: 'failure' };
    }
  }

  function powerAsked(text: string): number | null {
    try {
      const request = readRequest(text);
      return request && requestedPower(request);
    } catch {
      return null;
    }
  }

  const listener = await openListener({
    host, port: options.port ?? 0, tls: options.tls, connected: () => gate.connected(),
    serve(request, response) {
      const ended = journal.requestBegins();
      response.once('close', ended);
      serve(request, response).catch((error: unknown) => {
        log.debug({ err: error }, 'connection failed');
        response.destroy();
      });
    },
  });
  const { port } = listener;

  return {
    host,
    port,
    url: `${options.tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}/wsman`,
    machineUuid,
    async setFaults(change) {
      const lost = change.powerLost === true && !faults.powerLost;
      Object.assign(faults, change);
      if (lost) power.press('off-hard');
      await listener.set(isGone(faults) ? 'shut' : 'open');
    },
    faults: () => ({ ...faults }),
    counts: () => journal.counts(),
    power: () => power.actual(),
    setPower(to) {
      if (faults.powerLost) throw new MetalflowError('request_refused', { request: to, state: 'powerLost', why: 'the machine has no mains' });
      power.press(to);
    },
    armed: () => bootOrder.armed(),
    settled: () => effects,
    async close() {
      await listener.set('shut');
      journal.close();
    },
  };
}

/** Ends early when nobody waits for the answer any more. */
async function delay(response: ServerResponse, ms: number): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  if (!response.destroyed) await sleep(ms, undefined, { signal: gone.signal }).catch(() => undefined);
}

const isGone = ({ unreachable, powerLost }: AmtFaults): boolean => unreachable || powerLost;

/** null when it is too large; the rest is then not read. */
async function readAll(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LARGEST_REQUEST) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
