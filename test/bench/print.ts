/** Figures as they are printed: honest about the machine they were taken on. Never pinned, never asserted on. */
import { cpus, loadavg, totalmem } from 'node:os';

/** Milliseconds at a share of the sorted samples (nearest rank). */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN;
}

export const summary = (samples: readonly number[]): string => `p50 ${percentile(samples, 0.5).toFixed(1)} ms, p95 ${percentile(samples, 0.95).toFixed(1)} ms, n ${samples.length}`;

export function printFigures(title: string, rows: Readonly<Record<string, string>>): void {
  const width = Math.max(...Object.keys(rows).map((name) => name.length));
  const machine = `${cpus().length} cores (${cpus()[0]?.model.trim()}), ${(totalmem() / 2 ** 30).toFixed(0)} GiB, load ${loadavg().map((load) => load.toFixed(1)).join(' ')}, Node ${process.version}`;
  process.stdout.write(`\n## ${title}\n${machine}\n${Object.entries(rows).map(([name, text]) => `${name.padEnd(width)}  ${text}`).join('\n')}\n`);
}
