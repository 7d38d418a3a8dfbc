import type { Downloader } from '../../src/simulator/node/download.js';
import { runScriptAt } from '../../src/simulator/node/ipxe/interpreter.js';
import type { IpxeOutcome } from '../../src/simulator/node/ipxe/model.js';
import { commandsOf, parseScript } from '../../src/simulator/node/ipxe/script.js';
import { createVariables } from '../../src/simulator/node/ipxe/variables.js';

const MAC = '02:01:48:aa:bb:0c';
const BASE = 'http://192.0.2.1:7080';

/** Runs a script over a web of files, with a clock that only counts. */
async function run(files: Readonly<Record<string, string>>): Promise<{ outcome: IpxeOutcome; printed: string[]; fetched: string[]; slept: number }> {
  const seen = { printed: [] as string[], fetched: [] as string[], slept: 0 };
  const downloader: Downloader = {
    async get(url, keep) {
      seen.fetched.push(url);
      const body = files[url.replace(BASE, '')];
      if (body === undefined) return { kind: 'failed', url, why: 'HTTP 404' };
      return { kind: 'got', url, bytes: body.length, sha256: 'f'.repeat(64), head: Buffer.from(body).subarray(0, keep) };
    },
  };
  const outcome = await runScriptAt(`${BASE}/ipxe/script/x/auto.ipxe`, {
    variables: createVariables({ mac: MAC, systemUuid: '0e4c1a52-0000-4000-8000-000000000001', nextServer: '192.0.2.1' }),
    downloader,
    sleep: async (ms) => void (seen.slept += ms),
    signal: new AbortController().signal,
    print: (text) => seen.printed.push(text),
  });
  return { outcome, ...seen };
}
const runText = (script: string, files: Readonly<Record<string, string>> = {}): ReturnType<typeof run> => run({ '/ipxe/script/x/auto.ipxe': script, '/k': 'kernel', '/i': 'initrd', ...files });

describe('an iPXE script', () => {
  test.each([
    ['#!ipxe', true],
    ['#!ipxe\r\necho hello\r\n', true],
    ['#!ipxe --flag', true],
    ['#!ipxeX\nexit', false],
    [' #!ipxe\nexit', false],
    ['<html>', false],
    ['', false],
    ['#!ipxe\necho \0', false],
    [`#!ipxe\n${'#'.repeat(70_000)}`, false],
  ])('beginning with %j is one: %s', (text, expected) => {
    expect(parseScript(Buffer.from(text)).kind).toBe(expected ? 'script' : 'refused');
  });

  test('is split into commands before anything is expanded', () => {
    expect(commandsOf('isset ${a} && echo yes || echo no ; exit 3 # a comment')).toEqual([
      { when: 'always', words: ['isset', '${a}'] },
      { when: 'and', words: ['echo', 'yes'] },
      { when: 'or', words: ['echo', 'no'] },
      { when: 'always', words: ['exit', '3'] },
    ]);
    expect(commandsOf(':label && echo never')).toEqual([]);
  });

  test.each([
    ['${mac}', MAC],
    ['${net0/mac:hexhyp}', '02-01-48-aa-bb-0c'],
    ['${mac:constructor}', MAC],
    ['${nothing}', ''],
    ['${__proto__}', ''],
    ['a${${which}}b', `a${MAC}b`],
    ['${loop}', '${loop}'],
  ])('expands %s to %j', (word, expected) => {
    const variables = createVariables({ mac: MAC, systemUuid: 'u', nextServer: 'n' });
    variables.set('which', 'mac');
    variables.set('loop', '${loop}');
    expect(variables.expand(word)).toBe(expected);
  });

  test('loads kernel and initrd, and boots with the words after the kernel', async () => {
    const { outcome, fetched } = await runText('#!ipxe\nkernel /k hw_addr=${mac} --quiet initrd=initrd || exit\ninitrd --name initrd /i\nboot || exit\n');
    expect(outcome).toMatchObject({ kind: 'boot', commandLine: `hw_addr=${MAC} --quiet initrd=initrd`, kernel: { name: 'k', bytes: 6 }, initrds: [{ name: 'initrd' }] });
    expect(fetched).toEqual([`${BASE}/ipxe/script/x/auto.ipxe`, `${BASE}/k`, `${BASE}/i`]);
  });

  test('retries as often as it says, with its pauses, and then leaves', async () => {
    const { outcome, fetched, slept } = await runText('#!ipxe\nset tries:int32 0\n:again\nkernel /gone || goto failed\nboot\n:failed\nimgfree\ninc tries\niseq ${tries} 3 && goto give_up ||\nsleep 2\ngoto again\n:give_up\nexit\n');
    expect(outcome).toEqual({ kind: 'exit', status: 0 });
    expect(fetched.filter((url) => url.endsWith('/gone'))).toHaveLength(3);
    expect(slept).toBe(4000);
  });

  test.each([
    ['an unknown command', 'frobnicate', /frobnicate: command not found/],
    ['a name every object has', 'constructor', /constructor: command not found/],
    ['boot without a kernel', 'boot', /no kernel/],
    ['a label that is not there', 'goto nowhere', /no such label/],
    ['a file that is not there', 'kernel /gone', /HTTP 404/],
    ['an empty kernel', 'kernel /empty', /empty/],
    ['a kernel from elsewhere than the web', 'kernel file:///etc/passwd', /no http URL/],
    ['an option it does not know', 'kernel --frob x /k', /unknown option/],
    ['an option without its value', 'initrd --name', /needs a value/],
    ['a pause that is no number', 'sleep forever', /sleep/],
    ['a pause of a day', 'sleep 86400', /sleep/],
    ['a count that is no number', 'set x y\ninc x', /no number/],
    ['a chain into a web page', 'chain /page', /exec format error/],
    ['a chain into itself', 'chain /ipxe/script/x/auto.ipxe', /too deep/],
    ['a loop without end', ':a\ngoto a', /more than 100000 steps/],
    ['a loop over a thousand empty lines', `:a${'\n'.repeat(1000)}goto a`, /more than 100000 steps/],
  ])('fails of %s, and says why', async (_, line, why) => {
    const { outcome } = await runText(`#!ipxe\n${line}\nexit\n`, { '/empty': '', '/page': '<html>' });
    expect(outcome).toEqual({ kind: 'failed', why: expect.stringMatching(why) as string });
  });

  test('goes on when `||` catches a failure, and prints it', async () => {
    const { outcome, printed } = await runText('#!ipxe\nkernel /gone || echo no kernel\nexit\n');
    expect(outcome).toEqual({ kind: 'exit', status: 0 });
    expect(printed).toEqual([`${BASE}/gone: HTTP 404`, 'no kernel']);
  });

  test('chained comes back to the one that chained it, unless it boots', async () => {
    const back = await runText('#!ipxe\nchain --autofree other.ipxe\necho back\nexit 1\n', { '/ipxe/script/x/other.ipxe': '#!ipxe\nset x 1\nexit\n' });
    expect(back).toMatchObject({ outcome: { kind: 'exit', status: 1 }, printed: ['back'] });
    const gone = await runText('#!ipxe\nchain other.ipxe\necho back\n', { '/ipxe/script/x/other.ipxe': '#!ipxe\nkernel /k a=b\nboot\n' });
    expect(gone).toMatchObject({ outcome: { kind: 'boot', commandLine: 'a=b' }, printed: [] });
  });

  test('boots a unified kernel image by chaining to it, without an argument', async () => {
    const { outcome } = await runText('#!ipxe\nchain --autofree /assets/netboot.efi?mac=${mac} || exit\n', { [`/assets/netboot.efi?mac=${MAC}`]: 'MZ program' });
    expect(outcome).toMatchObject({ kind: 'boot', commandLine: '', kernel: { name: 'netboot.efi' }, initrds: [] });
  });

  test('has its command line cut where an x86 kernel cuts it', async () => {
    const { outcome } = await runText(`#!ipxe\nkernel /k a=${'x'.repeat(3000)} metalflow_url=http://late\nboot\n`);
    expect(outcome.kind === 'boot' && outcome.commandLine.length).toBe(2047);
  });
});
