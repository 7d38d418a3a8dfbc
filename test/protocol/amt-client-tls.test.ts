/** AMT on TLS, the wire of port 16993: whom it trusts, and that nothing is said to anybody else. */
import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import { createAmtBmc } from '../../src/bmc/amt/client.js';
import type { Timeouts } from '../../src/bmc/http-once.js';
import { createBmcFactory } from '../../src/bmc/factory.js';
import type { Trust } from '../../src/bmc/trust.js';
import type { Bmc } from '../../src/contracts/bmc.js';
import { parseFingerprint } from '../../src/domain/fingerprint.js';
import type { AmtTls } from '../../src/simulator/amt/simulator.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { CREDENTIALS, MACHINE_UUID, noSocketsLeft, ROOMY, startAmtBench, type AmtBench } from '../support/amt.js';
import { authorities, CA_FILE, certificate, fingerprintOf, type CertificateName } from '../support/certificates.js';
import { until } from '../support/until.js';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  // While the servers still listen: it is the driver that has to hang up.
  await noSocketsLeft();
  await Promise.all(closers.splice(0).map((close) => close()));
});

async function start(tls: AmtTls | null): Promise<AmtBench> {
  const bench = await startAmtBench({ initialPower: 'on', ...(tls && { tls }) });
  closers.push(() => bench.close());
  return bench;
}

const trusting = (change: Partial<Trust> = {}): Trust => ({ pin: null, authorities: null, oldTls: false, ...change });
const pinned = (name: CertificateName, change: Partial<Trust> = {}): Trust => trusting({ pin: parseFingerprint(fingerprintOf(name))!, ...change });
const byTheSite = trusting({ authorities });

describe('the simulator', () => {
  const firstLine = (bench: AmtBench, version: 'TLSv1' | 'TLSv1.3'): Promise<string> =>
    new Promise((resolve) => {
      const { host, port } = bench.amt;
      const socket = connect({ host, port, rejectUnauthorized: false, minVersion: version, maxVersion: version, ciphers: 'DEFAULT:@SECLEVEL=0' }, () => socket.write('POST /wsman HTTP/1.1\r\nHost: amt\r\nContent-Length: 0\r\n\r\n'));
      let text = '';
      socket.on('data', (chunk) => (text += chunk.toString())).on('error', (error: NodeJS.ErrnoException) => (text ||= error.code ?? 'error')).on('close', () => resolve(text.split('\r\n')[0]!));
    });

  test.each([
    ['today', { ...certificate('amt') }, 'TLSv1.3', 'HTTP/1.1 401 Unauthorized'],
    ['today', { ...certificate('amt') }, 'TLSv1', 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'],
    ['old', { ...certificate('old'), minVersion: 'TLSv1', maxVersion: 'TLSv1.1' }, 'TLSv1', 'HTTP/1.1 401 Unauthorized'],
  ] as const)('that is of %s serves its wire over TLS of its time only (%#)', async (_age, tls, version, answer) => {
    const bench = await start(tls);
    expect(bench.amt.url).toMatch(/^https:/);
    expect(await firstLine(bench, version)).toBe(answer);
  });
});

describe('a certificate', () => {
  test.each([
    ['that is pinned, though it is signed by itself', 'self-signed', pinned('self-signed')],
    ['that is pinned, though it is over', 'expired', pinned('expired')],
    ['that is pinned, though it is for another address', 'elsewhere', pinned('elsewhere', { authorities })],
    ['that an authority of the site signed', 'amt', byTheSite],
  ] as const)('%s is trusted: a node is read, armed and powered', async (_name, name, trust) => {
    const { machine, open, amt } = await start(certificate(name));
    const bmc = open({ trust });
    expect(await bmc.observePower()).toEqual({ kind: 'read', power: 'on' });
    expect(await bmc.machineUuid()).toEqual({ kind: 'read', uuid: MACHINE_UUID });
    expect(await bmc.powerOff()).toEqual({ kind: 'accepted' });
    expect(await bmc.bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
    expect(await bmc.powerOn()).toEqual({ kind: 'accepted' });
    await amt.settled();
    expect(machine).toEqual(['off', 'on network']);
  });

  test.each([
    ['that is not the pinned one', 'self-signed', pinned('amt'), `is not the pinned one \\(${fingerprintOf('amt')}\\)`],
    ['that is signed by itself', 'self-signed', trusting(), 'signed by itself'],
    ['of an authority that nobody here trusts', 'amt', trusting(), 'no authority that is trusted here'],
    ['that is signed by itself, where the site has authorities', 'self-signed', byTheSite, 'signed by itself'],
    ['that is over', 'expired', byTheSite, 'ended on Jan  1 00:00:00 2021 GMT'],
    ['for another address', 'elsewhere', byTheSite, 'is for IP Address:192.0.2.1, DNS:amt.example.org, not for the address 127.0.0.1'],
  ] as const)('%s is one clear error with its fingerprint, and not one byte of a request leaves', async (_name, name, trust, why) => {
    const { amt, open } = await start(certificate(name));
    const bmc = open({ trust });
    const words = expect.stringMatching(`${why}.*; its SHA-256 fingerprint is ${fingerprintOf(name)}$`);
    expect(await bmc.observePower()).toEqual({ kind: 'unknown', code: 'bmc_certificate_refused', why: words });
    expect(await bmc.powerOff()).toMatchObject({ kind: 'refused', code: 'bmc_certificate_refused', why: words });
    expect(await bmc.bootOnceFromNetwork()).toMatchObject({ kind: 'refused', code: 'bmc_certificate_refused' });
    expect(amt.counts().requests).toBe(0);
  });
});

describe('TLS of old', () => {
  const old: AmtTls = { ...certificate('old'), minVersion: 'TLSv1', maxVersion: 'TLSv1.1' };

  test('is spoken where it is allowed, and the pin counts all the same', async () => {
    const { amt, open } = await start(old);
    expect(await open({ trust: pinned('old', { oldTls: true }) }).observePower()).toEqual({ kind: 'read', power: 'on' });
    const { requests } = amt.counts();
    expect(await open({ trust: pinned('amt', { oldTls: true }) }).observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_certificate_refused' });
    expect(amt.counts().requests).toBe(requests);
  });
  test('is refused otherwise, with the name of the setting', async () => {
    const { amt, open } = await start(old);
    expect(await open({ trust: pinned('old') }).observePower()).toEqual({ kind: 'unknown', code: 'bmc_tls_failed', why: expect.stringContaining('METALFLOW_BMC_OLD_TLS') });
    expect(amt.counts().requests).toBe(0);
  });
});

describe('a port with another wire than expected', () => {
  test('plain where TLS should be: the error says that there is no TLS', async () => {
    const { amt, open } = await start(null);
    const bmc = open({ trust: pinned('amt') });
    expect(await bmc.observePower()).toEqual({ kind: 'unknown', code: 'bmc_unreachable', why: 'connection reset before TLS stood; the port may be a plain one' });
    expect(await bmc.powerOff()).toMatchObject({ kind: 'not-sent' });
    expect(amt.counts().requests).toBe(0);
  });
  test('TLS where plain HTTP should be: no credentials leave', async () => {
    const { amt, open } = await start(certificate('amt'));
    expect(await open().observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable', why: expect.stringContaining('if the port speaks TLS, NetBox has to say so') });
    expect(amt.counts().requests).toBe(0);
  });

  /** A TCP server of its own words. */
  async function startOther(answer: string | null, timeouts: Partial<Timeouts> = {}): Promise<{ bmc: Bmc; sockets: Set<Socket> }> {
    const sockets = new Set<Socket>();
    const server: Server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
      socket.once('data', () => void (answer !== null && socket.end(answer)));
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const bmc = createAmtBmc({ address: { type: 'amt', host: '127.0.0.1', port }, credentials: CREDENTIALS, secret: 'bmc-amt', log: silentLogger(), timeouts: { ...ROOMY, ...timeouts }, trust: pinned('amt') });
    closers.push(() => new Promise((resolve) => void server.close(resolve)), () => bmc.close());
    return { bmc, sockets };
  }
  test.each([
    ['an SSH server', 'SSH-2.0-OpenSSH_9.6\r\n', 'bmc_tls_failed'],
    ['a web page', 'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n', 'bmc_tls_failed'],
    ['an end without a word', '', 'bmc_unreachable'],
  ])('%s is told from an AMT', async (_name, answer, code) => {
    const { bmc } = await startOther(answer);
    expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code });
  });
  test.each([
    [{ connectMs: 150, tries: 1 }, 'no TLS connection within 150 ms'],
    [{ requestMs: 150, tries: 1 }, 'given up'],
    [{ methodMs: 150 }, 'given up'],
  ] as const)('a server that accepts and never shakes hands is bounded by %j, and no socket stays', async (timeouts, why) => {
    const { bmc, sockets } = await startOther(null, timeouts);
    expect(await bmc.powerOff()).toEqual({ kind: 'not-sent', why: expect.stringContaining(why) });
    await noSocketsLeft();
    await until('the server has seen each end', () => sockets.size === 0);
  });
});

describe('what NetBox and the settings say', () => {
  const open = async (bench: AmtBench, address: { tls?: boolean; fingerprint?: string }, tls?: { caFile: string | null; oldTls: boolean }): Promise<Bmc> => {
    const { host, port } = bench.amt;
    const factory = createBmcFactory({ secrets: { readJson: async () => CREDENTIALS }, log: silentLogger(), timeouts: ROOMY, ...(tls && { tls }) });
    const bmc = await factory.open({ type: 'amt', host, port, ...address });
    closers.push(() => bmc.close());
    return bmc;
  };
  test('bmc_tls and a pin open TLS on any port', async () => {
    const bench = await start(certificate('self-signed'));
    expect(await (await open(bench, { tls: true, fingerprint: parseFingerprint(fingerprintOf('self-signed'))! })).observePower()).toEqual({ kind: 'read', power: 'on' });
  });
  test('bmc_tls alone goes by METALFLOW_BMC_CA_FILE', async () => {
    const bench = await start(certificate('amt'));
    expect(await (await open(bench, { tls: true }, { caFile: CA_FILE, oldTls: false })).observePower()).toEqual({ kind: 'read', power: 'on' });
    expect(await (await open(bench, { tls: true })).observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_certificate_refused' });
  });
});
