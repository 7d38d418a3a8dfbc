/** What must be true of a node whatever was done to its runs: no order twice, no grant without a new attested boot, off before each boot. */
import type { JournalEntry } from '../../../src/simulator/node/journal.js';
import type { Db } from '../../../src/store/index.js';
import type { WorldNode } from './world.js';

/** Order ids that the node's own agent began, oldest first. */
export const begunOrders = (node: WorldNode, action?: string): string[] =>
  node.machine.node.journal().filter((entry: JournalEntry) => entry.event === 'agent' && entry['what'] === 'started' && (!action || entry['action'] === action)).map((entry) => String(entry['orderId']));

export const isDoing = (node: WorldNode, action: string): boolean => {
  const last = node.machine.node.journal().filter((entry) => entry.event === 'agent').at(-1);
  return last?.['action'] === action && last['what'] === 'started';
};

/** Breaches of "once", in words; none is right. */
export async function breachesOfOnce(db: Db, node: WorldNode): Promise<string[]> {
  const breaches: string[] = [];
  const begun = begunOrders(node);
  for (const id of new Set(begun)) if (begun.filter((other) => other === id).length > 1) breaches.push(`order ${id} was begun twice`);

  const orders = await db.selectFrom('agent_order').selectAll().where('device_id', '=', node.deviceId).orderBy('id').execute();
  const attempts = new Map((await db.selectFrom('boot_attempt').selectAll().where('device_id', '=', node.deviceId).execute()).map((row) => [row.id, row]));
  for (const order of orders) {
    const attempt = attempts.get(order.boot_attempt);
    if (!attempt?.attested_at || attempt.attested_at > order.queued_at) breaches.push(`${order.title} (grant ${order.grant_no}) was ordered before its boot attested`);
    const former = orders.find((other) => other.run === order.run && other.title === order.title && other.grant_no === order.grant_no - 1);
    if (order.grant_no > 1 && !former) breaches.push(`${order.title} skips grant ${order.grant_no - 1}`);
    if (former && former.boot_attempt === order.boot_attempt) breaches.push(`${order.title} was granted again in the same boot`);
    if (former && attempt && attempt.opened_at < former.queued_at) breaches.push(`${order.title} was granted again in a boot from before the former grant`);
  }

  // A node that netboots again was switched off in between: nothing of the former boot can be running.
  let wasOff = true;
  for (const entry of node.machine.node.journal()) {
    if (entry.event !== 'state') continue;
    if (entry['state'] === 'off') wasOff = true;
    if (entry['state'] !== 'netboot-system') continue;
    if (!wasOff) breaches.push('the node netbooted twice without being off in between');
    wasOff = false;
  }
  return breaches;
}
