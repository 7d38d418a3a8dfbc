/** The syslog receiver of the boot role, with what becomes of its lines: the store, our log, and the system journal when asked. */
import { createJournalForwarder } from '../boot/syslog/journal.js';
import { createLogKeeper } from '../boot/syslog/keeper.js';
import { startSyslogReceiver } from '../boot/syslog/receiver.js';
import type { Config } from '../config/index.js';
import type { NodeLogWriter } from '../contracts/node-logs.js';
import type { Store } from '../store/index.js';
import type { ListenerState } from '../telemetry/listening.js';
import type { Logger } from '../telemetry/log.js';
import type { Metrics } from './metrics.js';
import { urlOf, type RunningRole } from './role.js';

export interface SyslogDeps {
  readonly config: Config;
  readonly store: Pick<Store, 'boot'> & { readonly logs: NodeLogWriter };
  readonly address: string;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Where nodes send their lines: to the boot role, whose host is not always that of the agent plane. */
export const syslogHostOf = ({ syslogHost, assetsUrl, bindAddress }: Pick<Config, 'syslogHost' | 'assetsUrl' | 'bindAddress'>): string =>
  syslogHost ?? new URL(assetsUrl ?? urlOf('http', bindAddress, 0)).hostname.replace(/^\[|\]$/g, '');

/** @throws port_in_use, port_forbidden, address_not_here */
export async function openSyslog({ config, store, address, log, metrics }: SyslogDeps): Promise<RunningRole & { readonly port: number; listener(): ListenerState }> {
  const now = (): Date => new Date();
  const keeper = createLogKeeper({ directory: store.boot, logs: store.logs, now, log, count: (outcome, lines) => metrics.syslogLines.inc({ outcome }, lines) });
  const journal = config.syslogJournal === '' ? null : createJournalForwarder({ program: config.syslogJournal, log });
  const receiver = await startSyslogReceiver({
    address, port: config.syslogPort, now, log,
    sink(line) {
      keeper.take(line);
      journal?.take(line);
    },
  });
  return {
    port: receiver.port,
    listener: () => receiver.listener(),
    async close() {
      await receiver.close();
      await Promise.all([keeper.close(), journal?.close()]);
    },
  };
}
