/** An Intel AMT, on plain HTTP or on TLS, that drives a simulated machine, with the faults of the field as switches. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SecureVersion } from 'node:tls';
import { MetalflowError } from '../../domain/errors.js';
import type { PowerName } from '../../domain/power.js';
import type { Logger } from '../../telemetry/log.js';
import { createAnswerWriter } from './answers.js';
import { createBootOrder, type ArmedBoot } from './boot-order.js';
import { createClasses } from './classes.js';
import { createDigestGuard } from './digest-guard.js';
import { NO_FAULTS, takeOne, type AmtFaults } from './faults.js';
import { createJournal, type AmtCounts } from './journal.js';
import { createOperations, requestedPower, type Performed } from './operations.js';
import { createPowerState, type SimulatedMachine } from './power-state.js';
import { readRequest } from './request.js';
import { sendLogonFailed, sendPage, sendSoap } from './wire.js';
import { XmlProblem } from './xml.js';

/** The wire of port 16993. A version below 1.2 is spoken as an old ME does: with the ciphers and key sizes of its time. */
export interface AmtTls {
  /** PEM. */
  readonly key: string;
  /** PEM. */
  readonly cert: string;
  readonly minVersion?: SecureVersion;
  readonly maxVersion?: SecureVersion;
}

export interface AmtSimulatorOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free one. */
  readonly port?: number;
  /** Without it, plain HTTP. */
  readonly tls?: AmtTls;
  /** Default admin. */
  readonly username?: string;
  /** Default `P@ssw0rd1!`. */
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
  /** Answers in chunks (default) or with Content-Length. */
  readonly chunked?: boolean;
  /** Overrides of AMT_BootSettingData, e.g. what a careless tool left behind. */
  readonly bootSettings?: Readonly<Record<string, string>>;
}

export interface AmtSimulator {
  readonly host: string;
  readonly port: number;
  /** `http://host:port/wsman`, with TLS `https:` */
  readonly url: string;
  /** Merges; resolves when the listener is as `unreachable` says. */
  setFaults(change: Partial<AmtFaults>): Promise<void>;
  counts(): AmtCounts;
  /** What the machine really is, whatever a read would show. */
  power(): PowerName;
  /** A person presses the button. Uses up what is armed, as any boot does. */
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
  const { machineUuid, power: machine, log, now = (): Date => new Date(), chunked = true, host = '127.0.0.1' } = options;
  const faults: AmtFaults = { ...NO_FAULTS, ...options.faults };
  if (faults.unreachable) throw new MetalflowError('setting_invalid', { name: 'faults.unreachable', why: 'set it after the start: a simulator takes its port first' });
  const realm = createHash('md5').update(machineUuid).digest('hex').toUpperCase();
  const journal = createJournal(options.journalFile);
  const write = createAnswerWriter();
  const bootOrder = createBootOrder(options.bootSettings);
  const guard = createDigestGuard({ username: options.username ?? 'admin', password: options.password ?? 'P@ssw0rd1!', realm, faults });

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

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readAll(request);
    if (body === null) return void response.destroy();
    if (request.url?.replace(/^https?:\/\/[^/]+/, '') !== '/wsman') return sendPage(response, 404, 'Not found', 'There is nothing here.');
    if (request.method !== 'POST') return sendPage(response, 405, 'Method not allowed', 'Use POST.');
    if (!guard.admits({ method: 'POST', authorization: request.headers.authorization, body })) {
      if (request.headers.authorization) journal.loginRefused();
      return sendLogonFailed(response, guard.challenge());
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
    if (faults.answerDelayMs > 0) await sleep(faults.answerDelayMs);
    if (!faults.silent && !response.destroyed) sendSoap(response, performed.answer, chunked, faults.answerAs);
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

  const sockets = new Set<Socket>();
  const server = createWire(options.tls, (request, response) => {
    const ended = journal.requestBegins();
    response.once('close', ended);
    serve(request, response).catch((error: unknown) => {
      log.debug({ err: error }, 'connection failed');
      response.destroy();
    });
  });
  server.maxConnections = 64;
  server.on('connection', (socket) => {
    if (takeOne(faults, 'sleepFirstN')) return void socket.destroy();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
  });
  server.on('clientError', (_error, socket) => void socket.destroy());

  await listen(server, host, options.port ?? 0);
  const { port } = server.address() as AddressInfo;

  async function stopListening(): Promise<void> {
    if (!server.listening) return;
    const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
    for (const socket of sockets) socket.destroy();
    await closed;
  }

  return {
    host,
    port,
    url: `${options.tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}/wsman`,
    async setFaults(change) {
      Object.assign(faults, change);
      if (faults.unreachable) await stopListening();
      else if (!server.listening) await listen(server, host, port);
    },
    counts: () => journal.counts(),
    power: () => power.actual(),
    setPower: (to) => power.press(to),
    armed: () => bootOrder.armed(),
    settled: () => effects,
    async close() {
      await stopListening();
      journal.close();
    },
  };
}

function createWire(tls: AmtTls | undefined, serve: RequestListener): Server {
  const limits = { requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 5_000 };
  if (!tls) return createServer(limits, serve);
  const old = tls.minVersion === 'TLSv1' || tls.minVersion === 'TLSv1.1';
  return createTlsServer({ ...limits, ...tls, handshakeTimeout: 10_000, ...(old && { ciphers: 'DEFAULT:@SECLEVEL=0' }) }, serve);
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const refused = (error: NodeJS.ErrnoException): void => reject(new MetalflowError('port_in_use', { what: 'the AMT simulator', address: `${host}:${port}`, why: error.code ?? error.message }));
    server.once('error', refused);
    server.listen(port, host, () => {
      server.off('error', refused);
      resolve();
    });
  });
}

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
