/** The commands of iPXE that boot planes use. One row a command; whatever is not here is `command not found`. */
import type { IpxeContext, Image, Step } from './model.js';
import { parseHttpUrl } from '../url.js';
import { isScript, MAX_SCRIPT_BYTES, parseScript } from './script.js';

type CommandFunction = (args: readonly string[], context: IpxeContext) => Promise<Step> | Step;

const DONE: Step = { kind: 'done' };
const failed = (why: string): Step => ({ kind: 'failed', why });

/** `flag` stands alone, `value` takes the next word. */
type OptionKind = 'flag' | 'value';
type Options = { readonly kind: 'options'; readonly values: ReadonlyMap<string, string>; readonly rest: readonly string[] } | { readonly kind: 'wrong'; readonly why: string };

/** Options in front of the first plain word, as iPXE's getopt reads them: `--name x` and `--name=x`. */
function readOptions(args: readonly string[], known: Readonly<Record<string, OptionKind>>): Options {
  const values = new Map<string, string>();
  let at = 0;
  while (at < args.length && args[at]!.startsWith('-')) {
    const [, name = '', inline] = /^--?([^=]*)(?:=(.*))?$/s.exec(args[at]!) ?? [];
    at += 1;
    if (!Object.hasOwn(known, name)) return { kind: 'wrong', why: `unknown option ${name.slice(0, 60)}` };
    if (known[name] === 'flag') values.set(name, '');
    else if (inline !== undefined) values.set(name, inline);
    else if (at < args.length) values.set(name, args[at++]!);
    else return { kind: 'wrong', why: `option ${name} needs a value` };
  }
  return { kind: 'options', values, rest: args.slice(at) };
}

const FETCH_OPTIONS = { name: 'value', n: 'value', timeout: 'value', t: 'value', autofree: 'flag', a: 'flag', replace: 'flag', r: 'flag' } as const satisfies Record<string, OptionKind>;

/** Longest command line of an x86 kernel (COMMAND_LINE_SIZE, with its final NUL); the kernel cuts the rest off in silence. */
const MAX_COMMAND_LINE = 2047;

type Fetched = { readonly kind: 'fetched'; readonly image: Image; readonly head: Buffer } | { readonly kind: 'failed'; readonly why: string };

async function fetchImage(args: readonly string[], { downloader, base }: IpxeContext): Promise<Fetched> {
  const options = readOptions(args, FETCH_OPTIONS);
  if (options.kind === 'wrong') return { kind: 'failed', why: options.why };
  const [target, ...words] = options.rest;
  const url = parseHttpUrl(target ?? '', base);
  if (!target || !url) return { kind: 'failed', why: `no http URL: ${(target ?? '').slice(0, 200)}` };
  const download = await downloader.get(url.href, MAX_SCRIPT_BYTES + 1);
  if (download.kind === 'failed') return { kind: 'failed', why: `${url.href}: ${download.why}` };
  if (download.bytes === 0) return { kind: 'failed', why: `${url.href}: exec format error (an empty file)` };
  const name = options.values.get('name') ?? options.values.get('n') ?? url.pathname.split('/').at(-1)!;
  return { kind: 'fetched', image: { name, url: download.url, bytes: download.bytes, sha256: download.sha256, words }, head: download.head };
}

const bootImages = ({ images }: IpxeContext): Step =>
  images.kernel
    ? { kind: 'leave', outcome: { kind: 'boot', kernel: images.kernel, initrds: images.initrds, commandLine: images.kernel.words.join(' ').slice(0, MAX_COMMAND_LINE) } }
    : failed('boot: no kernel was loaded');

/** EFI programs, of which a unified kernel image is one, are PE files. */
const isProgram = (head: Buffer): boolean => head.toString('latin1', 0, 2) === 'MZ';

async function chain(args: readonly string[], context: IpxeContext): Promise<Step> {
  const fetched = await fetchImage(args, context);
  if (fetched.kind === 'failed') return fetched;
  const { image, head } = fetched;
  if (isProgram(head)) {
    context.images.kernel = image;
    return bootImages(context);
  }
  if (!isScript(head)) return failed(`${image.url}: exec format error`);
  if (context.depth === 0) return failed('scripts chain too deep');
  const parsed = parseScript(head);
  if (parsed.kind === 'refused') return failed(parsed.why);
  const outcome = await context.run(parsed.script, { ...context, base: image.url, depth: context.depth - 1 });
  if (outcome.kind === 'boot') return { kind: 'leave', outcome };
  if (outcome.kind === 'failed') return outcome;
  // A chained script that exits comes back to the one that chained it.
  return outcome.status === 0 ? DONE : failed(`the chained script exited with ${outcome.status}`);
}

const integer = (text: string): number | null => (/^-?\d{1,9}$/.test(text) ? Number(text) : null);

const COMMANDS_TABLE = {
  echo: (args, { print }) => {
    print(args.join(' '));
    return DONE;
  },
  set: ([name, ...value], { variables }) => {
    if (!name) return failed('set: no name');
    variables.set(name, value.join(' '));
    return DONE;
  },
  clear: ([name], { variables }) => {
    if (!name) return failed('clear: no name');
    variables.set(name, '');
    return DONE;
  },
  inc: ([name, by = '1'], { variables }) => {
    const [value, step] = [integer(name ? variables.get(name) || '0' : ''), integer(by)];
    if (!name || value === null || step === null) return failed('inc: no number');
    variables.set(name, String(value + step));
    return DONE;
  },
  isset: (args) => (args.join('') === '' ? failed('isset: not set') : DONE),
  iseq: ([left = '', right = '']) => (left === right ? DONE : failed(`iseq: ${left.slice(0, 60)} is not ${right.slice(0, 60)}`)),
  goto: ([label]) => (label ? { kind: 'goto', label } : failed('goto: no label')),
  menu: (args, { print }) => {
    print(args.join(' '));
    return DONE;
  },
  item: () => DONE,
  // Nobody sits at this console: the default is taken, without waiting for it.
  choose: (args, { variables }) => {
    const options = readOptions(args, { default: 'value', d: 'value', timeout: 'value', t: 'value', keep: 'flag', k: 'flag' });
    if (options.kind === 'wrong') return failed(options.why);
    const [setting] = options.rest;
    const picked = options.values.get('default') ?? options.values.get('d');
    if (!setting || picked === undefined) return failed('choose: nobody chooses');
    variables.set(setting, picked);
    return DONE;
  },
  sleep: async ([seconds = ''], { sleep, signal }) => {
    const value = integer(seconds);
    if (value === null || value < 0 || value > 3600) return failed('sleep: not 0 to 3600 seconds');
    await sleep(value * 1000, signal);
    return DONE;
  },
  kernel: async (args, context) => {
    const fetched = await fetchImage(args, context);
    if (fetched.kind === 'failed') return fetched;
    context.images.kernel = fetched.image;
    return DONE;
  },
  initrd: async (args, context) => {
    const fetched = await fetchImage(args, context);
    if (fetched.kind === 'failed') return fetched;
    context.images.initrds.push(fetched.image);
    return DONE;
  },
  imgfree: (_args, { images }) => {
    images.kernel = null;
    images.initrds = [];
    return DONE;
  },
  boot: async (args, context) => {
    if (args.length === 0) return bootImages(context);
    const fetched = await fetchImage(args, context);
    if (fetched.kind === 'failed') return fetched;
    context.images.kernel = fetched.image;
    return bootImages(context);
  },
  chain,
  exit: ([status = '0']) => ({ kind: 'leave', outcome: { kind: 'exit', status: integer(status) ?? 1 } }),
} as const satisfies Record<string, CommandFunction>;

export const COMMANDS: Readonly<Record<string, CommandFunction>> = COMMANDS_TABLE;
