/** What Tootles calls the operating system of a node, as far as its class says it. Nothing is guessed: an empty text is not known. */
import type { MetadataSubject } from '../../contracts/metadata.js';

/** A cloud-init image may hold any system. */
const DISTROS: Readonly<Record<string, string>> = { talos: 'talos', 'nixos-image': 'nixos', 'alpine-image': 'alpine' };

export const operatingSystemOf = ({ nodeClass, payload, imageSha256 }: MetadataSubject): Readonly<Record<'slug' | 'distro' | 'version' | 'image_tag', string>> => ({
  slug: nodeClass,
  distro: Object.hasOwn(DISTROS, payload) ? DISTROS[payload]! : '',
  version: '',
  image_tag: imageSha256 === null ? '' : `sha256:${imageSha256}`,
});
