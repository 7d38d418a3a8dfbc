/**
 * TFTP as firmware speaks it (RFC 1350, 2347, 2348, 2349): a file by the npm package `tftp`, which is not our server's
 * code and so an independent check of it, and the size probe of EDK2, which that package cannot make.
 */
import { createHash } from 'node:crypto';
import { createSocket } from 'node:dgram';
import tftp, { type TransferStats } from 'tftp';

export interface TftpServerAddress {
  /** An IPv4 address, as DHCP's next-server is one. */
  readonly host: string;
  readonly port: number;
  /** Milliseconds until an unanswered packet is sent again; default 4000. */
  readonly timeoutMs?: number;
  /** Times an unanswered packet is sent in all; default 6. */
  readonly tries?: number;
}

export type TftpResult =
  | { readonly kind: 'got'; readonly bytes: number; readonly sha256: string }
  /** The server said no, in its own words. */
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'failed'; readonly why: string }
  | { readonly kind: 'aborted' };

export type TftpProbeResult = { readonly kind: 'size'; readonly bytes: number | null } | Exclude<TftpResult, { kind: 'got' }>;

/** EDK2's MTFTP4 on Ethernet: what fits an unfragmented packet. */
const BLOCK_SIZE = 1468;
const OPCODE = { rrq: 1, data: 3, error: 5, oack: 6 } as const;
/** RFC 2347: the transfer is given up during option negotiation. */
const ERROR_OPTIONS = 8;
/** As EDK2's PXE driver has them. */
const DEFAULTS = { timeoutMs: 4000, tries: 6 } as const;
/** The package takes a repeated OACK for an error, where firmware does not: then it asks anew. */
const REPEATED_OACK = 'EBADOP';
const FETCHES = 5;

/** The package marks what the conversation itself brought up; a time-out or a socket's error has no mark. */
const SERVER_MARK = '(Server) ';

/**
 * Fetches a file, hashing it as it comes; the bytes are not kept.
 * Settles only once its socket is closed. Never throws; ends by the retransmission limit, or at once when `signal` aborts.
 */
export async function fetchByTftp(request: TftpRequest): Promise<TftpResult> {
  for (let fetches = 1; ; fetches++) {
    const result = await fetchOnce(request);
    if (result !== REPEATED_OACK) return result;
    if (fetches === FETCHES) return { kind: 'failed', why: 'the answer to the request comes again and again' };
  }
}

interface TftpRequest {
  readonly server: TftpServerAddress;
  readonly file: string;
  readonly signal: AbortSignal;
  readonly maxBytes?: number;
}

function fetchOnce({ server, file, signal, maxBytes = 64 * 1024 * 1024 }: TftpRequest): Promise<TftpResult | typeof REPEATED_OACK> {
  const { timeoutMs, tries } = { ...DEFAULTS, ...server };
  return new Promise((resolve) => {
    if (signal.aborted) return resolve({ kind: 'aborted' });
    const hash = createHash('sha256');
    let bytes = 0;
    let announced: number | null = null;
    let ending: TftpResult | null = null;
    const client = tftp.createClient({ host: server.host, port: server.port, blockSize: BLOCK_SIZE, windowSize: 1, timeout: timeoutMs, retries: Math.max(1, tries - 1) });
    let stream: ReturnType<typeof client.createGetStream>;
    try {
      stream = client.createGetStream(file);
    } catch (error) {
      return resolve({ kind: 'failed', why: (error as Error).message });
    }
    const onAbort = (): void => giveUp({ kind: 'aborted' });
    const settle = (result: TftpResult | typeof REPEATED_OACK): void => {
      signal.removeEventListener('abort', onAbort);
      resolve(result);
    };
    // The package opens its socket some ticks after the call, and throws at an abort before that.
    const giveUp = (result: TftpResult, tries = 10): void => {
      ending ??= result;
      try {
        stream.abort('gave up');
      } catch {
        if (tries > 0) setImmediate(() => giveUp(result, tries - 1));
        else settle(result);
      }
    };
    signal.addEventListener('abort', onAbort, { once: true });
    stream.on('stats', (stats: TransferStats) => (announced = stats.size));
    stream.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      hash.update(chunk);
      if (bytes > maxBytes) giveUp({ kind: 'failed', why: `more than ${maxBytes} bytes` });
    });
    stream.on('abort', () => settle(ending ?? { kind: 'aborted' }));
    stream.on('error', (error: Error & { code?: string }) => {
      if (ending) return settle(ending);
      if (error.code === REPEATED_OACK && !error.message.startsWith(SERVER_MARK) && !signal.aborted) return settle(REPEATED_OACK);
      settle(error.message.startsWith(SERVER_MARK) ? { kind: 'refused', why: error.message.slice(SERVER_MARK.length, 300) } : { kind: 'failed', why: error.message.slice(0, 300) });
    });
    stream.on('end', () => {
      if (bytes === 0) return settle({ kind: 'failed', why: 'an empty file' });
      if (announced !== null && announced !== bytes) return settle({ kind: 'failed', why: `${bytes} bytes where ${announced} were announced` });
      settle({ kind: 'got', bytes, sha256: hash.digest('hex') });
    });
  });
}

const cString = (text: string): Buffer => Buffer.from(`${text}\0`, 'latin1');
const probeRequest = (file: string): Buffer => Buffer.concat([Buffer.from([0, OPCODE.rrq]), ...[file, 'octet', 'tsize', '0', 'blksize', String(BLOCK_SIZE)].map(cString)]);
const abortProbe = Buffer.concat([Buffer.from([0, OPCODE.error, 0, ERROR_OPTIONS]), cString('User aborted the transfer')]);

/** The size in an OACK; null when the server names none (RFC 2349). */
function sizeOf(oack: Buffer): number | null {
  const words = oack.toString('latin1', 2).split('\0');
  const at = words.findIndex((word, index) => index % 2 === 0 && word.toLowerCase() === 'tsize');
  const size = at < 0 ? '' : (words[at + 1] ?? '');
  return /^\d{1,12}$/.test(size) ? Number(size) : null;
}

/** What one packet tells the probe; null for one that tells nothing. */
function readProbeAnswer(packet: Buffer): TftpProbeResult | null {
  if (packet.length < 4) return null;
  const opcode = packet.readUInt16BE(0);
  if (opcode === OPCODE.oack) return { kind: 'size', bytes: sizeOf(packet) };
  // A server without options starts to send at once: there is a file, of a size not told.
  if (opcode === OPCODE.data) return { kind: 'size', bytes: null };
  if (opcode === OPCODE.error) return { kind: 'refused', why: packet.toString('latin1', 4).split('\0')[0]!.slice(0, 300) };
  return null;
}

/**
 * Asks for a file's size as EDK2 does before it fetches: an RRQ with `tsize`, given up with ERROR 8 once it is answered.
 * Settles only once its socket is closed; never throws.
 */
export function probeByTftp({ server, file, signal }: { server: TftpServerAddress; file: string; signal: AbortSignal }): Promise<TftpProbeResult> {
  const { timeoutMs, tries } = { ...DEFAULTS, ...server };
  return new Promise((resolve) => {
    if (signal.aborted) return resolve({ kind: 'aborted' });
    const socket = createSocket('udp4');
    let timer: NodeJS.Timeout | undefined;
    let sent = 0;
    let over = false;
    const onAbort = (): void => finish({ kind: 'aborted' });
    const finish = (result: TftpProbeResult): void => {
      if (over) return;
      over = true;
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      socket.close(() => resolve(result));
    };
    const send = (): void => {
      if (over) return;
      if (sent++ >= tries) return finish({ kind: 'failed', why: 'no answer' });
      socket.send(probeRequest(file), server.port, server.host);
      timer = setTimeout(send, timeoutMs);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    socket.on('error', (error) => finish({ kind: 'failed', why: error.message }));
    socket.on('message', (packet, from) => {
      const answer = over || from.address !== server.host ? null : readProbeAnswer(packet);
      if (!answer) return;
      if (answer.kind !== 'size') return finish(answer);
      socket.send(abortProbe, from.port, from.address, () => finish(answer));
    });
    socket.bind(0, send);
  });
}
