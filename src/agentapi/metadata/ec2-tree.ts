/**
 * EC2's meta-data tree (AWS EC2 User Guide, "Instance metadata categories"), with the names that Tootles adds (iqn, plan, facility,
 * operating-system). A name that is known but empty answers an empty text, as Tootles does, and is left out of the listing, as on EC2.
 */
import { isIPv4 } from 'node:net';
import type { MetadataSubject, NodeInterface } from '../../contracts/metadata.js';
import { addressesOf, bare, ipv4Network, isPublic, macOf } from './addresses.js';
import { operatingSystemOf } from './operating-system.js';

/** A leaf's text, or a directory. */
export type Ec2Node = string | Ec2Directory;
export interface Ec2Directory {
  readonly entries: ReadonlyMap<string, Ec2Node>;
  /** Lines of the listing. */
  readonly listing: readonly string[];
}

const isEmpty = (node: Ec2Node): boolean => node === '';

function directory(entries: Readonly<Record<string, Ec2Node>>, listing?: readonly string[]): Ec2Directory {
  const names = Object.keys(entries).sort().filter((name) => !isEmpty(entries[name]!));
  return { entries: new Map(Object.entries(entries)), listing: listing ?? names.map((name) => (typeof entries[name] === 'string' ? name : `${name}/`)) };
}

const lines = (texts: readonly string[]): string => texts.join('\n');

function interfaceTree({ mac, addresses }: NodeInterface, number: number, hostname: string): Ec2Directory {
  const ips = addresses.map(bare);
  const ipv4 = ips.filter((one) => isIPv4(one));
  return directory({
    'device-number': String(number),
    'local-hostname': hostname,
    'local-ipv4s': lines(ipv4),
    'public-ipv4s': lines(ipv4.filter(isPublic)),
    ipv6s: lines(ips.filter((one) => !isIPv4(one))),
    mac,
    'subnet-ipv4-cidr-block': addresses.map(ipv4Network).find((network) => network !== null)?.cidr ?? '',
  });
}

/** `0=name` a line, and the key below `0/openssh-key`. A key's name is its comment, where that is one word. */
function publicKeys(keys: readonly string[]): Ec2Directory {
  const names = keys.map((key, index) => /^\S+ \S+ ([A-Za-z0-9._@-]{1,64})$/.exec(key)?.[1] ?? `key-${index}`);
  // cloud-init keeps keys by name: of two with one name it would drop one.
  const unique = names.map((name, index) => (names.indexOf(name) === index ? name : `key-${index}`));
  return directory(Object.fromEntries(keys.map((key, index) => [String(index), directory({ 'openssh-key': key })])), unique.map((name, index) => `${index}=${name}`));
}

export function metaDataTree(subject: MetadataSubject): Ec2Directory {
  const { localIpv4, publicIpv4, publicIpv6 } = addressesOf(subject);
  const macs = Object.fromEntries(subject.interfaces.map((one, index) => [one.mac, interfaceTree(one, index, subject.nodeName)]));
  return directory({
    'instance-id': subject.instanceId,
    hostname: subject.nodeName,
    'local-hostname': subject.nodeName,
    'local-ipv4': localIpv4 ?? '',
    'public-ipv4': publicIpv4 ?? '',
    'public-ipv6': publicIpv6 ?? '',
    mac: macOf(subject) ?? '',
    ...(subject.interfaces.length > 0 && { network: directory({ interfaces: directory({ macs: directory(macs) }) }) }),
    'public-keys': publicKeys(subject.sshKeys ?? []),
    placement: directory({ 'availability-zone': subject.site, region: subject.site }),
    tags: lines(subject.tags),
    'operating-system': directory({ ...operatingSystemOf(subject), license_activation: directory({ state: '' }) }),
    iqn: '',
    plan: subject.nodeClass,
    facility: subject.site,
  });
}

/** `dynamic/`: the identity document, as JSON and unsigned; cloud-init takes the instance-id from it where firmware says EC2. */
export function dynamicTree(subject: MetadataSubject): Ec2Directory {
  const document = { version: '2017-09-30', instanceId: subject.instanceId, availabilityZone: subject.site, region: subject.site, privateIp: addressesOf(subject).localIpv4 };
  return directory({ 'instance-identity': directory({ document: JSON.stringify(document, null, 2) }) });
}

/** @param path names from the root down, none of them empty; null where nothing is there */
export function findNode(root: Ec2Directory, path: readonly string[]): Ec2Node | null {
  return path.reduce<Ec2Node | null>((at, name) => (at === null || typeof at === 'string' ? null : at.entries.get(name) ?? null), root);
}

/** What EC2 answers: a leaf's text, or a directory's names, one a line. */
export const textOf = (node: Ec2Node): string => (typeof node === 'string' ? node : lines(node.listing));
