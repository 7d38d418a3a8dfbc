/** A house without NetBox: what is open goes on, nothing new is asked. Each call says which setting is missing. */
import { MetalflowError } from '../domain/errors.js';
import type { NetboxClient } from '../contracts/netbox.js';
import type { NetboxRequests } from '../contracts/operator.js';

const missing = (): Promise<never> => Promise.reject(new MetalflowError('netbox_unreachable', { why: 'METALFLOW_NETBOX_URL is not set' }));

export const noNetbox: NetboxClient & NetboxRequests = {
  readDevice: missing, readDevices: missing, writeDevice: missing, addJournalEntry: missing, listChanged: missing, request: missing,
  close: async () => undefined,
};
