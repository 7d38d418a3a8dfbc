/** Runs, their phases, holds and passed limits as Prometheus counts them: kept in the store, so that no restart begins anew. */
import { Counter, type Registry } from 'prom-client';
import { LIMITS } from '../domain/limits.js';
import type { Tally, TallyName, TallyRow } from '../contracts/tally.js';
import { asked } from './power-metrics.js';

const COUNTERS = [
  { name: 'metalflow_runs_ended_total', help: 'runs that ended, by kind, end and code of the failure (none)', what: 'run-ended', of: 'times', labels: ['kind', 'end', 'code'] },
  { name: 'metalflow_run_seconds_total', help: 'seconds from the opening to the end of those runs', what: 'run-ended', of: 'seconds', labels: ['kind', 'end', 'code'] },
  { name: 'metalflow_phases_left_total', help: 'phases of runs that were left, for whichever next', what: 'phase-left', of: 'times', labels: ['kind', 'phase'] },
  { name: 'metalflow_phase_seconds_total', help: 'seconds in those phases, holds among them', what: 'phase-left', of: 'seconds', labels: ['kind', 'phase'] },
  { name: 'metalflow_holds_total', help: 'times that a node began to wait for a person, by reason', what: 'held', of: 'times', labels: ['code'] },
  { name: 'metalflow_limits_passed_total', help: 'limits of waits that passed, by name (docs/states.md); a boot that is tried again is one', what: 'limit-passed', of: 'times', labels: ['limit'] },
] as const satisfies readonly { name: string; help: string; what: TallyName; of: 'times' | 'seconds'; labels: readonly string[] }[];

/** Prometheus sees no increase in a series that begins at one; what alerts count is there from the start. */
const FROM_THE_START: readonly TallyRow[] = Object.keys(LIMITS).map((limit) => ({ what: 'limit-passed', labels: { limit }, times: 0, seconds: 0 }));

export function addRunCounters(registry: Registry, tally: Tally): void {
  const all = asked(() => tally.all());
  for (const { name, help, what, of, labels } of COUNTERS) {
    new Counter({
      name, help, labelNames: [...labels] as string[], registers: [registry],
      async collect() {
        const rows = await all();
        this.reset();
        for (const row of [...FROM_THE_START, ...rows]) if (row.what === what) this.inc({ ...row.labels }, row[of]);
      },
    });
  }
}
