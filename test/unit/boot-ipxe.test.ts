import { findIpxeBinaries, placeholderBinary } from '../../src/boot/ipxe/binaries.js';
import { renderScript, type ScriptLine } from '../../src/boot/ipxe/script.js';
import { autoexecScript, bootDiskScript, netbootScript } from '../../src/boot/ipxe/scripts.js';
import { BootSettings } from '../../src/boot/settings.js';
import { commandsOf } from '../../src/simulator/node/ipxe/script.js';
import { seededRandom } from '../support/random.js';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const settings = (changes: Record<string, unknown> = {}): BootSettings =>
  BootSettings.parse({ agentUrl: 'https://10.0.0.1:42114', syslogHost: '10.0.0.1', agentImage: '10.0.0.1:5000/metalflow/agent:1', extraArguments: ['console=ttyS0,115200'], ...changes });
const known = { kind: 'known', mac: '02:01:48:aa:bb:0c' } as const;
const run = { kind: 'run', deviceId: '7', run: 3 } as const;

describe('the script of a run', () => {
  const script = netbootScript(settings(), { mac: known, purpose: run });

  test('starts with the bytes `#!ipxe` and a line feed (T8)', () => {
    expect(Buffer.from(script).subarray(0, 7).toString('hex')).toBe('2321697078650a');
  });

  test('loads kernel and initrd with the arguments HookOS reads, in the order of the stack before, tries for a minute and leaves the node to its disk', () => {
    expect(script).toBe(
      [
        '#!ipxe',
        'set arch ${buildarch}',
        'iseq ${arch} i386 && set arch x86_64 ||',
        'iseq ${arch} arm64 && set arch aarch64 ||',
        'set tries:int32 0',
        'echo metalflow: device 7, run 3',
        ':again',
        'kernel /assets/vmlinuz-${arch}?mac=02:01:48:aa:bb:0c syslog_host=10.0.0.1 tinkerbell_insecure_tls=false worker_id=02:01:48:aa:bb:0c hw_addr=02:01:48:aa:bb:0c modules=loop,squashfs,sd-mod,usb-storage intel_iommu=on iommu=pt initrd=initrd tink_worker_image=10.0.0.1:5000/metalflow/agent:1 metalflow_url=https://10.0.0.1:42114 console=ttyS0,115200 || goto failed',
        'initrd --name initrd /assets/initramfs-${arch}?mac=02:01:48:aa:bb:0c || goto failed',
        'boot || goto failed',
        ':failed',
        'imgfree',
        'inc tries',
        'iseq ${tries} 30 && goto give_up ||',
        'sleep 2',
        'goto again',
        ':give_up',
        'echo metalflow: the netboot system cannot be loaded, booting the disk',
        ':disk',
        'exit',
        '',
      ].join('\n'),
    );
  });

  test('sends no agent to a gRPC port: nobody listens there (C4)', () => {
    expect(script.split(' ').filter((word) => /^(grpc_authority|tinkerbell_tls)=/.test(word))).toEqual([]);
  });

  test('takes the MAC from iPXE when the request named none', () => {
    expect(netbootScript(settings(), { mac: { kind: 'of-the-boot-nic' }, purpose: { kind: 'wait' } })).toContain('?mac=${mac} ');
  });

  test.each([run, { kind: 'wait' } as const])('chains to a signed UKI, and nothing follows its name (%j)', (purpose) => {
    const lines = netbootScript(settings({ uki: 'signed/metalflow.efi' }), { mac: known, purpose }).split('\n');
    expect(lines.filter((line) => line.startsWith('chain'))).toEqual(['chain --autofree /assets/signed/metalflow.efi?mac=02:01:48:aa:bb:0c || goto failed']);
    expect(lines.filter((line) => /^(kernel|initrd|imgargs)|metalflow_url|worker_id/.test(line))).toEqual([]);
  });

  test('names the files of an iPXE for ARM by their own architecture, and keeps a name that has none', () => {
    const lines = netbootScript(settings({ kernel: 'arm/{arch}/Image', initrd: 'initramfs' }), { mac: known, purpose: run }).split('\n');
    expect(lines.find((line) => line.startsWith('kernel'))).toMatch(/^kernel \/assets\/arm\/\$\{arch\}\/Image\?mac=/);
    expect(lines.find((line) => line.startsWith('initrd'))).toBe('initrd --name initrd /assets/initramfs?mac=02:01:48:aa:bb:0c || goto failed');
  });
});

describe('the menu of a node that waits', () => {
  const menu = (changes: Record<string, unknown> = {}): string[] => netbootScript(settings(changes), { mac: known, purpose: { kind: 'wait' } }).split('\n');

  test('attests and waits by itself after five seconds, and offers the disk', () => {
    const lines = menu();
    const at = lines.indexOf(':ask');
    expect(lines.slice(at, lines.indexOf(':again') + 1)).toEqual([
      ':ask', 'menu metalflow: this machine waits for a request || goto wait', 'item wait boot the netboot system, attest and wait', 'item disk boot the disk',
      'choose --default wait --timeout 5000 picked || goto wait', 'goto ${picked}', ':wait', 'echo metalflow: boots to attest and wait', ':again',
    ]);
  });

  test('has a shell only where the site allows one, and comes back from it', () => {
    expect(menu().filter((line) => line.includes('shell'))).toEqual([]);
    const lines = menu({ shell: true });
    expect(lines).toContain('item shell iPXE shell');
    expect(lines.slice(lines.indexOf(':shell'), lines.indexOf(':shell') + 3)).toEqual([':shell', 'shell ||', 'goto ask']);
  });

  test('names only labels that are there, whatever the site allows', () => {
    for (const lines of [menu(), menu({ shell: true }), menu({ uki: 'u.efi' })]) {
      const labels = new Set(lines.filter((line) => line.startsWith(':')).map((line) => line.slice(1)));
      const named = lines.flatMap((line) => [...line.matchAll(/goto ([a-z_]+)|^item ([a-z_]+)/g)].map((match) => match[1] ?? match[2]!));
      expect(named.filter((label) => !labels.has(label))).toEqual([]);
    }
  });

  test('is not shown to a run: its boot goes straight on', () => {
    expect(netbootScript(settings({ shell: true }), { mac: known, purpose: run })).not.toMatch(/menu|choose|shell/);
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
    ['the title of a menu', (text) => ({ kind: 'menu', title: `x${text}`, items: [{ label: 'x', text: 'x' }], seconds: 1 })],
    ['an item of a menu', (text) => ({ kind: 'menu', title: 'x', items: [{ label: 'x', text: `x${text}` }], seconds: 1 })],
    ['the label of an item', (text) => ({ kind: 'menu', title: 'x', items: [{ label: text, text: 'x' }], seconds: 1 })],
  ];
  // What a console shows may hold spaces; they part words everywhere else.
  const SHOWN = ['an echo', 'the title of a menu', 'an item of a menu'];
  const cases = PLACES.flatMap(([place, line]) => HOSTILE.filter((text) => !SHOWN.includes(place) || text !== 'a b').map((text) => [place, text, line] as const));

  test.each(cases)('in %s is refused: %j', (_, text, line) => {
    expect(() => renderScript([line(text)])).toThrow(expect.objectContaining({ code: 'boot_script_invalid' }));
  });

  test('of any kind adds no line and no command: 5,000 drawn strings, each refused or one word', () => {
    const random = seededRandom(20261130);
    const PIECES = ['\n', '\r\n', '\r', '\\\n', ' ', '\t', '||', '&&', ';', '#', '${', '}', '${net0/mac}', 'shell', 'exit', 'chain http://evil/', '\u0000', '\u2028', '\u00a0', 'ä', '"', "'", '`', '\\', '%0a', '{arch}', '-', '--', ':', '/', '..', '=', ',', 'a', 'Z9', '_'];
    const draw = (): string => Array.from({ length: 1 + Math.floor(random() * 6) }, () => PIECES[Math.floor(random() * PIECES.length)]!).join('');
    const shape = (text: string) => text.split('\n').map((line) => (line.startsWith(':') ? 'label' : commandsOf(line).map(({ when, words }) => `${when} ${words[0] ?? ''} ${words[0] === 'echo' || words[0] === 'menu' || words[0] === 'item' ? '' : words.length}`).join()));
    const otherwise: string[] = [];
    let rendered = 0;
    for (let count = 0; count < 5_000; count++) {
      const [place, line] = PLACES[count % PLACES.length]!;
      const text = draw();
      let script: string;
      try {
        script = renderScript([line(text)]);
      } catch (error) {
        if ((error as { code?: string }).code !== 'boot_script_invalid') otherwise.push(`${place} ${JSON.stringify(text)}: ${String(error)}`);
        continue;
      }
      rendered++;
      const harmless = renderScript([line(place === 'a MAC' ? known.mac : 'x')]);
      if (shape(script).join() !== shape(harmless).join()) otherwise.push(`${place} ${JSON.stringify(text)}`);
    }
    expect(otherwise).toEqual([]);
    expect(rendered).toBeGreaterThan(100);
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
    ['a kernel outside the assets folder', { kernel: '../vmlinuz' }], ['an absolute kernel', { kernel: '/boot/vmlinuz' }], ['a mark nobody knows', { kernel: 'vmlinuz-{buildarch}' }], ['a kernel below a mark that leads up', { kernel: '{arch}/../x' }], ['a UKI among the class images', { uki: 'images/uki.efi' }], ['an argument of two lines', { extraArguments: ['a\nb'] }],
    ['an argument that is ours', { extraArguments: ['metalflow_url=http://evil'] }], ['an agent URL with a query', { agentUrl: 'https://h/?a=b' }], ['an agent URL of another scheme', { agentUrl: 'file:///x' }],
    ['a syslog host with a space', { syslogHost: 'a b' }], ['a setting nobody knows', { kernell: 'x' }], ['the wish that nodes take any certificate', { grpcInsecureTls: true }],
  ])('refuse %s', (_, changes) => {
    expect(() => settings(changes)).toThrow();
  });
});

test('the iPXE programs of a folder are told, and an empty one is missing', async () => {
  const root = await mkdtemp(join(tmpdir(), 'metalflow-ipxe-'));
  try {
    await writeFile(join(root, 'ipxe.efi'), 'MZ');
    await writeFile(join(root, 'snponly.efi'), '');
    expect(await findIpxeBinaries([join(root, 'none'), root])).toEqual({ present: [{ name: 'ipxe.efi', bytes: 2 }], missing: ['undionly.kpxe', 'snponly.efi'] });
    expect((await findIpxeBinaries([join(root, 'none')])).missing).toHaveLength(3);
  } finally {
    await rm(root, { recursive: true });
  }
  expect(placeholderBinary('ipxe.efi').toString()).toMatch(/^metalflow placeholder for ipxe\.efi\n/);
});
