import {
  addressFinding, bootFinding, clockFinding, controlModeFinding, linkFinding, osPowerFinding, powerPolicyFinding, provisioningFinding, versionFinding, type Port,
} from '../../src/bmc/amt/findings.js';

test.each([
  ['16.1.25', 'good'], ['9.5.61', 'good'], ['5.0.2', 'bad'], [undefined, 'unknown'],
])('AMT %s is %s', (version, result) => {
  expect(versionFinding(version)).toMatchObject({ about: 'version', version: version ?? null, result });
});

test.each([
  [2, 'admin', 'good'], [1, 'client', 'bad'], [0, 'none', 'bad'], [9, null, 'unknown'],
] as const)('CurrentControlMode %s is %s: %s', (value, mode, result) => {
  const finding = controlModeFinding(value);
  expect(finding).toMatchObject({ mode, result });
  expect(finding.hint).toEqual(result === 'bad' ? expect.stringContaining('admin control mode') : undefined);
});

test.each([
  [{ mode: 1, state: 2 }, 'admin', 'good'], [{ mode: 4, state: 2 }, 'client', 'warning'], [{ mode: 1, state: 1 }, 'none', 'bad'], [{ mode: 1, state: undefined }, 'admin', 'good'], [{ mode: undefined, state: undefined }, null, 'unknown'],
] as const)('provisioning %j is %s: %s', (given, mode, result) => {
  expect(provisioningFinding(given)).toMatchObject({ mode, result });
});

test('a firmware without network boot says what to change', () => {
  expect([bootFinding(true), bootFinding(false)]).toMatchObject([{ result: 'good' }, { result: 'bad', hint: expect.stringContaining('enable network boot') }]);
});

const port = (change: Partial<Port>): Port => ({ address: '192.0.2.7', dhcp: false, sharedStatic: false, sharedDynamic: false, ...change });
test.each([
  ['a static one of its own', port({}), [], 'good', false],
  ['a static one that AMT calls shared', port({ sharedStatic: true }), [], 'bad', true],
  ['a static one that NetBox gives to the host', port({}), ['192.0.2.7'], 'bad', true],
  ['one by DHCP that both have', port({ dhcp: true, sharedDynamic: true }), ['192.0.2.7'], 'good', true],
  ['none yet', port({ address: '0.0.0.0' }), [], 'unknown', null],
  ['none said', port({ address: undefined }), [], 'unknown', null],
  ['one, and nothing about the host', port({ sharedStatic: undefined, sharedDynamic: undefined }), [], 'unknown', null],
] as const)('the address %s is judged (MeshCentral#3890)', (_name, given, hosts, result, isHosts) => {
  expect(addressFinding(given, hosts)).toMatchObject({ result, isHosts });
});

test.each([
  [['1', '14', '16'], 'good', true], [['1', '16'], 'bad', false], [[], 'bad', false], [undefined, 'unknown', null],
] as const)('LinkPolicy %j is %s', (policy, result, kept) => {
  expect(linkFinding(policy)).toMatchObject({ result, kept });
});

test.each([
  ['Desktop: ON in S0, ME Wake in S3, S4-5', 0, 'good'],
  ['Desktop: ON in S0, S3, S4-5', 0, 'good'],
  ['Mobile: ON in S0, ME Wake in S3/AC, S4-5/AC', 1, 'warning'],
  ['Desktop: ON in S0, S3, S4-5, OFF After Power Loss', 0, 'warning'],
  ['Desktop: ON in S0', 0, 'bad'],
  ['Mobile: ON in S0, S3/AC', 0, 'bad'],
  ['Balanced', 0, 'unknown'],
  [undefined, 0, 'unknown'],
])('power policy %s on source %s is %s', (scheme, source, result) => {
  const finding = powerPolicyFinding({ scheme, source, idleMinutes: 1 });
  expect(finding).toMatchObject({ policy: scheme ?? null, source: source === 0 ? 'mains' : 'battery', result });
  expect(finding.hint !== undefined).toBe(result === 'bad' || result === 'warning');
});

test.each([[0, 'good', 'goes right'], [-300, 'good', '300 s behind'], [301, 'warning', '301 s ahead']])('a clock %i s off is %s', (skew, result, found) => {
  expect(clockFinding(skew)).toMatchObject({ skewSeconds: skew, result, found });
});

test.each([[2, 'full', 'good'], [3, 'saving', 'warning'], [undefined, null, 'good'], [7, null, 'good']] as const)('OSPowerSavingState %s is %s', (value, state, result) => {
  expect(osPowerFinding(value)).toMatchObject({ state, result });
});
