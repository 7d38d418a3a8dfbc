/** What main injects. */
import type { NodeLogReader } from '../contracts/node-logs.js';
import type { HookLedger, NetboxRequests, NodeDirectory, NodeWorkflows, OperatorTokens, ReadyCheck, RunPlanner } from '../contracts/operator.js';
import type { CrashPoint } from '../telemetry/crash-point.js';
import type { Logger } from '../telemetry/log.js';

export interface OperatorApiDeps {
  readonly hooks: HookLedger;
  readonly nodes: NodeDirectory;
  readonly logs: NodeLogReader;
  readonly workflows: NodeWorkflows;
  readonly planner: RunPlanner;
  readonly netboxRequests: NetboxRequests;
  /** The secret of NetBox's webhook; null serves no webhook at all, and only the reconcile brings news. */
  readonly webhookSecret: string | null;
  /** Asked for every request, so that a changed file counts at once. */
  readonly tokens: () => Promise<OperatorTokens>;
  /** Of the Temporal UI with its namespace: `http://127.0.0.1:8233/namespaces/default`. */
  readonly temporalUi: string | null;
  /** Prometheus text. */
  readonly metrics: () => Promise<string>;
  readonly ready: () => Promise<readonly ReadyCheck[]>;
  readonly log: Logger;
  readonly now?: () => Date;
  readonly crash?: CrashPoint;
  readonly trustedProxies?: readonly string[];
}
