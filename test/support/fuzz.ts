/** Datagrams that nobody should send: seeded, so that a failure comes again. */
export interface Fuzz {
  /** 0 ≤ n < below. */
  whole(below: number): number;
  /** Random bytes, fewer than `most`. */
  bytes(most: number): Buffer;
  /** A good packet with some bits, bytes or its end changed, or repeated, or pasted into another. */
  mangled(good: readonly Buffer[]): Buffer;
}

export function createFuzz(random: () => number): Fuzz {
  const whole = (below: number): number => Math.floor(random() * below);
  const bytes = (most: number): Buffer => Buffer.from(Array.from({ length: whole(most) }, () => whole(256)));
  const mangled = (good: readonly Buffer[]): Buffer => {
    const pick = (): Buffer => good[whole(good.length)]!;
    const packet = Buffer.from(pick());
    switch (whole(6)) {
      case 0:
        return packet.subarray(0, whole(packet.length + 1));
      case 1:
        return Buffer.concat([packet, bytes(64)]);
      case 2:
        return Buffer.concat([packet.subarray(0, whole(packet.length)), pick()]);
      case 3:
        return Buffer.concat(Array.from({ length: 1 + whole(40) }, () => packet)).subarray(0, 60_000);
      default:
        for (let change = 1 + whole(6); change > 0 && packet.length > 0; change--) packet[whole(packet.length)]! ^= 1 << whole(8);
        return packet;
    }
  };
  return { whole, bytes, mangled };
}
