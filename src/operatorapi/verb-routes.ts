/** POST /api/v1/nodes/:id/<verb>: what a person says to a run or a lifecycle. The workflow decides; here only role and reason are judged. */
import type { z } from 'zod';
import { VERBS, type OperatorVerb } from '../contracts/messages.js';
import { VerbBody, type NodeDirectory, type NodeWorkflows, type Role } from '../contracts/operator.js';
import { MetalflowError } from '../domain/errors.js';
import type { HttpServer } from '../telemetry/http.js';
import { ask, LIMITS_MS } from './ask.js';
import type { Audit } from './audit.js';
import { findNode, NodeParams } from './node-lookup.js';
import { personAsking, requireRole } from './roles.js';

interface VerbRow {
  readonly role: Exclude<Role, 'reader'>;
  /** Those that overrule a check, or take a node out of service, have to say why. */
  readonly needsReason: boolean;
  readonly does: string;
}

export const VERB_ROWS: { readonly [verb in OperatorVerb]: VerbRow } = {
  hold: { role: 'operator', needsReason: true, does: 'Stops a run at its next safe point, until `resume`' },
  resume: { role: 'operator', needsReason: false, does: 'Goes on; with `done`, the order whose outcome is unknown was done' },
  cancel: { role: 'operator', needsReason: false, does: 'Ends the open run at its next safe point' },
  retry: { role: 'operator', needsReason: false, does: 'Tries again what failed, or grants an unknown order again' },
  approve: { role: 'approver', needsReason: true, does: 'Lets through what a rule holds back; recorded' },
  adopt: { role: 'approver', needsReason: true, does: 'Says that store, Temporal and machine belong together, or that the status in NetBox stands' },
  maintenance: { role: 'operator', needsReason: true, does: 'Takes the node out of (`on`) or back into service' },
};

/** A verb that needs nothing said may come without a body. */
const Body = VerbBody.nullish().transform((body) => body ?? {});
type Said = z.infer<typeof VerbBody>;

export function addVerbRoutes(server: HttpServer, deps: { nodes: NodeDirectory; workflows: NodeWorkflows; audit: Audit }): void {
  for (const verb of VERBS) {
    const { role, does } = VERB_ROWS[verb];
    server.post(`/api/v1/nodes/:id/${verb}`, { config: { role, summary: does }, schema: { params: NodeParams, body: Body } }, async (request) => {
      const person = personAsking(request);
      const said = request.body;
      const { deviceId } = await findNode(deps.nodes, request.params.id);
      return deps.audit.around(person, [verb, ...describe(said)].join(' '), deviceId, async () => {
        if (said.attestRemoved) requireRole(person, 'approver');
        checkSaid(verb, said);
        return ask('temporal_unavailable', LIMITS_MS.verb, () => deps.workflows.say(deviceId, verb, { ...said, by: person.name }));
      });
    });
  }
}

/** @throws reason_required, body_invalid */
function checkSaid(verb: OperatorVerb, said: Said): void {
  // A machine without its BMC's word is destroyed or lost: whoever says so says why.
  if ((VERB_ROWS[verb].needsReason || said.attestRemoved) && !said.reason?.trim()) throw new MetalflowError('reason_required', { verb });
  if (verb === 'maintenance' && said.on === undefined) throw new MetalflowError('body_invalid', { what: 'on is missing: true or false' });
}

const describe = (said: Said): string[] => [
  ...(said.on === undefined ? [] : [said.on ? 'on' : 'off']),
  ...(said.done ? ['done'] : []),
  ...(said.attestRemoved ? ['attest-removed'] : []),
  ...(said.reason ? [`(${said.reason.trim()})`] : []),
];
