/**
 * `{{ node.name }}` in a site's seed files: a closed set of facts, replaced in the text and nowhere else. Everything around the
 * marks is copied as it is.
 */
import { MetalflowError } from '../../domain/errors.js';
import { INSTALL_CODE_MARK } from '../../contracts/agent-api.js';
import type { SeedSubject } from '../../contracts/agent-desk.js';
import { seedFromUrl, seedUrl, seenUrl } from './seed-urls.js';

/** Name of the mark to its text; null where this node, or this file, has no such fact. */
export type SeedFacts = ReadonlyMap<string, string | null>;

/** As the node reaches them: the agent plane, and the metadata service where there is one. */
export interface SeedUrls {
  readonly baseUrl: string;
  readonly metadataUrl?: string;
}

/** Names come from NetBox: one that YAML or a shell could take for more than itself may not pass. */
const HARMLESS = /^[A-Za-z0-9](?:[A-Za-z0-9 ._@/+-]*[A-Za-z0-9._@/+-])?$/;
const CHECKED: readonly string[] = ['node.name', 'node.site', 'node.class'];

/** How a seed writes two braces of its own (as in Go's and jinja's templates): `{{ "{{" }}`. */
const LITERAL_BRACES = '"{{"';
/** An opening with what closes it on the same line; without that, or with anything else inside, the mark is refused. */
const MARK = /\{\{(?:[ \t]*("\{\{"|[^\s{}"]+)[ \t]*\}\})?/g;

/**
 * Every fact a mark may name.
 * @param withInstallCode whether the file goes through the agent, which puts its install code in the place of the mark
 */
export function seedFacts(subject: SeedSubject, { baseUrl, metadataUrl }: SeedUrls, withInstallCode: boolean): SeedFacts {
  return new Map<string, string | null>([
    ['node.name', subject.nodeName],
    ['node.uuid', subject.systemUuid || null],
    ['node.id', subject.deviceId],
    ['node.site', subject.site || null],
    ['node.class', subject.nodeClass || null],
    ['node.payload', subject.payload || null],
    ['node.address', subject.addresses[0] ?? null],
    ['node.mac', subject.macs[0] ?? null],
    ['run', String(subject.run)],
    ['instanceId', subject.instanceId],
    ['seedUrl', seedUrl(baseUrl, subject)],
    ['seenUrl', seenUrl(baseUrl, subject)],
    ['seedFrom', metadataUrl === undefined ? null : seedFromUrl(metadataUrl, subject)],
    ['installCode', withInstallCode ? INSTALL_CODE_MARK : null],
    [LITERAL_BRACES, '{{'],
  ]);
}

/** Replaces every mark of `text`. @throws seed_invalid naming file, line and mark */
export function renderSeedMarks(file: string, text: string, facts: SeedFacts): string {
  return text.replaceAll(MARK, (mark: string, name: string | undefined, offset: number) => {
    const refuse = (what: string): never => {
      throw new MetalflowError('seed_invalid', { what: `${file}:${text.slice(0, offset).split('\n').length}: ${what}` });
    };
    if (name === undefined) return refuse(`a mark is not closed, or holds more than a name; braces that are no mark are written {{ ${LITERAL_BRACES} }}`);
    if (!facts.has(name)) return refuse(`there is no fact ${name.slice(0, 60)}; there are ${[...facts.keys()].filter((known) => known !== LITERAL_BRACES).join(', ')}`);
    const value = facts.get(name) ?? null;
    if (value === null) return refuse(`this node has no ${name} here`);
    if (CHECKED.includes(name) && !HARMLESS.test(value)) return refuse(`the value of ${name} has characters that may not be put into a seed`);
    return value;
  });
}
