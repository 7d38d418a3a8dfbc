/** `metalflow bmc doctor`: each thing that has to be right for a run to power this machine, looked at. Changes nothing. */
import type { BmcFinding, BmcLooks } from '../contracts/bmc.js';
import type { BmcCheck } from '../contracts/power-by-hand.js';
import { ERRORS } from '../domain/errors.js';
import { powerWord } from '../domain/power.js';
import { machineBehind } from './machine-seen.js';

const NAMES: { readonly [about in BmcFinding['about']]: string } = {
  version: 'firmware version', provisioning: 'provisioning', 'control-mode': 'control mode', 'boot-capability': 'network boot', address: 'address', 'link-when-off': 'link when off',
  'power-policy': 'power policy', clock: 'clock', 'os-power-saving': 'OS power saving',
};

export interface Patient {
  /** system_uuid of the device. */
  readonly expected: string | null;
  readonly hasDevice: boolean;
  /** Of the machine's operating system; null when nobody says. */
  readonly addresses: readonly string[] | null;
}

export async function examine(bmc: BmcLooks, patient: Patient): Promise<BmcCheck[]> {
  const reading = await bmc.observePower();
  // Nothing else can be asked of a BMC that does not answer.
  if (reading.kind === 'unknown') return [{ name: 'power', result: 'bad', found: `${reading.code}: ${reading.why}`, hint: ERRORS[reading.code].hint }];
  const checks: BmcCheck[] = [{ name: 'power', result: 'good', found: powerWord(reading) }, await machine(bmc, patient), await product(bmc), await bootOnce(bmc)];
  const findings = await bmc.diagnose(patient.addresses ? { addresses: patient.addresses } : undefined);
  return [...checks, ...findings.map(({ about, result, found, hint }): BmcCheck => ({ name: NAMES[about], result, found, ...(hint && { hint }) }))];
}

async function product(bmc: BmcLooks): Promise<BmcCheck> {
  const identity = await bmc.identify();
  return identity ? { name: 'product', result: 'good', found: `${identity.product} ${identity.version}` } : { name: 'product', result: 'unknown', found: 'it does not say' };
}

async function bootOnce(bmc: BmcLooks): Promise<BmcCheck> {
  const name = 'one-time network boot';
  const capabilities = await bmc.capabilities();
  if (capabilities === null) return { name, result: 'unknown', found: 'it does not say' };
  if (capabilities.bootOnceFromNetwork) return { name, result: 'good', found: 'it can' };
  return { name, result: 'bad', found: 'it cannot', ...(capabilities.why && { hint: capabilities.why }) };
}

async function machine(bmc: BmcLooks, { expected, hasDevice }: Patient): Promise<BmcCheck> {
  const name = 'machine UUID';
  const seen = await machineBehind(bmc, expected);
  switch (seen.kind) {
    case 'same':
      return { name, result: 'good', found: seen.uuid };
    case 'not-declared':
      return hasDevice ? { name, result: 'warning', found: seen.uuid, hint: 'write it into system_uuid of the device in NetBox' } : { name, result: 'good', found: seen.uuid };
    case 'differs':
      return { name, result: 'bad', found: `${seen.uuid}, and the device is ${seen.expected}`, hint: 'fix the BMC address or system_uuid in NetBox' };
    case 'unread':
      return { name, result: 'warning', found: seen.why, hint: 'a run holds for `approve`: check the wiring by hand' };
  }
}
