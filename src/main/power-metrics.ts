/** Power and the power watch as Prometheus sees them, read from the store when it asks. */
import { Gauge, type Registry } from 'prom-client';
import type { PowerWatchStore } from '../contracts/power-watch.js';

/** What the gauges of one scrape ask at the same time is asked once. */
export function asked<T>(ask: () => Promise<T>): () => Promise<T> {
  let asking: Promise<T> | null = null;
  return () => (asking ??= ask().finally(() => void (asking = null)));
}

const seconds = (at: string): number => Date.parse(at) / 1000;

export function addPowerGauges(registry: Registry, watch: Pick<PowerWatchStore, 'all' | 'plans'>): void {
  const all = asked(() => watch.all());
  const plans = asked(() => watch.plans());
  new Gauge({
    name: 'metalflow_node_power', help: '1 for what the power of a node was last seen to be', labelNames: ['device', 'node', 'power'], registers: [registry],
    async collect() {
      this.reset();
      for (const { deviceId: device, name: node, power } of await all()) this.set({ device, node, power }, 1);
    },
  });
  new Gauge({
    name: 'metalflow_node_power_drift', help: '1 while the power of a node does not fit its state', labelNames: ['device', 'node', 'state', 'expected', 'reads'], registers: [registry],
    async collect() {
      this.reset();
      for (const { deviceId: device, name: node, drift } of await all()) if (drift) this.set({ device, node, state: drift.state, expected: drift.expected, reads: drift.reads }, 1);
    },
  });
  new Gauge({
    name: 'metalflow_bmc_last_seen_seconds', help: 'when the BMC of a node last answered, in seconds since 1970', labelNames: ['device', 'node'], registers: [registry],
    async collect() {
      this.reset();
      for (const { deviceId: device, name: node, bmcSeenAt } of await all()) if (bmcSeenAt) this.set({ device, node }, seconds(bmcSeenAt));
    },
  });
  new Gauge({
    name: 'metalflow_bmc_unreachable', help: '1 while the power of a node that has a BMC is unknown; ended nodes and those in maintenance are left out',
    labelNames: ['device', 'node'], registers: [registry],
    async collect() {
      this.reset();
      for (const { deviceId: device, name: node, power, hasToAnswer } of await all()) if (hasToAnswer) this.set({ device, node }, power === 'unknown' ? 1 : 0);
    },
  });
  new Gauge({
    name: 'metalflow_power_watch_interval_seconds', help: 'seconds between two walks over the power of a site', labelNames: ['site'], registers: [registry],
    async collect() {
      this.reset();
      for (const { site, everySeconds } of await plans()) this.set({ site }, everySeconds);
    },
  });
  new Gauge({
    name: 'metalflow_power_watch_last_walk_seconds', help: 'when the last walk over a site ended, or the watch was first wanted, in seconds since 1970', labelNames: ['site'], registers: [registry],
    async collect() {
      this.reset();
      for (const { site, since, walkedAt } of await plans()) this.set({ site }, seconds(walkedAt ?? since));
    },
  });
}
