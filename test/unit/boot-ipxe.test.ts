import { findIpxeBinaries, placeholderBinary } from '../../src/boot/ipxe/binaries.js';
import { renderScript, type ScriptLine } from '../../src/boot/ipxe/script.js';
import { autoexecScript, bootDiskScript, netbootScript } from '../../src/boot/ipxe/scripts.js';
import { BootSettings } from '../../src/boot/settings.js';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const settings = (changes: Record<string, unknown> = {}): BootSettings =>
  BootSettings.parse({ agentUrl: 'https://10.0.0.1:42114', grpcAuthority: '10.0.0.1:42113', syslogHost: '10.0.0.1', agentImage: '10.0.0.1:5000/metalflow/agent:1', extraArguments: ['console=ttyS0,115200'], ...changes });
const known = { kind: 'known', mac: '02:01:48:aa:bb:0c' } as const;
const run = { kind: 'run', deviceId: '7', run: 3 } as const;

describe('the script of a run', () => {
  const script = netbootScript(settings(), { mac: known, purpose: run });

  test('starts with the bytes `#!ipxe` and a line feed (T8)', () => {
    expect(Buffer.from(script).subarray(0, 7).toString('hex')).toBe('2321697078650a');
  });

  test('loads kernel and initrd with the arguments HookOS reads, tries for a minute and leaves the node to its disk', () => {
    expect(script).toBe(
      [
        '#!ipxe',
        'echo metalflow: device 7, run 3',
        'set tries:int32 0',
        ':again',
        'kernel /assets/vmlinuz-x86_64?mac=02:01:48:aa:bb:0c syslog_host=10.0.0.1 grpc_authority=10.0.0.1:42113 tinkerbell_tls=true tinkerbell_insecure_tls=false worker_id=02:01:48:aa:bb:0c hw_addr=02:01:48:aa:bb:0c tink_worker_image=10.0.0.1:5000/metalflow/agent:1 metalflow_url=https://10.0.0.1:42114 initrd=initrd console=ttyS0,115200 || goto failed',
        'initrd --name initrd /assets/initramfs-x86_64?mac=02:01:48:aa:bb:0c || goto failed',
        'boot || goto failed',
        ':failed',
        'imgfree',
        'inc tries',
        'iseq ${tries} 30 && goto give_up ||',
        'sleep 2',
        'goto again',
        ':give_up',
        'echo metalflow: the netboot system cannot be loaded, booting the disk',
        'exit',
        '',
      ].join('\n'),
    );
  });

  test('takes the MAC from iPXE when the request named none', () => {
    expect(netbootScript(settings(), { mac: { kind: 'of-the-boot-nic' }, purpose: { kind: 'wait' } })).toContain('?mac=${mac} ');
  });

  test('chains to a signed UKI without any argument', () => {
    const lines = netbootScript(settings({ uki: 'signed/metalflow.efi' }), { mac: known, purpose: run }).split('\n');
    expect(lines).toContain('chain --autofree /assets/signed/metalflow.efi?mac=02:01:48:aa:bb:0c || goto failed');
    expect(lines.filter((line) => /kernel|initrd|metalflow_url/.test(line))).toEqual([]);
  });
});

test('the disk script says the one word and exits', () => {
  expect(bootDiskScript()).toBe('#!ipxe\necho netboot-not-allowed\nexit\n');
});

test('autoexec goes on to the script of the NIC that boots', () => {
  expect(autoexecScript('http://10.0.0.1:7080/')).toBe('#!ipxe\nchain --autofree http://10.0.0.1:7080/ipxe/script/${mac:hexhyp}/auto.ipxe || exit\n');
});

describe('a hostile value', () => {
  const HOSTILE = ['a\nexit', 'a\rexit', 'a b', 'a || shell', 'a;shell', 'a&&shell', '${net0/mac}', '$x', '#x', 'a\tb', 'a"b', "a'b", 'a\\b', 'a\u0000b', 'a\u2028b', 'ä', '`x`', '<x>', '*', '?x'];
  const url = { path: '/assets/k', mac: known };
  const PLACES: [string, (text: string) => ScriptLine][] = [
    ['an echo', (text) => ({ kind: 'echo', text: `x${text}` })],
    ['a kernel argument', (text) => ({ kind: 'kernel', url, arguments: [{ name: 'a', value: text }], extra: [], otherwise: 'failed' })],
    ['the name of a kernel argument', (text) => ({ kind: 'kernel', url, arguments: [{ name: text, value: 'x' }], extra: [], otherwise: 'failed' })],
    ['an extra argument', (text) => ({ kind: 'kernel', url, arguments: [], extra: [text], otherwise: 'failed' })],
    ['a path', (text) => ({ kind: 'chain', url: { path: `/assets/${text}`, mac: known }, otherwise: 'failed' })],
    ['a MAC', (text) => ({ kind: 'chain', url: { path: '/assets/k', mac: { kind: 'known', mac: text } }, otherwise: 'failed' })],
    ['a label', (text) => ({ kind: 'goto', label: text })],
    ['a server', (text) => ({ kind: 'chain-to-script', server: `http://h/${text}` })],
  ];
  // `echo` shows spaces; they part words nowhere else.
  const cases = PLACES.flatMap(([place, line]) => HOSTILE.filter((text) => place !== 'an echo' || text !== 'a b').map((text) => [place, text, line] as const));

  test.each(cases)('in %s is refused: %j', (_, text, line) => {
    expect(() => renderScript([line(text)])).toThrow(expect.objectContaining({ code: 'boot_script_invalid' }));
  });

  test('is not repeated in the error', () => {
    expect(() => renderScript([{ kind: 'goto', label: 'evil\nshell' }])).toThrow(/^(?!.*evil)/s);
  });

  test('a command line longer than Linux reads is refused', () => {
    expect(() => renderScript([{ kind: 'kernel', url, arguments: [], extra: Array.from({ length: 60 }, () => 'x'.repeat(40)), otherwise: 'failed' }])).toThrow(/longer than 2047/);
  });
});

describe('settings', () => {
  test.each([
    ['a kernel outside the assets folder', { kernel: '../vmlinuz' }], ['an absolute kernel', { kernel: '/boot/vmlinuz' }], ['a UKI among the class images', { uki: 'images/uki.efi' }], ['an argument of two lines', { extraArguments: ['a\nb'] }],
    ['an argument that is ours', { extraArguments: ['metalflow_url=http://evil'] }], ['an agent URL with a query', { agentUrl: 'https://h/?a=b' }], ['an agent URL of another scheme', { agentUrl: 'file:///x' }],
    ['a syslog host with a space', { syslogHost: 'a b' }], ['a setting nobody knows', { kernell: 'x' }],
  ])('refuse %s', (_, changes) => {
    expect(() => settings(changes)).toThrow();
  });
});

test('the iPXE programs of a folder are told, and an empty one is missing', async () => {
  const root = await mkdtemp(join(tmpdir(), 'metalflow-ipxe-'));
  try {
    await writeFile(join(root, 'ipxe.efi'), 'MZ');
    await writeFile(join(root, 'snponly.efi'), '');
    expect(await findIpxeBinaries(root)).toEqual({ present: [{ name: 'ipxe.efi', bytes: 2 }], missing: ['undionly.kpxe', 'snponly.efi'] });
    expect((await findIpxeBinaries(join(root, 'none'))).missing).toHaveLength(3);
  } finally {
    await rm(root, { recursive: true });
  }
  expect(placeholderBinary('ipxe.efi').toString()).toMatch(/^metalflow placeholder for ipxe\.efi\n/);
});
