import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { truncate, utimes, writeFile } from 'node:fs/promises';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { request } from 'undici';
import { createDigests } from '../../src/boot/assets/digests.js';
import { createListing } from '../../src/boot/assets/listing.js';
import { createBootFiles } from '../../src/boot/files.js';
import { createBootHttp } from '../../src/boot/http.js';
import { BootSettings } from '../../src/boot/settings.js';
import type { HttpServer } from '../../src/telemetry/http.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { fakeBootDirectory } from '../support/boot-directory.js';
import { bootFolder, patterned, type BootFolder } from '../support/tftp-server.js';
import { until } from '../support/until.js';

const IMAGE = patterned(1_000_000);
/** Above what is kept in memory. */
const LARGE = patterned(5 * 1024 * 1024);
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
let folder: BootFolder;
let server: HttpServer;
let base: string;

beforeAll(async () => {
  folder = await bootFolder({
    'images/node.raw': IMAGE, 'images/cut.raw': Buffer.alloc(32 * 1024 * 1024), 'images/large.raw': LARGE, 'images/empty': '', 'images/changing': 'first', [`images/${sha256(IMAGE)}.raw`]: IMAGE, 'images/sub/deep.raw': 'deep', '../private/secret': 'secret', 'vmlinuz-x86_64': 'kernel',
  });
  await folder.link('images/out', '../../private/secret');
  const log = silentLogger();
  server = createBootHttp({
    // No device may boot anything: class images do not ask.
    gate: { decide: async () => ({ kind: 'boot-disk', subject: null, why: 'no_permission' }) },
    directory: fakeBootDirectory(), settings: BootSettings.parse({ agentUrl: 'https://10.0.0.1:42114' }),
    assetsDir: folder.root, binaries: createBootFiles({ roots: [], log }), log, ready: async () => {},
    classImages: async () => [{ className: 'nixos', path: 'images/node.raw', sha256: sha256(IMAGE) }, { className: 'talos', path: 'images/node.raw', sha256: '0'.repeat(64) }, { className: 'gone', path: 'images/gone.raw', sha256: '0'.repeat(64) }],
  });
  base = await server.listen({ host: '127.0.0.1', port: 0 });
  // A request waits two seconds for a digest, and then goes without: what is asked for below has one.
  await untilTaken();
});
afterAll(async () => {
  await server.close();
  await folder.remove();
});

interface Listed { readonly name: string; readonly size: number; readonly sha256: string | null; readonly classes: { class: string; digest: string }[] }
const listed = async (): Promise<Listed[]> => ((await (await request(`${base}/assets/images/`)).body.json()) as { images: Listed[] }).images;
const untilTaken = (): Promise<Listed[]> => until('the digests are taken', async () => {
  const images = await listed();
  return images.every((image) => image.sha256 !== null) && images;
});

const fetchAsset = async (name: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') => {
  const answer = await request(`${base}/assets/${name}`, { method, headers });
  return { status: answer.statusCode, headers: answer.headers, bytes: Buffer.from(await answer.body.arrayBuffer()) };
};

describe('a class image', () => {
  test('is served whole, with the ETag of its digest, to a node that may boot nothing', async () => {
    const { status, headers, bytes } = await fetchAsset('images/node.raw');
    expect(status).toBe(200);
    expect(bytes.equals(IMAGE)).toBe(true);
    expect(headers).toMatchObject({ etag: `"${sha256(IMAGE)}"`, 'content-length': '1000000', 'accept-ranges': 'bytes', 'cache-control': 'public, no-cache' });
  });
  test('whose name holds its digest may be kept for ever', async () => {
    expect((await fetchAsset(`images/${sha256(IMAGE)}.raw`)).headers['cache-control']).toBe('public, max-age=31536000, immutable');
  });
  test('answers HEAD with the length and no byte', async () => {
    const { status, headers, bytes } = await fetchAsset('images/node.raw', {}, 'HEAD');
    expect([status, headers['content-length'], bytes.length]).toEqual([200, '1000000', 0]);
  });
  test('that is empty is served', async () => {
    expect(await fetchAsset('images/empty')).toMatchObject({ status: 200, headers: { 'content-length': '0', etag: `"${sha256(Buffer.alloc(0))}"` } });
  });
  test('larger than memory is kept for is streamed whole', async () => {
    expect((await fetchAsset('images/large.raw')).bytes.equals(LARGE)).toBe(true);
  });

  test.each([['bytes=0-99', 0, 99], ['bytes=999990-', 999_990, 999_999], ['bytes=-5', 999_995, 999_999], ['bytes=500000-9999999', 500_000, 999_999]])('%s is a part', async (range, from, to) => {
    const { status, headers, bytes } = await fetchAsset('images/node.raw', { range });
    expect([status, headers['content-range'], headers['content-length']]).toEqual([206, `bytes ${from}-${to}/1000000`, String(to - from + 1)]);
    expect(bytes.equals(IMAGE.subarray(from, to + 1))).toBe(true);
  });
  test('is a part of a large one at its end as well', async () => {
    expect((await fetchAsset('images/large.raw', { range: 'bytes=-300000' })).bytes.equals(LARGE.subarray(-300_000))).toBe(true);
  });
  test.each(['bytes=0-1,5-6', 'bytes=x', 'lines=1-2'])('%s is answered with the whole', async (range) => {
    const { status, bytes } = await fetchAsset('images/node.raw', { range });
    expect([status, bytes.equals(IMAGE)]).toEqual([200, true]);
  });
  test('a range behind its end is 416 with the size', async () => {
    expect(await fetchAsset('images/node.raw', { range: 'bytes=1000000-' })).toMatchObject({ status: 416, headers: { 'content-range': 'bytes */1000000' } });
  });
  test('that the client has is 304, and 200 when it has another', async () => {
    const etag = `"${sha256(IMAGE)}"`;
    expect(await fetchAsset('images/node.raw', { 'if-none-match': `"x", W/${etag}` })).toMatchObject({ status: 304, headers: { etag } });
    expect((await fetchAsset('images/node.raw', { 'if-none-match': '"x"' })).status).toBe(200);
  });
  test('goes on where it broke off only when it is the same file', async () => {
    const range = 'bytes=10-19';
    expect((await fetchAsset('images/node.raw', { range, 'if-range': `"${sha256(IMAGE)}"` })).status).toBe(206);
    const { status, bytes } = await fetchAsset('images/node.raw', { range, 'if-range': '"x"' });
    expect([status, bytes.equals(IMAGE)]).toEqual([200, true]);
  });
  test('has another ETag when it is replaced, even by one of the same size', async () => {
    const before = (await fetchAsset('images/changing')).headers.etag;
    await writeFile(join(folder.root, 'images/changing'), 'other');
    await utimes(join(folder.root, 'images/changing'), new Date(), new Date(Date.now() + 60_000));
    await untilTaken();
    const after = await fetchAsset('images/changing');
    expect([before, after.headers.etag]).toEqual([`"${sha256(Buffer.from('first'))}"`, `"${sha256(Buffer.from('other'))}"`]);
    expect(after.bytes.toString()).toBe('other');
  });
});

describe('the class images', () => {
  test('are listed with size, digest and the classes that install them, and whether the digest of the class fits', async () => {
    const images = await untilTaken();
    expect(images.map(({ name }) => name)).toEqual([...images.map(({ name }) => name)].sort());
    expect(images.find(({ name }) => name === 'node.raw')).toEqual({ name: 'node.raw', size: IMAGE.length, sha256: sha256(IMAGE), classes: [{ class: 'nixos', digest: 'fits' }, { class: 'talos', digest: 'differs' }] });
    expect(images.map(({ name }) => name)).toEqual(expect.arrayContaining(['large.raw', 'sub/deep.raw', 'empty']));
    // Neither what needs the gate nor what lies outside.
    expect(images.filter(({ name }) => /vmlinuz|out|gone|secret/.test(name))).toEqual([]);
  });

  test('have sums that sha256sum reads', async () => {
    await untilTaken();
    const answer = await request(`${base}/assets/images/SHA256SUMS`);
    const text = await answer.body.text();
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8']);
    await expect(sha256sumChecks(join(folder.root, 'images'), text)).resolves.toContain('large.raw: OK');
  });

  test('have no sums while a digest is being taken: half a list would pass for the whole', async () => {
    const held = { name: 'images/f', size: 3, modified: new Date(0), version: '1', read: () => new Promise<Buffer>(() => {}), close: async () => {} };
    const files = { open: async () => held, names: async () => ['images/f'] };
    const listing = createListing({ files, digests: createDigests({ files, log: silentLogger() }), classImages: async () => [{ className: 'talos', path: 'images/f', sha256: '0'.repeat(64) }] });
    await expect(listing.sums()).rejects.toMatchObject({ code: 'digests_pending' });
    expect(await listing.images()).toEqual([{ name: 'f', size: 3, sha256: null, classes: [{ class: 'talos', digest: 'being-taken' }] }]);
  });
});

/** What the program says of the sums, run in the folder. @throws when one does not fit */
async function sha256sumChecks(folderOfImages: string, sums: string): Promise<string> {
  const program = execFile('sha256sum', ['--strict', '-c', '-'], { cwd: folderOfImages });
  let said = '';
  program.stdout!.on('data', (text: string) => (said += text));
  program.stdin!.end(sums);
  const code = await new Promise((resolve) => program.once('close', resolve));
  if (code !== 0) throw new Error(`sha256sum: ${code}\n${said}`);
  return said;
}

describe('nothing outside the folder', () => {
  test.each(['images/out', 'images/..%2f..%2fprivate/secret', '..%2fprivate%2fsecret', 'images/%2e%2e/%2e%2e/private/secret', 'images/sub', 'images/sub/', 'images//node.raw', 'images/node.raw%00', 'images/%5c..%5csecret', '%2fetc%2fpasswd'])('%s is refused', async (name) => {
    const { status, bytes } = await raw(`/assets/${name}`);
    expect([400, 403, 404]).toContain(status);
    expect(bytes).not.toContain('secret\n');
    expect(bytes).not.toContain('root:');
  });
  test('an unfinished percent code is a bad request, not a failure', async () => {
    expect((await raw('/assets/images/%zz')).status).toBe(400);
  });
  test('what is no image asks the gate', async () => {
    expect((await fetchAsset('vmlinuz-x86_64')).status).toBe(403);
    // Another spelling of a gated name must not turn it into an image.
    expect((await raw('/assets/images/../vmlinuz-x86_64')).bytes).not.toContain('kernel');
    expect((await raw('/assets/images/%2e%2e/vmlinuz-x86_64')).bytes).not.toContain('kernel');
  });
});

/** A request whose path no client library has tidied up. */
async function raw(path: string): Promise<{ status: number; bytes: string }> {
  const socket = connect((server.server.address() as AddressInfo).port, '127.0.0.1');
  socket.setTimeout(60_000, () => socket.destroy(new Error('no answer')));
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks).toString('latin1');
  return { status: Number(bytes.split(' ')[1]), bytes };
}

test('a client that leaves in the middle costs no open file', async () => {
  const opened: { closed: boolean }[] = [];
  const log = silentLogger();
  const files = createBootFiles({ roots: [folder.root], log });
  const watching = createBootHttp({
    gate: { decide: async () => ({ kind: 'wait-menu', subject: null, why: 'unknown_device' }) },
    directory: fakeBootDirectory(), settings: BootSettings.parse({ agentUrl: 'https://10.0.0.1:42114' }), assetsDir: folder.root,
    binaries: {
      names: files.names,
      open: async (name) => {
        const file = await files.open(name);
        const mark = { closed: false };
        opened.push(mark);
        return file && { ...file, close: () => ((mark.closed = true), file.close()) };
      },
    },
    log, ready: async () => {},
  });
  const at = await watching.listen({ host: '127.0.0.1', port: 0 });
  const leaving = new AbortController();
  const answer = await request(`${at}/ipxe/binary/images/large.raw`, { signal: leaving.signal });
  answer.body.once('error', () => {});
  leaving.abort();
  await until('every opened file is closed', () => opened.length > 0 && opened.every(({ closed }) => closed));
  await watching.close();
});

test('a file that becomes shorter while it is sent breaks the connection off', async () => {
  const cut = join(folder.root, 'images/cut.raw');
  const answer = await request(`${base}/assets/images/cut.raw`);
  await truncate(cut, 1000);
  await expect(answer.body.arrayBuffer()).rejects.toThrow();
});

test('a file that is hashed for longer than a client waits is served without ETag, and with it later', async () => {
  let go = (): void => {};
  const held = new Promise<void>((resolve) => (go = resolve));
  const file = { name: 'f', size: 3, modified: new Date(0), version: '1', read: () => held.then(() => Buffer.from('abc')), close: async () => {} };
  const digests = createDigests({ files: { open: async () => file, names: async () => ['f'] }, log: silentLogger(), patienceMs: 5 });
  expect(await digests.of(file)).toBeNull();
  go();
  expect(await digests.of(file)).toBe(sha256(Buffer.from('abc')));
});
