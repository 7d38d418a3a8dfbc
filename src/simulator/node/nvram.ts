/** The firmware's variables, of which a simulated node needs one: its boot order. */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { z } from 'zod';

/** `serial` null stands for the first disk that is bootable, as a factory-new firmware has it. */
const BootDevice = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('network') }),
  z.strictObject({ kind: z.literal('disk'), serial: z.string().max(200).nullable() }),
]);
export type BootDevice = z.infer<typeof BootDevice>;

const NvramFile = z.strictObject({ version: z.literal(1), bootOrder: z.array(BootDevice).min(1).max(16) });

/** As fleets are racked: the network is asked first, and the boot plane says when the disk's turn is. */
export const FACTORY_BOOT_ORDER: readonly BootDevice[] = [{ kind: 'network' }, { kind: 'disk', serial: null }];

export interface Nvram {
  bootOrder(): readonly BootDevice[];
  /** Puts the disk in front, as `efibootmgr --create` does; the rest keeps its order. */
  bootDiskFirst(serial: string): void;
}

function load(path: string): readonly BootDevice[] | 'none' | 'unreadable' {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return 'none';
  }
  try {
    return NvramFile.parse(JSON.parse(text)).bootOrder;
  } catch {
    return 'unreadable';
  }
}

function save(path: string, bootOrder: readonly BootDevice[]): void {
  const file = openSync(`${path}.new`, 'w', 0o600);
  try {
    writeSync(file, JSON.stringify({ version: 1, bootOrder }));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(`${path}.new`, path);
}

/** Opens the variables at `path`. A firmware that cannot read its variables starts from the factory's; `onReset` hears of it. */
export function openNvram({ path, onReset }: { path: string; onReset: () => void }): Nvram {
  const found = load(path);
  if (found === 'unreadable') onReset();
  let order = typeof found === 'string' ? FACTORY_BOOT_ORDER : found;
  return {
    bootOrder: () => order,
    bootDiskFirst(serial) {
      order = [{ kind: 'disk', serial }, ...order.filter((device) => device.kind !== 'disk' || device.serial !== serial)].slice(0, 16) as BootDevice[];
      save(path, order);
    },
  };
}
