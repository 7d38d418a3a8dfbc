/** Shorter limits for tests: a JSON file of {name: seconds}. */
import { readFileSync } from 'node:fs';
import { MetalflowError } from '../domain/errors.js';
import { LIMITS, withLimits, type LimitName, type Limits } from '../domain/limits.js';

/** @throws setting_invalid when the file cannot be read, names no limit of ours, or holds anything but positive seconds */
export function readLimits(file: string | null, setting: string): Limits {
  if (file === null) return withLimits({});
  const refuse = (why: string): never => {
    throw new MetalflowError('setting_invalid', { name: setting, why });
  };
  let given: unknown;
  try {
    given = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    return refuse(`${file} cannot be read as JSON: ${(error as Error).message}`);
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return refuse(`${file} must be an object {name: seconds}`);
  const overrides: Partial<Record<LimitName, number>> = {};
  for (const [name, seconds] of Object.entries(given)) {
    if (!Object.hasOwn(LIMITS, name)) return refuse(`${file} names no limit of ours: ${name.slice(0, 60)}`);
    if (typeof seconds !== 'number' || !(seconds > 0) || !Number.isFinite(seconds)) return refuse(`${file}: ${name} must be seconds, more than 0`);
    overrides[name as LimitName] = seconds;
  }
  return withLimits(overrides);
}
