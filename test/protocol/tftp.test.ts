import { join } from 'node:path';
import { startTftpServer } from '../../src/boot/tftp/server.js';
import { ackPacket, errorPacket, requestPacket, TFTP_ERROR } from '../../src/boot/tftp/packet.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { bootSubject, MAC, permitted } from '../support/boot-directory.js';
import { BareClient, fetchWithPackage, type Received } from '../support/tftp-client.js';
import { bootFolder, PATIENT, patterned, testTftp, type BootFolder, type TestTftp } from '../support/tftp-server.js';
import { until } from '../support/until.js';

const SHIM = patterned(966_768);
const TEN_BLOCKS = patterned(9 * 512 + 100);
const IPXE = patterned(850_000);

let folder: BootFolder;
let tftp: TestTftp;
const clients: BareClient[] = [];
const client = async (port = tftp.server.port): Promise<BareClient> => {
  const opened = await BareClient.open(port);
  clients.push(opened);
  return opened;
};
const block = ({ packet }: Received): number => (packet.kind === 'data' ? packet.block : -1);
const options = (received: Received): Record<string, string> => (received.packet.kind === 'oack' ? Object.fromEntries(received.packet.options.map(({ name, value }) => [name.toLowerCase(), value])) : {});
/** A request that comes after all others was answered: what they would have caused is there by now. */
const settled = async (port = tftp.server.port): Promise<void> => {
  const probe = await client(port);
  await probe.ask('nothing-of-that-name');
  await probe.next();
};

beforeAll(async () => {
  folder = await bootFolder({
    'ipxe.efi': IPXE, 'shimx64.efi': SHIM, 'ten': TEN_BLOCKS, 'empty': '', 'exact': patterned(1024), 'Boot/x64/ipxe.efi': 'x64', 'undionly.kpxe': 'undionly', 'lines': Buffer.from('610a620d', 'hex'),
    '../tftp-private/secret': 'secret', 'large': patterned(5 * 1024 * 1024 + 77),
  });
  await folder.link('out', join(folder.root, '../tftp-private/secret'));
  await folder.link('in', join(folder.root, 'undionly.kpxe'));
  tftp = await testTftp(folder.root, { limits: PATIENT, inMemory: new Map([['placeholder', Buffer.from('in memory')], ['undionly.kpxe', Buffer.from('never shown')]]) });
});
afterEach(() => clients.splice(0).forEach((opened) => opened.close()));
afterAll(async () => {
  await tftp.server.close();
  await folder.remove();
});

describe('a client that is not ours (package tftp)', () => {
  test.each([['ipxe.efi', IPXE], ['exact', patterned(1024)], ['ten', TEN_BLOCKS], ['placeholder', Buffer.from('in memory')], ['undionly.kpxe', Buffer.from('undionly')], ['in', Buffer.from('undionly')], ['large', patterned(5 * 1024 * 1024 + 77)]])(
    'fetches %s whole',
    async (name, bytes) => {
      expect((await fetchWithPackage(tftp.server.port, name)).equals(bytes)).toBe(true);
    },
  );
  test.each([[8, 1], [512, 1], [1468, 4], [1468, 16]])('with block size %i and window %i', async (blockSize, windowSize) => {
    expect((await fetchWithPackage(tftp.server.port, 'ten', { blockSize, windowSize })).equals(TEN_BLOCKS)).toBe(true);
  });
});

describe('T1', () => {
  test('a UEFI size probe that ends in ERROR 8 is aborted, not failed, and the real request follows', async () => {
    const probe = await client();
    const before = tftp.server.stats().outcomes.aborted ?? 0;
    await probe.send(Buffer.from('00017368696d7836342e656669006f63746574007473697a65003000626c6b73697a65003134363800', 'hex'));
    const oack = await probe.next();
    expect(options(oack)).toEqual({ tsize: '966768', blksize: '1468' });
    await probe.send(errorPacket(TFTP_ERROR.optionsRefused, 'User aborted the transfer'), oack.from.port);
    await until('the transfer is aborted, and none is left', () => tftp.server.stats().outcomes.aborted === before + 1 && tftp.server.stats().active === 0);

    const real = await client();
    await real.ask('shimx64.efi', [{ name: 'blksize', value: '1468' }]);
    expect((await real.receiveFile(1468)).equals(SHIM)).toBe(true);
    expect(options(real.received[0]!)).toEqual({ blksize: '1468' });
    const data = real.received.slice(1).map(({ packet }) => (packet.kind === 'data' ? packet.data.length : -1));
    expect([data.length, data[0], data.at(-1)]).toEqual([659, 1468, 824]);
    await settled();
    expect(probe.received).toHaveLength(1);
  });
});

describe('T3', () => {
  test('a: mode and option names count in any letter case', async () => {
    const asked = await client();
    await asked.send(Buffer.from('0001697078652e656669006f4354655400424c4b53495a45003130323400756e6b6e6f776e0078005453697a65003000', 'hex'));
    expect(options(await asked.next())).toEqual({ blksize: '1024', tsize: '850000' });
  });
  test('b: netascii is translated', async () => {
    const asked = await client();
    await asked.ask('lines', [], 'netascii');
    expect((await asked.receiveFile(512)).toString('hex')).toBe('610d0a620d00');
  });
  test('b: a file too large to be translated is refused', async () => {
    const asked = await client();
    await asked.ask('large', [], 'NETASCII');
    expect((await asked.next()).packet).toMatchObject({ kind: 'error', code: 4 });
  });
  test('c: mail is refused with ERROR 4', async () => {
    const asked = await client();
    await asked.ask('ten', [], 'mail');
    expect((await asked.next()).packet).toMatchObject({ kind: 'error', code: 4 });
  });
  test('d: a request without mode or end is passed over, and the next good one is served', async () => {
    const asked = await client();
    await asked.send(Buffer.from('000174656e00', 'hex'));
    await asked.send(Buffer.from('000174656e006f63746574', 'hex'));
    await asked.ask('ten');
    expect((await asked.receiveFile(512)).equals(TEN_BLOCKS)).toBe(true);
  });
});

describe('T5', () => {
  test('c: a stray port gets ERROR 5, and the true transfer ends with the right bytes', async () => {
    const [true_, stray] = [await client(), await client()];
    await true_.ask('ten');
    const first = await true_.next();
    await stray.send(ackPacket(1), first.from.port);
    expect((await stray.next()).packet).toMatchObject({ kind: 'error', code: 5 });
    await stray.send(errorPacket(TFTP_ERROR.undefined, 'gone'), first.from.port);
    const blocks = [first];
    while (blocks.length < 10) {
      await true_.send(ackPacket(blocks.length), first.from.port);
      blocks.push(await true_.next());
    }
    expect(blocks.map(block)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    await true_.send(ackPacket(10), first.from.port);
    expect(stray.received).toHaveLength(1);
  });
  test('d: the same request twice from one port is one transfer, answered from one server port', async () => {
    const asked = await client();
    await asked.ask('ten');
    await asked.ask('ten');
    expect((await asked.receiveFile(512)).equals(TEN_BLOCKS)).toBe(true);
    await settled();
    expect(new Set(asked.received.map(({ from }) => from.port)).size).toBe(1);
    expect(asked.received.map(block)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });
  test('e: a request that is never acknowledged gives up and frees its socket, and the same from another port completes', async () => {
    const quick = await testTftp(folder.root, { limits: { waitMs: 10, waitMostMs: 20, firstResends: 3, resends: 10_000 } });
    const [abandoned, second] = [await client(quick.server.port), await client(quick.server.port)];
    await abandoned.ask('ten');
    await second.ask('ten');
    expect((await second.receiveFile(512)).equals(TEN_BLOCKS)).toBe(true);
    await until('the transfer is given up', () => quick.server.stats().outcomes['timed-out'] === 1);
    await until('no transfer is left', () => quick.server.stats().active === 0);
    await until('all it was sent has come', () => abandoned.received.length === 4);
    expect(abandoned.received.map(block)).toEqual([1, 1, 1, 1]);
    await quick.server.close();
  });
  test('another file asked from the same port takes the place of the first', async () => {
    const asked = await client();
    await asked.ask('ten');
    const first = await asked.next();
    await asked.ask('exact');
    const second = await asked.next();
    expect(second.from.port).not.toBe(first.from.port);
    expect(second.packet).toMatchObject({ kind: 'data', block: 1, data: patterned(1024).subarray(0, 512) });
  });
});

describe('T7', () => {
  test.each([
    ['ipxe.efi', IPXE], ['/ipxe.efi', IPXE], ['//ipxe.efi', IPXE], ['./ipxe.efi', IPXE], ['\\Boot\\x64\\ipxe.efi', Buffer.from('x64')], ['Boot/../ipxe.efi', IPXE],
  ])('%s is the right file', async (name, bytes) => {
    const asked = await client();
    await asked.ask(name, [{ name: 'blksize', value: '1468' }, { name: 'windowsize', value: '16' }]);
    expect((await asked.receiveFile(1468, 16)).equals(bytes)).toBe(true);
  });
  test.each(['../tftp-private/secret', '..\\tftp-private\\secret', '/srv/tftp-private/secret', 'Boot/../../tftp-private/secret', 'out', '', '.', 'Boot', '__proto__', 'constructor', 'a\u0007b', 'x'.repeat(300)])(
    '%j is refused with ERROR 1 or 2 and no byte of a file',
    async (name) => {
      const asked = await client();
      await asked.ask(name);
      const { packet } = await asked.next();
      expect(packet.kind === 'error' && [1, 2].includes(packet.code)).toBe(true);
      await settled();
      expect(asked.received).toHaveLength(1);
    },
  );
  test('a write is refused with ERROR 2', async () => {
    const asked = await client();
    await asked.send(requestPacket('wrq', 'ten', 'octet'));
    expect((await asked.next()).packet).toMatchObject({ kind: 'error', code: 2 });
  });
});

describe('T8', () => {
  test('a MAC in front of the file is the device, and the file is served', async () => {
    const strict = await testTftp(folder.root, { unknownMac: 'disk', limits: PATIENT });
    strict.directory.devices.set(MAC, permitted());
    for (const spelling of ['02:01:48:aa:bb:0c', '02-01-48-AA-BB-0C', '020148aabb0c']) {
      expect((await fetchWithPackage(strict.server.port, `${spelling}/undionly.kpxe`)).toString()).toBe('undionly');
    }
    for (const bad of ['02:01:48:aa:bb', '02:01:48:aa:bb:gg', '0:1:48:a:b:c']) {
      await expect(fetchWithPackage(strict.server.port, `${bad}/undionly.kpxe`)).rejects.toThrow(/netboot-not-allowed/);
    }
    await strict.server.close();
  });
  test('autoexec.ipxe that nobody put there is ERROR 1', async () => {
    const asked = await client();
    await asked.ask('autoexec.ipxe');
    expect((await asked.next()).packet).toMatchObject({ kind: 'error', code: 1 });
  });
});

describe('the gate', () => {
  const everyName = ['ipxe.efi', `${MAC}/ipxe.efi`, `${MAC}/none`, `pxelinux.cfg/01-${MAC.replaceAll(':', '-')}`, '../x', 'placeholder'];
  test('sends not one byte of a file to a device whose answer is boot disk, whatever it asks and however', async () => {
    const strict = await testTftp(folder.root, { unknownMac: 'disk', limits: PATIENT });
    strict.directory.devices.set(MAC, bootSubject({ state: 'active' }));
    for (const name of everyName) {
      for (const asks of [requestPacket('rrq', name, 'octet'), requestPacket('rrq', name, 'octet', [{ name: 'tsize', value: '0' }]), requestPacket('rrq', name, 'mail'), requestPacket('wrq', name, 'octet')]) {
        const asked = await client(strict.server.port);
        await asked.send(asks);
        expect((await asked.next()).packet).toEqual({ kind: 'error', code: 2, text: 'netboot-not-allowed' });
        await settled(strict.server.port);
        expect(asked.received).toHaveLength(1);
      }
    }
    await strict.server.close();
  });
  test('sends not one packet to a device whose answer is silence', async () => {
    const silent = await testTftp(folder.root, { unknownMac: 'silent', limits: PATIENT });
    const asked = await client(silent.server.port);
    for (const name of everyName) for (const mode of ['octet', 'mail']) await asked.ask(name, [], mode);
    // One port has one request at a time, so the others come from ports of their own.
    const others = await Promise.all(everyName.map(() => client(silent.server.port)));
    await Promise.all(others.map((other, index) => other.ask(everyName[index]!)));
    await until('all are counted as unanswered', () => (silent.server.stats().outcomes.unanswered ?? 0) >= everyName.length && silent.server.stats().active === 0);
    silent.directory.devices.set('02:00:00:00:00:01', permitted());
    await fetchWithPackage(silent.server.port, '02:00:00:00:00:01/ten');
    expect([asked, ...others].flatMap(({ received }) => received)).toEqual([]);
    await silent.server.close();
  });
  test('answers boot disk while the store is away', async () => {
    const away = await testTftp(folder.root);
    away.directory.mode = 'fails';
    await expect(fetchWithPackage(away.server.port, 'ten')).rejects.toThrow(/netboot-not-allowed/);
    await away.server.close();
  });
});

describe('limits', () => {
  test('a client has a bounded number of transfers, and is met with silence beyond', async () => {
    const small = await testTftp(folder.root, { limits: { ...PATIENT, transfersPerClient: 3 } });
    const many = await Promise.all(Array.from({ length: 5 }, () => client(small.server.port)));
    await Promise.all(many.map((one) => one.ask('ten')));
    await until('both are turned away', () => small.server.stats().outcomes['turned-away'] === 2);
    expect(small.server.stats().active).toBe(3);
    await small.server.close();
    expect(small.server.stats().active).toBe(0);
  });
  test('a port that is taken is a named error', async () => {
    await expect(startTftpServer({ gate: { decide: async () => ({ kind: 'silent', subject: null, why: '' }) }, files: { open: async () => null, names: async () => [] }, address: '127.0.0.1', port: tftp.server.port, log: silentLogger() })).rejects.toMatchObject({ code: 'port_in_use' });
  });
});
