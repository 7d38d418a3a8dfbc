/** An iPXE script as a typed model, and its rendering. No other code writes a line of iPXE. */
import { MetalflowError } from '../../domain/errors.js';
import { ABSOLUTE_URL, ARGUMENT_NAME, COMMAND_LINE_MOST, ECHO_TEXT, KERNEL_WORD, LABEL, MAC, URL_PATH } from './words.js';

/** A node's MAC: as text when the request named it, else iPXE's own setting of the NIC it boots from. */
export type NodeMac = { readonly kind: 'known'; readonly mac: string } | { readonly kind: 'of-the-boot-nic' };

/** A file of this server. iPXE resolves a path against the URL of the script, so no host name is needed here. */
export interface AssetUrl {
  readonly path: string;
  /** Travels as `?mac=`, so that the gate knows who asks. */
  readonly mac: NodeMac;
}

export interface KernelArgument {
  readonly name: string;
  readonly value: string | NodeMac;
}

/** `otherwise` is the label to go to when the line fails. */
export type ScriptLine =
  | { readonly kind: 'echo'; readonly text: string }
  | { readonly kind: 'label'; readonly name: string }
  | { readonly kind: 'goto'; readonly label: string }
  | { readonly kind: 'count-from-zero'; readonly counter: string }
  | { readonly kind: 'count-up-to'; readonly counter: string; readonly most: number; readonly reached: string }
  | { readonly kind: 'sleep'; readonly seconds: number }
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

function commandLine(named: readonly KernelArgument[], extra: readonly string[]): string {
  const words = named.map(({ name, value }) => `${fits(name, ARGUMENT_NAME, 'kernel argument name')}=${typeof value === 'string' ? fits(value, KERNEL_WORD, `kernel argument ${name}`) : nodeMac(value)}`);
  const text = [...words, ...extra.map((word) => fits(word, KERNEL_WORD, 'extra kernel argument'))].join(' ');
  if (text.length > COMMAND_LINE_MOST) throw new MetalflowError('boot_script_invalid', { what: `the kernel's command line is longer than ${COMMAND_LINE_MOST} characters` });
  return text;
}

const assetUrl = ({ path, mac }: AssetUrl): string => `${fits(path, URL_PATH, 'asset path')}?mac=${nodeMac(mac)}`;
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
