/** docs/amt-simulator.md: how the simulated AMT is used, and its table of switches. */
import { FAULT_NAMES, FAULT_SWITCHES, shownFaults, NO_FAULTS } from '../../simulator/amt/faults.js';
import { code, page, table } from './markdown.js';

const sh = (...lines: readonly string[]): string => ['```sh', ...lines, '```'].join('\n');

const initial = shownFaults(NO_FAULTS, 'all');

export const amtSimulatorPage = (): string => page(
  'The simulated Intel AMT',
  '`metalflow simulate amt` answers as Intel AMT does: WS-Management over HTTP Digest, or over TLS. Our own driver is developed against it, and so may yours be: curl, PyPI `amt` and PyPI `powerctl` take it for an AMT, and the messages of Intel\'s own builder are its golden bodies. It has not been compared with real hardware by us; what firmware does is taken from captures, guides and issue threads.',
  sh(
    'metalflow simulate amt                                             # one, on 127.0.0.1:16992: admin, P@ssw0rd1, switched on',
    'metalflow simulate amt --count 500 --port-base 20000 --json        # a fleet; one JSON object a line',
    'metalflow simulate amt --tls --port-base 16993 --control-port 8992 # TLS, and a control page',
    'metalflow simulate amt --fault lagMs=3000 --fault \'qopProfile="auth-int, auth"\'',
    'curl --digest -u admin:P@ssw0rd1 --data-binary @get.xml http://127.0.0.1:16992/wsman',
  ),
  'Endpoints are numbered from 0; ports and machine UUIDs count up with them. A line an endpoint is printed, then `ready`, then a line for each power change. SIGINT or SIGTERM ends it. All options: [commands.md](commands.md).',
  '## What it is without a switch',
  'AMT 16 in admin control mode, with every power change done at once. `RequestPowerStateChange` knows 2, 5, 8, 10 and 11 while on, 2 and 8 while asleep, 2 while off; anything else has ReturnValue 2, also while a former change still settles. A boot source counts only with `SetBootConfigRole` 1, the first one set wins until it is cleared, one boot uses both up, and what was armed and never booted stays armed for whoever powers the machine next. A stale `BIOSSetup` or `UseIDER` makes a source invalid; a Put that carries read-only fields is a fault. A 401 is an HTML page and closes its connection; a fault is HTTP 400. A digest is taken over the `uri` that was sent, absolute or not, and credentials that fit nothing get a 401, never a 400.',
  '## Switches',
  'Thrown with `--fault name=value` at the start, on the control page, or with `PATCH`; `value` is JSON (`--fault` also takes plain text). `unreachable` and `powerLost` can only be thrown later. A count goes down as it is used. The names are checked, and so are the values.',
  table(['switch', 'values', 'without', 'what it does'], FAULT_NAMES.map((name) => [code(name), code(FAULT_SWITCHES[name].values), code(JSON.stringify(initial[name])), FAULT_SWITCHES[name].of])),
  '## Control page',
  '`--control-port` opens it on 127.0.0.1, without a token: whoever is on this machine may use it. `GET /` is for people. For programs, in JSON; errors are those of [errors.md](errors.md).',
  table(['route', 'in → out'], [
    [code('GET /api/endpoints'), 'every endpoint: `{endpoint, url, port, machineUuid, power, armed: {role, source, boot}, counts: {requests, refusedLogins, maxInFlight, powerCommands}, thrown, faults, hook}`'],
    [code('GET /api/endpoints/:n'), 'one of them'],
    [code('PATCH /api/endpoints/:n/faults'), '`{switch: value, …}` → the endpoint; switches that are not named stay as they are'],
    [code('POST /api/endpoints/:n/power'), '`{"power": "on" | "off-soft" | "off-hard" | "sleep-light" | "sleep-deep" | "hibernate"}`: a person presses the button → the endpoint'],
    [code('GET /api/endpoints/:n/journal'), '`{powerCommands: [{at, value, returnValue, answerLost}], calls}`: the last thousand of each'],
  ]),
  sh('curl -X PATCH -H \'Content-Type: application/json\' -d \'{"settlingMs": 20000, "sleepFirstN": 2}\' http://127.0.0.1:8992/api/endpoints/0/faults'),
  '## Driving a virtual machine',
  '`--on-command` and `--off-command` are run when a machine is powered: a cycle or a reset is an off and an on. They are cut into words with `\'…\'`, `"…"` and `\\` as in a shell, but no shell runs and nothing is expanded; whoever wants one writes `sh -c \'…\'`. They find `PATH` in their environment, and',
  table(['variable', 'what'], [
    [code('METALFLOW_AMT_UUID'), 'machine UUID of the endpoint'],
    [code('METALFLOW_AMT_PORT'), 'its TCP port'],
    [code('METALFLOW_AMT_POWER'), '`on` or `off`'],
    [code('METALFLOW_AMT_BOOT'), '`network` or `disk`; empty for off'],
  ]),
  'The commands of one endpoint run one after the other, eight at once over all. AMT does not wait for them, as a real one does not. One that ends with anything but 0 is logged and shown on the control page; one that takes longer than 30 s is ended with all it started (SIGTERM, 2 s later SIGKILL), and so are all when the simulator ends. The simulated power stays what AMT was told: compare it with the machine\'s own.',
  'For QEMU, a script that starts the machine with the boot order AMT was given, and asks it to quit through QMP:',
  sh(
    '#!/bin/sh',
    '# vm-power: metalflow simulate amt --on-command /opt/vm-power --off-command /opt/vm-power',
    'set -eu',
    'qmp=/run/vm/$METALFLOW_AMT_UUID.qmp',
    'if [ "$METALFLOW_AMT_POWER" = on ]; then',
    '  order=c; [ "$METALFLOW_AMT_BOOT" = network ] && order=n',
    '  exec qemu-system-x86_64 -daemonize -display none -uuid "$METALFLOW_AMT_UUID" -m 4096 -boot order=$order \\',
    '    -drive file=/var/lib/vm/$METALFLOW_AMT_UUID.qcow2,if=virtio -nic bridge,br=br0,model=virtio-net-pci \\',
    '    -qmp unix:$qmp,server=on,wait=off',
    'fi',
    'printf \'%s\\n\' \'{"execute":"qmp_capabilities"}\' \'{"execute":"quit"}\' | socat -t 2 - UNIX-CONNECT:$qmp',
  ),
  'A machine that was shut down from inside is not told to AMT by itself; say it with `POST …/power {"power": "off-soft"}`.',
);
