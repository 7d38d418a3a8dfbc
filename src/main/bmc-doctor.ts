/** `metalflow bmc doctor`: each thing that has to be right for a run to power this machine, looked at. Changes nothing. */
import type { Hand } from '../bmc/by-hand.js';
import type { Bmc, BmcFinding } from '../contracts/bmc.js';
import type { BmcCheck } from '../contracts/power-by-hand.js';
import { ERRORS } from '../domain/errors.js';
import { powerWord } from '../domain/power.js';
import { machineBehind, type Found } from './bmc.js';

const NAMES: { readonly [about in BmcFinding['about']]: string } = {
  version: 'firmware version', provisioning: 'provisioning', 'control-mode': 'control mode', 'boot-capability': 'network boot', address: 'address', 'link-when-off': 'link when off',
  'power-policy': 'power policy', clock: 'clock', 'os-power-saving': 'OS power saving',
};

export async function examine({ bmc, found, hand, keepLease }: { bmc: Bmc; found: Found; hand: Hand; keepLease: () => Promise<void> }): Promise<BmcCheck[]> {
  const reading = await hand.observe();
  if (reading.kind === 'unknown') {
    const checks: BmcCheck[] = [{ name: 'power', result: 'bad', found: `${reading.code}: ${reading.why}`, hint: ERRORS[reading.code].hint.replace(/,? ?(then|so) `resume`.*$/, '') }];
    return checks;
  }
  const checks: BmcCheck[] = [{ name: 'power', result: 'good', found: powerWord(reading) }, await machine(bmc, found)];
  await keepLease();
  const identity = await bmc.identify();
  checks.push(identity ? { name: 'product', result: 'good', found: `${identity.product} ${identity.version}` } : { name: 'product', result: 'unknown', found: 'it does not say' });
  await keepLease();
  const capabilities = await bmc.capabilities();
  checks.push(
    capabilities === null ? { name: 'one-time network boot', result: 'unknown', found: 'it does not say' }
    : capabilities.bootOnceFromNetwork ? { name: 'one-time network boot', result: 'good', found: 'it can' }
    : { name: 'one-time network boot', result: 'bad', found: 'it cannot', ...(capabilities.why && { hint: capabilities.why }) },
  );
  await keepLease();
  const findings = await bmc.diagnose(found.device ? { addresses: found.device.addresses } : undefined);
  return [...checks, ...findings.map(({ about, result, found: what, hint }): BmcCheck => ({ name: NAMES[about], result, found: what, ...(hint && { hint }) }))];
}

async function machine(bmc: Bmc, found: Found): Promise<BmcCheck> {
  const seen = await machineBehind(bmc, found);
  const name = 'machine UUID';
  switch (seen.kind) {
    case 'same':
      return { name, result: 'good', found: seen.uuid };
    case 'not-declared':
      return found.device ? { name, result: 'warning', found: seen.uuid, hint: 'write it into system_uuid of the device in NetBox' } : { name, result: 'good', found: seen.uuid };
    case 'differs':
      return { name, result: 'bad', found: `${seen.uuid}, and the device is ${seen.expected}`, hint: 'fix the BMC address or system_uuid in NetBox' };
    case 'unread':
      return { name, result: 'warning', found: seen.why, hint: 'a run holds for `approve`: check the wiring by hand' };
  }
}
