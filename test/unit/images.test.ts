import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import type { PlannedImage } from '../../src/contracts/plan.js';
import { refuseUrl } from '../../src/images/https-source.js';
import { createImageStore, type ImageStoreDeps } from '../../src/images/image-store.js';
import { silentLogger } from '../../src/telemetry/log.js';

const BYTES = Buffer.from(Array.from({ length: 2048 }, (_, i) => i % 256));
const DIGEST = '10fc3c51a152e90e5b90319b601d92ccf37290ef53c35ff92507687d8a911a08';
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const image = (change: Partial<PlannedImage>): PlannedImage => ({ source: 'asset:image.raw', url: 'unused', sha256: DIGEST, sizeBytes: BYTES.length, compression: 'none', unpackedBytes: BYTES.length, ...change });

describe('the image store', () => {
  let folder: string;
  let server: Server;
  let origin: string;
  let answer: RequestListener;
  let asked: IncomingMessage[];
  const open = new Set<{ close(): Promise<void> }>();

  const storeWith = (change: Partial<ImageStoreDeps> = {}): ReturnType<typeof createImageStore> => {
    const store = createImageStore({ assetsDir: path.join(folder, 'assets'), assetsUrl: 'http://10.0.0.1:7080/assets', maxBytes: 1_000_000, allowHttpFor: origin, log: silentLogger(), ...change });
    open.add(store);
    return store;
  };
  const check = (change: Partial<PlannedImage>, deps: Partial<ImageStoreDeps> = {}, signal = new AbortController().signal, progress: (bytes: number) => void = () => {}): ReturnType<ReturnType<typeof createImageStore>['check']> =>
    storeWith(deps).check(image(change), progress, signal);

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'metalflow-images-'));
    mkdirSync(path.join(folder, 'assets/images'), { recursive: true });
    writeFileSync(path.join(folder, 'assets/image.raw'), BYTES);
    writeFileSync(path.join(folder, 'assets/images/abc'), 'abc');
    writeFileSync(path.join(folder, 'outside'), BYTES);
    symlinkSync(path.join(folder, 'outside'), path.join(folder, 'assets/leaving'));
    symlinkSync('image.raw', path.join(folder, 'assets/staying'));
    symlinkSync('/dev/zero', path.join(folder, 'assets/zero'));
    server = createServer((request, response) => {
      asked.push(request);
      answer(request, response);
    });
    await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  beforeEach(() => { asked = []; });
  afterEach(async () => {
    for (const store of open) await store.close();
    open.clear();
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => { server.close(resolve); });
    rmSync(folder, { recursive: true });
  });

  describe('over the wire (I1)', () => {
    test('I1 (a): asks for the bytes as they are stored, and hashes those', async () => {
      answer = (_, response) => response.writeHead(200, { 'content-length': BYTES.length }).end(BYTES);
      const seen: number[] = [];
      expect(await check({ source: `${origin}/i` }, {}, undefined, (bytes) => seen.push(bytes))).toEqual({ kind: 'good', sha256: DIGEST, bytes: 2048 });
      expect(asked[0]!.headers['accept-encoding']).toBe('identity');
      expect(seen.at(-1)).toBe(2048);
    });

    test('I1 (b): a body packed on the way is refused by the name of its encoding', async () => {
      const packed = gzipSync(BYTES);
      answer = (_, response) => response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': packed.length }).end(packed);
      expect(await check({ source: `${origin}/i` })).toMatchObject({ kind: 'bad', code: 'image_encoding_unexpected', details: { encoding: 'gzip' } });
    });

    test('I1 (c): a file that is stored packed is hashed packed', async () => {
      const packed = gzipSync(BYTES);
      answer = (_, response) => response.writeHead(200, { 'content-type': 'application/gzip' }).end(packed);
      expect(await check({ source: `${origin}/i.gz`, sha256: sha256(packed), sizeBytes: packed.length, compression: 'gzip' })).toMatchObject({ kind: 'good', bytes: packed.length });
      expect(await check({ source: `${origin}/i.gz`, sizeBytes: packed.length, compression: 'gzip' })).toMatchObject({ kind: 'bad', code: 'image_digest_mismatch', details: { expected: DIGEST, found: sha256(packed) } });
    });

    test.each<[string, RequestListener, object]>([
      ['a Content-Length other than the class says', (_, r) => r.writeHead(200, { 'content-length': 2049 }).end(Buffer.alloc(2049)), { code: 'image_size_wrong', details: { expected: 2048, found: 2049 } }],
      ['more bytes than the class says', (_, r) => { r.writeHead(200); r.write(BYTES); r.end('x'); }, { code: 'image_size_wrong' }],
      ['fewer bytes than the class says', (_, r) => { r.writeHead(200); r.end(BYTES.subarray(1)); }, { code: 'image_truncated', details: { expected: 2048, found: 2047 } }],
      ['a connection that breaks midway', (_, r) => { r.writeHead(200, { 'content-length': 2048 }); r.write(BYTES.subarray(0, 1000), () => r.destroy()); }, { code: 'image_truncated' }],
      ['a page instead of the file', (_, r) => r.writeHead(404).end('<html>'), { code: 'image_unreachable', details: { why: 'HTTP 404' } }],
      ['a part instead of the whole', (_, r) => r.writeHead(206).end(BYTES), { code: 'image_unreachable', details: { why: 'HTTP 206' } }],
      ['a redirect to plain http elsewhere', (_, r) => r.writeHead(302, { location: 'http://example.invalid/i' }).end(), { code: 'image_unreachable', details: { why: 'redirected to http://example.invalid: http:// is not allowed, only https' } }],
      ['a redirect to a local file', (_, r) => r.writeHead(302, { location: 'file:///etc/passwd' }).end(), { code: 'image_unreachable' }],
      ['a redirect to nowhere', (_, r) => r.writeHead(302).end(), { code: 'image_unreachable', details: { why: 'HTTP 302 without a usable Location' } }],
      ['redirects without end', (_, r) => r.writeHead(302, { location: '/again' }).end(), { code: 'image_unreachable', details: { why: 'more than 3 redirects' } }],
      ['a connection closed without an answer', (request) => request.socket.destroy(), { code: 'image_unreachable', details: { why: 'the connection broke' } }],
    ])('%s is a named failure', async (_, listener, expected) => {
      answer = listener;
      expect(await check({ source: `${origin}/i` })).toMatchObject({ kind: 'bad', ...expected });
    });

    test('three redirects are followed', async () => {
      answer = (request, response) => {
        const hop = Number(request.url!.slice(1));
        if (hop < 3) response.writeHead(302, { location: `/${hop + 1}` }).end();
        else response.end(BYTES);
      };
      expect(await check({ source: `${origin}/0` })).toMatchObject({ kind: 'good' });
    });

    test('a server that says nothing, or stops midway, or never ends is left in time', async () => {
      answer = () => {};
      expect(await check({ source: `${origin}/i` }, { fetchLimits: { headersSeconds: 0.1 } })).toMatchObject({ code: 'image_unreachable', details: { why: 'the answer took too long to begin' } });
      answer = (_, response) => { response.writeHead(200); response.write('x'); };
      expect(await check({ source: `${origin}/i` }, { fetchLimits: { silenceSeconds: 0.1 } })).toMatchObject({ code: 'image_unreachable', details: { why: 'the bytes stopped coming' } });
      expect(await check({ source: `${origin}/i` }, { totalSeconds: 0.1 })).toMatchObject({ code: 'image_unreachable', details: { why: 'not read within 0.1 s' } });
    });

    test('an abort ends the check with the reason of the abort', async () => {
      const controller = new AbortController();
      answer = (_, response) => { response.writeHead(200); response.write('x', () => controller.abort(new Error('the run was cancelled'))); };
      await expect(check({ source: `${origin}/i` }, {}, controller.signal)).rejects.toThrow('the run was cancelled');
    });
  });

  describe('which URLs may be asked', () => {
    const own = 'http://127.0.0.1:7080';
    test.each([
      ['https://images.example/a', [], null, true],
      ['https://images.example/a', ['images.example'], null, true],
      ['https://other.example/a', ['images.example'], null, false],
      ['https://user:pass@images.example/a', [], null, false],
      ['http://images.example/a', [], null, false],
      [`${own}/assets/a`, [], own, true],
      ['http://127.0.0.1:7081/a', [], own, false],
      ['http://10.0.0.1:7080/a', [], 'http://10.0.0.1:7080', false],
      ['file:///etc/passwd', [], null, false],
      ['ftp://images.example/a', [], null, false],
    ])('%s among %j, own %s: %s', (url, hosts, allowHttpFor, allowed) => {
      expect(refuseUrl(new URL(url), { hosts, allowHttpFor }) === null).toBe(allowed);
    });
    test('file: is refused at the store, whatever it names', async () => {
      expect(await check({ source: `file://${folder}/assets/image.raw` })).toMatchObject({ code: 'image_unreachable' });
    });
  });

  describe('files of our own asset server', () => {
    test('are read where they lie', async () => {
      expect(await check({})).toEqual({ kind: 'good', sha256: DIGEST, bytes: 2048 });
      expect(await check({ source: 'asset:staying' })).toMatchObject({ kind: 'good' });
    });
    test.each(['asset:../outside', 'asset:images/../../outside', 'asset:/etc/passwd', 'asset:leaving', 'asset:zero', 'asset:images', 'asset:none', 'asset:./image.raw', 'asset:'])('%s is refused', async (source) => {
      expect(await check({ source })).toMatchObject({ kind: 'bad', code: 'image_unreachable', details: { url: source } });
    });
    test('a file of another size is refused before it is read', async () => {
      expect(await check({ sizeBytes: 2047 })).toMatchObject({ code: 'image_size_wrong', details: { expected: 2047, found: 2048 } });
    });
    test('an image larger than the cap is refused', async () => {
      expect(await check({}, { maxBytes: 2047 })).toMatchObject({ code: 'image_too_large', details: { limit: 2047 } });
    });
    test('have the URL that nodes reach', () => {
      expect(storeWith().urlFor('asset:images/abc')).toBe('http://10.0.0.1:7080/assets/images/abc');
      expect(storeWith({ assetsUrl: () => 'http://127.0.0.1:1/assets' }).urlFor('asset:a')).toBe('http://127.0.0.1:1/assets/a');
      expect(storeWith().urlFor('https://images.example/a')).toBe('https://images.example/a');
      for (const source of ['asset:../a', 'file:///a', 'a']) expect(() => storeWith().urlFor(source)).toThrow(expect.objectContaining({ code: 'image_unreachable' }));
    });
  });

  describe('the spelling of the digest (I3)', () => {
    const ABC = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
    const abc = (digest: string): ReturnType<typeof check> => check({ source: 'asset:images/abc', sizeBytes: 3, sha256: digest });
    test.each([ABC, ABC.toUpperCase(), `sha256:${ABC}`, `SHA256:${ABC.toUpperCase()}`, `${ABC}\n`])('I3: %j matches', async (digest) => {
      expect(await abc(digest)).toEqual({ kind: 'good', sha256: ABC, bytes: 3 });
    });
    test.each([`${ABC}  ./image.raw`, ABC.slice(1), `${ABC}0`, `sha512:${ABC}`, 'md5:900150983cd24fb0d6963f7d28e17f72', Buffer.from(ABC, 'hex').toString('base64'), '', ABC + ABC])('I3: %j is refused before anything is fetched', async (digest) => {
      answer = (_, response) => response.end('abc');
      expect(await check({ source: `${origin}/abc`, sizeBytes: 3, sha256: digest })).toMatchObject({ kind: 'bad', code: 'image_digest_invalid' });
      expect(asked).toEqual([]);
    });
    test('I3: an absent digest is refused, never "no check"', async () => {
      expect(await abc(undefined as unknown as string)).toMatchObject({ code: 'image_digest_invalid' });
    });
    test('I3: a wrong digit fails, and both values are shown in one case', async () => {
      expect(await abc(`C${ABC.slice(1).toUpperCase()}`)).toEqual({ kind: 'bad', code: 'image_digest_mismatch', details: { url: 'asset:images/abc', expected: `c${ABC.slice(1)}`, found: ABC } });
    });
  });
});
