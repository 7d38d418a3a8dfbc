/**
 * The packets of one turn of the event loop, sent together at its end.
 *
 * A client that is sent one packet at a time wakes up, answers and sleeps again before the next is sent, and waking it is paid for by who
 * sends. What many clients are sent in one go meets clients, and on a real network a card, that are still at the one before.
 */
import type { Socket } from 'node:dgram';

export interface Letter {
  readonly socket: Pick<Socket, 'send'>;
  /** Not to be written to until it has left. */
  readonly packet: Buffer;
  readonly to: { readonly address: string; readonly port: number };
}

export interface Outbox {
  put(letter: Letter): void;
  /** Sends now what waits, in order: a socket must not be closed before. */
  flush(): void;
}

/** Without a callback nothing waits for the datagram and nothing throws: one that is lost is what the protocol is made for. */
const post = ({ socket, packet, to }: Letter): void => socket.send(packet, to.port, to.address);

/** @param alone whether there is one client only, whose packets nothing would be gained for by waiting */
export function createOutbox({ alone }: { readonly alone: () => boolean }): Outbox {
  let waiting: Letter[] = [];

  function flush(): void {
    const letters = waiting;
    waiting = [];
    letters.forEach(post);
  }

  return {
    put(letter) {
      if (waiting.length === 0) {
        if (alone()) return post(letter);
        setImmediate(flush);
      }
      waiting.push(letter);
    },
    flush,
  };
}
