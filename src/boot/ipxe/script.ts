/** An iPXE script as a typed model, and its rendering. No other code writes a line of iPXE. */
import { MetalflowError } from '../../domain/errors.js';
import { ABSOLUTE_URL, ARCH_MARK, ARGUMENT_NAME, COMMAND_LINE_MOST, ECHO_TEXT, KERNEL_WORD, LABEL, MAC, URL_PATH } from './words.js';

/** A node's MAC: as text when the request named it, else iPXE's own setting of the NIC it boots from. */
export type NodeMac = { readonly kind: 'known'; readonly mac: string } | { readonly kind: 'of-the-boot-nic' };

/** A file of this server. iPXE resolves a path against the URL of the script, so no host name is needed here. */
export interface AssetUrl {
  /** `{arch}` in it is the architecture that `name-the-arch` found. */
  readonly path: string;
  /** Travels as `?mac=`, so that the gate knows who asks. */
  readonly mac: NodeMac;
}

export interface KernelArgument {
  readonly name: string;
  readonly value: string | NodeMac;
}

export interface MenuItem {
  /** The label to go to. */
  readonly label: string;
  readonly text: string;
}

/** `otherwise` is the label to go to when the line fails. */
export type ScriptLine =
  | { readonly kind: 'echo'; readonly text: string }
  | { readonly kind: 'label'; readonly name: string }
  | { readonly kind: 'goto'; readonly label: string }
  | { readonly kind: 'count-from-zero'; readonly counter: string }
  | { readonly kind: 'count-up-to'; readonly counter: string; readonly most: number; readonly reached: string }
  | { readonly kind: 'sleep'; readonly seconds: number }
  /** Sets `arch` for the `{arch}` of file names. */
  | { readonly kind: 'name-the-arch' }
  /** Goes to the label of what was chosen; after `seconds` without a key, and where there is no menu, to that of the first item. */
  | { readonly kind: 'menu'; readonly title: string; readonly items: readonly [MenuItem, ...MenuItem[]]; readonly seconds: number }
  | { readonly kind: 'shell' }
  | { readonly kind: 'free-images' }
  | { readonly kind: 'kernel'; readonly url: AssetUrl; readonly arguments: readonly KernelArgument[]; readonly extra: readonly string[]; readonly otherwise: string }
  | { readonly kind: 'initrd'; readonly url: AssetUrl; readonly name: string; readonly otherwise: string }
  | { readonly kind: 'boot'; readonly otherwise: string }
  | { readonly kind: 'chain'; readonly url: AssetUrl; readonly otherwise: string }
  | { readonly kind: 'chain-to-script'; readonly server: string }
  | { readonly kind: 'exit' };

/**
 * The script's text: `#!ipxe` first, one line each, a line feed last.
 * @throws boot_script_invalid when a value holds a character outside its set; the value itself is not repeated
 */
export function renderScript(lines: readonly ScriptLine[]): string {
  return ['#!ipxe', ...lines.flatMap(renderLine), ''].join('\n');
}

function renderLine(line: ScriptLine): string[] {
  switch (line.kind) {
    case 'echo':
      return [`echo ${fits(line.text, ECHO_TEXT, 'text')}`];
    case 'label':
      return [`:${label(line.name)}`];
    case 'goto':
      return [`goto ${label(line.label)}`];
    case 'count-from-zero':
      return [`set ${label(line.counter)}:int32 0`];
    case 'count-up-to':
      // The last `||` takes the comparison's failure away: a line that fails ends an iPXE script.
      return [`inc ${label(line.counter)}`, `iseq \${${label(line.counter)}} ${whole(line.most)} && goto ${label(line.reached)} ||`];
    case 'sleep':
      return [`sleep ${whole(line.seconds)}`];
    case 'name-the-arch':
      return ['set arch ${buildarch}', ...ARCH_NAMES.map(([ipxe, file]) => `iseq \${arch} ${ipxe} && set arch ${file} ||`)];
    case 'menu':
      return menu(line.title, line.items, line.seconds);
    case 'shell':
      return ['shell ||'];
    case 'free-images':
      return ['imgfree'];
    case 'kernel':
      return [`kernel ${assetUrl(line.url)} ${commandLine(line.arguments, line.extra)} || goto ${label(line.otherwise)}`];
    case 'initrd':
      return [`initrd --name ${fits(line.name, ARGUMENT_NAME, 'initrd name')} ${assetUrl(line.url)} || goto ${label(line.otherwise)}`];
    case 'boot':
      return [`boot || goto ${label(line.otherwise)}`];
    case 'chain':
      return [`chain --autofree ${assetUrl(line.url)} || goto ${label(line.otherwise)}`];
    case 'chain-to-script':
      return [`chain --autofree ${fits(line.server, ABSOLUTE_URL, 'server URL').replace(/\/$/, '')}/ipxe/script/\${mac:hexhyp}/auto.ipxe || exit`];
    case 'exit':
      return ['exit'];
  }
}

/**
 * What iPXE calls a machine, and what kernels are called by. A BIOS build of iPXE is a 32-bit program on machines that have been 64-bit for
 * twenty years, so its `i386` says nothing about the node.
 */
const ARCH_NAMES = [['i386', 'x86_64'], ['arm64', 'aarch64']] as const;

function menu(title: string, items: readonly [MenuItem, ...MenuItem[]], seconds: number): string[] {
  const first = label(items[0].label);
  return [
    // A build of iPXE without menus fails these two lines, and a console without anybody must not stop there.
    `menu ${fits(title, ECHO_TEXT, 'menu title')} || goto ${first}`,
    ...items.map((item) => `item ${label(item.label)} ${fits(item.text, ECHO_TEXT, 'menu item')}`),
    `choose --default ${first} --timeout ${whole(seconds)}000 picked || goto ${first}`,
    'goto ${picked}',
  ];
}

function commandLine(named: readonly KernelArgument[], extra: readonly string[]): string {
  const valueOf = ({ name, value }: KernelArgument): string => (typeof value === 'string' ? fits(value, KERNEL_WORD, `kernel argument ${name}`) : nodeMac(value));
  const words = named.map((argument) => `${fits(argument.name, ARGUMENT_NAME, 'kernel argument name')}=${valueOf(argument)}`);
  const text = [...words, ...extra.map((word) => fits(word, KERNEL_WORD, 'extra kernel argument'))].join(' ');
  if (text.length > COMMAND_LINE_MOST) throw new MetalflowError('boot_script_invalid', { what: `the kernel's command line is longer than ${COMMAND_LINE_MOST} characters` });
  return text;
}

function assetUrl({ path, mac }: AssetUrl): string {
  fits(path.replaceAll(ARCH_MARK, ''), URL_PATH, 'asset path');
  return `${path.replaceAll(ARCH_MARK, '${arch}')}?mac=${nodeMac(mac)}`;
}
const nodeMac = (mac: NodeMac): string => (mac.kind === 'known' ? fits(mac.mac, MAC, 'MAC address') : '${mac}');
const label = (name: string): string => fits(name, LABEL, 'label');

function fits(text: string, set: RegExp, what: string): string {
  if (!set.test(text)) throw new MetalflowError('boot_script_invalid', { what: `${what} holds a character that a script must not` });
  return text;
}

function whole(value: number): string {
  if (!Number.isInteger(value) || value < 0 || value > 3600) throw new MetalflowError('boot_script_invalid', { what: 'a number is out of range' });
  return String(value);
}
