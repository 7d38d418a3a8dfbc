/** POST /api/v1/nodes/:id/request: sets desired_action in NetBox. NetBox stays the one desired state; nothing is asked of a workflow here. */
import { z } from 'zod';
import { SIGNALS } from '../contracts/messages.js';
import type { NetboxRequests, NodeDirectory, NodeRow, NodeWorkflows } from '../contracts/operator.js';
import { DeviceId } from '../contracts/primitives.js';
import { MetalflowError } from '../domain/errors.js';
import { judgeRequest } from '../domain/requests.js';
import { REQUESTS, type Request } from '../domain/runs.js';
import { ENDED_STATES, isOneOf } from '../domain/states.js';
import type { HttpServer } from '../telemetry/http.js';
import type { Logger } from '../telemetry/log.js';
import { ask, LIMITS_MS } from './ask.js';
import type { Audit } from './audit.js';
import { findRefused, NodeParams } from './node-lookup.js';
import { personAsking } from './roles.js';

/** null takes a request back. */
const RequestBody = z.strictObject({ action: z.enum(REQUESTS).nullable() });

export interface RequestDeps {
  readonly nodes: NodeDirectory;
  readonly workflows: NodeWorkflows;
  readonly netboxRequests: NetboxRequests;
  readonly audit: Audit;
  readonly log: Logger;
}

export function addRequestRoute(server: HttpServer, deps: RequestDeps): void {
  const config = { role: 'operator', summary: "Sets the device's desired_action in NetBox, or takes it back" } as const;
  server.post('/api/v1/nodes/:id/request', { config, schema: { params: NodeParams, body: RequestBody } }, async (request, reply) => {
    const person = personAsking(request);
    const { action } = request.body;
    const node = await ask('store_unavailable', LIMITS_MS.read, () => deps.nodes.find(request.params.id));
    const deviceId = node?.deviceId ?? (await deviceNamed(deps.nodes, request.params.id));
    await deps.audit.around(person, `request ${action ?? 'nothing'}`, deviceId, () => {
      if (node && action) refuseAtOnce(node, action);
      return ask('netbox_unreachable', LIMITS_MS.verb, () => deps.netboxRequests.request(deviceId, action, person.name));
    });
    await hint(deviceId, deps);
    return reply.status(202).send({ accepted: true, text: action === null ? 'NetBox asks for nothing now' : `NetBox asks for ${action} now` });
  });
}

/** A device that NetBox has and no lifecycle has read yet, or could begin with, is no node to the store; its id is enough. */
async function deviceNamed(nodes: NodeDirectory, idOrName: string): Promise<string> {
  const refused = await findRefused(nodes, idOrName);
  if (refused !== null) return refused.deviceId;
  if (DeviceId.safeParse(idOrName).success) return idOrName;
  throw new MetalflowError('node_not_found', { node: idOrName });
}

/** What the lifecycle would refuse is not asked of NetBox: the field would stay set, and its refusal stand in a journal only. @throws request_refused */
function refuseAtOnce({ state, hold, openRun }: NodeRow, action: Request): void {
  // With a run open the lifecycle judges; and a node that has ended may be declared again, which NetBox knows first.
  if (openRun !== null || isOneOf(ENDED_STATES, state)) return;
  const judgement = judgeRequest(hold ? 'held' : state, action, null);
  if (judgement.kind === 'refuse') throw new MetalflowError(judgement.failure.code, judgement.failure.details);
}

/** Saves the wait for NetBox's own webhook; when it fails, webhook and reconcile bring the same news. */
async function hint(deviceId: string, deps: RequestDeps): Promise<void> {
  try {
    await ask('temporal_unavailable', LIMITS_MS.read, () => deps.workflows.signalLifecycle(deviceId, SIGNALS.deviceChanged.name, { source: 'operator' }));
  } catch (error) {
    deps.log.warn({ err: error, deviceId }, 'a request is in NetBox; its lifecycle could not be told');
  }
}
