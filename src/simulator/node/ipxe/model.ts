/** The nouns of a running iPXE. */
import type { Downloader } from '../download.js';
import type { Sleep } from '../sleep.js';
import type { Script } from './script.js';
import type { Variables } from './variables.js';

/** Something that iPXE fetched to boot. */
export interface Image {
  readonly name: string;
  readonly url: string;
  readonly bytes: number;
  readonly sha256: string;
  /** The words after the URL. */
  readonly words: readonly string[];
}

export type IpxeOutcome =
  /** `kernel` may be a unified kernel image, which brings its own initrd. */
  | { readonly kind: 'boot'; readonly kernel: Image; readonly initrds: readonly Image[]; readonly commandLine: string }
  /** `exit`: back to the firmware, which goes to its next boot device. */
  | { readonly kind: 'exit'; readonly status: number }
  | { readonly kind: 'failed'; readonly why: string };

/** What a command says: done, failed, or where to go. */
export type Step =
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly why: string }
  | { readonly kind: 'goto'; readonly label: string }
  | { readonly kind: 'leave'; readonly outcome: IpxeOutcome };

export interface IpxeContext {
  readonly variables: Variables;
  readonly images: { kernel: Image | null; initrds: Image[] };
  readonly downloader: Downloader;
  readonly sleep: Sleep;
  /** Aborted by a power cut. */
  readonly signal: AbortSignal;
  /** The console: what the script prints, and why a command failed. */
  readonly print: (text: string) => void;
  /** Lines and commands that may still run, over all chained scripts. */
  readonly budget: { steps: number };
  /** URL of the script that runs: relative URLs start there. */
  readonly base: string;
  /** How many scripts may still chain into each other. */
  readonly depth: number;
  /** Runs a chained script. */
  readonly run: (script: Script, context: IpxeContext) => Promise<IpxeOutcome>;
}
