/** The only body this plane reads: JSON of bounded nesting without prototype keys. Judged before zod sees it. */
import { MetalflowError } from '../domain/errors.js';
import { readJson } from '../domain/json.js';
import type { HttpServer } from '../telemetry/http.js';

/** Other content types are refused with 415. An empty body is no body, so a POST that needs none may still name the type. */
export function acceptOnlyJson(server: HttpServer): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (_request, body, done) => {
    if (body === '') return done(null, undefined);
    const reading = readJson(body);
    if (reading.kind === 'read') done(null, reading.value);
    else done(new MetalflowError('body_invalid', { what: reading.why }));
  });
}
