import { request } from 'undici';
import * as send from '../../src/boot/assets/send.js';
import { createBootFiles } from '../../src/boot/files.js';
import { createBootGate } from '../../src/boot/gate.js';
import { createBootHttp } from '../../src/boot/http.js';
import { BootSettings } from '../../src/boot/settings.js';
import type { UnknownMacPolicy } from '../../src/contracts/boot.js';
import { MetalflowError } from '../../src/domain/errors.js';
import type { HttpServer } from '../../src/telemetry/http.js';
import type { ListenerState, Listeners } from '../../src/telemetry/listening.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { bootSubject, fakeBootDirectory, MAC, NOW, permitted, type FakeBootDirectory } from '../support/boot-directory.js';
import { bootFolder, type BootFolder } from '../support/tftp-server.js';
import { until } from '../support/until.js';

jest.mock('../../src/boot/assets/send.js', () => {
  const actual = jest.requireActual<typeof import('../../src/boot/assets/send.js')>('../../src/boot/assets/send.js');
  return { ...actual, sendFile: jest.fn(actual.sendFile) };
});
const sendFile = jest.mocked(send.sendFile);
const { sendFile: realSendFile } = jest.requireActual<typeof send>('../../src/boot/assets/send.js');

const DISK = '#!ipxe\necho netboot-not-allowed\nexit\n';
let folder: BootFolder;
let directory: FakeBootDirectory;
let ready: () => Promise<void>;
const servers: HttpServer[] = [];

beforeAll(async () => {
  folder = await bootFolder({ 'vmlinuz-x86_64': 'kernel', 'initramfs-x86_64': 'initrd', 'signed.efi': 'signed', 'ipxe.efi': 'ipxe' });
});
afterAll(() => folder.remove());
beforeEach(() => {
  directory = fakeBootDirectory({ [MAC]: permitted() });
  ready = async () => {};
});
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

interface Plane {
  /** Over a socket; `from` is told by the test as a proxy that the plane trusts. */
  ask(path: string, more?: { from?: string; headers?: Record<string, string>; method?: 'GET' | 'HEAD' | 'POST' }): Promise<{ status: number; body: string; bytes: Buffer; headers: Record<string, unknown>; code?: string }>;
}

function plane(options: { unknownMac?: UnknownMacPolicy; settings?: Record<string, unknown>; trustedProxies?: string[]; listeners?: () => Listeners; downloadsOfOne?: number } = {}): Plane {
  const log = silentLogger();
  const gate = createBootGate({ directory, unknownMac: options.unknownMac ?? 'disk', now: () => NOW, log });
  const settings = { ...BootSettings.parse({ agentUrl: 'https://10.0.0.1:42114' }), ...options.settings };
  const trustedProxies = options.trustedProxies ?? ['127.0.0.1'];
  const server = createBootHttp({ gate, directory, settings, assetsDir: folder.root, binaries: createBootFiles({ roots: [folder.root], log }), log, ready: () => ready(), trustedProxies, listeners: options.listeners, downloadsOfOne: options.downloadsOfOne });
  servers.push(server);
  const listening = server.listen({ host: '127.0.0.1', port: 0 });
  return {
    async ask(path, { from, headers, method = 'GET' } = {}) {
      const answer = await request(`${await listening}${path}`, { method, headers: { ...headers, ...(from && { 'x-forwarded-for': from }) } });
      const bytes = Buffer.from(await answer.body.arrayBuffer());
      const body = bytes.toString();
      return { status: answer.statusCode, body, bytes, headers: answer.headers, ...(body.startsWith('{') && { code: (JSON.parse(body) as { code?: string }).code }) };
    },
  };
}
const scriptOf = (mac: string): string => `/ipxe/script/${mac}/auto.ipxe`;

describe('the script of a node', () => {
  test.each(['02-01-48-AA-BB-0C', '020148aabb0c', '0201.48aa.bb0c', '02%3A01%3A48%3Aaa%3Abb%3A0c', '01-02-01-48-aa-bb-0c'])('asked as %s is the same to the byte (T8)', async (spelling) => {
    const server = plane();
    const expected = await server.ask(scriptOf(MAC));
    const answer = await server.ask(scriptOf(spelling));
    expect(answer.status).toBe(200);
    expect(answer.bytes.equals(expected.bytes)).toBe(true);
    expect(answer.bytes.subarray(0, 7).toString('hex')).toBe('2321697078650a');
    expect(answer.body).toContain('echo metalflow: device 7, run 3\n');
  });

  test.each(['02:01:48:aa:bb', '02:01:48:aa:bb:gg', '0:1:48:a:b:c', 'x', '..', '%00', '02:01:48:aa:bb:0c%0aexit'])('asked as %s is refused, and nobody else is served (T8)', async (spelling) => {
    const answer = await plane().ask(scriptOf(spelling));
    expect([400, 404]).toContain(answer.status);
    expect(answer.body).not.toContain('#!ipxe');
    expect(directory.seen).toEqual([]);
  });

  test('is recorded as seen, for this attempt, and its sender is remembered', async () => {
    await plane().ask(scriptOf(MAC), { from: '::ffff:10.0.0.5' });
    expect(directory.seen).toEqual(['attempt-1']);
    expect([...directory.addresses]).toEqual([['10.0.0.5', MAC]]);
  });

  test('is recorded for as long as the node is waited for, and no longer', async () => {
    const signals: (AbortSignal | undefined)[] = [];
    directory.recordBootSeen = async (_attempt, signal) => void signals.push(signal);
    directory.rememberSender = async (_mac, _address, signal) => void signals.push(signal);
    await plane().ask(scriptOf(MAC));
    expect(signals).toEqual([expect.any(AbortSignal), expect.any(AbortSignal)]);
  });

  test('by sender alone is found once the sender has named its MAC', async () => {
    const server = plane();
    expect((await server.ask('/auto.ipxe', { from: '10.0.0.5' })).body).toBe(DISK);
    await server.ask(scriptOf(MAC), { from: '10.0.0.5' });
    expect((await server.ask('/auto.ipxe', { from: '10.0.0.5' })).body).toContain('device 7, run 3');
    expect((await server.ask('/auto.ipxe', { from: '10.0.0.6' })).body).toBe(DISK);
  });

  test('by sender alone is no longer found once a stranger has spoken from that address', async () => {
    const server = plane();
    await server.ask(scriptOf(MAC), { from: '10.0.0.5' });
    await server.ask(scriptOf('02:00:00:00:00:99'), { from: '10.0.0.5' });
    expect((await server.ask('/auto.ipxe', { from: '10.0.0.5' })).body).toBe(DISK);
  });

  test('is not given, and no boot recorded, to a machine that has the address from an earlier boot of another', async () => {
    directory.devices.set(MAC, permitted({ byEarlierBoot: true }));
    directory.addresses.set('10.0.0.5', MAC);
    expect((await plane().ask('/auto.ipxe', { from: '10.0.0.5' })).body).toBe(DISK);
    expect(directory.seen).toEqual([]);
  });

  test('is nothing that a proxy nobody trusts can ask for another node', async () => {
    directory.addresses.set('10.0.0.5', MAC);
    expect((await plane({ trustedProxies: [] }).ask('/auto.ipxe', { from: '10.0.0.5' })).body).toBe(DISK);
    expect((await plane({ trustedProxies: ['127.0.0.1'] }).ask('/auto.ipxe', { from: '10.0.0.5' })).body).toContain('device 7');
  });

  test('is not counted as a boot by HEAD', async () => {
    const server = plane();
    for (const url of [scriptOf(MAC), '/auto.ipxe']) expect((await server.ask(url, { method: 'HEAD' })).status).toBe(404);
    expect(directory.seen).toEqual([]);
  });

  test.each([
    ['a device without permission', () => directory.devices.set(MAC, bootSubject())],
    ['an expired permission', () => directory.devices.set(MAC, permitted({ permission: { run: 3, bootAttempt: 'a', expiresAt: '2026-11-20T09:59:59Z' } }))],
    ['an unknown MAC', () => directory.devices.clear()],
    ['a store that is away', () => (directory.mode = 'fails')],
    ['a store that cannot record the boot', () => (directory.recordBootSeen = () => Promise.reject(new MetalflowError('store_unavailable', { why: 'read-only' })))],
  ])('for %s boots the disk, and records nothing', async (_, arrange) => {
    arrange();
    const answer = await plane().ask(scriptOf(MAC));
    expect([answer.status, answer.body]).toEqual([200, DISK]);
    expect(directory.seen).toEqual([]);
  });

  test('is served although its sender cannot be remembered', async () => {
    directory.rememberSender = () => Promise.reject(new MetalflowError('store_unavailable', { why: 'busy' }));
    expect((await plane().ask(scriptOf(MAC))).body).toContain('run 3');
  });

  test('that waits for a request is no boot of a run', async () => {
    directory.devices.set(MAC, bootSubject({ state: 'available' }));
    expect((await plane().ask(scriptOf(MAC))).body).toContain('boots to attest and wait');
    expect(directory.seen).toEqual([]);
  });

  test('does not change by a hostile device name', async () => {
    const plain = (await plane().ask(scriptOf(MAC))).body;
    directory.devices.set(MAC, permitted({ name: 'x\nshell || ${evil} #' }));
    expect((await plane().ask(scriptOf(MAC))).body).toBe(plain);
  });

  test.each([['an argument', { extraArguments: ['x\nshell'] }], ['a kernel', { kernel: 'k ${evil}' }], ['an agent', { agentUrl: 'https://h/ || shell' }]])('with a hostile setting of %s is the disk, and records nothing', async (_, settings) => {
    expect((await plane({ settings }).ask(scriptOf(MAC))).body).toBe(DISK);
    expect(directory.seen).toEqual([]);
  });

  test('is not remembered for a stranger', async () => {
    await plane({ unknownMac: 'menu' }).ask(scriptOf('02:00:00:00:00:99'));
    expect(directory.addresses.size).toBe(0);
  });

  test('is not there at all where unknown devices are met with silence', async () => {
    const answer = await plane({ unknownMac: 'silent' }).ask(scriptOf('02:00:00:00:00:99'));
    expect(answer.status).toBe(404);
    expect(answer.body).not.toContain('ipxe');
  });
});

describe('the netboot system and the iPXE programs', () => {
  const everything = ['/assets/vmlinuz-x86_64', '/assets/initramfs-x86_64', '/assets/signed.efi', '/ipxe/binary/ipxe.efi'];
  test.each(everything)('%s is given to a device that may boot, named by query, header or address', async (url) => {
    directory.addresses.set('10.0.0.5', MAC);
    const server = plane();
    expect((await server.ask(`${url}?mac=${MAC}`)).status).toBe(200);
    expect((await server.ask(url, { headers: { 'x-metalflow-boot-mac': MAC } })).status).toBe(200);
    expect((await server.ask(url, { from: '10.0.0.5' })).status).toBe(200);
    expect(directory.seen).toEqual([]);
  });
  test.each(everything)('%s is not given to one that may not', async (url) => {
    directory.devices.set(MAC, bootSubject());
    const answer = await plane().ask(`${url}?mac=${MAC}`);
    expect([answer.status, answer.code]).toEqual([403, 'netboot_not_allowed']);
  });
  test.each(everything)('%s is not found by one that is met with silence', async (url) => {
    expect((await plane({ unknownMac: 'silent' }).ask(url)).status).toBe(404);
  });
  test.each(everything)('%s asked with a MAC that is none is refused', async (url) => {
    expect(await plane().ask(`${url}?mac=x`)).toMatchObject({ status: 400, code: 'mac_invalid' });
    expect(await plane().ask(`${url}?mac=${MAC}&mac=${MAC}`)).toMatchObject({ status: 400, code: 'mac_invalid' });
  });
  test('a binary is asked for below a MAC as well, and is never another', async () => {
    const server = plane();
    expect((await server.ask(`/ipxe/binary/02-01-48-AA-BB-0C/ipxe.efi`)).body).toBe('ipxe');
    expect((await server.ask('/ipxe/binary/02:01:48:aa:bb/ipxe.efi')).status).toBe(403);
    expect((await plane({ unknownMac: 'menu' }).ask('/ipxe/binary/02:01:48:aa:bb/ipxe.efi')).status).toBe(404);
  });
  test('may not be kept by a cache between, which would serve them past the gate', async () => {
    expect((await plane().ask(`/assets/vmlinuz-x86_64?mac=${MAC}`)).headers['cache-control']).toBe('private, no-store');
  });
});

describe('health', () => {
  test('is told whatever the store does; readiness is not', async () => {
    const server = plane();
    expect(JSON.parse((await server.ask('/healthz')).body)).toEqual({ status: 'ok', listeners: {} });
    expect((await server.ask('/readyz')).status).toBe(200);
    ready = () => Promise.reject(new MetalflowError('store_unavailable', { why: 'gone' }));
    const answer = await server.ask('/readyz');
    expect([answer.status, answer.code]).toEqual([503, 'store_unavailable']);
    expect((await server.ask('/healthz')).status).toBe(200);
  });
  test('names each listener with its state and why, and a failed one is not ready', async () => {
    const listeners: Record<string, ListenerState> = { http: { state: 'listening', address: '[::]:7080' }, https: { state: 'off', why: 'METALFLOW_BOOT_TLS_CERT is not set' } };
    const server = plane({ listeners: () => listeners });
    for (const path of ['/healthz', '/readyz']) expect(JSON.parse((await server.ask(path)).body)).toMatchObject({ listeners });
    listeners['tftp'] = { state: 'failed', why: 'no address is left' };
    const answer = await server.ask('/readyz');
    expect([answer.status, answer.code, JSON.parse(answer.body).message]).toEqual([503, 'listener_failed', 'tftp does not listen: no address is left']);
    expect((await server.ask('/healthz')).status).toBe(200);
  });
  test('is told by a plane whose store hangs, within the time a store is given', async () => {
    ready = () => new Promise<void>(() => {});
    expect(await plane().ask('/readyz')).toMatchObject({ status: 503, code: 'store_unavailable' });
  });
  test('nothing is taken by POST', async () => {
    expect((await plane().ask(scriptOf(MAC), { method: 'POST' })).status).toBe(404);
  });
});

describe('downloads', () => {
  test('of one address are so many at once; another, also one that a trusted proxy names, is served meanwhile', async () => {
    const server = plane({ downloadsOfOne: 1 });
    let letGo = (): void => undefined;
    const held = new Promise<void>((resolve) => (letGo = resolve));
    let isHeld = false;
    sendFile.mockImplementationOnce(async (...args) => {
      isHeld = true;
      await held;
      return realSendFile(...args);
    });
    const path = `/assets/vmlinuz-x86_64?mac=${MAC}`;
    const first = server.ask(path, { from: '10.0.0.5' });
    await until('the first is held', () => isHeld);
    expect(await server.ask(path, { from: '10.0.0.5' })).toMatchObject({ status: 429, code: 'rate_limited' });
    expect((await server.ask(path, { from: '10.0.0.6' })).body).toBe('kernel');
    letGo();
    expect((await first).body).toBe('kernel');
    expect((await server.ask(path, { from: '10.0.0.5' })).body).toBe('kernel');
  });
});
