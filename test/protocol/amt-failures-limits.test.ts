/** Bad answers end within their limit, and leave nothing: no socket, no timer, no memory. */
import type { Timeouts } from '../../src/bmc/http-once.js';
import { parseFingerprint } from '../../src/domain/fingerprint.js';
import type { AmtFaults } from '../../src/simulator/amt/faults.js';
import { noSocketsLeft, startAmtBench, type AmtBench } from '../support/amt.js';
import { certificate, fingerprintOf } from '../support/certificates.js';
import { keptBytes } from '../support/memory.js';
import { until } from '../support/until.js';

let bench: AmtBench;
afterEach(async () => {
  await noSocketsLeft();
  await bench.close();
});

const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

const ANSWER = 10 * 1024 * 1024;

test('an answer of 10 MB fifty times over is refused each time and takes no memory', async () => {
  bench = await startAmtBench({ faults: { answerAs: 'huge' } });
  const bmc = bench.open();
  const ask = async (): Promise<void> => expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code: 'bmc_answer_invalid', why: expect.stringContaining('larger than') });
  for (let warm = 0; warm < 5; warm += 1) await ask();
  await noSocketsLeft();
  const before = keptBytes();
  for (let round = 0; round < 50; round += 1) await ask();
  await noSocketsLeft();
  await until('not one of the answers is kept', () => keptBytes() - before < ANSWER);
});

test.each([
  ['a wrong password', {}, 'wrong', 'bmc_auth_failed'],
  ['an account that is locked', { lockedOut: true }, undefined, 'bmc_auth_failed'],
  ['a web page', { answerAs: 'html' }, undefined, 'bmc_answer_invalid'],
  ['torn XML', { answerAs: 'truncated-xml' }, undefined, 'bmc_answer_invalid'],
  ['a connection that ends in the answer', { answerAs: 'torn' }, undefined, 'bmc_unreachable'],
  ['a slow drip', { answerAs: 'slow-drip' }, undefined, 'bmc_unreachable', { requestMs: 150 }],
  ['silence', { silent: true }, undefined, 'bmc_unreachable', { requestMs: 150 }],
  ['an ME that never wakes', { sleepFirstN: Infinity }, undefined, 'bmc_unreachable'],
] as [string, Partial<AmtFaults>, string | undefined, string, Partial<Timeouts>?][])('%s is one code, plain and over TLS, and neither socket nor timer stays', async (_name, faults, password, code, limits = {}) => {
  for (const tls of [null, certificate('self-signed')]) {
    bench = await startAmtBench({ initialPower: 'on', ...(tls && { tls }) });
    await bench.amt.setFaults(faults);
    const before = timers();
    const bmc = bench.open({ timeouts: { ...limits, tries: 2 }, ...(password && { password }), ...(tls && { trust: { pin: parseFingerprint(fingerprintOf('self-signed')), authorities: null, oldTls: false } }) });
    expect(await bmc.observePower()).toMatchObject({ kind: 'unknown', code });
    await noSocketsLeft();
    await until('no timer stays', () => timers() <= before);
    if (!tls) await bench.close();
  }
});
