/** The store of a role that must answer before, and without, its store: opened when it is first asked, and tried again while it is away. */
import type { BootDirectory } from '../contracts/boot.js';
import type { NodeLogWriter } from '../contracts/node-logs.js';
import type { Store } from '../store/index.js';
import type { Logger } from '../telemetry/log.js';

export interface LateStore {
  /** Each call throws `store_unavailable` while the store cannot be opened. */
  readonly boot: BootDirectory;
  readonly nodes: Pick<Store['nodes'], 'ping'>;
  readonly logs: NodeLogWriter;
  close(): Promise<void>;
}

/** Between two tries to open: a firmware asks each second, and an opening may take a second itself. */
const AGAIN_MS = 5000;

export function openStoreLate({ open, log, now = Date.now }: { open: () => Promise<LateStore>; log: Logger; now?: () => number }): LateStore {
  let opening: Promise<LateStore> | null = null;
  let refused: { readonly at: number; readonly error: Error } | null = null;

  async function store(): Promise<LateStore> {
    if (opening) return opening;
    if (refused && now() - refused.at < AGAIN_MS) throw refused.error;
    opening = open();
    try {
      const opened = await opening;
      if (refused) log.info('the store is back');
      refused = null;
      return opened;
    } catch (error) {
      log.warn({ reason: (error as Error).message }, 'the store cannot be opened; nodes boot their disks');
      refused = { at: now(), error: error as Error };
      opening = null;
      throw error;
    }
  }

  return {
    boot: {
      byMac: async (mac) => (await store()).boot.byMac(mac),
      byAddress: async (address) => (await store()).boot.byAddress(address),
      rememberSender: async (mac, address, signal) => (await store()).boot.rememberSender(mac, address, signal),
      forgetSender: async (address) => (await store()).boot.forgetSender(address),
      recordBootSeen: async (bootAttempt, signal) => (await store()).boot.recordBootSeen(bootAttempt, signal),
    },
    logs: { keep: async (lines) => (await store()).logs.keep(lines) },
    nodes: { ping: async () => (await store()).nodes.ping() },
    async close() {
      const opened = await opening?.catch(() => null);
      await opened?.close();
    },
  };
}
