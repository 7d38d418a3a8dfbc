import { createBootGate, decideBoot, type BootCount } from '../../src/boot/gate.js';
import { plainAddress } from '../../src/boot/sender.js';
import type { BootRequest, UnknownMacPolicy } from '../../src/contracts/boot.js';
import { LIFECYCLE_STATES, WAIT_MENU_STATES } from '../../src/domain/states.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { bootSubject, fakeBootDirectory, MAC, NOW, permitted } from '../support/boot-directory.js';

const at = (expiresAt: string) => ({ run: 3, bootAttempt: 'attempt-1', expiresAt });

describe('the decision', () => {
  test.each([
    ['a permission that is leased', permitted(), 'run-boot', 'permission_leased'],
    ['a permission that has just ended', permitted({ permission: at(NOW.toISOString()) }), 'boot-disk', 'permission_expired'],
    ['a permission whose end cannot be read', permitted({ permission: at('soon') }), 'boot-disk', 'permission_expired'],
    ['an active device without permission', bootSubject(), 'boot-disk', 'no_permission'],
    ['a device that waits, its old permission ended', bootSubject({ state: 'available', permission: at('2026-11-20T09:00:00Z') }), 'wait-menu', 'waits_for_request'],
  ])('%s', (_, subject, kind, why) => {
    expect(decideBoot(subject, 'menu', NOW)).toMatchObject({ kind, why });
  });

  test.each(LIFECYCLE_STATES)('without permission a device in state %s gets the menu only when it waits for a request', (state) => {
    const waits = (WAIT_MENU_STATES as readonly string[]).includes(state);
    expect(decideBoot(bootSubject({ state }), 'menu', NOW).kind).toBe(waits ? 'wait-menu' : 'boot-disk');
  });

  test.each<[UnknownMacPolicy, string]>([['menu', 'wait-menu'], ['disk', 'boot-disk'], ['silent', 'silent']])('an unknown device under policy %s is answered %s', (policy, kind) => {
    expect(decideBoot(null, policy, NOW)).toEqual({ kind, subject: null, why: 'unknown_device' });
  });
});

describe('the gate', () => {
  const request = (changes: Partial<BootRequest> = {}): BootRequest => ({ artefact: 'script', mac: MAC, sender: '10.0.0.5', path: '/x', ...changes });
  const gateOver = (directory = fakeBootDirectory({ [MAC]: permitted() }), counted: BootCount[] = []) =>
    createBootGate({ directory, unknownMac: 'disk', now: () => NOW, log: silentLogger(), count: (decision) => counted.push(decision), lookupMs: 20 });

  test.each(['10.0.0.5', '::ffff:10.0.0.5', '::FFFF:10.0.0.5'])('finds a device that names no MAC by its address, shown as %s', async (sender) => {
    const directory = fakeBootDirectory({ [MAC]: permitted() });
    directory.addresses.set('10.0.0.5', MAC);
    expect(await gateOver(directory).decide(request({ mac: null, sender }))).toMatchObject({ kind: 'run-boot' });
  });

  test('does not take the address when a MAC is named that nobody knows', async () => {
    const directory = fakeBootDirectory({ [MAC]: permitted() });
    directory.addresses.set('10.0.0.5', MAC);
    expect(await gateOver(directory).decide(request({ mac: '02:00:00:00:00:99' }))).toMatchObject({ kind: 'boot-disk', why: 'unknown_device' });
  });

  test.each<[UnknownMacPolicy, string]>([['menu', 'wait-menu'], ['disk', 'boot-disk'], ['silent', 'silent']])('under policy %s gives a machine whose address another one had in an earlier boot the first program, and else %s', async (unknownMac, otherwise) => {
    const directory = fakeBootDirectory({ [MAC]: permitted({ byEarlierBoot: true }) });
    directory.addresses.set('10.0.0.5', MAC);
    const gate = createBootGate({ directory, unknownMac, now: () => NOW, log: silentLogger() });
    expect(await gate.decide(request({ mac: null, artefact: 'binary' }))).toMatchObject({ kind: 'run-boot' });
    for (const artefact of ['script', 'asset'] as const) {
      expect(await gate.decide(request({ mac: null, artefact }))).toEqual({ kind: otherwise, subject: null, why: 'address_of_earlier_boot' });
    }
  });

  test.each(['fails', 'hangs'] as const)('answers boot-disk when the store %s', async (mode) => {
    const directory = fakeBootDirectory({ [MAC]: permitted() });
    directory.mode = mode;
    expect(await gateOver(directory).decide(request())).toEqual({ kind: 'boot-disk', subject: null, why: 'store_unavailable' });
  });

  test('answers boot-disk when the store throws at once, and not as a promise', async () => {
    const directory = fakeBootDirectory();
    directory.byMac = () => {
      throw new Error('closed');
    };
    expect(await gateOver(directory).decide(request())).toMatchObject({ kind: 'boot-disk', why: 'store_unavailable' });
  });

  test('counts what it decided, and decides although the counter throws', async () => {
    const counted: BootCount[] = [];
    await gateOver(undefined, counted).decide(request({ artefact: 'binary' }));
    expect(counted).toEqual([{ artefact: 'binary', answer: 'run-boot', why: 'permission_leased' }]);
    const broken = createBootGate({ directory: fakeBootDirectory({ [MAC]: permitted() }), unknownMac: 'disk', now: () => NOW, log: silentLogger(), count: () => { throw new Error('no registry'); } });
    expect(await broken.decide(request())).toMatchObject({ kind: 'run-boot' });
  });
});

test.each([['::ffff:10.0.37.16', '10.0.37.16'], ['fe80::1%eth0', 'fe80::1'], ['FE80::1', 'fe80::1'], ['10.0.0.5', '10.0.0.5']])('the sender %s is matched as %s (S2 g)', (shown, plain) => {
  expect(plainAddress(shown)).toBe(plain);
});
