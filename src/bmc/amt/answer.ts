/** Reads what AMT answers: strict where an attacker or a torn answer could fool us, by local name where firmware differs. */
import { XMLParser, XMLValidator } from 'fast-xml-parser';
import { z } from 'zod';
import type { HttpAnswer } from './transport.js';
import { ok, problem, type Outcome } from '../problem.js';

const parser = new XMLParser({
  ignoreAttributes: true,
  // Prefixes are the firmware's choice (`g:` here, `h:` there); A5.
  removeNSPrefix: true,
  // Else "0012" would become 12, and a serial of 1E5 would become 100000.
  parseTagValue: false,
  processEntities: false,
  ignoreDeclaration: true,
  ignorePiTags: true,
});

const Envelope = z.object({ Envelope: z.object({ Body: z.unknown() }) });
const Fault = z.object({
  Fault: z.object({
    Code: z.looseObject({ Value: z.string().optional(), Subcode: z.looseObject({ Value: z.string().optional() }).optional() }).optional(),
    Reason: z.looseObject({ Text: z.union([z.string(), z.looseObject({ '#text': z.string().optional() })]).optional() }).optional(),
  }),
});

/** A SOAP 1.2 fault. `subcode` without its prefix; `none` when there is none. */
export interface SoapFault {
  readonly subcode: string;
  readonly reason: string;
}

const REFERENCES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** The five named references and character references; anything else stays as it stands. */
export function unescapeXml(text: string): string {
  return text.replaceAll(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(\w+));/gi, (whole, hex: string | undefined, decimal: string | undefined, name: string | undefined) => {
    if (name !== undefined) return REFERENCES[name] ?? whole;
    const point = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return point > 0x10ffff ? whole : String.fromCodePoint(point);
  });
}

/** @returns the content of `Envelope/Body`, keyed by local name; all values are strings, raw between their tags */
export function readBody(xml: string): Outcome<unknown> {
  const invalid = (why: string): Outcome<never> => problem('bmc_answer_invalid', why, 'possible');
  // fast-xml-parser takes HTML and document types for XML, and torn XML too: the guards come first.
  if (/<!(?:DOCTYPE|ENTITY)/i.test(xml)) return invalid('a document with a DOCTYPE, a web page perhaps, instead of SOAP');
  const valid = XMLValidator.validate(xml);
  if (valid !== true) return invalid(`no well-formed XML: ${valid.err.msg.slice(0, 120)}`);
  let parsed: unknown;
  try {
    parsed = parser.parse(xml);
  } catch (error) {
    return invalid(`XML that is refused: ${String((error as Error).message).slice(0, 120)}`);
  }
  const envelope = Envelope.safeParse(parsed);
  return envelope.success ? ok(envelope.data.Envelope.Body) : invalid('XML that is no SOAP envelope');
}

function faultOf(body: unknown): SoapFault | null {
  const fault = Fault.safeParse(body);
  if (!fault.success) return null;
  const { Code: code, Reason: reason } = fault.data.Fault;
  const local = (name: string): string => name.split(':').at(-1)!.slice(0, 80);
  const text = typeof reason?.Text === 'string' ? reason.Text : (reason?.Text?.['#text'] ?? '');
  return { subcode: local(code?.Subcode?.Value ?? code?.Value ?? 'none'), reason: unescapeXml(text).slice(0, 200) };
}

const FAULT_MEANINGS: Readonly<Record<string, string>> = {
  AccessDenied: 'access denied; AMT in client control mode wants user consent for this: provision it in admin control mode',
  DestinationUnreachable: 'this AMT has no such class',
  InvalidSelectors: 'no such instance',
};

/**
 * The body of an answer, in the given shape.
 * @param step named in the texts, e.g. `ChangeBootOrder`
 */
export function readAnswer<T>(answer: HttpAnswer, step: string, shape: z.ZodType<T>): Outcome<T> {
  // A 400 says that nothing was done, readable or not; a 200 or 500 that cannot be read says nothing at all.
  const effect = answer.status === 400 ? 'none' : 'possible';
  const body = readBody(answer.body);
  if (body.kind === 'problem') return problem('bmc_answer_invalid', `${step}: ${body.problem.why}`, effect);
  const fault = faultOf(body.value);
  if (fault) {
    const meaning = FAULT_MEANINGS[fault.subcode] ?? (fault.reason || 'no reason given');
    return problem('bmc_refused', `${step}: ${fault.subcode} (${meaning})`, effect, { step, value: fault.subcode, meaning });
  }
  if (answer.status !== 200) return problem('bmc_answer_invalid', `${step}: HTTP ${answer.status} without a fault`, effect);
  const shaped = shape.safeParse(body.value);
  if (shaped.success) return ok(shaped.data);
  const issue = shaped.error.issues[0]!;
  return problem('bmc_answer_invalid', `${step}: ${issue.path.join('.') || 'the body'}: ${issue.message}`, effect);
}
