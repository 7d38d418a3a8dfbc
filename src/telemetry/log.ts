/** pino with the house's redaction: secrets never reach a log, whatever object carries them. */
import { pino, type Logger } from 'pino';

export type { Logger } from 'pino';

const SECRET_KEYS = ['password', 'token', 'secret', 'installCode', 'code', 'authorization', 'cookie', 'nonce', 'akPrivate'];
const REDACT = [
  ...SECRET_KEYS.filter((key) => key !== 'code').flatMap((key) => [key, `*.${key}`, `*.*.${key}`]),
  'req.headers.authorization', 'req.headers.cookie', 'req.headers["x-hook-signature"]', 'headers.authorization',
];

/** `?code=…` and `?token=…` of a URL are secrets (Talos can only send its install code that way). */
export const redactUrl = (url: string): string => url.replaceAll(/([?&](?:code|token)=)[^&\s]*/gi, '$1[redacted]');

export function createLogger(options: { level: string; role: string; destination?: NodeJS.WritableStream }): Logger {
  return pino(
    {
      level: options.level,
      base: { role: options.role },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: REDACT, censor: '[redacted]' },
      serializers: {
        err: pino.stdSerializers.err,
        req: (req: { method?: string; url?: string; id?: unknown; ip?: string }) => ({ method: req.method, url: redactUrl(String(req.url ?? '')), id: req.id, from: req.ip }),
      },
    },
    options.destination ?? pino.destination({ fd: 2, sync: true }),
  );
}

export const silentLogger = (): Logger => pino({ level: 'silent' });
