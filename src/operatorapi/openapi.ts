/** The OpenAPI 3.1 document, drawn from the routes as they are registered and from their zod schemas. */
import { z } from 'zod';
import type { RouteOptions } from 'fastify';
import { ErrorBody } from '../contracts/agent-api.js';
import type { HttpServer } from '../telemetry/http.js';

interface JsonObject {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

const jsonSchema = (schema: z.ZodType): JsonObject => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return rest as JsonObject;
};

/** Call before any route is added. */
export function addOpenApi(server: HttpServer): void {
  const paths: Record<string, Record<string, unknown>> = {};
  server.addHook('onRoute', (route) => {
    for (const method of [route.method].flat().filter((one) => one !== 'HEAD')) {
      (paths[route.url.replaceAll(/:(\w+)/g, '{$1}')] ??= {})[method.toLowerCase()] = operation(route);
    }
  });
  server.get('/api/v1/openapi.json', { config: { role: 'reader', summary: 'This document' } }, async () => ({
    openapi: '3.1.0',
    info: { title: 'metalflow operator plane', version: 'v1' },
    components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } }, schemas: { Error: jsonSchema(ErrorBody) } },
    paths,
  }));
}

function operation(route: RouteOptions): Record<string, unknown> {
  const { params, querystring, body } = (route.schema ?? {}) as { params?: z.ZodType; querystring?: z.ZodType; body?: z.ZodType };
  const role = route.config?.role ?? 'approver';
  return {
    summary: route.config?.summary ?? '',
    description: role === 'open' ? 'Needs no token.' : `Needs the role ${role}.`,
    ...(role !== 'open' && { security: [{ token: [] }] }),
    parameters: [...parameters('path', params), ...parameters('query', querystring)],
    ...(body && { requestBody: { content: { 'application/json': { schema: jsonSchema(body) } } } }),
    responses: {
      '2XX': { description: 'Done' },
      default: { description: 'Refused or failed', content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } },
    },
  };
}

function parameters(place: 'path' | 'query', schema: z.ZodType | undefined): unknown[] {
  if (!schema) return [];
  const { properties = {}, required = [] } = jsonSchema(schema);
  return Object.entries(properties).map(([name, one]) => ({ name, in: place, required: place === 'path' || required.includes(name), schema: one }));
}
