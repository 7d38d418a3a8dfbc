/** Who did what: one line for every call that would change something, whether it was let through or not. */
import type { NodeDirectory, Person } from '../contracts/operator.js';
import { isMetalflowError } from '../domain/errors.js';
import type { Logger } from '../telemetry/log.js';
import { ask, LIMITS_MS } from './ask.js';

export interface Audit {
  record(person: Person, what: string, deviceId: string | null, result: string): Promise<void>;
  /** Acts, then records how it went. */
  around<T>(person: Person, what: string, deviceId: string | null, act: () => Promise<T>): Promise<T>;
}

export function createAudit(deps: { nodes: Pick<NodeDirectory, 'recordAudit'>; log: Logger; now: () => Date }): Audit {
  async function record(person: Person, what: string, deviceId: string | null, result: string): Promise<void> {
    const line = { at: deps.now().toISOString(), by: person.name, role: person.role, what, deviceId, result };
    deps.log.info({ audit: line }, 'operator call');
    try {
      await ask('store_unavailable', LIMITS_MS.read, () => deps.nodes.recordAudit(line));
    } catch (error) {
      // What was done is done: the caller is told so, and the line above is what is left of the record.
      deps.log.error({ err: error, audit: line }, 'audit line was not stored');
    }
  }
  return {
    record,
    async around(person, what, deviceId, act) {
      try {
        const result = await act();
        await record(person, what, deviceId, 'accepted');
        return result;
      } catch (error) {
        await record(person, what, deviceId, `refused: ${isMetalflowError(error) ? error.code : 'internal'}`);
        throw error;
      }
    },
  };
}
