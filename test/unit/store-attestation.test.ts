/** Challenges, evidence, boots and install codes: what a node may show, once. */
import type { RunPlan } from '../../src/contracts/plan.js';
import { deviceOf, DISKS, MAC, StoreBench, UUID } from '../support/store-bench.js';

let bench: StoreBench;
beforeAll(async () => void (bench = await StoreBench.open()));
beforeEach(() => bench.clean());
afterAll(() => bench.close());

const hello = { systemUuid: UUID, bootMac: MAC, akPublic: 'ak', ekPublic: 'ek', ekCertificate: null };

describe('a challenge', () => {
  test('is single use', async () => {
    const opened = await bench.store.attestation.openChallenge(hello);
    expect(await bench.store.attestation.takeChallenge(opened.id)).toEqual(opened);
    expect(await bench.store.attestation.takeChallenge(opened.id)).toBeNull();
  });
  test('that two reports reach for at once is had by one', async () => {
    const { id } = await bench.store.attestation.openChallenge(hello);
    const taken = await Promise.all([bench.store.attestation.takeChallenge(id), bench.store.attestation.takeChallenge(id)]);
    expect(taken.filter(Boolean)).toHaveLength(1);
  });
  test.each([[120, true], [120.001, false]])('after %d s is still good: %s', async (seconds, good) => {
    const { id, expiresAt } = await bench.store.attestation.openChallenge(hello);
    expect(expiresAt).toBe('2026-11-30T12:02:00.000Z');
    bench.pass(seconds);
    expect((await bench.store.attestation.takeChallenge(id)) !== null).toBe(good);
  });
  test('that nobody opened is none', async () => {
    expect(await bench.store.attestation.takeChallenge('01')).toBeNull();
  });
  test('has 32 random bytes of its own', async () => {
    const nonces = await Promise.all([1, 2].map(async () => (await bench.store.attestation.openChallenge(hello)).nonce));
    expect(nonces.map((nonce) => Buffer.from(nonce, 'base64').length)).toEqual([32, 32]);
    expect(nonces[0]).not.toBe(nonces[1]);
  });
  test('that is long expired is forgotten, so that strangers fill no disk', async () => {
    await bench.store.attestation.openChallenge(hello);
    bench.pass(241);
    await bench.store.attestation.openChallenge(hello);
    expect(await bench.db.selectFrom('challenge').select('id').execute()).toHaveLength(1);
  });
});

describe('whose attestation it is', () => {
  const attempt = async () => (await bench.store.attestation.findNode(MAC))?.attempt;
  test('a MAC that no device declares is nobody', async () => {
    expect(await bench.store.attestation.findNode('02:ff:ff:ff:ff:ff')).toBeNull();
  });
  test.each([['planned', true], ['available', true], ['active', false], ['failed', false], ['held', false], ['maintenance', false], ['retired', false]] as const)('intake of a node that is %s: %s', async (state, admitted) => {
    await bench.store.devices.setState('7', { state, previousState: null, hold: null, because: 'x' });
    expect(await bench.store.attestation.findNode(MAC)).toMatchObject({ deviceId: '7', systemUuid: UUID, attempt: null, admitted });
  });
  test('an attestation of an older boot, whose script was not served in this attempt, belongs to no attempt', async () => {
    const ref = await bench.begin();
    const { bootAttempt } = await bench.store.attempts.open(ref);
    expect(await bench.store.attestation.findNode(MAC)).toMatchObject({ attempt: null, admitted: false });
    await bench.store.boot.recordBootSeen(bootAttempt);
    expect(await attempt()).toMatchObject({ run: ref.run, bootAttempt, akThumbprint: null, allowUnproven: false });
  });
  test('the next attempt is not served by the boot of the last', async () => {
    const ref = await bench.begin();
    await bench.boot(ref);
    await bench.store.attempts.open(ref);
    expect(await attempt()).toBeNull();
  });
  test('what the class admits comes from the plan that the run pinned', async () => {
    const ref = await bench.begin();
    const plan: RunPlan = {
      deviceId: '7', nodeName: 'node-7', run: ref.run, kind: 'provision', site: 'lab', systemUuid: UUID, bmc: { type: 'amt', host: '10.0.0.7' }, wipes: false, netboots: true, nodeClass: 'talos', payload: 'talos',
      template: 'install', image: null, diskRule: {}, rootDisk: null, wipeDisks: ['S1'], actions: [], seed: null, allowUnproven: true, confirmBy: 'seed-fetched',
    };
    await bench.store.runs.pinPlan(ref, plan);
    expect(await bench.store.runs.plan('7', ref.run)).toEqual(plan);
    await bench.boot(ref);
    expect(await attempt()).toMatchObject({ allowUnproven: true, akThumbprint: 'ak-1' });
  });
});

describe('an accepted attestation', () => {
  test('of an attempt opens a session, gives a code and tells the run, once', async () => {
    const ref = await bench.begin();
    const { bootAttempt, session, installCode } = await bench.boot(ref);
    expect(session).toMatchObject({ deviceId: '7', run: ref.run, bootAttempt, akThumbprint: 'ak-1' });
    expect(installCode).toMatch(/^[\w-]{43}$/);
    const attested = { kind: 'signal-run', workflowId: ref.workflowId, name: 'attested', payload: { bootAttempt, attestationId: expect.any(String), accepted: true, reason: null } };
    expect(await bench.mail()).toEqual([expect.objectContaining({ name: 'bootSeen' }), attested, expect.objectContaining({ name: 'agentSeen', payload: { bootAttempt } })]);
    expect(await bench.store.attempts.attested(ref, bootAttempt)).toMatchObject({ proof: 'tpm', akThumbprint: 'ak-1', disks: [{ serial: 'S1' }] });

    const again = await bench.attest();
    expect((await bench.mail()).map((message) => 'name' in message && message.name)).toEqual(['agentSeen']);
    expect(await bench.store.orderDesk.session(again.token)).not.toBeNull();
  });
  test('revokes the session of the former one, and its code', async () => {
    const ref = await bench.begin();
    const first = await bench.boot(ref);
    const second = await bench.attest();
    expect(await bench.store.orderDesk.session(first.token)).toBeNull();
    expect(await bench.redeem(first.installCode!)).toEqual({ kind: 'unknown' });
    expect(await bench.redeem(second.installCode!)).toMatchObject({ kind: 'redeemed' });
  });
  test('of a node that waits without a run tells the lifecycle, and gives no code', async () => {
    const { session, installCode } = await bench.attest();
    expect([session.run, session.bootAttempt, installCode]).toEqual([null, null, null]);
    expect(await bench.mail()).toEqual([{ kind: 'signal-lifecycle', deviceId: '7', name: 'attested', payload: { bootAttempt: null, attestationId: expect.any(String), accepted: true, reason: null } }]);
  });
  test.each(['wipe', 'retire'] as const)('of a %s gives no code: nothing is installed', async (kind) => {
    expect((await bench.boot(await bench.begin(kind))).installCode).toBeNull();
  });
  test('whose attempt was closed meanwhile is refused, and leaves no session', async () => {
    const ref = await bench.begin();
    await bench.boot(ref);
    const node = (await bench.store.attestation.findNode(MAC))!;
    const challenge = await bench.store.attestation.openChallenge(hello);
    await bench.store.attempts.open(ref);
    const late = bench.store.attestation.record({ node, challenge, report: null, verdict: { accepted: true, reason: null, proof: 'tpm', akThumbprint: 'ak-1', neighbour: null }, sender: '10.0.1.7' });
    await expect(late).rejects.toMatchObject({ code: 'attempt_superseded' });
    expect(await bench.db.selectFrom('session').select('token_hash').where('revoked_at', 'is', null).execute()).toEqual([]);
  });
  test('is kept as evidence; its secrets are not', async () => {
    const { token, installCode } = await bench.boot(await bench.begin());
    expect(await bench.store.nodes.evidence('7')).toMatchObject([{ accepted: true, reason: null, proof: 'tpm', bootMac: MAC, akThumbprint: 'ak-1' }]);
    const kept = JSON.stringify([await bench.db.selectFrom('session').selectAll().execute(), await bench.db.selectFrom('install_code').selectAll().execute(), await bench.db.selectFrom('outbox').selectAll().execute(), await bench.journal()]);
    for (const secret of [token, installCode!]) expect(kept).not.toContain(secret);
  });
});

describe('a refused attestation', () => {
  test('is told to the run once for each reason in an attempt: a node that keeps trying grows no history', async () => {
    const ref = await bench.begin();
    await bench.boot(ref);
    await bench.mail();
    for (const reason of ['nonce_wrong', 'nonce_wrong', 'signature_wrong', 'nonce_wrong']) await bench.attestRefused(reason);
    expect((await bench.mail()).map((message) => (message.payload as { reason: string }).reason)).toEqual(['nonce_wrong', 'signature_wrong']);
    expect((await bench.store.nodes.evidence('7')).map(({ reason }) => reason)).toEqual(['nonce_wrong', 'signature_wrong', null]);
    expect((await bench.journal()).filter((text) => text.startsWith('attestation refused'))).toEqual(['attestation refused: nonce_wrong', 'attestation refused: signature_wrong']);
  });
  test('A8: of a declared MAC is one row and one line, however often it comes; one that comes back after a day is news', async () => {
    const refusals = async () => (await bench.journal()).filter((text) => text === 'attestation refused: node_not_admitted').length;
    for (let n = 0; n < 5; n++) {
      await bench.attestRefused('node_not_admitted', DISKS);
      bench.pass(30);
    }
    expect([(await bench.store.nodes.evidence('7')).length, await refusals()]).toEqual([1, 1]);
    bench.pass(24 * 3600);
    await bench.attestRefused('node_not_admitted', DISKS);
    expect([(await bench.store.nodes.evidence('7')).length, await refusals()]).toEqual([1, 2]);
  });
  test('A8: of MACs that nobody declares, the last hundred are kept and shown, one row each, and no disks', async () => {
    const macs = Array.from({ length: 104 }, (_, n) => `02:ff:00:00:00:${n.toString(16).padStart(2, '0')}`);
    for (bench.mac of [...macs, macs[100]!, macs[103]!]) {
      await bench.attestRefused('node_unknown', DISKS);
      bench.pass(1);
    }
    const rows = await bench.db.selectFrom('attestation').select(['boot_mac', 'disks']).execute();
    expect(rows.filter(({ disks }) => disks !== null)).toEqual([]);
    const shown = await bench.store.nodes.strangers();
    expect(shown.map(({ bootMac }) => bootMac)).toEqual([macs[103], macs[100], ...macs.slice(4, 103).filter((mac) => mac !== macs[100]).reverse()]);
    expect(shown[0]).toEqual({ at: expect.any(String), bootMac: macs[103], systemUuid: UUID, reason: 'node_unknown', neighbour: null, sender: '10.0.1.7' });
    expect(rows).toHaveLength(shown.length);
  });
  test('without a run, or of an unknown MAC, is evidence and nothing else', async () => {
    await bench.attestRefused('unproven');
    bench.mac = '02:ff:ff:ff:ff:ff';
    await bench.attestRefused('no_device');
    expect(await bench.mail()).toEqual([]);
    expect(await bench.db.selectFrom('attestation').select(['device_id', 'reason']).orderBy('id').execute()).toEqual([{ device_id: '7', reason: 'unproven' }, { device_id: null, reason: 'no_device' }]);
  });
  test('opens no session and ends none', async () => {
    const { token } = await bench.boot(await bench.begin());
    await bench.attestRefused('signature_wrong');
    expect(await bench.store.orderDesk.session(token)).not.toBeNull();
  });
});

describe('a session', () => {
  test('ends with its time, and a token nobody gave is none', async () => {
    const { token } = await bench.boot(await bench.begin());
    expect(await bench.store.orderDesk.session(`${token}x`)).toBeNull();
    bench.pass(86_400);
    expect(await bench.store.orderDesk.session(token)).not.toBeNull();
    bench.pass(1);
    expect(await bench.store.orderDesk.session(token)).toBeNull();
  });
});

describe('who asks', () => {
  test('is known by the address NetBox declares, or by the MAC it named within the hour', async () => {
    expect(await bench.store.boot.byAddress('10.0.1.7')).toMatchObject({ deviceId: '7' });
    expect(await bench.store.boot.byAddress('10.0.9.9')).toBeNull();
    await bench.store.boot.rememberSender(MAC, '10.0.9.9');
    expect(await bench.store.boot.byAddress('10.0.9.9')).toMatchObject({ deviceId: '7' });
    bench.pass(3601);
    expect(await bench.store.boot.byAddress('10.0.9.9')).toBeNull();
  });
  test('by a MAC that it named before this boot attempt, or longer ago than a boot takes, may be another machine by now', async () => {
    const { boot, attempts, permissions } = bench.store;
    await boot.rememberSender(MAC, '10.0.9.9');
    expect(await boot.byAddress('10.0.9.9')).not.toHaveProperty('byEarlierBoot');
    bench.pass(601);
    expect(await boot.byAddress('10.0.9.9')).toMatchObject({ deviceId: '7', byEarlierBoot: true });
    await boot.rememberSender(MAC, '10.0.9.9');
    bench.pass(1);
    const ref = await bench.begin();
    const { bootAttempt } = await attempts.open(ref);
    await permissions.lease(ref, bootAttempt, 300);
    expect(await boot.byAddress('10.0.9.9')).toMatchObject({ permission: { bootAttempt }, byEarlierBoot: true });
    await boot.rememberSender(MAC, '10.0.9.9');
    expect(await boot.byAddress('10.0.9.9')).not.toHaveProperty('byEarlierBoot');
    // What NetBox declares needs no memory.
    expect(await boot.byAddress('10.0.1.7')).not.toHaveProperty('byEarlierBoot');
  });
  test('is remembered once a MAC, at its newest address, for declared MACs only: the table has never more rows than there are MACs', async () => {
    const { boot } = bench.store;
    for (let host = 1; host <= 50; host++) {
      await boot.rememberSender(MAC, `10.0.9.${host}`);
      await boot.rememberSender(`02:00:00:00:00:${host + 10}`, `10.0.8.${host}`);
    }
    expect(await bench.db.selectFrom('sender').select(['mac', 'address']).execute()).toEqual([{ mac: MAC, address: '10.0.9.50' }]);
    expect(await boot.byAddress('10.0.9.49')).toBeNull();
    await boot.forgetSender('10.0.9.50');
    expect(await boot.byAddress('10.0.9.50')).toBeNull();
  });
  test('of two devices with one address neither is guessed', async () => {
    await bench.declare({ id: '8', name: 'node-8', macs: ['02:00:00:00:00:08'] });
    await bench.store.boot.rememberSender(MAC, '10.0.1.7');
    expect(await bench.store.boot.byAddress('10.0.1.7')).toBeNull();
  });

  test('a retired device has left its address to the next', async () => {
    await bench.store.devices.register(deviceOf({ id: '8', name: 'node-8', systemUuid: null, macs: ['02:01:48:aa:bb:08'] }), { state: 'active', adopted: true });
    await bench.store.devices.setState('7', { state: 'retired', previousState: null, hold: null, because: 'gone' } as never);
    expect(await bench.store.boot.byAddress('10.0.1.7')).toMatchObject({ deviceId: '8' });
  });
  test('what its class allows without a run is what was read last', async () => {
    expect(await bench.store.attestation.findNode(MAC)).toMatchObject({ classAllowsUnproven: false });
    await bench.store.devices.register(deviceOf(), { state: 'planned', adopted: false }, { allowUnproven: true });
    expect(await bench.store.attestation.findNode(MAC)).toMatchObject({ classAllowsUnproven: true });
  });
  test('a MAC that moved to another device belongs to the one read last', async () => {
    await bench.declare({ id: '8', name: 'node-8', addresses: [] });
    expect(await bench.store.boot.byMac(MAC)).toMatchObject({ deviceId: '8' });
    await bench.store.devices.register(deviceOf({ macs: [] }), { state: 'active', adopted: true });
    expect(await bench.store.boot.byMac(MAC)).toMatchObject({ deviceId: '8' });
  });
});
