/** What GET /v1/seed/:uuid serves to the installed system. */
import { parseAllDocuments } from 'yaml';
import { MetalflowError } from '../../domain/errors.js';
import type { SeedSubject } from '../../contracts/agent-desk.js';
import { renderSeedMarks, type SeedFacts } from './seed-marks.js';
import { seenUrl } from './seed-urls.js';
import type { SiteFile, SiteSeed } from './site-seed.js';

export interface SeedDocument {
  readonly contentType: string;
  readonly body: string;
}

/** By the file's name; each with what makes it readable for the system that fetches it. */
const FORMATS: readonly { readonly file: SiteFile; readonly contentType: string; readonly problem: (text: string) => string | null }[] = [
  { file: 'document.json', contentType: 'application/json; charset=utf-8', problem: jsonProblem },
  // A Talos machine configuration is one or several YAML documents (RFC 9512 for the type).
  { file: 'document.yaml', contentType: 'application/yaml; charset=utf-8', problem: yamlProblem },
  { file: 'document.txt', contentType: 'text/plain; charset=utf-8', problem: () => null },
];

function jsonProblem(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch {
    return 'is no JSON once its marks are filled';
  }
}

function yamlProblem(text: string): string | null {
  const documents = parseAllDocuments(text);
  const error = Array.isArray(documents) ? documents.flatMap((document) => document.errors)[0] : undefined;
  return error ? `is no YAML once its marks are filled (line ${error.linePos?.[0].line ?? '?'}: ${error.code})` : null;
}

/** The built-in document, version 1: who the node is, and where it says that it is there. */
const builtIn = (subject: SeedSubject, agentUrl: string): object => ({
  version: 1,
  node: { name: subject.nodeName, uuid: subject.systemUuid, site: subject.site, class: subject.nodeClass, addresses: subject.addresses, macs: subject.macs },
  instanceId: subject.instanceId,
  run: subject.run,
  payload: subject.payload,
  seenUrl: seenUrl(agentUrl, subject),
});

/** The site's document when it has one, else the built-in one as JSON. @throws seed_invalid */
export function seedDocument(subject: SeedSubject, site: SiteSeed, facts: SeedFacts, agentUrl: string): SeedDocument {
  const [format, second] = FORMATS.filter(({ file }) => site.has(file));
  if (!format) return { contentType: 'application/json; charset=utf-8', body: `${JSON.stringify(builtIn(subject, agentUrl), null, 2)}\n` };
  if (second) throw new MetalflowError('seed_invalid', { what: `both ${format.file} and ${second.file} are there; one document is served` });
  const body = renderSeedMarks(format.file, site.get(format.file)!, facts);
  const problem = format.problem(body);
  if (problem) throw new MetalflowError('seed_invalid', { what: `${format.file} ${problem}` });
  return { contentType: format.contentType, body };
}
