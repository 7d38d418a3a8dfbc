import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { SyslogLine } from '../../src/boot/syslog/parse.js';
import { startSyslogReceiver, type SyslogLimits, type SyslogReceiver } from '../../src/boot/syslog/receiver.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { NOW } from '../support/boot-directory.js';
import { seededRandom } from '../support/random.js';
import { until } from '../support/until.js';

let node: Socket;
let receiver: SyslogReceiver;
let lines: SyslogLine[];
beforeEach(async () => {
  lines = [];
  node = createSocket('udp4');
  node.bind(0, '127.0.0.1');
  await once(node, 'listening');
});
afterEach(async () => {
  node.close();
  await receiver.close();
});

const start = async (sink: (line: SyslogLine) => void | Promise<void> = (line) => void lines.push(line), limits: Partial<SyslogLimits> = {}): Promise<void> => {
  receiver = await startSyslogReceiver({ address: '127.0.0.1', port: 0, sink, now: () => NOW, log: silentLogger(), limits });
};
const say = (text: string | Buffer): Promise<void> => new Promise((resolve) => node.send(text, receiver.port, '127.0.0.1', () => resolve()));

describe('the syslog receiver', () => {
  test('gives what a node says to the sink, with its sender', async () => {
    await start();
    await say("<34>Oct 11 22:14:15 mymachine su: 'su root' failed");
    await until('one line is read', () => lines.length === 1);
    expect(lines[0]).toEqual({ at: '2026-10-11T22:14:15.000Z', sender: '127.0.0.1', host: 'mymachine', app: 'su', messageId: null, severity: 2, facility: 4, text: "'su root' failed" });
  });

  test('tells that its socket failed, and hears nodes again once that is open anew', async () => {
    const opened = jest.spyOn(jest.requireActual<typeof import('node:dgram')>('node:dgram'), 'createSocket');
    receiver = await startSyslogReceiver({ address: '127.0.0.1', port: 0, sink: (line) => void lines.push(line), now: () => NOW, log: silentLogger(), lookAgainMs: 5 });
    const [socket] = opened.mock.results.map(({ value }) => value as Socket);
    opened.mockRestore();
    expect(receiver.listener()).toEqual({ state: 'listening', address: `127.0.0.1:${receiver.port}` });
    socket!.emit('error', new Error('read ENOBUFS'));
    expect(receiver.listener()).toEqual({ state: 'failed', why: `127.0.0.1:${receiver.port}: read ENOBUFS` });
    await until('it listens', () => receiver.listener().state === 'listening');
    await say('<30>x: back');
    await until('one line is read', () => lines.length === 1);
  });

  test('goes on when the sink fails', async () => {
    let failing = true;
    await start((line) => {
      if (failing) throw new Error('store away');
      lines.push(line);
    });
    await say('<30>x: lost');
    await until('one has failed', () => receiver.stats().failed === 1);
    failing = false;
    await say('<30>x: kept');
    await until('one line is read', () => lines.length === 1);
    expect(lines[0]!.text).toBe('kept');
  });

  test('drops lines that a slow sink cannot take, and those beyond a sender\'s share', async () => {
    await start(() => new Promise<never>(() => {}), { inHand: 3 });
    for (let line = 0; line < 5; line++) await say(`<30>x: ${line}`);
    await until('all are received', () => receiver.stats().received === 5);
    expect(receiver.stats()).toEqual({ received: 5, dropped: 2, failed: 0 });
    await receiver.close();
    await start(undefined, { perSenderSecond: 2 });
    for (let line = 0; line < 5; line++) await say(`<30>x: ${line}`);
    await until('all are received', () => receiver.stats().received === 5);
    expect(lines.map(({ text }) => text)).toEqual(['0', '1']);
  });

  test('survives thousands of broken datagrams', async () => {
    await start(undefined, { perSenderSecond: 10_000 });
    const random = seededRandom(514);
    const seeds = ['<34>1 2003-10-11T22:14:15.003Z h a - ID [x y="z"] t', '<34>Oct 11 22:14:15 h su: t', ''];
    for (let sent = 0; sent < 2000; sent++) {
      const bytes = Buffer.from(seeds[sent % 3] || Buffer.from(Array.from({ length: Math.floor(random() * 80) }, () => Math.floor(random() * 256))));
      if (bytes.length > 0) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      await say(bytes);
      if (sent % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await say('<30>x: still here');
    await until('the last line is read', () => lines.at(-1)?.text === 'still here');
    expect(lines.length).toBeGreaterThan(1000);
  });
});
