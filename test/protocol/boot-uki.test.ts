/** A signed image reaches a node as it was signed: the signature covers every byte, and the command line is inside it. */
import { createHash } from 'node:crypto';
import { request } from 'undici';
import { createBootFiles } from '../../src/boot/files.js';
import { createBootGate } from '../../src/boot/gate.js';
import { createBootHttp } from '../../src/boot/http.js';
import { BootSettings } from '../../src/boot/settings.js';
import { silentLogger } from '../../src/telemetry/log.js';
import { fakeBootDirectory, MAC, NOW, permitted } from '../support/boot-directory.js';
import { fetchWithPackage } from '../support/tftp-client.js';
import { bootFolder, PATIENT, patterned, testTftp } from '../support/tftp-server.js';

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

test('a UKI is the same to the byte over HTTP and over TFTP, asked twice, and the script gives it no argument', async () => {
  // Larger than what is kept in memory, and no whole number of blocks or chunks.
  const uki = Buffer.concat([Buffer.from('MZ'), patterned(5 * 1024 * 1024 + 12_345), Buffer.from('signature')]);
  const folder = await bootFolder({ 'signed/node.efi': uki });
  const log = silentLogger();
  const directory = fakeBootDirectory({ [MAC]: permitted({ systemUuid: '4c4c4544-0001-4000-8000-000000000001' }) });
  const http = createBootHttp({
    gate: createBootGate({ directory, unknownMac: 'disk', now: () => NOW, log }), directory, log, ready: async () => {}, assetsDir: folder.root, binaries: createBootFiles({ roots: [], log }),
    settings: BootSettings.parse({ agentUrl: 'https://10.0.0.1:42114', uki: 'signed/node.efi' }),
  });
  const base = await http.listen({ host: '127.0.0.1', port: 0 });
  const tftp = await testTftp(folder.root, { unknownMac: 'menu', limits: PATIENT });
  try {
    const script = await (await request(`${base}/ipxe/script/${MAC}/auto.ipxe`)).body.text();
    const [chain, ...more] = script.split('\n').filter((line) => line.includes('node.efi'));
    expect(more).toEqual([]);
    const [, url] = /^chain --autofree (\S+) \|\| goto failed$/.exec(chain!)!;
    for (let times = 0; times < 2; times++) {
      const answer = await request(`${base}${url}`);
      expect([answer.statusCode, sha256(Buffer.from(await answer.body.arrayBuffer()))]).toEqual([200, sha256(uki)]);
    }
    expect(sha256(await fetchWithPackage(tftp.server.port, 'signed/node.efi', { blockSize: 1468 }))).toBe(sha256(uki));
  } finally {
    await tftp.server.close();
    await http.close();
    await folder.remove();
  }
});
