/** The node that a route names, by NetBox device id or by name. */
import { z } from 'zod';
import type { NodeDirectory, NodeRow } from '../contracts/operator.js';
import type { RefusedDevice } from '../contracts/store.js';
import { MetalflowError } from '../domain/errors.js';
import { ask, LIMITS_MS } from './ask.js';

export const NodeParams = z.object({ id: z.string().min(1).max(120).describe('NetBox device id, or name of the node') });

/** @throws node_not_found, node_ambiguous, store_unavailable; and what keeps a device of NetBox from being a node: device_invalid */
export async function findNode(nodes: NodeDirectory, idOrName: string): Promise<NodeRow> {
  const row = await ask('store_unavailable', LIMITS_MS.read, () => nodes.find(idOrName));
  if (row !== null) return row;
  const refused = await findRefused(nodes, idOrName);
  throw refused ? new MetalflowError(refused.failure.code, refused.failure.details) : new MetalflowError('node_not_found', { node: idOrName });
}

/** A device that NetBox has and metalflow cannot begin with. @throws store_unavailable */
export async function findRefused(nodes: NodeDirectory, idOrName: string): Promise<RefusedDevice | null> {
  const refused = await ask('store_unavailable', LIMITS_MS.read, () => nodes.refused());
  return refused.find(({ deviceId }) => deviceId === idOrName) ?? refused.find(({ name }) => name === idOrName) ?? null;
}
