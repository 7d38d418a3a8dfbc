import { readName } from '../../src/boot/tftp/names.js';
import { DEFAULT_TFTP_LIMITS } from '../../src/boot/tftp/limits.js';
import { toNetascii } from '../../src/boot/tftp/netascii.js';
import { negotiate } from '../../src/boot/tftp/options.js';
import { ackPacket, dataPacket, errorPacket, oackPacket, readPacket, requestPacket, type TftpOption } from '../../src/boot/tftp/packet.js';

const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const options = (...pairs: [string, string][]): TftpOption[] => pairs.map(([name, value]) => ({ name, value }));

describe('packets', () => {
  test('the request of a UEFI size probe is read (T1)', () => {
    expect(readPacket(hex('00017368696d7836342e656669006f63746574007473697a65003000626c6b73697a65003134363800'))).toEqual({
      kind: 'rrq', file: 'shimx64.efi', mode: 'octet', options: options(['tsize', '0'], ['blksize', '1468']),
    });
  });

  test('mode is read in any letter case, and option names are kept as they came (T3 a)', () => {
    expect(readPacket(hex('0001697078652e656669004f6354655400424c4b53495a45003130323400756e6b6e6f776e0078005453697a65003000'))).toEqual({
      kind: 'rrq', file: 'ipxe.efi', mode: 'octet', options: options(['BLKSIZE', '1024'], ['unknown', 'x'], ['TSize', '0']),
    });
  });

  test.each([
    ['nothing', ''], ['one byte', '00'], ['an opcode alone', '0001'], ['a request without a mode (T3 d)', '000161006f63'], ['a request whose mode does not end (T3 d)', '000161006f63746574'],
    ['an unknown opcode', '00090000'], ['a request of two kilobytes', `0001${'61'.repeat(2000)}006f6374657400`],
  ])('%s is unreadable', (_, bytes) => {
    expect(readPacket(hex(bytes)).kind).toBe('unreadable');
  });

  test.each([
    ['an option without a value', requestPacket('rrq', 'a', 'octet', options(['tsize', '0'])).subarray(0, -2)],
    ['padding of NULs', Buffer.concat([requestPacket('rrq', 'a', 'octet'), Buffer.alloc(6)])],
  ])('a request with %s is read without it', (_, bytes) => {
    expect(readPacket(bytes)).toEqual({ kind: 'rrq', file: 'a', mode: 'octet', options: [] });
  });

  test('what is written is read back', () => {
    expect(readPacket(ackPacket(65_537))).toEqual({ kind: 'ack', block: 1 });
    expect(readPacket(dataPacket(65_536, Buffer.from('x')))).toEqual({ kind: 'data', block: 0, data: Buffer.from('x') });
    expect(readPacket(errorPacket(2, 'no'))).toEqual({ kind: 'error', code: 2, text: 'no' });
    expect(readPacket(oackPacket(options(['tsize', '9'])))).toEqual({ kind: 'oack', options: options(['tsize', '9']) });
  });
});

describe('options', () => {
  const outcome = (...asked: [string, string][]) => negotiate(options(...asked), 966_768, DEFAULT_TFTP_LIMITS);

  test('names count in any letter case, the spelling is given back, and what is unknown is left out (T3 a)', () => {
    expect(outcome(['BLKSIZE', '1024'], ['unknown', 'x'], ['TSize', '0'])).toEqual({
      blockSize: 1024, windowSize: 1, waitMs: 1000, accepted: options(['BLKSIZE', '1024'], ['TSize', '966768']),
    });
  });

  test('block and window size are capped', () => {
    expect(outcome(['blksize', '65464'], ['windowsize', '65535'])).toMatchObject({ blockSize: 1468, windowSize: 16, accepted: options(['blksize', '1468'], ['windowsize', '16']) });
  });

  test('a timeout is taken as asked, or not at all', () => {
    expect(outcome(['timeout', '3'])).toMatchObject({ waitMs: 3000, accepted: options(['timeout', '3']) });
    expect(outcome(['timeout', '200'])).toMatchObject({ waitMs: 1000, accepted: [] });
  });

  test.each([['blksize', '7'], ['blksize', '65465'], ['blksize', '1e3'], ['blksize', '-8'], ['blksize', ''], ['windowsize', '0'], ['timeout', '0'], ['timeout', '3000'], ['tsize', 'x'], ['__proto__', '1'], ['constructor', '1']])(
    '%s=%s is left out',
    (name, value) => {
      expect(outcome([name, value])).toEqual({ blockSize: 512, windowSize: 1, waitMs: 1000, accepted: [] });
    },
  );

  test('of an option given twice the first counts', () => {
    expect(outcome(['blksize', '512'], ['BlkSize', '8']).accepted).toEqual(options(['blksize', '512']));
  });
});

describe('names', () => {
  const mac = '02:01:48:aa:bb:0c';
  test.each([
    ['ipxe.efi', 'ipxe.efi', null], ['/ipxe.efi', 'ipxe.efi', null], ['//ipxe.efi', 'ipxe.efi', null], ['./ipxe.efi', 'ipxe.efi', null],
    ['\\Boot\\x64\\ipxe.efi', 'Boot/x64/ipxe.efi', null], ['Boot/../ipxe.efi', 'ipxe.efi', null],
    ['/srv/tftp-private/secret', 'srv/tftp-private/secret', null],
    ['02:01:48:aa:bb:0c/undionly.kpxe', 'undionly.kpxe', mac], ['/02-01-48-AA-BB-0C/ipxe.efi', 'ipxe.efi', mac],
    ['ipxe.efi-00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'ipxe.efi', null],
    ['020148aabb0c/ipxe.efi-00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'ipxe.efi', mac],
    ['pxelinux.cfg/01-02-01-48-aa-bb-0c', 'pxelinux.cfg/01-02-01-48-aa-bb-0c', mac],
    ['02:01:48:aa:bb/undionly.kpxe', '02:01:48:aa:bb/undionly.kpxe', null], ['02:01:48:aa:bb:gg/x', '02:01:48:aa:bb:gg/x', null],
  ])('%s names %s (T7, T8)', (asked, path, named) => {
    expect(readName(asked)).toEqual({ kind: 'name', path, mac: named });
  });

  test.each([
    ['../tftp-private/secret', 'outside'], ['..\\tftp-private\\secret', 'outside'], ['Boot/../../tftp-private/secret', 'outside'], ['', 'empty'], ['/', 'empty'], ['..', 'outside'],
    ['02:01:48:aa:bb:0c', 'empty'], ['a\nb', 'unprintable'], ['a\u001b[2J', 'unprintable'], ['x'.repeat(256), 'too-long'],
  ])('%j is refused as %s (T7)', (asked, why) => {
    expect(readName(asked)).toEqual({ kind: 'refused', why });
  });
});

test('netascii sends a line feed as CR LF and a carriage return as CR NUL (T3 b)', () => {
  expect(toNetascii(hex('610a620d')).toString('hex')).toBe('610d0a620d00');
});
