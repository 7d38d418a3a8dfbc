/** The scripts metalflow serves. Nothing that a person types into NetBox is part of one: ids, MACs and the site's settings only. */
import type { BootSettings } from '../settings.js';
import { renderScript, type KernelArgument, type NodeMac, type ScriptLine } from './script.js';

/**
 * Tries of the netboot system before the node is left to its disk; 2 s apart, on top of iPXE's own retries below HTTP. A minute:
 * a boot plane that is started again while a node loads must not cost the run its boot.
 */
const TRIES = 30;
const SECONDS_BETWEEN_TRIES = 2;
/** An EFI kernel finds its initrd by the name iPXE gave it. */
const INITRD_NAME = 'initrd';
/** Long enough to press a key at a console, short enough for a fleet that nobody looks at. */
const MENU_SECONDS = 5;

export interface NetbootScript {
  readonly mac: NodeMac;
  /** A run's boot goes straight on; a node that waits for a request shows the menu first. */
  readonly purpose: { readonly kind: 'run'; readonly deviceId: string; readonly run: number } | { readonly kind: 'wait' };
}

/** Boots the netboot system: kernel and initrd with the arguments HookOS reads, or the site's signed UKI. @throws boot_script_invalid */
export function netbootScript(settings: BootSettings, { mac, purpose }: NetbootScript): string {
  return renderScript([
    { kind: 'name-the-arch' },
    { kind: 'count-from-zero', counter: 'tries' },
    ...(purpose.kind === 'run' ? [{ kind: 'echo', text: `metalflow: device ${purpose.deviceId}, run ${purpose.run}` } as const] : waitMenu(settings)),
    { kind: 'label', name: 'again' },
    ...load(settings, mac),
    { kind: 'label', name: 'failed' },
    { kind: 'free-images' },
    { kind: 'count-up-to', counter: 'tries', most: TRIES, reached: 'give_up' },
    { kind: 'sleep', seconds: SECONDS_BETWEEN_TRIES },
    { kind: 'goto', label: 'again' },
    { kind: 'label', name: 'give_up' },
    { kind: 'echo', text: 'metalflow: the netboot system cannot be loaded, booting the disk' },
    { kind: 'label', name: 'disk' },
    { kind: 'exit' },
  ]);
}

/** A shell on the console may fetch and boot anything: it is there only where the site says so. */
function waitMenu({ shell }: BootSettings): ScriptLine[] {
  return [
    { kind: 'label', name: 'ask' },
    {
      kind: 'menu', title: 'metalflow: this machine waits for a request', seconds: MENU_SECONDS,
      items: [{ label: 'wait', text: 'boot the netboot system, attest and wait' }, { label: 'disk', text: 'boot the disk' }, ...(shell ? [{ label: 'shell', text: 'iPXE shell' }] : [])],
    },
    ...(shell ? ([{ kind: 'label', name: 'shell' }, { kind: 'shell' }, { kind: 'goto', label: 'ask' }] as const) : []),
    { kind: 'label', name: 'wait' },
    { kind: 'echo', text: 'metalflow: boots to attest and wait' },
  ];
}

/**
 * A UKI carries its command line under its signature, so nothing follows its name here: its agent says by MAC and system UUID who it is.
 * (iPXE itself hands a program its own file name as load options. A stub that takes those for a command line does so only while Secure Boot
 * is off; see systemd issues 25201 and 35608.)
 */
function load(settings: BootSettings, mac: NodeMac): ScriptLine[] {
  if (settings.uki) return [{ kind: 'chain', url: { path: `/assets/${settings.uki}`, mac }, otherwise: 'failed' }];
  return [
    { kind: 'kernel', url: { path: `/assets/${settings.kernel}`, mac }, arguments: kernelArguments(settings, mac), extra: settings.extraArguments, otherwise: 'failed' },
    { kind: 'initrd', url: { path: `/assets/${settings.initrd}`, mac }, name: INITRD_NAME, otherwise: 'failed' },
    { kind: 'boot', otherwise: 'failed' },
  ];
}

/**
 * In the order of the stack metalflow replaces, for people who compare the two; what that stack does not know comes last. Its
 * `grpc_authority` and `tinkerbell_tls` are left out: nobody listens there yet, and an agent that was sent there would try for ever.
 */
function kernelArguments(settings: BootSettings, mac: NodeMac): KernelArgument[] {
  return [
    ...(settings.syslogHost ? [{ name: 'syslog_host', value: settings.syslogHost }] : []),
    // HookOS reads it; a certificate that a node cannot check is never accepted.
    { name: 'tinkerbell_insecure_tls', value: 'false' },
    { name: 'worker_id', value: mac },
    { name: 'hw_addr', value: mac },
    { name: 'modules', value: 'loop,squashfs,sd-mod,usb-storage' },
    { name: 'intel_iommu', value: 'on' },
    { name: 'iommu', value: 'pt' },
    { name: 'initrd', value: INITRD_NAME },
    ...(settings.agentImage ? [{ name: 'tink_worker_image', value: settings.agentImage }] : []),
    { name: 'metalflow_url', value: settings.agentUrl },
  ];
}

/** Leaves the node to its firmware's next boot entry. Says nothing about why: a console is read by anybody. */
export function bootDiskScript(): string {
  return renderScript([{ kind: 'echo', text: 'netboot-not-allowed' }, { kind: 'exit' }]);
}

/**
 * `autoexec.ipxe`, which a stock iPXE asks for by itself: it goes on to the node's own script, by the MAC of the NIC it boots
 * from (`mac`, not `net0/mac`: the first NIC need not be the one that boots).
 * @param server the boot plane as a node reaches it, e.g. `http://10.0.0.1:7080` @throws boot_script_invalid
 */
export function autoexecScript(server: string): string {
  return renderScript([{ kind: 'chain-to-script', server }]);
}
