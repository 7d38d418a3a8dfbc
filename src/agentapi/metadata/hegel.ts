/**
 * `GET /metadata` in the shape that Hegel, later Tootles, gives it: the Hardware object's `metadata` (api/v1alpha1 of Tinkerbell).
 * The lists of storage stay empty on purpose: rootio partitions what it finds there, and our disks are written by orders only.
 */
import { isIPv4 } from 'node:net';
import type { MetadataSubject } from '../../contracts/metadata.js';
import { addressesOf, bare, ipv4Network, isPublic } from './addresses.js';
import { operatingSystemOf } from './operating-system.js';

export function hegelMetadata(subject: MetadataSubject): object {
  const withPrefix = subject.interfaces.flatMap(({ addresses }) => addresses);
  const known = withPrefix.length > 0 ? withPrefix : subject.addresses;
  const { localIpv4 } = addressesOf(subject);
  return {
    metadata: {
      instance: {
        id: subject.instanceId,
        hostname: subject.nodeName,
        operating_system: operatingSystemOf(subject),
        ips: known.map((address) => ({
          address: bare(address), netmask: ipv4Network(address)?.netmask ?? '', family: isIPv4(bare(address)) ? 4 : 6, public: isPublic(bare(address)), management: bare(address) === localIpv4,
        })),
        tags: subject.tags,
        ssh_keys: subject.sshKeys ?? [],
        storage: { disks: [], raid: [], filesystems: [] },
      },
      facility: { facility_code: subject.site, plan_slug: subject.nodeClass },
    },
  };
}
