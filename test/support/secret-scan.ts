/** Looks for secrets in bytes of any kind, in every spelling in which they could hide. */

export interface Secret {
  readonly name: string;
  readonly value: string | Buffer;
}

/** As it is, in base64 (at each of its three offsets), in hex, in a URL. */
function spellingsOf(value: Buffer): string[] {
  // Bytes before a secret shift its base64; the first and last characters then depend on the neighbours.
  const shifted = [0, 1, 2].map((offset) => Buffer.concat([Buffer.alloc(offset), value]).toString('base64').replace(/=+$/, '').slice(offset === 0 ? 0 : 4, -2));
  const urlSafe = shifted.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'));
  const text = value.toString('utf8');
  return [value.toString('latin1'), value.toString('hex'), value.toString('hex').toUpperCase(), encodeURIComponent(text), ...shifted, ...urlSafe].filter((spelling) => spelling.length >= 8);
}

/** The names of the secrets that are in there. */
export function secretsIn(bytes: Buffer | string, secrets: readonly Secret[]): string[] {
  const haystack = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes, 'utf8');
  return secrets.filter(({ value }) => spellingsOf(Buffer.from(value)).some((spelling) => haystack.includes(Buffer.from(spelling, 'latin1')))).map(({ name }) => name);
}

/** Every text and every byte array in an object of protobuf, one after the other: payloads as they were before they were encoded. */
export function wordsOf(value: unknown): string {
  const words: string[] = [];
  const walk = (one: unknown): void => {
    if (typeof one === 'string') words.push(one);
    else if (one instanceof Uint8Array) words.push(Buffer.from(one).toString('utf8'));
    else if (typeof one === 'object' && one !== null) {
      for (const [key, inside] of Object.entries(one)) {
        words.push(key);
        walk(inside);
      }
    }
  };
  walk(value);
  return words.join('\n');
}
