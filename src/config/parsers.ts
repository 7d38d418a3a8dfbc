/** How the text of a setting is read. Messages say what is wanted and never repeat the value: it may be a secret. */
import { isIP } from 'node:net';
import path from 'node:path';
import { z } from 'zod';

/** A TCP or UDP port; 0 asks the system for a free one. */
export const port = z.string().regex(/^\d{1,5}$/, 'must be a port, 0 to 65535').transform(Number).refine((n) => n <= 65_535, 'must be a port, 0 to 65535');

/** A whole number between two bounds, both allowed. */
export const wholeNumber = (least: number, most: number): z.ZodType<number, string> =>
  z.string().regex(/^\d{1,15}$/, `must be a whole number, ${least} to ${most}`).transform(Number).refine((n) => n >= least && n <= most, `must be a whole number, ${least} to ${most}`);

export const oneOf = <const T extends readonly [string, ...string[]]>(values: T): z.ZodType<T[number], string> =>
  z.enum(values, { error: `must be one of ${values.join(', ')}` }) as unknown as z.ZodType<T[number], string>;

export const yesNo = z.enum(['true', 'false', '1', '0', 'yes', 'no'], { error: 'must be true or false' })
  .transform((word) => ['true', '1', 'yes'].includes(word)) as unknown as z.ZodType<boolean, string>;

/** An address to listen on; names are refused, since what they resolve to may change under a running server. */
export const listenAddress = z.string().refine((text) => isIP(text) !== 0, 'must be an IP address');

export const text = z.string().max(4000);

export const slug = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lower-case letters, digits and -');

/** An absolute path; a relative one is taken from the working directory. */
export const filePath = z.string().max(4000).transform((given) => path.resolve(given));

/** Absolute paths, `:` between as in PATH. */
export const folderList = z.string().max(4000).transform((given) => given.split(':').filter(Boolean).map((one) => path.resolve(one))).refine((folders) => folders.length > 0, 'must name a folder');

/** Words with spaces between: for values that hold commas themselves. */
export const wordList = z.string().transform((given) => given.split(/\s+/).filter(Boolean));
export const commaList = z.string().transform((given) => given.split(',').map((item) => item.trim()).filter(Boolean));

/** Whole numbers between two bounds, comma-separated, at least one. */
export const numberList = (least: number, most: number): z.ZodType<readonly number[], string> =>
  commaList
    .refine(
      (items) => items.length > 0 && items.every((item) => /^\d{1,9}$/.test(item) && Number(item) >= least && Number(item) <= most),
      `must be whole numbers, ${least} to ${most}, comma-separated`,
    )
    .transform((items) => items.map(Number)) as unknown as z.ZodType<readonly number[], string>;

const isNetwork = (item: string): boolean => {
  const [address = '', bits, ...rest] = item.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
};

/** IP addresses and networks in CIDR form, comma-separated. */
export const networks = commaList.refine((items) => items.every(isNetwork), 'must be IP addresses or networks (10.0.0.0/8), comma-separated');

/** An absolute URL without a slash at its end. */
export const url = (...protocols: readonly string[]): z.ZodType<string, string> =>
  z.string()
    .refine((given) => URL.canParse(given) && protocols.includes(new URL(given).protocol), `must be a URL that begins with ${protocols.map((p) => `${p}//`).join(' or ')}`)
    .transform((given) => given.replace(/\/+$/, ''));
