/** An answer that is none of the wished ones, with NetBox's status and body. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  constructor(
    readonly status: number,
    readonly body: Readonly<Record<string, unknown>>,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(`${status} ${JSON.stringify(body)}`);
  }
}

export const notFound = (what: string): Refusal => new Refusal(404, { detail: `No ${what} matches the given query.` });
