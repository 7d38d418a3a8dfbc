import { createServer, type AddressInfo, type Socket } from 'node:net';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBmcFactory } from '../../src/bmc/factory.js';
import { createFileSecretReader } from '../../src/bmc/file-secrets.js';
import type { BmcFactory } from '../../src/contracts/bmc.js';
import { silentLogger } from '../../src/telemetry/log.js';

const factory = (secret: unknown): BmcFactory =>
  createBmcFactory({ secrets: { readJson: async (name) => (name === 'bmc-amt' ? secret : null) }, log: silentLogger() });
const good = { username: 'admin', password: 'hunter2' };

describe('opening a BMC', () => {
  test.each(['amt', 'redfish', 'ipmi'] as const)('%s opens its driver, with the secret of its own name', async (type) => {
    const asked: string[] = [];
    const bmc = await createBmcFactory({ secrets: { readJson: async (name) => (asked.push(name), good) }, log: silentLogger() }).open({ type, host: '10.0.0.1' });
    expect([bmc.address.type, asked]).toEqual([type, [`bmc-${type}`]]);
    await bmc.close();
  });
  test.each([
    ['', 'is empty'],
    ['10.0.0.1/admin', 'neither'],
    ['user@10.0.0.1', 'neither'],
    ['10.0.0.1:80', 'neither'],
    ['a b', 'neither'],
    ['-v', 'neither'],
  ])('host %j is refused before anything is sent', async (host, what) => {
    for (const type of ['amt', 'redfish', 'ipmi'] as const) {
      await expect(factory(good).open({ type, host })).rejects.toMatchObject({ code: 'device_invalid', details: { what: expect.stringContaining(what) } });
    }
  });
  test.each(['10.0.0.1', 'fd00::1', 'amt-7.lab.example.org'])('host %s is taken', async (host) => {
    const bmc = await factory(good).open({ type: 'amt', host });
    expect(bmc.address.host).toBe(host);
    await bmc.close();
  });
  test.each([{}, { port: 16_992 }, { port: 16_993, tls: false }])('a pin on %j is refused: nothing there would be held against it', async (address) => {
    await expect(factory(good).open({ type: 'amt', host: '10.0.0.1', fingerprint: 'ab'.repeat(32), ...address })).rejects.toMatchObject({ code: 'device_invalid', details: { field: expect.stringContaining('bmc_fingerprint'), what: expect.stringContaining('16993') } });
  });
  test.each(['amt', 'redfish'] as const)('%s ends a method within the limit that the lease leaves', async (type) => {
    const open = new Set<Socket>();
    const silent = createServer((socket) => void open.add(socket.on('error', () => undefined)));
    await new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve));
    try {
      const bmc = await createBmcFactory({ secrets: { readJson: async () => good }, log: silentLogger(), timeouts: { methodMs: 100 } }).open({ type, host: '127.0.0.1', port: (silent.address() as AddressInfo).port, tls: false });
      // Without it each would wait 8 s and more for the first answer alone: longer than a test may last.
      expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_unreachable' });
      await bmc.close();
    } finally {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => silent.close(resolve));
    }
  });
  describe('with authorities of the site', () => {
    const withAuthorities = (caFile: string): BmcFactory => createBmcFactory({ secrets: { readJson: async () => good }, log: silentLogger(), tls: { caFile, oldTls: false } });
    const overTls = { type: 'amt', host: '10.0.0.1', port: 16_993 } as const;
    test.each([
      ['is not there', '/nowhere/ca.pem', 'cannot be read'],
      ['holds none', __filename, 'no certificate'],
    ])('a file that %s stops the opening, and says so', async (_name, file, why) => {
      await expect(withAuthorities(file).open(overTls)).rejects.toMatchObject({ code: 'setting_invalid', message: expect.stringMatching(`METALFLOW_BMC_CA_FILE.*${why}`) });
    });
    test('a file is not asked for where a certificate is pinned, or nothing is said over TLS', async () => {
      for (const address of [{ ...overTls, fingerprint: 'ab'.repeat(32) }, { type: 'amt', host: '10.0.0.1' } as const]) {
        const bmc = await withAuthorities('/nowhere/ca.pem').open(address);
        expect(bmc.address).toEqual(address);
        await bmc.close();
      }
    });
  });
  test.each([
    ['missing', null, 'there is no such file'],
    ['without password', { username: 'admin' }, 'password'],
    ['with a colon in the name', { username: 'a:b', password: 'hunter2' }, 'colon'],
    ['with a line break in the name', { username: 'a\r\nb', password: 'hunter2' }, 'printable'],
    ['a list', [], 'object'],
  ])('a secret that is %s is bmc_auth_failed, naming the file and no value of it', async (_name, secret, why) => {
    const error = await factory(secret).open({ type: 'amt', host: '10.0.0.1' }).catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ code: 'bmc_auth_failed', message: expect.stringContaining('bmc-amt.json'), details: { why: expect.stringContaining(why) } });
    expect(JSON.stringify(error) + String(error)).not.toContain('hunter2');
  });
  test('a secret that cannot be read is bmc_auth_failed', async () => {
    const broken = createBmcFactory({ secrets: { readJson: () => Promise.reject(new Error('EIO')) }, log: silentLogger() });
    await expect(broken.open({ type: 'amt', host: '10.0.0.1' })).rejects.toMatchObject({ code: 'bmc_auth_failed' });
  });
});

test('a pin without TLS is refused for Redfish too: the password would go in the clear', async () => {
  await expect(createBmcFactory({ secrets: { readJson: async () => good }, log: silentLogger() }).open({ type: 'redfish', host: '10.0.0.1', tls: false, fingerprint: 'ab'.repeat(32) })).rejects.toMatchObject({ code: 'device_invalid', details: { field: 'config_context.metalflow.bmc_fingerprint', what: expect.stringContaining('bmc_tls false') } });
});

describe('a node without BMC', () => {
  test('needs no secret, is never read off, and asks a person in plain words', async () => {
    const bmc = await factory(null).open({ type: 'manual', host: '' });
    expect(await bmc.observePower()).toMatchObject({ kind: 'unknown' });
    expect(await bmc.machineUuid()).toMatchObject({ kind: 'unreadable' });
    expect(await bmc.powerOff()).toMatchObject({ kind: 'refused', code: 'bmc_manual_task', details: { task: 'power the node off' } });
    expect(await bmc.bootOnceFromNetwork()).toEqual({ kind: 'accepted' });
    expect(await bmc.powerOn()).toMatchObject({ kind: 'refused', code: 'bmc_manual_task', details: { task: 'power the node on and boot it once from the network' } });
  });
});

describe('secrets in files', () => {
  let folder: string;
  beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'metalflow-secrets-'))));
  afterEach(() => rm(folder, { recursive: true }));

  test('are read, are null when missing, and are read again when they change', async () => {
    const secrets = createFileSecretReader(folder);
    expect(await secrets.readJson('bmc-amt')).toBeNull();
    await writeFile(join(folder, 'bmc-amt.json'), '{"password":"one"}');
    expect(await secrets.readJson('bmc-amt')).toEqual({ password: 'one' });
    await writeFile(join(folder, 'bmc-amt.json'), '{"password":"other"}');
    expect(await secrets.readJson('bmc-amt')).toEqual({ password: 'other' });
    // Replaced by rename, with the same number of bytes.
    await writeFile(join(folder, 'next'), '{"password":"third"}');
    await rename(join(folder, 'next'), join(folder, 'bmc-amt.json'));
    expect(await secrets.readJson('bmc-amt')).toEqual({ password: 'third' });
    await rm(join(folder, 'bmc-amt.json'));
    expect(await secrets.readJson('bmc-amt')).toBeNull();
  });
  test('an unchanged file is not parsed again', async () => {
    const secrets = createFileSecretReader(folder);
    await writeFile(join(folder, 'bmc-amt.json'), '{}');
    expect(await secrets.readJson('bmc-amt')).toBe(await secrets.readJson('bmc-amt'));
  });
  test.each(['../bmc-amt', 'a/b', '/etc/passwd', '..', '', 'a\0b', '.hidden'])('the name %j never reaches the file system', async (name) => {
    await expect(createFileSecretReader(folder).readJson(name)).rejects.toMatchObject({ code: 'setting_invalid' });
  });
  test('a file that is no JSON is an error that quotes nothing of it', async () => {
    await writeFile(join(folder, 'bmc-amt.json'), 'hunter2');
    const error = await createFileSecretReader(folder).readJson('bmc-amt').catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ code: 'setting_invalid' });
    expect(String(error)).not.toContain('hunter2');
  });
  test('a file of a megabyte is refused', async () => {
    await writeFile(join(folder, 'bmc-amt.json'), ' '.repeat(1024 * 1024));
    await expect(createFileSecretReader(folder).readJson('bmc-amt')).rejects.toMatchObject({ code: 'setting_invalid', message: expect.stringContaining('at most') });
  });
});
