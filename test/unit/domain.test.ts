/** The small words of the domain: digests, UUIDs, power, phases, actions. */
import { ACTION_NAMES, ACTIONS, OPEN_ORDER_STATES } from '../../src/domain/actions.js';
import { parseSha256 } from '../../src/domain/digest.js';
import { POWER_NAMES, powerWord, readsOff, readsOn, type PowerReading, type PowerWord } from '../../src/domain/power.js';
import { PHASES, PHASES_OF, phasesOf, REQUESTS, RUN_PHASES } from '../../src/domain/runs.js';
import { parseUuid, uuidFromSmbiosHex } from '../../src/domain/uuid.js';

const HEX = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';

describe('a digest (I3)', () => {
  test.each([HEX, HEX.toUpperCase(), `sha256:${HEX}`, `SHA256:${HEX.toUpperCase()}`, `${HEX}\n`])('%j is the digest of abc', (text) => {
    expect(parseSha256(text)).toBe(HEX);
  });
  test.each([
    ['a line of sha256sum', `${HEX}  ./image.raw`], ['63 digits', HEX.slice(1)], ['65 digits', `${HEX}0`], ['sha512', `sha512:${HEX}`], ['md5', 'md5:900150983cd24fb0d6963f7d28e17f72'],
    ['base64', Buffer.from(HEX, 'hex').toString('base64')], ['empty', ''], ['doubled', HEX + HEX], ['two lines', `${HEX}\n\n`], ['a blank in front', ` ${HEX}`], ['a digit that is none', `${HEX.slice(1)}g`],
  ])('%s is none', (_what, text) => {
    expect(parseSha256(text)).toBeNull();
  });
});

describe('a machine UUID', () => {
  const UUID = '4c4c4544-0039-3010-8048-b7c04f4d4b32';
  test.each([[UUID, UUID], [UUID.toUpperCase(), UUID], [` ${UUID}\n`, UUID]])('%j', (text, uuid) => {
    expect(parseUuid(text)).toBe(uuid);
  });
  test.each(['', 'Not Settable', '00000000-0000-0000-0000-000000000000', 'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF', UUID.replaceAll('-', ''), `{${UUID}}`, `${UUID}0`, UUID.replace('4c', 'zz')])('%j is none', (text) => {
    expect(parseUuid(text)).toBeNull();
  });
  test.each([
    ['44454c4c39001030 8048b7c04f4d4b32'.replace(' ', ''), UUID],
    ['44454C4C390010308048B7C04F4D4B32', UUID],
    ['0'.repeat(32), null],
    ['f'.repeat(32), null],
    ['44454c4c', null],
    ['', null],
  ])("AMT's %s in SMBIOS byte order is %s", (hex, uuid) => {
    expect(uuidFromSmbiosHex(hex)).toBe(uuid);
  });
});

describe('power (A5)', () => {
  test.each<[PowerReading, PowerWord, boolean, boolean]>([
    [{ kind: 'read', power: 'on' }, 'on', true, false],
    [{ kind: 'read', power: 'off-hard' }, 'off', false, true],
    [{ kind: 'read', power: 'off-soft' }, 'off', false, true],
    [{ kind: 'read', power: 'hibernate' }, 'sleeping', false, false],
    [{ kind: 'read', power: 'sleep-light' }, 'sleeping', false, false],
    [{ kind: 'read', power: 'sleep-deep' }, 'sleeping', false, false],
    [{ kind: 'read', power: 'powering-off' }, 'settling', false, false],
    [{ kind: 'read', power: 'powering-on' }, 'settling', false, false],
    [{ kind: 'read', power: 'paused' }, 'sleeping', false, false],
    [{ kind: 'settling', why: 'x' }, 'settling', false, false],
    [{ kind: 'unknown', code: 'bmc_unreachable', why: 'x' }, 'unknown', false, false],
    [{ kind: 'unknown', code: 'bmc_auth_failed', why: 'x' }, 'unknown', false, false],
  ])('%j reads %s (on %s, off %s)', (reading, word, on, off) => {
    expect([powerWord(reading), readsOn(reading), readsOff(reading)]).toEqual([word, on, off]);
  });
  test('off is 6 or 8, and no other value', () => {
    const off = Object.entries(POWER_NAMES).filter(([, power]) => readsOff({ kind: 'read', power })).map(([value]) => value);
    expect(off).toEqual(['6', '8']);
  });
});

describe('phases', () => {
  test.each(Object.entries(PHASES_OF))('%s: each phase once, and every phase in the order of the table', (_plan, phases) => {
    const at = phases.map((phase) => RUN_PHASES.indexOf(phase));
    expect(at).toEqual([...at].sort((a, b) => a - b));
    expect(new Set(at).size).toBe(at.length);
  });
  test.each([
    ['provision', false, PHASES_OF.provision], ['provision', true, PHASES_OF.provision], ['reprovision', true, PHASES_OF.reprovision], ['wipe', true, PHASES_OF.wipe],
    ['retire', false, PHASES_OF.retire], ['retire', true, PHASES_OF['retire-with-wipe']],
  ] as const)('%s (wipes: %s)', (kind, wipes, phases) => {
    expect(phasesOf(kind, wipes)).toBe(phases);
  });
  test('permission is withdrawn before the last reboot is handed out', () => {
    for (const kind of ['provision', 'reprovision'] as const) expect(PHASES_OF[kind].indexOf('disarming')).toBeLessThan(PHASES_OF[kind].indexOf('rebooting'));
  });
  test('the request is taken, and the node off, before anything boots; nothing acts unattested', () => {
    for (const phases of Object.values(PHASES_OF) as (readonly string[])[]) {
      expect(phases.slice(0, 3)).toEqual(['planning', 'taking', 'powering-off']);
      if (phases.includes('acting')) expect(phases.indexOf('acting')).toBe(phases.indexOf('awaiting-attestation') + 1);
    }
  });
  test('a retirement ends with being seen off', () => {
    for (const wipes of [false, true]) expect(phasesOf('retire', wipes).at(-1)).toBe('confirming');
  });
  test('every phase belongs to some run', () => {
    const used = new Set<string>(REQUESTS.flatMap((kind) => [...phasesOf(kind, false), ...phasesOf(kind, true)]));
    expect(Object.keys(PHASES).filter((phase) => !used.has(phase))).toEqual([]);
  });
});

describe('actions', () => {
  test('only a wipe and an image destroy', () => {
    expect(ACTION_NAMES.filter((name) => ACTIONS[name].destructive)).toEqual(['wipe-disk', 'write-image']);
  });
  test('an order is open while it is queued or taken', () => {
    expect([...OPEN_ORDER_STATES]).toEqual(['queued', 'consumed']);
  });
});
