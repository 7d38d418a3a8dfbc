/** A TFTP server over a folder of its own and the fake store, for protocol tests. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createBootFiles } from '../../src/boot/files.js';
import { createBootGate } from '../../src/boot/gate.js';
import type { TftpLimits } from '../../src/boot/tftp/limits.js';
import { startTftpServer, type TftpServer } from '../../src/boot/tftp/server.js';
import type { UnknownMacPolicy } from '../../src/contracts/boot.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { fakeBootDirectory, NOW, type FakeBootDirectory } from './boot-directory.js';

export interface BootFolder {
  readonly root: string;
  put(name: string, bytes: Buffer | string): Promise<void>;
  link(name: string, target: string): Promise<void>;
  remove(): Promise<void>;
}

/** `<tmp>/tftp`, with room for siblings. */
export async function bootFolder(files: Readonly<Record<string, Buffer | string>> = {}): Promise<BootFolder> {
  const parent = await mkdtemp(join(tmpdir(), 'metalflow-boot-'));
  const root = join(parent, 'tftp');
  const put = async (name: string, bytes: Buffer | string): Promise<void> => {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), bytes);
  };
  await mkdir(root);
  for (const [name, bytes] of Object.entries(files)) await put(name, bytes);
  return { root, put, link: (name, target) => symlink(target, join(root, name)), remove: () => rm(parent, { recursive: true, force: true }) };
}

/** Where packets are counted: nothing is sent again, or given up, only because the machine is slow. */
export const PATIENT: Partial<TftpLimits> = { waitMs: 30_000, waitMostMs: 30_000, waitLeastMs: 30_000 };

export interface TestTftp {
  readonly server: TftpServer;
  readonly directory: FakeBootDirectory;
}

export async function testTftp(root: string, options: { unknownMac?: UnknownMacPolicy; limits?: Partial<TftpLimits>; inMemory?: ReadonlyMap<string, Buffer> } = {}): Promise<TestTftp> {
  const directory = fakeBootDirectory();
  const log = silentLogger();
  const gate = createBootGate({ directory, unknownMac: options.unknownMac ?? 'menu', now: () => NOW, log });
  const files = createBootFiles({ roots: [root], inMemory: options.inMemory, log });
  const server = await startTftpServer({ gate, files, address: '127.0.0.1', port: 0, log, limits: options.limits });
  return { server, directory };
}

/** Distinct bytes at every offset, so that a swapped or repeated block shows. */
export function patterned(size: number): Buffer {
  const bytes = Buffer.alloc(size);
  for (let offset = 0; offset + 4 <= size; offset += 4) bytes.writeUInt32LE(Math.imul(offset, 2_654_435_761) >>> 0, offset);
  return bytes;
}
