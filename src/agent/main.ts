/** The agent on a real node: `node agent.mjs`, started by the netboot system. Everything it needs is on the kernel command line. */
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { createLogger } from '../telemetry/log.js';
import { runAgent } from './agent.js';
import { parseCommandLine } from './cmdline.js';
import { createLocalMachine } from './local-machine.js';

/** The authority of the agent plane's certificate, when the netboot image brings one. */
const CA_FILE = '/etc/metalflow/ca.pem';
/** A NIC may come up late, and nobody would start the agent again. */
const START_AGAIN_MS = 5000;

const log = createLogger({ level: 'info', role: 'agent' });
const told = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => told.abort());

while (!told.signal.aborted) {
  try {
    const { url, bootMac } = parseCommandLine(await readFile('/proc/cmdline', 'utf8'));
    const ca = await readFile(CA_FILE, 'utf8').catch(() => undefined);
    const machine = await createLocalMachine({ bootMac });
    log.info({ url, systemUuid: machine.systemUuid, bootMac: machine.bootMac }, 'the agent begins');
    const end = await runAgent({ api: url, machine, log, ca, signal: told.signal });
    log.info({ end }, 'the agent ends');
    break;
  } catch (error) {
    log.error({ err: error, againInMs: START_AGAIN_MS }, 'the agent cannot begin');
    await delay(START_AGAIN_MS, undefined, { signal: told.signal }).catch(() => undefined);
  }
}
