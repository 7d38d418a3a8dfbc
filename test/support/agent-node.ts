/** A machine for the tests of the agent: file disks in a folder of their own, a key, a journal file. */
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { fileDisk, type FileDiskFacts } from '../../src/agent/file-disk.js';
import { fileJournal, readJournal } from '../../src/agent/journal.js';
import type { AgentDisk, AgentMachine, JournalEntry } from '../../src/contracts/agent-machine.js';
import type { Sleep } from '../../src/agent/sleep.js';

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

export interface TestNode {
  readonly machine: AgentMachine;
  /** Adds a disk that holds these bytes. */
  addDisk(serial: string, content: Buffer, facts?: Partial<FileDiskFacts>): Promise<AgentDisk>;
  contentOf(serial: string): Buffer;
  pathOf(serial: string): string;
  journal(): JournalEntry[];
  readonly did: string[];
  remove(): void;
}

export function createTestNode(overrides: Partial<AgentMachine> = {}): TestNode {
  const folder = mkdtempSync(join(tmpdir(), 'metalflow-agent-'));
  const journalPath = join(folder, 'journal.ndjson');
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const disks: AgentDisk[] = [];
  const did: string[] = [];
  const pathOf = (serial: string): string => join(folder, `${serial}.img`);
  const machine: AgentMachine = {
    systemUuid: '4c4c4544-0042-3510-8051-b4c04f4a4d31',
    bootMac: '02:01:48:aa:bb:0c',
    akPublic: publicKey.export({ format: 'der', type: 'spki' }),
    sign: async (bytes) => sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' }),
    lldpFrame: async () => Buffer.from('0207040cdb000102030405', 'hex'),
    disks: async () => disks,
    setNextBoot: async (disk) => {
      did.push(`next boot ${disk.serial}`);
      return 'noted';
    },
    reboot: async () => {
      did.push('reboot');
    },
    ...fileJournal(journalPath),
    ...overrides,
  };
  return {
    machine,
    async addDisk(serial, content, facts = {}) {
      await writeFile(pathOf(serial), content);
      const disk = await fileDisk({ path: pathOf(serial), serial, ...facts });
      disks.push(disk);
      return disk;
    },
    contentOf: (serial) => readFileSync(pathOf(serial)),
    pathOf,
    journal: () => readJournal(journalPath),
    did,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** A thousand times faster than asked, and written down. */
export function quickSleep(): Sleep & { readonly asked: number[] } {
  const asked: number[] = [];
  const sleep: Sleep = (ms, signal) => {
    asked.push(ms);
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms / 1000);
      signal?.addEventListener('abort', done);
      if (signal?.aborted) done();
    });
  };
  return Object.assign(sleep, { asked });
}

export interface DemoImage {
  readonly payload: string;
  readonly file: string;
  readonly compression: 'gzip';
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly unpackedBytes: number;
  readonly contentDigest: string;
}

const IMAGES = join(__dirname, '../../demo/images');
export const demoImages = (): DemoImage[] => JSON.parse(readFileSync(join(IMAGES, 'index.json'), 'utf8')) as DemoImage[];

type LoadedImage = DemoImage & { readonly packed: Buffer; readonly raw: Buffer };
const loaded = new Map<string, LoadedImage>();

/** Not to be changed by a test: it is shared. */
export function demoImage(payload: string): LoadedImage {
  let image = loaded.get(payload);
  if (!image) {
    const facts = demoImages().find((one) => one.payload === payload)!;
    const packed = readFileSync(join(IMAGES, facts.file));
    image = { ...facts, packed, raw: gunzipSync(packed) };
    loaded.set(payload, image);
  }
  return image;
}
