/** Syslog lines as nodes really send them (RFC 3164, RFC 5424, and the odd ones of field failure S2). Pure, and never throws. */
import { redactUrl } from '../../telemetry/log.js';
import { plainAddress } from '../sender.js';

export interface SyslogLine {
  /** ISO instant, UTC: the line's own when it can be read, else when it came. */
  readonly at: string;
  /** Address it came from, without `::ffff:` and zone. */
  readonly sender: string;
  /** The host it names, else the sender. */
  readonly host: string;
  readonly app: string | null;
  /** RFC 5424's MSGID. */
  readonly messageId: string | null;
  /** 0 (emergency) to 7 (debug). */
  readonly severity: number;
  /** 0 (kernel) to 23 (local7). */
  readonly facility: number;
  readonly text: string;
}

const TEXT_MOST = 4096;
/** RFC 3164 §4.3.3: what has no priority is user.notice. */
const DEFAULT_PRIORITY = 13;
const DAY_MS = 86_400_000;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

type Header = Pick<SyslogLine, 'app' | 'messageId' | 'text'> & { readonly at: string | null; readonly host: string | null };

/** One datagram as one line; null when there is nothing in it. */
export function parseSyslog(bytes: Buffer, sender: string, receivedAt: Date): SyslogLine | null {
  const raw = bytes.toString('utf8').replace(/[\0\r\n\s]+$/, '');
  if (raw === '') return null;
  const [, digits, afterPriority] = /^<(\d{1,3})>([\s\S]*)$/.exec(raw) ?? [];
  const given = digits !== undefined && Number(digits) <= 191;
  const priority = given ? Number(digits) : DEFAULT_PRIORITY;
  const rest = given ? afterPriority! : raw;
  const header = readModern(rest) ?? readClassic(rest, receivedAt);
  const from = plainAddress(sender);
  return {
    at: header.at ?? receivedAt.toISOString(),
    sender: from,
    host: header.host ?? from,
    app: header.app,
    messageId: header.messageId,
    severity: priority % 8,
    facility: Math.floor(priority / 8),
    text: presentable(header.text),
  };
}

/** RFC 5424 §6: version, time, host, app, process id, message id, structured data, message. */
function readModern(text: string): Header | null {
  const match = /^1 (\S{1,64}) (\S{1,255}) (\S{1,48}) \S{1,128} (\S{1,32}) ([\s\S]*)$/.exec(text);
  if (!match) return null;
  const [, time, host, app, messageId, rest] = match as unknown as [string, string, string, string, string, string];
  return { at: instant(time), host: orNull(host), app: orNull(app), messageId: orNull(messageId), text: withoutStructuredData(rest).replace(/^\ufeff/, '') };
}

const orNull = (field: string): string | null => (field === '-' ? null : field);

/** Steps over `-` or `[id name="value" …]…`, in which `\"`, `\\` and `\]` are escaped; kept whole when it does not end. */
function withoutStructuredData(text: string): string {
  if (text === '-') return '';
  if (text.startsWith('- ')) return text.slice(2);
  let quoted = false;
  let inside = false;
  for (let index = 0; index < text.length; index++) {
    const char = text[index];
    if (inside && quoted && char === '\\') index++;
    else if (inside && char === '"') quoted = !quoted;
    else if (inside && !quoted && char === ']') inside = false;
    else if (!inside && char === '[') inside = true;
    else if (!inside) return char === ' ' && index > 0 ? text.slice(index + 1) : text;
  }
  return inside ? text : '';
}

/** RFC 3164 as it is used: a time of either kind or none, a host or none, a tag or none. */
function readClassic(text: string, receivedAt: Date): Header {
  const timed = readTime(text, receivedAt);
  if (!timed) return { at: null, host: null, ...readTag(text), messageId: null };
  // The first word is the host, unless it is the tag already (`dockerd:`, `su[3]:`), or all there is.
  const [, host, rest] = /^([^\s:[\]]+|[0-9a-fA-F.:]+) ([\s\S]*)$/.exec(timed.rest) ?? [];
  if (host === undefined || host.endsWith(':')) return { at: timed.at, host: null, ...readTag(timed.rest), messageId: null };
  return { at: timed.at, host, ...readTag(rest!), messageId: null };
}

function readTag(text: string): Pick<Header, 'app' | 'text'> {
  const [, app, rest] = /^([A-Za-z0-9_./-]{1,48})(?:\[[^\]\s]{0,32}\])?: ?([\s\S]*)$/.exec(text) ?? [];
  return app === undefined ? { app: null, text } : { app, text: rest! };
}

function readTime(text: string, receivedAt: Date): { at: string | null; rest: string } | null {
  const classic = /^([A-Z][a-z]{2}) ([ \d]?\d) (\d{2}):(\d{2}):(\d{2})(?:\.\d+)? ([\s\S]*)$/.exec(text);
  const month = classic ? MONTHS.indexOf(classic[1]!) : -1;
  if (classic && month >= 0) {
    const [day, hour, minute, second] = classic.slice(2, 6).map(Number) as [number, number, number, number];
    return { at: withoutYear([month, day, hour, minute, second], receivedAt), rest: classic[6]! };
  }
  const iso = /^(\d{4}-\d{2}-\d{2}T\S{8,30}) ([\s\S]*)$/.exec(text);
  return iso ? { at: instant(iso[1]!), rest: iso[2]! } : null;
}

/** The latest such date that is not in the future, give or take a clock's day: December's lines still come in January. */
function withoutYear([month, day, hour, minute, second]: [number, number, number, number, number], receivedAt: Date): string {
  const inYear = (year: number): number => Date.UTC(year, month, day, hour, minute, second);
  const year = receivedAt.getUTCFullYear();
  const latest = receivedAt.getTime() + DAY_MS;
  const fitting = [year + 1, year, year - 1].map(inYear).find((at) => at <= latest);
  return new Date(fitting ?? inYear(year)).toISOString();
}

function instant(text: string): string | null {
  const at = /^\d{4}-\d{2}-\d{2}T/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}

/** Without control characters, secrets and excess. */
function presentable(text: string): string {
  const clean = text.slice(0, TEXT_MOST).replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f]/g, ' ');
  return redactUrl(clean).replaceAll(/\b(bearer )\S+/gi, '$1[redacted]');
}
