/** What a site says of its netboot system. Every value ends up in an iPXE script, so the character sets are strict here already. */
import { z } from 'zod';
import { ARCH_MARK, KERNEL_WORD, RESERVED_ARGUMENTS } from './ipxe/words.js';

/** Folder of the class images, below the assets folder. */
export const IMAGES_FOLDER = 'images/';

const ASSET_NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]*(\/[A-Za-z0-9_][A-Za-z0-9._-]*)*$/;
/** `{arch}` in a name is `x86_64` or `aarch64`, whatever the node's iPXE was built for. */
const AssetName = z.string().max(200).refine((name) => ASSET_NAME.test(name.replaceAll(ARCH_MARK, 'arch')), 'must be a file name below the assets folder');
/** Class images are served without the gate, so nothing bootable may lie among them. */
const BootableName = AssetName.refine((name) => !name.startsWith(IMAGES_FOLDER), 'must not lie among the class images');
const HttpUrl = z.string().max(300).regex(/^https?:\/\/[A-Za-z0-9.:[\]-]+(\/[A-Za-z0-9._/-]*)?$/, 'must be http(s)://host[:port][/path]');
const Host = z.string().max(253).regex(/^[A-Za-z0-9.:-]+$/, 'must be an address or a host name');
const KernelWord = z.string().max(200).regex(KERNEL_WORD, 'must be one kernel argument of letters, digits and ._:/,=@%+~[]-')
  .refine((word) => !RESERVED_ARGUMENTS.has(word.split('=')[0]!), 'is an argument that metalflow sets itself');

export const BootSettings = z.strictObject({
  /** Kernel and initrd of the netboot system, below the assets folder. */
  kernel: BootableName.default('vmlinuz-{arch}'),
  initrd: BootableName.default('initramfs-{arch}'),
  /** A signed UKI instead of kernel and initrd. It is served as it was signed and takes no argument. */
  uki: BootableName.optional(),
  /** The agent plane as a node reaches it. */
  agentUrl: HttpUrl,
  syslogHost: Host.optional(),
  /** The agent's container image; HookOS does not start without one. */
  agentImage: z.string().max(300).regex(/^[A-Za-z0-9._:/@-]+$/, 'must be an image reference').optional(),
  /** Appended to the kernel's command line; of two of one name Linux reads the last. */
  extraArguments: z.array(KernelWord).max(64).default(['console=tty0', 'console=ttyS0,115200']),
  /** Whether the menu of a waiting node offers iPXE's shell. */
  shell: z.boolean().default(false),
});
export type BootSettings = z.infer<typeof BootSettings>;
