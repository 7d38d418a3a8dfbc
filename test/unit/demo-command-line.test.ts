/** `metalflow demo --keep`: what it tells a person to type makes the command line work against it (C1). */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCli, type Roles } from '../../src/cli/index.js';
import { readConfig } from '../../src/config/config.js';
import { lookingAround, writeCommandLineSettings } from '../../src/main/demo/command-line.js';
import { prepareFiles } from '../../src/main/demo/world.js';

let dir: string;
beforeAll(() => void (dir = mkdtempSync(join(tmpdir(), "metalflow demo's-"))));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** What a shell has of ours after it has read the first line that a person is told to type. */
function typed(line: string): Record<string, string> {
  const text = execFileSync('sh', ['-c', `${line}; env -0`], { env: { PATH: process.env['PATH'] }, encoding: 'utf8' });
  return Object.fromEntries(text.split('\0').filter((one) => one.startsWith('METALFLOW_')).map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)]));
}

test('the command line finds the plane and its token, the store, the secrets and NetBox, whatever the folder is called', async () => {
  const netbox = { url: 'http://127.0.0.1:1', token: 'nbt_x.y', secret: 's' };
  const { operatorToken, config } = prepareFiles(dir, netbox);
  const asked: unknown[] = [];
  const plane = createServer((request, response) => {
    asked.push([request.url, request.headers.authorization]);
    response.setHeader('content-type', 'application/json').end('{"nodes":[]}');
  });
  await new Promise<void>((resolve) => void plane.listen(0, '127.0.0.1', resolve));
  try {
    const file = writeCommandLineSettings(dir, `http://127.0.0.1:${(plane.address() as AddressInfo).port}`, netbox);
    const [, first] = lookingAround(file, 'demo-2').split('\n');
    const env = typed(first!);
    expect(readConfig(env, 'cli')).toMatchObject({ dataDir: config.dataDir, secretsDir: config.secretsDir, netboxUrl: netbox.url, netboxToken: netbox.token });
    await runCli(['node', 'list', '--json'], { version: '1', terminal: { out: () => undefined, err: () => undefined, isTerminal: false }, roles: async () => ({}) as Roles, readConfig: (role) => readConfig(env, role) });
    expect(asked).toEqual([[expect.stringContaining('/nodes'), `Bearer ${operatorToken}`]]);
  } finally {
    plane.closeAllConnections();
    await new Promise((resolve) => plane.close(resolve));
  }
});

test('what lies there for the command line is for its owner only, and the token is the one that the plane knows', () => {
  const { operatorToken } = prepareFiles(dir, { url: 'http://127.0.0.1:1', token: 't', secret: 's' });
  const token = join(dir, 'secrets', 'operator-token');
  for (const file of [token, writeCommandLineSettings(dir, 'http://127.0.0.1:2', { url: 'http://127.0.0.1:1', token: 't' })]) expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(token, 'utf8')).toBe(operatorToken);
  expect(readFileSync(join(dir, 'secrets', 'operator-tokens.json'), 'utf8')).toContain(createHash('sha256').update(operatorToken).digest('hex'));
});

test('it is told what to type, and which node can be asked for something', () => {
  expect(lookingAround('/tmp/x/command-line.sh', 'demo-2-cloud').split('\n').slice(1).map((line) => line.trim())).toEqual([". '/tmp/x/command-line.sh'", 'node bin/metalflow.mjs node list', 'node bin/metalflow.mjs node reprovision demo-2-cloud']);
  expect(lookingAround('/tmp/x/command-line.sh', null)).not.toContain('reprovision');
});
