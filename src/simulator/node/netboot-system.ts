/** The netboot system: what a kernel from the network does with its command line until the agent runs. */
import { parseMac } from '../../domain/mac.js';
import { parseHttpUrl } from './url.js';

/** `name=value` words as Linux hands them on: a later one wins, a word without `=` is empty. */
export function parseCommandLine(text: string): ReadonlyMap<string, string> {
  const words = text.split(/\s+/).filter(Boolean);
  return new Map(words.map((word) => {
    const at = word.indexOf('=');
    return at < 0 ? [word, ''] : [word.slice(0, at), word.slice(at + 1)];
  }));
}

export type NetbootStart =
  | { readonly kind: 'agent'; readonly api: string; readonly bootMac: string }
  | { readonly kind: 'stuck'; readonly why: string };

/**
 * What the netboot system does next. `agentApi` is for a unified kernel image, which takes no argument.
 * `hw_addr` is believed as far as the machine has such a NIC; else the NIC that booted speaks.
 */
export function startNetbootSystem({ commandLine, bootMac, macs, agentApi }: { commandLine: string; bootMac: string; macs: readonly string[]; agentApi: string | undefined }): NetbootStart {
  const kernelArguments = parseCommandLine(commandLine);
  const api = agentApi ?? kernelArguments.get('metalflow_url');
  if (!api) return { kind: 'stuck', why: 'the kernel was told no metalflow_url' };
  if (!parseHttpUrl(api)) return { kind: 'stuck', why: 'metalflow_url is no http URL' };
  const told = parseMac(kernelArguments.get('hw_addr') ?? '');
  return { kind: 'agent', api, bootMac: told && macs.includes(told) ? told : bootMac };
}
