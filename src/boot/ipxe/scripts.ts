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

export interface NetbootScript {
  readonly mac: NodeMac;
  /** What the console says about it. */
  readonly purpose: { readonly kind: 'run'; readonly deviceId: string; readonly run: number } | { readonly kind: 'wait' };
}

/** Boots the netboot system: kernel and initrd with the arguments HookOS reads, or the site's signed UKI. @throws boot_script_invalid */
export function netbootScript(settings: BootSettings, { mac, purpose }: NetbootScript): string {
  const load: ScriptLine[] = settings.uki
    ? [{ kind: 'chain', url: { path: `/assets/${settings.uki}`, mac }, otherwise: 'failed' }]
    : [
        { kind: 'kernel', url: { path: `/assets/${settings.kernel}`, mac }, arguments: kernelArguments(settings, mac), extra: settings.extraArguments, otherwise: 'failed' },
        { kind: 'initrd', url: { path: `/assets/${settings.initrd}`, mac }, name: INITRD_NAME, otherwise: 'failed' },
        { kind: 'boot', otherwise: 'failed' },
      ];
  return renderScript([
    { kind: 'echo', text: purpose.kind === 'run' ? `metalflow: device ${purpose.deviceId}, run ${purpose.run}` : 'metalflow: boots to attest and wait' },
    { kind: 'count-from-zero', counter: 'tries' },
    { kind: 'label', name: 'again' },
    ...load,
    { kind: 'label', name: 'failed' },
    { kind: 'free-images' },
    { kind: 'count-up-to', counter: 'tries', most: TRIES, reached: 'give_up' },
    { kind: 'sleep', seconds: SECONDS_BETWEEN_TRIES },
    { kind: 'goto', label: 'again' },
    { kind: 'label', name: 'give_up' },
    { kind: 'echo', text: 'metalflow: the netboot system cannot be loaded, booting the disk' },
    { kind: 'exit' },
  ]);
}

/** In the order of the stack metalflow replaces, for people who compare the two. */
function kernelArguments(settings: BootSettings, mac: NodeMac): KernelArgument[] {
  const yesOrNo = (value: boolean): string => (value ? 'true' : 'false');
  return [
    ...(settings.syslogHost ? [{ name: 'syslog_host', value: settings.syslogHost }] : []),
    { name: 'grpc_authority', value: settings.grpcAuthority },
    { name: 'tinkerbell_tls', value: yesOrNo(settings.grpcTls) },
    { name: 'tinkerbell_insecure_tls', value: yesOrNo(settings.grpcInsecureTls) },
    { name: 'worker_id', value: mac },
    { name: 'hw_addr', value: mac },
    ...(settings.agentImage ? [{ name: 'tink_worker_image', value: settings.agentImage }] : []),
    { name: 'metalflow_url', value: settings.agentUrl },
    { name: 'initrd', value: INITRD_NAME },
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
