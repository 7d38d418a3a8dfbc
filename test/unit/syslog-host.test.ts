/** Where a node sends its lines. */
import { syslogHostOf } from '../../src/main/syslog.js';

test.each([
  ['the setting goes before all', { syslogHost: 'logs.example', assetsUrl: 'http://10.0.0.2:7080/assets', bindAddress: '10.0.0.3' }, 'logs.example'],
  ['else the host of the assets, which the boot role serves', { syslogHost: null, assetsUrl: 'http://10.0.0.2:7080/assets', bindAddress: '10.0.0.3' }, '10.0.0.2'],
  ['an IPv6 host without its brackets', { syslogHost: null, assetsUrl: 'http://[fd00::2]:7080/assets', bindAddress: '10.0.0.3' }, 'fd00::2'],
  ['else the address of the boot plane', { syslogHost: null, assetsUrl: null, bindAddress: '10.0.0.3' }, '10.0.0.3'],
  ['as the boot plane is named where it listens on every address', { syslogHost: null, assetsUrl: null, bindAddress: '0.0.0.0' }, '127.0.0.1'],
])('%s', (_what, config, host) => expect(syslogHostOf(config)).toBe(host));
