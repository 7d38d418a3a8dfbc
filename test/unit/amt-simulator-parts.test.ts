/** Parts of the AMT simulator that need no socket. */
import { X509Certificate } from 'node:crypto';
import { splitCommand } from '../../src/simulator/amt/command-line.js';
import { selfSigned } from '../../src/simulator/amt/self-signed.js';

describe('a command is cut into words', () => {
  test.each([
    ['virsh start vm7', ['virsh', 'start', 'vm7']],
    ['  /opt/my\\ vm  --name="a b"\'c d\'e ', ['/opt/my vm', '--name=a bc de']],
    ['sh -c \'echo "$METALFLOW_AMT_POWER" > /tmp/x; true\'', ['sh', '-c', 'echo "$METALFLOW_AMT_POWER" > /tmp/x; true']],
    ['a "" "say \\"x\\" \\n" $HOME *', ['a', '', 'say "x" \\n', '$HOME', '*']],
  ])('%s', (text, words) => {
    expect(splitCommand(text, '--on-command')).toEqual(words);
  });
  test.each(['', '   ', 'a "b', "a 'b", 'a b\\', '"" x', 'a\0b'])('%j is refused', (text) => {
    expect(() => splitCommand(text, '--on-command')).toThrow(expect.objectContaining({ code: 'setting_invalid', details: expect.objectContaining({ name: '--on-command' }) }));
  });
  test('a long one without an end is refused at once', () => {
    expect(() => splitCommand(`a ${'"\\'.repeat(20_000)}`, 'x')).toThrow('setting x');
  });
});

describe('a certificate of our own', () => {
  test.each([['127.0.0.1', 'IP Address:127.0.0.1'], ['amt.example', 'DNS:amt.example']])('for %s is signed by itself and names it', (host, altName) => {
    const { cert, fingerprint } = selfSigned(host, new Date('2026-01-02T03:04:05Z'));
    const read = new X509Certificate(cert);
    expect(read.verify(read.publicKey)).toBe(true);
    expect(read).toMatchObject({ subjectAltName: altName, fingerprint256: fingerprint, subject: 'CN=Intel(r) AMT\\, simulated', issuer: read.subject });
    expect([read.validFrom, read.validTo].map((at) => new Date(at).toISOString())).toEqual(['2026-01-01T03:04:05.000Z', '2027-01-02T03:04:05.000Z']);
  });
});
