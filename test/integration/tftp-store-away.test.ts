/** The store is locked by another process, or its file is gone: the boot plane answers in time, and safely. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { declareNode, startBootProcess, type BootProcess } from '../support/boot-process.js';
import { BareClient, fetchWithPackage } from '../support/tftp-client.js';
import { patterned } from '../support/tftp-server.js';
import { until } from '../support/until.js';

const MAC = '02:00:00:00:00:01';
const FILE = patterned(400_000);
const DISK = '#!ipxe\necho netboot-not-allowed\nexit\n';
/** Of a client for an answer; as long as the test holds the store it can be no other than one that did not wait for the store. */
const PATIENCE_MS = 60_000;

let boot: BootProcess;
beforeEach(async () => {
  boot = await startBootProcess({ tftp: { 'ipxe.efi': FILE }, store: (store) => declareNode(store, '1', MAC, 'provisioning', true).then(() => undefined) });
});
afterEach(() => boot?.stop());

const script = async (): Promise<string> => (await fetch(`${boot.httpUrl}/ipxe/script/${MAC}/auto.ipxe`, { signal: AbortSignal.timeout(PATIENCE_MS) })).text();

/** Another process that holds the write lock until it is killed. */
async function lock(): Promise<{ free(): Promise<void> }> {
  const holder = spawn(process.execPath, ['-e', `const Database = require('libsql'); const db = new Database(process.argv[1]); db.exec('pragma busy_timeout = 60000'); db.exec('begin immediate'); console.log('locked'); setInterval(() => {}, 1000);`, boot.databaseFile], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(holder.stdout, 'data');
  return {
    async free() {
      holder.kill('SIGKILL');
      await once(holder, 'exit');
    },
  };
}

test('while another process holds the store, a boot that cannot be recorded is the disk, transfers go on, and all is well again when it lets go', async () => {
  expect(await script()).toContain('device 1, run 1');
  const client = await BareClient.open(boot.tftpPort);
  await client.ask(`${MAC}/ipxe.efi`);
  const holder = await lock();
  try {
    // A boot already seen is not written again, but its sender is: the request waits for the lock, and nothing else does.
    const asking = script();
    expect((await client.receiveFile(512)).equals(FILE)).toBe(true);
    expect(await fetch(`${boot.httpUrl}/healthz`).then(({ status }) => status)).toBe(200);
    expect([DISK, expect.stringContaining('device 1, run 1')]).toContainEqual(await asking);
  } finally {
    await holder.free();
    client.close();
  }
  await until('the script of the run', async () => (await script()).includes('device 1, run 1'));
  expect((await fetchWithPackage(boot.tftpPort, `${MAC}/ipxe.efi`)).equals(FILE)).toBe(true);
});

test('a store that is no database any more is "boot your disk" at TFTP and HTTP, at once', async () => {
  await writeFile(boot.databaseFile, Buffer.alloc(65_536, 7));
  await writeFile(`${boot.databaseFile}-wal`, '');
  await expect(fetchWithPackage(boot.tftpPort, `${MAC}/ipxe.efi`)).rejects.toThrow(/netboot-not-allowed/);
  expect(await script()).toBe(DISK);
  const kernel = await fetch(`${boot.httpUrl}/assets/vmlinuz-x86_64?mac=${MAC}`);
  expect(kernel.status).toBe(403);
  expect((await fetch(`${boot.httpUrl}/healthz`)).status).toBe(200);
  expect(boot.isRunning()).toBe(true);
});
