/**
 * A cloud-init NoCloud tree (field failure M3): meta-data and user-data are always both there, since without either cloud-init
 * ignores the seed in silence.
 */
import { parse } from 'yaml';
import { MetalflowError } from '../../domain/errors.js';
import { INSTALL_CODE_MARK } from '../../contracts/agent-api.js';
import type { SeedSubject } from '../../contracts/agent-desk.js';
import type { SeedFile } from '../../contracts/order.js';
import { networkConfig } from './network-config.js';
import { renderSeedMarks, type SeedFacts } from './seed-marks.js';
import { seenUrl } from './seed-urls.js';
import type { SiteFile, SiteSeed } from './site-seed.js';
import { yamlText } from './yaml-text.js';

const EMPTY_USER_DATA = '#cloud-config\n';
const PHONE_HOME_TRIES = 10;
/** Any of the files may hold a secret of the site, and cloud-init reads them as root. */
const SECRET_MODE = 0o600;

const invalid = (what: string): MetalflowError => new MetalflowError('seed_invalid', { what });

/** As cloud-init will read it. */
function yamlMap(file: SiteFile, text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parse(text, { version: '1.1', logLevel: 'error' });
  } catch {
    throw invalid(`${file} is no YAML once its marks are filled`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(`${file} is no YAML map`);
  return value as Record<string, unknown>;
}

function metaData(subject: SeedSubject, own: string | null): string {
  if (own === null) return yamlText({ 'instance-id': subject.instanceId, 'local-hostname': subject.nodeName, ...(subject.sshKeys?.length && { 'public-keys': subject.sshKeys }) });
  const map = yamlMap('meta-data', own);
  // cloud-init does its first-boot work once per instance-id: one that stays after a reprovision leaves a node unconfigured.
  if (map['instance-id'] !== subject.instanceId) throw invalid('meta-data needs `instance-id: "{{ instanceId }}"`, which changes with each provision');
  if ('local-hostname' in map && typeof map['local-hostname'] !== 'string') throw invalid('local-hostname of meta-data is no string; put it in quotes');
  return own;
}

function vendorData(subject: SeedSubject, own: string | null, baseUrl: string): string | null {
  if (own !== null) {
    if (subject.phoneHome && !own.includes(INSTALL_CODE_MARK)) throw invalid('the class asks for phone_home, and vendor-data has none with {{ seenUrl }}?code={{ installCode }}');
    return own;
  }
  if (!subject.phoneHome) return null;
  // phone_home can send no header, so the code goes into the URL.
  const url = `${seenUrl(baseUrl, subject)}?code=${INSTALL_CODE_MARK}`;
  return `#cloud-config\n${yamlText({ phone_home: { url, post: ['instance_id'], tries: PHONE_HOME_TRIES } })}`;
}

export interface NoCloudSources {
  readonly site: SiteSeed;
  /** The secret that stands for the site's user-data, taken as it is: no mark of it is filled. */
  readonly userData: string | null;
  /** Those of files whose reader puts the install code in. */
  readonly facts: SeedFacts;
  readonly baseUrl: string;
}

/** @throws seed_invalid */
export function noCloudFiles(subject: SeedSubject, { site, userData, facts, baseUrl }: NoCloudSources): SeedFile[] {
  const own = (name: SiteFile): string | null => {
    const text = site.get(name);
    return text === undefined ? null : renderSeedMarks(name, text, facts);
  };
  const network = own('network-config') ?? networkConfig(subject);
  if (network !== null) yamlMap('network-config', network);
  const contents: [SiteFile, string | null][] = [
    ['meta-data', metaData(subject, own('meta-data'))],
    ['user-data', userData ?? own('user-data') ?? EMPTY_USER_DATA],
    ['vendor-data', vendorData(subject, own('vendor-data'), baseUrl)],
    ['network-config', network],
  ];
  return contents.flatMap(([path, content]) => (content === null ? [] : [{ path, content, mode: SECRET_MODE }]));
}
