/** A TFTP server of one file and bad habits, which remembers every packet's meaning. Blocks one by one; options as RFC 2347. */
import { createSocket, type RemoteInfo } from 'node:dgram';

export interface FakeTftp {
  readonly port: number;
  /** `rrq <file>` and `error <code>`, as they came. */
  readonly heard: string[];
  /** Resolves when a message that fits has come. */
  hears(pattern: RegExp): Promise<void>;
  close(): Promise<void>;
}

/**
 * `serve` sends the file; `refuse` answers ERROR 2 netboot-not-allowed; `silent` never answers; `stall` stops after one block;
 * `lie` announces a byte more than it sends; `garbage` answers with `packets`.
 */
export type TftpHabit = 'serve' | 'refuse' | 'silent' | 'stall' | 'lie' | 'garbage';

const packet = (opcode: number, value: number, ...rest: (string | Buffer)[]): Buffer => {
  const head = Buffer.alloc(4);
  head.writeUInt16BE(opcode, 0);
  head.writeUInt16BE(value, 2);
  return Buffer.concat([head, ...rest.map((part) => Buffer.from(part))]);
};

export async function startFakeTftp({ file, habit = 'serve', packets = [] }: { file: Buffer; habit?: TftpHabit; packets?: readonly Buffer[] }): Promise<FakeTftp> {
  const socket = createSocket('udp4');
  const heard: string[] = [];
  const waiting: { pattern: RegExp; resolve: () => void }[] = [];
  const blockSizes = new Map<number, number>();
  const note = (text: string): void => {
    heard.push(text);
    for (const { pattern, resolve } of waiting) if (pattern.test(text)) resolve();
  };
  const sendBlock = (number: number, to: RemoteInfo): void => {
    const size = blockSizes.get(to.port) ?? 512;
    if ((number - 1) * size > file.length) return;
    socket.send(packet(3, number, file.subarray((number - 1) * size, number * size)), to.port, to.address);
  };
  socket.on('message', (message, from) => {
    const opcode = message.readUInt16BE(0);
    if (opcode === 1) {
      const [name, , ...options] = message.toString('latin1', 2).split('\0');
      note(`rrq ${name}`);
      if (habit === 'silent') return;
      if (habit === 'refuse') return socket.send(packet(5, 2, 'netboot-not-allowed\0'), from.port, from.address);
      if (habit === 'garbage') return packets.forEach((garbage) => socket.send(garbage, from.port, from.address));
      const blockSize = options[options.indexOf('blksize') + 1]!;
      blockSizes.set(from.port, Number(blockSize));
      const size = file.length + (habit === 'lie' ? 1 : 0);
      socket.send(Buffer.concat([Buffer.from([0, 6]), Buffer.from(`blksize\0${blockSize}\0tsize\0${size}\0`)]), from.port, from.address);
    }
    if (opcode === 4) {
      const block = message.readUInt16BE(2);
      note(`ack ${block}`);
      if (habit !== 'stall' || block === 0) sendBlock(block + 1, from);
    }
    if (opcode === 5) note(`error ${message.readUInt16BE(2)}`);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return {
    port: socket.address().port,
    heard,
    hears: (pattern) => new Promise((resolve) => {
      if (heard.some((text) => pattern.test(text))) resolve();
      else waiting.push({ pattern, resolve });
    }),
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}
