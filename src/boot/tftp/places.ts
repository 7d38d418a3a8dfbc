/** Who is being served: a bounded table of transfers, in all and for one address. */
import type { TftpLimits } from './limits.js';
import type { Transfer } from './transfer.js';

/** A client's port that has asked: one request, from its arrival to the end of its transfer. */
export interface Place {
  readonly client: { readonly address: string; readonly port: number };
  readonly request: Buffer;
  transfer: Transfer | null;
}

export interface Places {
  readonly size: number;
  of(client: Place['client']): Place | null;
  /** A place for this request, or null when there is none. */
  take(client: Place['client'], request: Buffer): Place | null;
  free(place: Place): void;
  all(): Place[];
}

const keyOf = ({ address, port }: Place['client']): string => `${address}|${port}`;

/**
 * @param crowdedOut called with a place that has to make room: the oldest whose client was sent the first answer again and was never
 *   heard. Requests with forged addresses would otherwise keep real clients out, and a client that begins anew from another port itself.
 */
export function createPlaces(limits: Pick<TftpLimits, 'transfers' | 'transfersPerClient'>, crowdedOut: (place: Place) => void): Places {
  const places = new Map<string, Place>();
  const perAddress = new Map<string, number>();

  const hold = (address: string, change: number): void => {
    const held = (perAddress.get(address) ?? 0) + change;
    if (held > 0) perAddress.set(address, held);
    else perAddress.delete(address);
  };

  function free(place: Place): void {
    const key = keyOf(place.client);
    if (places.get(key) !== place) return;
    places.delete(key);
    hold(place.client.address, -1);
  }

  function makeRoom(among: (place: Place) => boolean): boolean {
    for (const place of places.values()) {
      if (!among(place) || !place.transfer?.unheard()) continue;
      crowdedOut(place);
      free(place);
      return true;
    }
    return false;
  }

  return {
    get size() {
      return places.size;
    },
    of: (client) => places.get(keyOf(client)) ?? null,
    take(client, request) {
      if ((perAddress.get(client.address) ?? 0) >= limits.transfersPerClient && !makeRoom((place) => place.client.address === client.address)) return null;
      if (places.size >= limits.transfers && !makeRoom(() => true)) return null;
      const place: Place = { client: { address: client.address, port: client.port }, request: Buffer.from(request), transfer: null };
      places.set(keyOf(client), place);
      hold(client.address, 1);
      return place;
    },
    free,
    all: () => [...places.values()],
  };
}
