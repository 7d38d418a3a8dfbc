/** How a BMC looks to a person. */
import type { BmcReport, MachineSeen } from '../contracts/power-by-hand.js';
import { facts, printable, table } from './output.js';

const machineText = (machine: MachineSeen): string => {
  switch (machine.kind) {
    case 'same': return `${machine.uuid} (the device's)`;
    case 'not-declared': return machine.uuid;
    case 'differs': return `${machine.uuid}: NOT the device, which is ${machine.expected}`;
    case 'unread': return `not read: ${machine.why}`;
  }
};

export function bmcView(report: BmcReport, isTerminal: boolean): string {
  const { device, bmc } = report;
  const who = device ? device.name : bmc.address;
  switch (report.what) {
    case 'status':
      return facts([
        ['node', device && `${device.name} (device ${device.id})`], ['open run', device?.openRun], ['bmc', `${bmc.type} ${bmc.address}`], ['power', report.power], ['why', report.why],
        ['machine', machineText(report.machine)], ['product', report.identity && `${report.identity.product} ${report.identity.version}`],
      ], isTerminal);
    case 'doctor': {
      const hints = report.checks.filter(({ result, hint }) => result !== 'good' && hint).map(({ name, hint }) => `${printable(name)}: ${printable(hint!)}\n`);
      const shown = table(['CHECK', 'RESULT', 'FOUND'], report.checks.map(({ name, result, found }) => [name, result, found]), isTerminal);
      return hints.length === 0 ? shown : `${shown}\n${hints.join('')}`;
    }
    case 'on':
    case 'off':
      return `${printable(who)} reads ${report.power}${report.commands.length === 0 ? ': nothing to do' : ''}\n`;
    case 'pxe':
      return `${printable(who)}: one boot from the network is ${report.commands.includes('on') ? 'under way' : 'armed for the next power-on'}; it reads ${report.power}\n`;
  }
}
