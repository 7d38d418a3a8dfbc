/** AMT on TLS, the wire of port 16993. */
import { connect } from 'node:tls';
import type { AmtTls } from '../../src/simulator/amt/simulator.js';
import { noSocketsLeft, startAmtBench, type AmtBench } from '../support/amt.js';
import { certificate } from '../support/certificates.js';

let bench: AmtBench;
afterEach(async () => {
  await noSocketsLeft();
  await bench.close();
});

describe('the simulator', () => {
  const firstLine = (tls: AmtTls, version: 'TLSv1' | 'TLSv1.3'): Promise<string> =>
    new Promise((resolve) => {
      const { host, port } = bench.amt;
      const socket = connect({ host, port, rejectUnauthorized: false, minVersion: version, maxVersion: version, ciphers: 'DEFAULT:@SECLEVEL=0' }, () => socket.write('POST /wsman HTTP/1.1\r\nHost: amt\r\nContent-Length: 0\r\n\r\n'));
      let text = '';
      socket.on('data', (chunk) => (text += chunk.toString())).on('error', (error: NodeJS.ErrnoException) => (text ||= error.code ?? 'error')).on('close', () => resolve(text.split('\r\n')[0]!));
    });

  test.each([
    ['today', { ...certificate('amt') }, 'TLSv1.3', 'HTTP/1.1 401 Unauthorized'],
    ['today', { ...certificate('amt') }, 'TLSv1', 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'],
    ['old', { ...certificate('old'), minVersion: 'TLSv1', maxVersion: 'TLSv1.1' }, 'TLSv1', 'HTTP/1.1 401 Unauthorized'],
  ] as const)('that is of %s serves its wire over TLS of its time only (%#)', async (_age, tls, version, answer) => {
    bench = await startAmtBench({ tls });
    expect(bench.amt.url).toMatch(/^https:/);
    expect(await firstLine(tls, version)).toBe(answer);
  });
});
