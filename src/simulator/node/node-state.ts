/** What a simulated node is doing, as a camera in front of its console would tell. */

/** How far an installed system is with its seed; `none` when its disk holds none. */
export type SeedProgress = 'none' | 'awaited' | 'taken' | 'not-got';

export type NodeState =
  | { readonly name: 'off' }
  /** Choosing a boot device, or fetching the boot file by TFTP. */
  | { readonly name: 'firmware' }
  /** Running an iPXE script. */
  | { readonly name: 'ipxe' }
  /** The kernel from the network runs, with the agent in it unless `silentAgent`. */
  | { readonly name: 'netboot-system'; readonly bootMac: string; readonly commandLine: string }
  | { readonly name: 'installed-system'; readonly serial: string; readonly seed: SeedProgress }
  /** Powered, and doing nothing until somebody resets it. */
  | { readonly name: 'halted'; readonly why: string };

export type NodeStateName = NodeState['name'];

/** A state to wait for: by its name, or by a question about it. */
export type AwaitedState = NodeStateName | ((state: NodeState) => boolean);

export const fitsState = (state: NodeState, wanted: AwaitedState): boolean => (typeof wanted === 'function' ? wanted(state) : state.name === wanted);
