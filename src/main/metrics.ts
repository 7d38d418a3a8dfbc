/** Prometheus metrics of all roles in this process. */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import type { NodeDirectory } from '../contracts/operator.js';
import type { Outbox } from '../store/index.js';

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
  return {
    registry,
    bootDecisions: new Counter({ name: 'metalflow_boot_decisions_total', help: 'what the gate answered, and why', labelNames: ['artefact', 'answer', 'why'], registers: [registry] }),
    syslogLines: new Counter({ name: 'metalflow_syslog_lines_total', help: 'what became of the lines of nodes', labelNames: ['outcome'], registers: [registry] }),
    tftpTransfers: new Counter({ name: 'metalflow_tftp_transfers_total', help: 'ends of TFTP requests', labelNames: ['outcome'], registers: [registry] }),
    proxyDhcp: new Counter({ name: 'metalflow_proxy_dhcp_total', help: 'what the proxy DHCP did with each packet', labelNames: ['outcome'], registers: [registry] }),
  };
}

/** Gauges read from the store when Prometheus asks. */
export function addFleetGauges({ registry }: Metrics, { nodes, outbox }: { nodes: NodeDirectory; outbox: Outbox }): void {
  new Gauge({
    name: 'metalflow_nodes', help: 'nodes by lifecycle state', labelNames: ['state'], registers: [registry],
    async collect() {
      this.reset();
      for (const { state } of await nodes.list({})) this.inc({ state });
    },
  });
  new Gauge({
    name: 'metalflow_held_nodes', help: 'nodes that wait for a person, by reason', labelNames: ['code'], registers: [registry],
    async collect() {
      this.reset();
      for (const { hold } of await nodes.list({})) if (hold) this.inc({ code: hold.code });
    },
  });
  new Gauge({
    name: 'metalflow_outbox_pending', help: 'facts that Temporal has not been told yet', registers: [registry],
    async collect() {
      this.set(await outbox.pending());
    },
  });
}
