/** Prometheus metrics of all roles in this process. */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import type { NodeDirectory } from '../contracts/operator.js';
import type { PowerWatchStore } from '../contracts/power-watch.js';
import type { Tally } from '../contracts/tally.js';
import type { Outbox } from '../store/index.js';
import { addPowerGauges, asked } from './power-metrics.js';
import { addRunCounters } from './run-metrics.js';

export interface Metrics {
  readonly registry: Registry;
  readonly bootDecisions: Counter<'artefact' | 'answer' | 'why'>;
  readonly syslogLines: Counter<'outcome'>;
  readonly tftpTransfers: Counter<'outcome'>;
  readonly proxyDhcp: Counter<'outcome'>;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'metalflow_' });
  const metrics: Metrics = {
    registry,
    bootDecisions: new Counter({ name: 'metalflow_boot_decisions_total', help: 'what the gate answered, and why', labelNames: ['artefact', 'answer', 'why'], registers: [registry] }),
    syslogLines: new Counter({ name: 'metalflow_syslog_lines_total', help: 'what became of the lines of nodes', labelNames: ['outcome'], registers: [registry] }),
    tftpTransfers: new Counter({ name: 'metalflow_tftp_transfers_total', help: 'ends of TFTP requests', labelNames: ['outcome'], registers: [registry] }),
    proxyDhcp: new Counter({ name: 'metalflow_proxy_dhcp_total', help: 'what the proxy DHCP did with each packet', labelNames: ['outcome'], registers: [registry] }),
  };
  // What alerts count begins at zero: Prometheus sees no increase in a series that begins at one.
  for (const artefact of ['binary', 'script', 'asset']) metrics.bootDecisions.inc({ artefact, answer: 'boot-disk', why: 'store_unavailable' }, 0);
  for (const outcome of ['timed-out', 'read-failed', 'turned-away']) metrics.tftpTransfers.inc({ outcome }, 0);
  return metrics;
}

/** Gauges and counters read from the store when Prometheus asks. */
export function addFleetGauges({ registry }: Metrics, store: { nodes: NodeDirectory; outbox: Outbox; powerWatch: PowerWatchStore; tally: Tally }): void {
  const { outbox } = store;
  const nodes = { list: asked(() => store.nodes.list({})) };
  addPowerGauges(registry, store.powerWatch);
  addRunCounters(registry, store.tally);
  new Gauge({
    name: 'metalflow_nodes', help: 'nodes by lifecycle state', labelNames: ['state'], registers: [registry],
    async collect() {
      this.reset();
      for (const { state } of await nodes.list()) this.inc({ state });
    },
  });
  new Gauge({
    name: 'metalflow_held_nodes', help: 'nodes that wait for a person, by reason', labelNames: ['code'], registers: [registry],
    async collect() {
      this.reset();
      for (const { hold } of await nodes.list()) if (hold) this.inc({ code: hold.code });
    },
  });
  new Gauge({
    name: 'metalflow_node_state', help: '1 for the lifecycle state a node is in', labelNames: ['device', 'node', 'state'], registers: [registry],
    async collect() {
      this.reset();
      for (const { deviceId: device, name: node, state } of await nodes.list()) this.set({ device, node, state }, 1);
    },
  });
  new Gauge({
    name: 'metalflow_node_held', help: '1 while a node waits for a person, by reason', labelNames: ['device', 'node', 'code'], registers: [registry],
    async collect() {
      this.reset();
      for (const { deviceId: device, name: node, hold } of await nodes.list()) if (hold) this.set({ device, node, code: hold.code }, 1);
    },
  });
  new Gauge({
    name: 'metalflow_outbox_oldest_seconds', help: 'age of the oldest fact that Temporal has not been told yet; 0 when there is none', registers: [registry],
    async collect() {
      const at = await outbox.oldestPendingAt();
      this.set(at === null ? 0 : Math.max(0, (Date.now() - Date.parse(at)) / 1000));
    },
  });
  new Gauge({
    name: 'metalflow_outbox_pending', help: 'facts that Temporal has not been told yet', registers: [registry],
    async collect() {
      this.set(await outbox.pending());
    },
  });
}
