import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runCli, type ExitCode, type Roles } from '../../src/cli/index.js';
import { nodesView } from '../../src/cli/node-views.js';
import { printable, table } from '../../src/cli/output.js';
import { readConfig } from '../../src/config/config.js';
import { failure, MetalflowError } from '../../src/domain/errors.js';
import { refusingPort } from '../support/refusing-port.js';

const NODE = { deviceId: '1007', name: 'rack1-node7', site: 'lab', nodeClass: 'worker', state: 'provisioning', since: '2026-01-01T00:00:00Z', adopted: false, proof: 'tpm', power: 'on', openRun: 3, phase: 'acting', hold: null };

interface Asked { method: string; url: string; authorization: string | undefined; body: unknown }
interface Said { code: ExitCode; out: string; err: string }

describe('the command line', () => {
  let folder: string;
  let server: Server;
  let url: string;
  let asked: Asked[];
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  let called: [string, unknown][];

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'metalflow-cli-'));
    server = createServer((request, response) => {
      let text = '';
      request.on('data', (chunk) => { text += String(chunk); });
      request.on('end', () => {
        asked.push({ method: request.method!, url: request.url!, authorization: request.headers.authorization, body: text ? JSON.parse(text) : null });
        answer(request, response);
      });
    });
    // The command line keeps its connections: none may be closed from here just when it is used again.
    server.keepAliveTimeout = 0;
    await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  beforeEach(() => {
    asked = [];
    called = [];
    answer = (_, response) => response.end('null');
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => { server.close(resolve); });
    rmSync(folder, { recursive: true });
  });

  const answering = (value: unknown, status = 200): void => {
    answer = (_, response) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  };
  const roles = (change: Partial<Roles> = {}): Roles => {
    const note = (name: string) => async (given: unknown): Promise<void> => { called.push([name, given]); };
    return {
      up: note('up'), worker: note('worker'), boot: note('boot'), agentapi: note('agentapi'), operatorapi: note('operatorapi'), demo: note('demo'), simulateAmt: note('simulateAmt'), simulateNode: note('simulateNode'),
      doctor: async () => [{ name: 'store', result: 'good', found: 'SQLite, 3 migrations' }],
      bmc: async () => { throw new MetalflowError('bmc_unreachable', { address: 'x', seconds: 1 }); },
      dhcpConfig: async (_config, options) => { called.push(['dhcpConfig', options]); return { config: 'dhcp-match=x\n', devices: 1, warnings: ['no device'] }; },
      ...change,
    };
  };
  async function cli(words: string, options: { env?: Record<string, string>; isTerminal?: boolean; roles?: Partial<Roles> } = {}): Promise<Said> {
    const said = { out: '', err: '' };
    const env = { METALFLOW_OPERATOR_URL: url, METALFLOW_OPERATOR_TOKEN: 'a-token', METALFLOW_DATA_DIR: folder, ...options.env };
    const code = await runCli(words.split(' ').filter(Boolean).map((word) => word.replaceAll('_', ' ')), {
      version: '1.2.3',
      terminal: { out: (text) => { said.out += text; }, err: (text) => { said.err += text; }, isTerminal: options.isTerminal ?? false },
      roles: async () => roles(options.roles),
      readConfig: (role) => readConfig(env, role),
    });
    return { code, ...said };
  }

  describe('roles', () => {
    test.each(['up', 'worker', 'boot', 'agentapi', 'operatorapi'])('%s starts its role with the settings read for it', async (role) => {
      expect(await cli(role)).toEqual({ code: 0, out: '', err: '' });
      expect(called).toEqual([[role, expect.objectContaining({ role })]]);
    });
    test('a bad setting starts nothing, and its code is printed', async () => {
      const said = await cli('up', { env: { METALFLOW_TFTP_PORT: 'x' } });
      expect(said).toMatchObject({ code: 1, out: '', err: expect.stringMatching(/^setting_invalid: setting METALFLOW_TFTP_PORT: must be a port/) });
      expect(called).toEqual([]);
    });
    test('a role that cannot start fails with its code, as JSON when asked', async () => {
      const boot = async (): Promise<never> => { throw new MetalflowError('port_in_use', { what: 'TFTP', address: '127.0.0.1:69', why: 'EACCES' }); };
      const said = await cli('boot --json', { roles: { boot } });
      expect(said.code).toBe(1);
      expect(JSON.parse(said.out)).toMatchObject({ error: { code: 'port_in_use', message: 'TFTP cannot listen on 127.0.0.1:69: EACCES' } });
    });
    test('an error of no code is called internal, without its stack', async () => {
      const said = await cli('worker', { roles: { worker: async () => { throw new TypeError('x is undefined'); } } });
      expect(said).toMatchObject({ code: 1, err: 'internal: internal error: x is undefined\n  read the log\n' });
    });
    test('demo and simulators get their options', async () => {
      await cli('demo --keep --nodes 5 --data-dir /d');
      await cli('simulate amt --count 3 --port-base 0 --uuid-base 6B8E4A0C-0000-4000-8000-000000000007 --fault lagMs=3000 --fault qopProfile=auth-int,_auth --control-port 0 --on-command vm_start --tls');
      await cli('simulate node --uuid 6b8e4a0c-0000-4000-8000-000000000007 --mac 02-00-00-00-00-07 --dir /n --tftp [::1]:1069');
      expect(called).toEqual([
        ['demo', { json: false, keep: true, nodes: 5, dataDir: '/d' }],
        ['simulateAmt', {
          count: 3, host: '127.0.0.1', portBase: 0, uuidBase: '6b8e4a0c-0000-4000-8000-000000000007', username: 'admin', password: 'P@ssw0rd1', tls: true, power: 'on',
          faults: { lagMs: '3000', qopProfile: 'auth-int, auth' }, controlPort: 0, onCommand: 'vm start', offCommand: null, json: false,
        }],
        ['simulateNode', expect.objectContaining({ dir: '/n', mac: '02:00:00:00:00:07', tftp: { host: '::1', port: 1069 }, bootUrl: 'http://127.0.0.1:7080', agentUrl: null, diskSerial: 'SIM-0001' })],
      ]);
    });
  });

  describe('wrong use', () => {
    test.each(['', 'provison', 'node', 'node show', 'node list --state sleeping', 'node plan 7 install', 'node maintenance 7 maybe', 'node show 7 8', 'node list --url ftp://x', 'simulate amt --count 0', 'simulate amt --fault lagMs', 'simulate amt --power asleep', 'simulate node --uuid x', 'simulate amt --port-base 65536', 'node list --colour'])('metalflow %s ends with 2 and says how', async (words) => {
      const said = await cli(words);
      expect(said.code).toBe(2);
      expect(said.out).toBe('');
      expect(said.err).toMatch(/Usage:|error:/);
      expect(asked).toEqual([]);
      expect(called).toEqual([]);
    });
    test.each([['--help', /Usage: metalflow/], ['node --help', /reprovision/], ['--version', /^1\.2\.3\n$/], ['node hold --help', /--reason/]])('metalflow %s ends with 0', async (words, out) => {
      expect(await cli(words)).toMatchObject({ code: 0, out: expect.stringMatching(out) });
    });
  });

  describe('node', () => {
    test('list prints tab-separated lines where no person looks, and columns on a terminal', async () => {
      answering({ nodes: [NODE] });
      expect((await cli('node list --state active --site lab')).out).toBe('ID\tNODE\tSTATE\tRUN\tPHASE\tPOWER\tCLASS\tSITE\tHOLD\n1007\track1-node7\tprovisioning\t3\tacting\ton\tworker\tlab\t-\n');
      expect(asked).toEqual([{ method: 'GET', url: '/api/v1/nodes?state=active&site=lab', authorization: 'Bearer a-token', body: null }]);
      expect((await cli('node list', { isTerminal: true })).out).toBe('ID    NODE         STATE         RUN  PHASE   POWER  CLASS   SITE  HOLD\n1007  rack1-node7  provisioning  3    acting  on     worker  lab   -\n');
    });

    test('logs prints a line each, and what a node sends steers no terminal', async () => {
      answering({ lines: [{ receivedAt: '2026-11-30T10:00:01.000Z', host: 'hook', program: null, severity: 3, text: '\u001b[2Jgone' }], after: 'a' });
      expect(await cli('node logs 1007 --run 3 --lines 5')).toEqual({ code: 0, out: '2026-11-30T10:00:01.000Z hook - error: ?[2Jgone\n', err: '' });
      expect(asked.map((one) => one.url)).toEqual(['/api/v1/nodes/1007/logs?run=3&limit=5']);
    });

    test('logs --follow asks on from where the last page ended, one JSON object a line, until it is refused', async () => {
      const pages = [[{ text: 'one' }], [], [{ text: 'two' }]];
      answer = (_, response) => {
        const lines = pages.shift();
        if (lines) response.end(JSON.stringify({ lines, after: lines.length > 0 ? 'cursor' : null }));
        else response.writeHead(503, { 'content-type': 'application/json' }).end(JSON.stringify(failure('store_unavailable', { why: 'gone' })));
      };
      const said = await cli('node logs 1007 --run 3 --follow --json');
      expect([said.code, said.out.split('\n').slice(0, 2)]).toEqual([1, ['{"text":"one"}', '{"text":"two"}']]);
      expect(asked.map((one) => one.url)).toEqual(['/api/v1/nodes/1007/logs?run=3', ...['after=cursor&', '', 'after=cursor&'].map((after) => `/api/v1/nodes/1007/logs?run=3&${after}wait=25`)]);
    });

    test('list --json prints what the plane said', async () => {
      answering([NODE]);
      expect(JSON.parse((await cli('node list --json')).out)).toEqual([NODE]);
    });

    test('show tells a held node, why, and what to do', async () => {
      const hold = { ...failure('bmc_still_on', { power: 'on' }), since: '2026-01-01T00:00:00Z', verb: 'resume' };
      answering({
        node: NODE,
        live: { lifecycle: { waitsFor: 'its run', lastRun: null }, run: { run: 3, kind: 'provision', phase: 'powering-off', waitsFor: 'a person', hold, orders: [{ title: 'wipe-disk', state: 'queued', orderId: 'o-1' }] }, problem: null },
        runs: [{ run: 2, kind: 'wipe', openedAt: 'T1', closedAt: 'T2', end: 'failed', failure: { code: 'agent_lost' } }],
        links: { lifecycle: null, run: 'http://ui/run' },
      });
      const { out } = await cli('node show rack1-node7', { isTerminal: true });
      expect(out).toContain('held by     bmc_still_on: asked off, still reads on\n');
      expect(out).toContain(`what to do  ${hold.hint}\n`);
      expect(out).toContain('run         3 (provision)\n');
      expect(out).toContain('run page    http://ui/run\n');
      expect(out).toMatch(/ORDER +STATE +ID\nwipe-disk +queued +o-1\n/);
      expect(out).toMatch(/2 +wipe +T1 +T2 +failed +agent_lost\n/);
    });

    test('show says why it cannot tell what the workflows say now', async () => {
      answering({ node: NODE, live: { lifecycle: null, run: null, problem: failure('temporal_unavailable', { why: 'no answer' }) }, runs: [], links: {} });
      expect((await cli('node show 1007')).out).toContain('not shown\ttemporal_unavailable: Temporal cannot be reached: no answer\n');
    });

    test('show says of a failed node what its last run failed with, and what to do, without asking its workflow', async () => {
      const last = { run: 2, kind: 'provision', end: 'failed', failure: { code: 'image_unreachable', message: 'no answer', hint: 'check the asset server, then `retry`' } };
      answering({ node: { name: 'n', state: 'failed' }, live: null, runs: [last, { run: 1, failure: { code: 'class_unknown', message: 'old', hint: 'old' } }] });
      const { out } = await cli('node show n');
      expect(out).toContain('failed with\timage_unreachable: no answer\n');
      expect(out).toContain('what to do\tcheck the asset server, then `retry`\n');
    });

    test('plan shows what a run would do, and asks for nothing', async () => {
      answering({ plan: { nodeName: 'rack1-node7', kind: 'reprovision', wipes: true, wipeDisks: ['S1'], diskRule: { bus: 'nvme' }, image: { source: 'asset:a', sha256: 'ab', sizeBytes: 3 }, actions: [{ title: 'wipe-disk', name: 'wipe-disk', timeoutSeconds: 60 }] }, phases: ['planning', 'taking'], begins: 'at once', destroys: ['all of disk S1', 'the rest'], notes: [] });
      const { out } = await cli('node plan 1007 reprovision');
      expect(asked[0]).toMatchObject({ method: 'GET', url: '/api/v1/nodes/1007/plan?kind=reprovision' });
      expect(out).toMatch(/^begins\tat once\ndestroys\tall of disk S1, the rest\n/);
      expect(out).toContain('wipes first\tS1\n');
      expect(out).toContain('phases\tplanning, taking\n');
      expect(out).toContain('wipe-disk\twipe-disk\t60\n');
    });

    test.each(['provision', 'reprovision', 'wipe', 'retire'])('%s sets the field in NetBox through the plane', async (request) => {
      answering({ accepted: true, text: `NetBox asks for ${request} now` }, 202);
      expect(await cli(`node ${request} rack_1/7`)).toMatchObject({ code: 0, out: `NetBox asks for ${request} now\n` });
      expect(asked).toEqual([{ method: 'POST', url: '/api/v1/nodes/rack%201%2F7/request', authorization: 'Bearer a-token', body: { action: request } }]);
    });

    test.each<[string, string, object]>([
      ['hold 7 --reason the_fan', 'hold', { reason: 'the fan' }],
      ['resume 7', 'resume', {}],
      ['resume 7 --done', 'resume', { done: true }],
      ['cancel 7', 'cancel', {}],
      ['retry 7', 'retry', {}],
      ['approve 7 --reason seen', 'approve', { reason: 'seen' }],
      ['approve 7 --attest-removed --reason sold', 'approve', { attestRemoved: true, reason: 'sold' }],
      ['adopt 7 --reason checked', 'adopt', { reason: 'checked' }],
      ['maintenance 7 on --reason fan', 'maintenance', { on: true, reason: 'fan' }],
      ['maintenance 7 off', 'maintenance', { on: false }],
    ])('%s is said as it is meant', async (words, verb, body) => {
      answering({ accepted: true, text: 'goes on' });
      expect(await cli(`node ${words}`)).toMatchObject({ code: 0, out: 'goes on\n' });
      expect(asked).toEqual([expect.objectContaining({ method: 'POST', url: `/api/v1/nodes/7/${verb}`, body })]);
    });

    test.each<[string, object]>([
      ['retire 7 --attest-removed --reason pulled_from_rack_4', { attestRemoved: true, reason: 'pulled from rack 4' }],
      // Role and reason are judged where they cannot be talked round.
      ['retire 7 --attest-removed', { attestRemoved: true }],
    ])('%s asks NetBox for nothing: an approver closes the node', async (words, body) => {
      answering({ accepted: true, text: 'approve: accepted' });
      expect(await cli(`node ${words}`)).toMatchObject({ code: 0, out: 'approve: accepted\n' });
      expect(asked).toEqual([expect.objectContaining({ method: 'POST', url: '/api/v1/nodes/7/approve', body })]);
    });
    test.each([['token_role', { name: 'otto', role: 'operator', needed: 'approver' }, 403], ['reason_required', { verb: 'approve' }, 400], ['verb_refused', { verb: 'approve', why: 'the run is not held' }, 409]] as const)('retire --attest-removed that the plane refuses (%s) ends with 1 and its code', async (code, details, status) => {
      answering(failure(code, details), status);
      expect(await cli('node retire 7 --attest-removed')).toMatchObject({ code: 1, out: '', err: expect.stringMatching(new RegExp(`^${code}: `)) });
    });
    test('a reason for a plain retire is wrong use: nothing is asked', async () => {
      expect(await cli('node retire 7 --reason old')).toMatchObject({ code: 2, err: expect.stringContaining('--attest-removed') });
      expect(asked).toEqual([]);
    });
    test('show says when the power was looked at, and what does not fit', async () => {
      answering({ node: { name: 'node-7', state: 'active', power: 'unknown', powerAt: 'T2', bmcSeenAt: 'T1', drift: { state: 'active', expected: 'on', reads: 'off' } }, live: null, runs: [], links: {} });
      const { out } = await cli('node show 7');
      expect(out).toContain('unknown (looked at T2, last answer T1)');
      expect(out).toContain('active should be on, the BMC reads off');
    });

    test.each([['journal', { journal: [{ at: 'T', run: 3, kind: 'info', text: 'wiped', by: 'ann' }] }, 'T\t3\tinfo\twiped\tann\n'], ['evidence', [{ at: 'T', accepted: false, reason: 'nonce_wrong' }], 'T\tfalse\tnonce_wrong\t-\t-\t-\t-\n']])('%s is a table', async (what, value, line) => {
      answering(value);
      expect((await cli(`node ${what} 7`)).out).toContain(line);
    });

    test('B3: list shows a person the devices that are no nodes, and a program none of them', async () => {
      const value = { nodes: [{ deviceId: '7', name: 'node-7' }], refused: [{ deviceId: '12', name: 'rack4-node7', failure: { code: 'device_invalid', message: 'NetBox field system_uuid: is no UUID' } }] };
      expect(nodesView(value, true)).toMatch(/ID +NO NODE YET +BECAUSE\n12 +rack4-node7 +NetBox field system_uuid: is no UUID\n$/);
      expect(nodesView(value, false)).not.toContain('rack4-node7');
      expect(nodesView({ nodes: value.nodes, refused: [] }, true)).not.toContain('BECAUSE');
    });

    test('A8: strangers says which machine attested and where it is plugged in', async () => {
      answering({ strangers: [{ at: 'T', bootMac: '02:ff:00:00:00:01', systemUuid: 'U', reason: 'node_unknown', neighbour: { system: 'sw-4', chassis: 'c', port: 'swp9' }, sender: '10.0.0.9' }] });
      expect((await cli('node strangers')).out).toContain('T\t02:ff:00:00:00:01\tU\tnode_unknown\tsw-4 swp9\t10.0.0.9\n');
      expect(asked).toMatchObject([{ method: 'GET', url: '/api/v1/strangers' }]);
    });

    test('a refusal ends with 1 and prints the code of the plane, known to us or not', async () => {
      answering(failure('request_refused', { request: 'provision', state: 'active', why: 'it runs; ask for reprovision' }), 409);
      expect(await cli('node provision 7')).toEqual({ code: 1, out: '', err: 'request_refused: provision is refused in state active: it runs; ask for reprovision\n  ask for what the state allows\n' });
      answering({ code: 'quota_reached', message: 'enough', hint: 'wait' }, 429);
      const said = await cli('node provision 7 --json');
      expect(said.code).toBe(1);
      expect(JSON.parse(said.out)).toEqual({ error: { code: 'quota_reached', message: 'enough', hint: 'wait' } });
    });

    test.each<[string, (request: IncomingMessage, response: ServerResponse) => void, RegExp]>([
      ['a web page', (_, response) => response.writeHead(502).end('<html>'), /HTTP 502, and not in the words of metalflow/],
      ['a page that says 200', (_, response) => response.end('<html>'), /HTTP 200, and not/],
      ['a closed connection', (request) => request.socket.destroy(), /operator_unreachable/],
    ])('%s instead of an answer is operator_unreachable', async (_, listener, err) => {
      answer = listener;
      expect(await cli('node list')).toMatchObject({ code: 1, out: '', err: expect.stringMatching(err) });
    });

    test('nobody there is operator_unreachable', async () => {
      const { port, close } = await refusingPort();
      const said = await cli(`node list --url http://127.0.0.1:${port}/`);
      await close();
      expect(said).toMatchObject({ code: 1, err: expect.stringContaining(`operator_unreachable: the operator plane at http://127.0.0.1:${port} does not answer: the connection is refused`) });
    });

    test('the token is the one on the line, else the setting, else the file of the secrets folder; none asks nothing', async () => {
      await cli('node list --token on-the-line');
      await cli('node list');
      writeFileSync(path.join(folder, 'operator-token'), 'from-the-file\n');
      const env = { METALFLOW_OPERATOR_TOKEN: '', METALFLOW_SECRETS_DIR: folder };
      await cli('node list', { env });
      expect(asked.map(({ authorization }) => authorization)).toEqual(['Bearer on-the-line', 'Bearer a-token', 'Bearer from-the-file']);
      expect(await cli('node list', { env: { METALFLOW_OPERATOR_TOKEN: '' } })).toMatchObject({ code: 1, err: expect.stringMatching(/^operator_token_missing: /) });
      expect(asked).toHaveLength(3);
    });
  });

  describe('dhcp', () => {
    test('prints the configuration alone on stdout, and warnings beside it', async () => {
      const said = await cli('dhcp dnsmasq-config --server-address 10.0.0.1 --subnet 10.0.0.0/24 --pool 10.0.0.100-10.0.0.200');
      expect(said).toEqual({ code: 0, out: 'dhcp-match=x\n', err: 'warning: no device\n' });
      expect(called).toEqual([['dhcpConfig', { server: 'dnsmasq', serverAddress: '10.0.0.1', subnet: { network: '10.0.0.0', prefix: 24 }, pool: { from: '10.0.0.100', to: '10.0.0.200' } }]]);
    });
    test('--json holds all three', async () => {
      expect(JSON.parse((await cli('dhcp kea-config --json')).out)).toEqual({ config: 'dhcp-match=x\n', devices: 1, warnings: ['no device'] });
      expect(called).toEqual([['dhcpConfig', { server: 'kea', serverAddress: null, subnet: null, pool: null }]]);
    });
    test.each(['--server-address boot.example', '--server-address ::1', '--subnet 10.0.0.0', '--subnet 10.0.0.0/31', '--subnet 10.0.0.0/24/1', '--pool 10.0.0.1', '--pool 10.0.0.1-x'])('%s is wrong use', async (words) => {
      expect(await cli(`dhcp kea-config ${words}`)).toMatchObject({ code: 2, out: '' });
      expect(called).toEqual([]);
    });
  });

  describe('doctor', () => {
    test('ends with 0 when nothing is bad', async () => {
      expect(await cli('doctor')).toMatchObject({ code: 0, out: 'CHECK\tRESULT\tFOUND\nsettings\tgood\tall of them can be read\nstore\tgood\tSQLite, 3 migrations\n' });
    });
    test('ends with 1 when something is, and says what to do', async () => {
      const doctor: Roles['doctor'] = async () => [{ name: 'temporal', result: 'bad', found: 'no program', hint: 'run the set-up' }];
      expect(await cli('doctor', { roles: { doctor } })).toMatchObject({ code: 1, out: expect.stringContaining('\ntemporal: run the set-up\n') });
      expect(JSON.parse((await cli('doctor --json', { roles: { doctor } })).out).checks).toHaveLength(2);
    });
    test('says what is wrong with the settings when it can look no further', async () => {
      expect(await cli('doctor', { env: { METALFLOW_TFPT_PORT: '1' } })).toMatchObject({ code: 1, out: expect.stringContaining('settings\tbad\tsetting METALFLOW_TFPT_PORT is not known (did you mean METALFLOW_TFTP_PORT?)') });
    });
  });

  test('a name from NetBox cannot steer the terminal or break a line', () => {
    expect(printable('a\u001b[2Jb\nc\u202ed')).toBe('a?[2Jb?c?d');
    expect(table(['A'], [['x\ty']], false)).toBe('A\nx?y\n');
  });
});
