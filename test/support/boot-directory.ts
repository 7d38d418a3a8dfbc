/** The boot plane's store, in memory, for tests that need no database. */
import type { BootDirectory, BootSubject } from '../../src/contracts/boot.js';
import { MetalflowError } from '../../src/domain/errors.js';

export interface FakeBootDirectory extends BootDirectory {
  readonly devices: Map<string, BootSubject>;
  readonly addresses: Map<string, string>;
  /** Boot attempts recorded as seen, in order. */
  readonly seen: string[];
  /** `fails`: every call throws store_unavailable; `hangs`: none ever answers. */
  mode: 'works' | 'fails' | 'hangs';
}

export function fakeBootDirectory(devices: Readonly<Record<string, BootSubject>> = {}): FakeBootDirectory {
  const guard = async (): Promise<void> => {
    if (directory.mode === 'fails') throw new MetalflowError('store_unavailable', { why: 'switched off by the test' });
    if (directory.mode === 'hangs') await new Promise<never>(() => {});
  };
  const directory: FakeBootDirectory = {
    devices: new Map(Object.entries(devices)),
    addresses: new Map(),
    seen: [],
    mode: 'works',
    async byMac(mac) {
      await guard();
      return directory.devices.get(mac) ?? null;
    },
    async byAddress(address) {
      await guard();
      return directory.devices.get(directory.addresses.get(address) ?? '') ?? null;
    },
    async rememberSender(mac, address) {
      await guard();
      directory.addresses.set(address, mac);
    },
    async forgetSender(address) {
      await guard();
      directory.addresses.delete(address);
    },
    async recordBootSeen(bootAttempt) {
      await guard();
      directory.seen.push(bootAttempt);
    },
  };
  return directory;
}

export const NOW = new Date('2026-11-20T10:00:00Z');
export const MAC = '02:01:48:aa:bb:0c';

export function bootSubject(changes: Partial<BootSubject> = {}): BootSubject {
  return { deviceId: '7', name: 'node-7', state: 'active', systemUuid: null, permission: null, ...changes };
}

/** A device whose run may boot for five more minutes. */
export const permitted = (changes: Partial<BootSubject> = {}): BootSubject =>
  bootSubject({ state: 'provisioning', permission: { run: 3, bootAttempt: 'attempt-1', expiresAt: '2026-11-20T10:05:00Z' }, ...changes });
