/** The agent's settings on a real node: the kernel command line that the boot plane wrote. */
import { parseMac } from '../domain/mac.js';
import { MetalflowError } from '../domain/errors.js';

export interface CommandLine {
  /** Base URL of the agent plane. */
  readonly url: string;
  /** null: to be found by looking at the machine's NICs. */
  readonly bootMac: string | null;
}

/**
 * `metalflow_url=https://…` is needed. The boot NIC is `hw_addr=` or `worker_id=`, as HookOS has them, whichever is a MAC address.
 * Of a key that is there twice the last counts, as for the kernel.
 * @throws setting_invalid
 */
export function parseCommandLine(text: string): CommandLine {
  const values = new Map<string, string>();
  for (const word of text.trim().split(/\s+/)) {
    const [key, ...rest] = word.split('=');
    if (key && rest.length > 0) values.set(key, rest.join('='));
  }
  const url = values.get('metalflow_url') ?? '';
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new MetalflowError('setting_invalid', { name: 'metalflow_url', why: url ? 'is neither an http nor an https URL' : 'is not on the kernel command line' });
  }
  return { url, bootMac: parseMac(values.get('hw_addr') ?? '') ?? parseMac(values.get('worker_id') ?? '') };
}
