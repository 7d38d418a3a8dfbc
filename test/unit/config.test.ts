import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readConfig, shownConfig, type ConfigRole, type Environment } from '../../src/config/config.js';
import { envExample } from '../../src/config/env-example.js';
import { editDistance, nearest } from '../../src/config/nearest.js';
import { SETTINGS } from '../../src/config/settings.js';
import { MetalflowError, type ErrorCode } from '../../src/domain/errors.js';

const CERTIFIED = { METALFLOW_AGENT_TLS_CERT: '/tls/cert.pem', METALFLOW_AGENT_TLS_KEY: '/tls/key.pem' };

function refusal(env: Environment, role: ConfigRole = 'up'): MetalflowError {
  try {
    readConfig(env, role);
  } catch (error) {
    if (error instanceof MetalflowError) return error;
    throw error;
  }
  throw new Error('the settings were taken');
}

describe('settings', () => {
  let folder: string;
  beforeAll(() => { folder = mkdtempSync(path.join(tmpdir(), 'metalflow-config-')); });
  afterAll(() => { rmSync(folder, { recursive: true }); });
  const file = (name: string, content: string): string => {
    const where = path.join(folder, name);
    writeFileSync(where, content);
    return where;
  };

  test('an empty environment gives the defaults, and they are safe', () => {
    const config = readConfig({});
    expect(config).toMatchObject({ bindAddress: '127.0.0.1', operatorBindAddress: '127.0.0.1', tftpPort: 69, agentHttpPort: 42_114, unknownMac: 'disk', simulation: false, netboxUrl: null, trustedProxies: [], site: 'default' });
    expect(config.secretsDir).toBe(path.join(config.dataDir, 'secrets'));
    expect(config.temporal.embedded).toBe(true);
  });

  test('the configuration cannot be changed once read', () => {
    const config = readConfig({});
    expect(() => { (config as { tftpPort: number }).tftpPort = 1; }).toThrow(TypeError);
    expect(() => { (config.limits as { planning: number }).planning = 1; }).toThrow(TypeError);
  });

  test('defaults follow the data folder, unless they are set themselves', () => {
    expect(readConfig({ METALFLOW_DATA_DIR: '/srv/mf', METALFLOW_TFTP_ROOT: '/srv/tftp:/usr/lib/ipxe' })).toMatchObject({ secretsDir: '/srv/mf/secrets', assetsDir: '/srv/mf/assets', tftpRoots: ['/srv/tftp', '/usr/lib/ipxe'] });
  });

  test('a value that is empty counts as not set', () => {
    expect(readConfig({ METALFLOW_TFTP_PORT: '', METALFLOW_NETBOX_URL: '', METALFLOW_NETBOX_TOKEN_FILE: '' })).toMatchObject({ tftpPort: 69, netboxUrl: null });
  });

  test.each<[string, string, unknown]>([
    ['METALFLOW_TFTP_PORT', '0', { tftpPort: 0 }],
    ['METALFLOW_SIMULATION', 'yes', { simulation: true }],
    ['METALFLOW_TRUSTED_PROXIES', '10.0.0.0/8, ::1', { trustedProxies: ['10.0.0.0/8', '::1'] }],
    ['METALFLOW_IPMI_CIPHER_SUITES', '17', { ipmiCipherSuites: [17] }],
    ['METALFLOW_ASSETS_URL', 'http://10.0.0.1:7080/assets/', { assetsUrl: 'http://10.0.0.1:7080/assets' }],
    ['METALFLOW_DATABASE_URL', 'postgres://u:p@db/metalflow', { databaseUrl: 'postgres://u:p@db/metalflow' }],
  ])('%s=%s is read', (name, value, expected) => {
    expect(readConfig({ [name]: value })).toMatchObject(expected as object);
  });

  test.each([
    ['METALFLOW_TFTP_PORT', '65536'], ['METALFLOW_TFTP_PORT', '-1'], ['METALFLOW_TFTP_PORT', '69a'], ['METALFLOW_TFTP_PORT', '0x45'],
    ['METALFLOW_BIND_ADDRESS', 'localhost'], ['METALFLOW_UNKNOWN_MAC', 'boot'], ['METALFLOW_SITE', 'Site 1'], ['METALFLOW_SIMULATION', 'maybe'],
    ['METALFLOW_NETBOX_URL', 'netbox.example'], ['METALFLOW_NETBOX_URL', 'ftp://netbox'], ['METALFLOW_DATABASE_URL', 'mysql://u:hunter2@db/x'],
    ['METALFLOW_TRUSTED_PROXIES', '10.0.0.0/33'], ['METALFLOW_RECONCILE_SECONDS', '0'], ['METALFLOW_IMAGE_MAX_BYTES', '1e9'], ['METALFLOW_LOG_LEVEL', 'loud'],
    ['METALFLOW_IPMI_CIPHER_SUITES', ','], ['METALFLOW_IPMI_CIPHER_SUITES', '17,0'], ['METALFLOW_IPMI_CIPHER_SUITES', 'seventeen'],
  ])('%s=%s is refused by name, without repeating the value', (name, value) => {
    const error = refusal({ [name]: value });
    expect(error.code).toBe<ErrorCode>('setting_invalid');
    expect(error.details.name).toBe(name);
    expect(String(error.details.why)).toMatch(/^must be /);
    expect(error.message).not.toContain('hunter2');
  });

  test('a name that is none is refused, with the nearest one as a guess', () => {
    expect(refusal({ METALFLOW_TFPT_PORT: '69' }).message).toBe('setting METALFLOW_TFPT_PORT is not known (did you mean METALFLOW_TFTP_PORT?)');
    expect(refusal({ METALFLOW_COFFEE_MACHINE: '1' }).message).toBe('setting METALFLOW_COFFEE_MACHINE is not known');
    expect(refusal({ METALFLOW_TFTP_PORT_FILE: '/x' }).code).toBe<ErrorCode>('setting_unknown');
  });

  describe('secrets', () => {
    test('are read from a file as well, without its last line end', () => {
      expect(readConfig({ METALFLOW_NETBOX_TOKEN_FILE: file('token', 'abc\n') }).netboxToken).toBe('abc');
    });
    test.each<[string, () => Environment]>([
      ['given twice', () => ({ METALFLOW_NETBOX_TOKEN: 'hunter2', METALFLOW_NETBOX_TOKEN_FILE: file('t', 'x') })],
      ['in a file that is missing', () => ({ METALFLOW_NETBOX_TOKEN_FILE: path.join(folder, 'none') })],
      ['in an empty file', () => ({ METALFLOW_NETBOX_TOKEN_FILE: file('empty', '\n') })],
      ['in a file with a bad value', () => ({ METALFLOW_DATABASE_URL_FILE: file('db', 'hunter2') })],
    ])('%s are refused', (_, env) => {
      const error = refusal(env());
      expect(error.code).toBe<ErrorCode>('setting_invalid');
      expect(error.message).not.toContain('hunter2');
    });
    test('are not in what may be logged', () => {
      const shown = shownConfig(readConfig({ METALFLOW_NETBOX_TOKEN: 'hunter2', METALFLOW_DATABASE_URL: 'postgres://u:hunter2@db/x' }));
      expect(JSON.stringify(shown)).not.toContain('hunter2');
      expect(shown).toMatchObject({ METALFLOW_NETBOX_TOKEN: '[set]', METALFLOW_NETBOX_WEBHOOK_SECRET: null, METALFLOW_TFTP_PORT: 69 });
    });
  });

  describe('settings that must fit each other', () => {
    test.each<[string, Environment, ConfigRole]>([
      ['an agent plane on the network without a certificate', { METALFLOW_BIND_ADDRESS: '0.0.0.0' }, 'up'],
      ['the same in its own process', { METALFLOW_BIND_ADDRESS: '10.1.2.3' }, 'agentapi'],
      ['a certificate without its key', { METALFLOW_AGENT_TLS_CERT: '/c.pem' }, 'worker'],
      ['a plain agent URL on the network', { METALFLOW_AGENT_URL: 'http://10.1.2.3:42114' }, 'boot'],
      ['a power watch that talks to more BMCs than there may be calls', { METALFLOW_POWER_WATCH_AT_ONCE: '65' }, 'worker'],
      ['fewer calls than the power watch makes', { METALFLOW_BMC_CALLS: '7' }, 'up'],
      ['NetBox without a token', { METALFLOW_NETBOX_URL: 'https://netbox.example' }, 'worker'],
    ])('%s is refused', (_, env, role) => {
      expect(refusal(env, role).code).toBe<ErrorCode>('setting_invalid');
    });
    test.each<[string, Environment, ConfigRole]>([
      ['a certified agent plane on the network', { METALFLOW_BIND_ADDRESS: '0.0.0.0', ...CERTIFIED }, 'up'],
      ['a boot plane on the network, which has no certificate', { METALFLOW_BIND_ADDRESS: '0.0.0.0' }, 'boot'],
      ['as many calls as the power watch makes', { METALFLOW_BMC_CALLS: '8' }, 'worker'],
      ['fewer calls, and no power watch', { METALFLOW_BMC_CALLS: '1', METALFLOW_POWER_WATCH_SECONDS: '0' }, 'worker'],
      ['a plain agent plane on loopback', { METALFLOW_BIND_ADDRESS: '127.0.0.2', METALFLOW_AGENT_URL: 'http://[::1]:42114' }, 'up'],
    ])('%s is taken', (_, env, role) => {
      expect(readConfig(env, role).role).toBe(role);
    });
  });

  describe('limits of tests', () => {
    test('a file shortens the ones it names and leaves the rest', () => {
      const { limits } = readConfig({ METALFLOW_LIMITS_FILE: file('limits.json', '{"planning": 0.5}') });
      expect(limits).toMatchObject({ planning: 0.5, taking: 600 });
    });
    test.each(['{"plannning": 1}', '{"planning": 0}', '{"planning": "5"}', '[1]', 'null', '{'])('%s is refused', (content) => {
      expect(refusal({ METALFLOW_LIMITS_FILE: file('bad.json', content) })).toMatchObject({ code: 'setting_invalid', details: { name: 'METALFLOW_LIMITS_FILE' } });
    });
  });

  test.each(['TEMPORAL_ADDRESS', 'TEMPORAL_PROFILE', 'TEMPORAL_CONFIG_FILE'])('with %s no dev server is started', (name) => {
    expect(readConfig({ [name]: 'x', OTEL_SERVICE_NAME: 'm', TEMPORAL_TLS: '', HOME: '/root' })).toMatchObject({ temporal: { embedded: false, env: { [name]: 'x' } }, otel: { OTEL_SERVICE_NAME: 'm' } });
  });

  test('the example names every setting once, and taken as it is changes nothing', () => {
    const example = envExample();
    const set = Object.fromEntries([...example.matchAll(/^#(METALFLOW_\w+)=(.*)$/gm)].map(([, name, value]) => [name!, value!]));
    expect(Object.keys(set).sort()).toEqual(Object.values(SETTINGS).map((row) => row.name).sort());
    const plain = Object.fromEntries(Object.entries(set).filter(([, value]) => !value.includes('{')));
    expect(readConfig(plain)).toEqual(readConfig({}));
  });

  test('no room reads the environment but this one', () => {
    const source = path.join(__dirname, '../../src');
    const readers = readdirSync(source, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.startsWith(`config/`))
      .filter((name) => readFileSync(path.join(source, name), 'utf8').includes('process.env'));
    expect(readers).toEqual([]);
  });
});

describe('the guess', () => {
  test.each([['kitten', 'sitting', 3], ['', 'abc', 3], ['same', 'same', 0]])('%s is as far from %s as %i letters', (a, b, distance) => {
    expect(editDistance(a, b)).toBe(distance);
  });
  test('is none when nothing is near', () => {
    expect(nearest('METALFLOW_X', ['METALFLOW_TFTP_PORT'])).toBeNull();
  });
});
