/** The small zod types everything else is made of. */
import { z } from 'zod';
import { parseMac } from '../domain/mac.js';
import { parseSha256 } from '../domain/digest.js';
import { parseUuid } from '../domain/uuid.js';

const parsed = (parse: (text: string) => string | null, what: string): z.ZodType<string, string> =>
  z.string().max(200).transform((text, context) => {
    const value = parse(text);
    if (value === null) {
      context.addIssue({ code: 'custom', message: what });
      return z.NEVER;
    }
    return value;
  });

/** Any usual spelling in, `02:01:48:aa:bb:0c` out. */
export const Mac = parsed(parseMac, 'is no MAC address');
/** A set SMBIOS UUID, lower-case text form. */
export const MachineUuid = parsed(parseUuid, 'is no machine UUID');
/** 64 lower-case hex digits; `sha256:` in front and any letter case are accepted, nothing else is (I3). */
export const Sha256 = parsed(parseSha256, 'is no SHA-256 digest (64 hex digits)');
/** NetBox device ids, as strings everywhere outside the NetBox client. */
export const DeviceId = z.string().regex(/^[1-9]\d{0,15}$/, 'is no NetBox device id');
export const RunNumber = z.number().int().min(1).max(1_000_000);
/** ISO 8601 in UTC. */
export const Instant = z.string().max(40).refine((text) => !Number.isNaN(Date.parse(text)), 'is no ISO 8601 instant');
/** Ids drawn by the store: letters, digits and `-`. */
export const OpaqueId = z.string().regex(/^[A-Za-z0-9-]{1,64}$/, 'is no id of ours');
/** A name that is safe in labels and search attributes. */
export const ShortName = z.string().min(1).max(120);

/** `path: message; path: message` of a zod error, for people. */
export function issuesText(error: z.ZodError): string {
  return error.issues.slice(0, 5).map((issue) => `${issue.path.length ? issue.path.join('.') : '(top)'}: ${issue.message}`).join('; ');
}
