import { createSocket } from 'node:dgram';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addressText, listenAddress, listenRefusal } from '../../src/telemetry/listening.js';
import { findPortHolders, holdersText, waitingSockets } from '../../src/telemetry/port-holder.js';
import { until } from '../support/until.js';

const HEAD = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const row = (local: string, state: string, uid: number, inode: number): string => `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  ${uid}        0 ${inode} 1 0000000000000000 100 0 0 10 0\n`;
const TCP = HEAD + row('00000000:1BA8', '0A', 0, 101) + row('0100007F:1BA8', '01', 0, 102) + row('00000000:0045', '0A', 0, 103) + '   garbage\n';
const UDP6 = HEAD + row('00000000000000000000000000000000:0045', '07', 114, 201);

describe('the sockets that wait on a port', () => {
  test.each([
    ['a listening one, not a connection of it', TCP, 'tcp', 7080, [{ inode: '101', uid: 0 }]],
    ['none of another port', TCP, 'tcp', 7081, []],
    ['a UDP one, of IPv6 too', UDP6, 'udp', 69, [{ inode: '201', uid: 114 }]],
    ['none in an empty table', '', 'tcp', 7080, []],
  ] as const)('are %s', (_, table, transport, port, expected) => {
    expect(waitingSockets(table, transport, port)).toEqual(expected);
  });
});

describe('who holds a port', () => {
  let proc: string;
  beforeEach(async () => {
    proc = await mkdtemp(join(tmpdir(), 'metalflow-proc-'));
    for (const folder of ['net', '812/fd', '900']) await mkdir(join(proc, folder), { recursive: true });
    await writeFile(join(proc, 'net/tcp'), TCP);
    await writeFile(join(proc, 'net/udp6'), UDP6);
    await writeFile(join(proc, '812/comm'), 'nginx\n');
    await symlink('socket:[101]', join(proc, '812/fd/7'));
  });
  afterEach(() => rm(proc, { recursive: true }));

  test('is named with program and process', async () => {
    expect(holdersText(await findPortHolders('tcp', 7080, proc))).toBe('nginx (process 812)');
  });
  test('is told by its user where its files may not be seen', async () => {
    expect(holdersText(await findPortHolders('udp', 69, proc))).toBe('a process of user 114, whose name may not be read');
  });
  test('is nobody where /proc says nothing', async () => {
    expect(holdersText(await findPortHolders('tcp', 7080, join(proc, 'gone')))).toBeNull();
  });
});

describe('a refused port', () => {
  const door = { what: 'the boot plane', transport: 'tcp', address: '0.0.0.0', port: 80 } as const;
  const refusal = (code: string) => listenRefusal(door, Object.assign(new Error(`bind ${code}`), { code }), '/nowhere');

  test('below 1024 says three ways out', async () => {
    const refused = await refusal('EACCES');
    expect([refused.code, refused.message]).toEqual(['port_forbidden', expect.stringMatching(/^the boot plane may not listen on 0\.0\.0\.0:80: ports below \d+ need a privilege$/)]);
    const { hint } = refused.toFailure();
    for (const way of ['setcap', 'AmbientCapabilities', 'sysctl']) expect(hint).toContain(way);
  });
  test.each([['EADDRNOTAVAIL', 'address_not_here'], ['EADDRINUSE', 'port_in_use'], ['EMFILE', 'port_in_use']])('by %s is %s', async (code, expected) => {
    expect(await refusal(code)).toMatchObject({ code: expected, message: expect.stringContaining('the boot plane cannot listen on 0.0.0.0:80') });
  });
  test('that is in use names this process, over TCP and UDP', async () => {
    const tcp = createServer().listen(0, '127.0.0.1');
    const udp = createSocket('udp4').bind(0, '127.0.0.1');
    await Promise.all([tcp, udp].map((socket) => new Promise((resolve) => socket.once('listening', resolve as () => void))));
    try {
      for (const [transport, port] of [['tcp', (tcp.address() as AddressInfo).port], ['udp', udp.address().port]] as const) {
        const says = new RegExp(`^TFTP cannot listen on 127\\.0\\.0\\.1:${port}: .+ \\(process ${process.pid}\\).* holds ${transport} port ${port}$`);
        // The kernel's table may lack a row while other sockets come and go.
        await until(`${transport} port ${port} to be told`, async () => {
          const { message } = await listenRefusal({ what: 'TFTP', transport, address: '127.0.0.1', port }, Object.assign(new Error('in use'), { code: 'EADDRINUSE' }));
          if (!says.test(message)) throw new Error(message);
          return true;
        });
      }
    } finally {
      tcp.close();
      udp.close();
    }
  });
});

test('a wildcard is listened on for both families, any other address as it is', async () => {
  expect([await listenAddress('127.0.0.1'), await listenAddress('::1'), addressText('::', 69), addressText('10.0.0.1', 69)]).toEqual(['127.0.0.1', '::1', '[::]:69', '10.0.0.1:69']);
  expect(['::', '0.0.0.0']).toContain(await listenAddress('0.0.0.0'));
});
