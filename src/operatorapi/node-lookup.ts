/** The node that a route names, by NetBox device id or by name. */
import { z } from 'zod';
import type { NodeDirectory, NodeRow } from '../contracts/operator.js';
import { MetalflowError } from '../domain/errors.js';
import { ask, LIMITS_MS } from './ask.js';

export const NodeParams = z.object({ id: z.string().min(1).max(120).describe('NetBox device id, or name of the node') });

/** @throws node_not_found, node_ambiguous, store_unavailable */
export async function findNode(nodes: NodeDirectory, idOrName: string): Promise<NodeRow> {
  const row = await ask('store_unavailable', LIMITS_MS.read, () => nodes.find(idOrName));
  if (row === null) throw new MetalflowError('node_not_found', { node: idOrName });
  return row;
}
