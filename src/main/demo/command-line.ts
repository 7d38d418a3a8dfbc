/** What a person who looks around in the demo needs: settings for the command line, and the token. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DemoNetbox } from './world.js';

const quoted = (value: string): string => `'${value.replaceAll("'", String.raw`'\''`)}'`;

/**
 * Writes a file for `. <file>` in a shell, readable by its owner only: with the data folder the command line finds the store and the
 * secrets too, so `metalflow bmc` works as `metalflow node` does.
 * @returns the file
 */
export function writeCommandLineSettings(dir: string, operatorUrl: string, netbox: Pick<DemoNetbox, 'url' | 'token'>): string {
  const settings = { METALFLOW_OPERATOR_URL: operatorUrl, METALFLOW_DATA_DIR: dir, METALFLOW_NETBOX_URL: netbox.url, METALFLOW_NETBOX_TOKEN: netbox.token };
  const file = join(dir, 'command-line.sh');
  writeFileSync(file, Object.entries(settings).map(([name, value]) => `export ${name}=${quoted(value)}\n`).join(''), { mode: 0o600 });
  return file;
}

/** What to type in another terminal, line by line; the second asks for a run of `node`. */
export function lookingAround(file: string, node: string | null): string {
  const lines = [`. ${quoted(file)}`, 'node bin/metalflow.mjs node list', ...(node === null ? [] : [`node bin/metalflow.mjs node reprovision ${node}`])];
  return ['look around from another terminal, in this folder:', ...lines.map((line) => `  ${line}`)].join('\n');
}
