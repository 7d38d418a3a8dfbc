/** The class images that are served, for people and for `sha256sum -c`: what is in the folder, and what the classes say of it. */
import { MetalflowError } from '../../domain/errors.js';
import type { BootFiles } from '../files.js';
import { IMAGES_FOLDER } from '../settings.js';
import type { Digests } from './digests.js';

/** An image of a class that is served from here. */
export interface ClassImageRef {
  readonly className: string;
  /** Below the assets folder. */
  readonly path: string;
  readonly sha256: string;
}

export interface ListedImage {
  /** Below the folder of the images. */
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** 64 hex digits; null while it is being taken. */
  readonly sha256: string | null;
  /** The classes that install it. `differs`: the class names another digest, and its installs fail. */
  readonly classes: readonly { readonly class: string; readonly digest: 'fits' | 'differs' | 'being-taken' }[];
}

export interface ListingDeps {
  readonly files: BootFiles;
  readonly digests: Digests;
  readonly classImages: () => Promise<readonly ClassImageRef[]>;
}

export interface Listing {
  images(): Promise<ListedImage[]>;
  /** Lines as `sha256sum` writes them. @throws digests_pending while one is being taken: half a list would pass for the whole */
  sums(): Promise<string>;
}

export function createListing({ files, digests, classImages }: ListingDeps): Listing {
  async function look(path: string, refs: readonly ClassImageRef[]): Promise<ListedImage[]> {
    const file = await files.open(path);
    if (!file) return [];
    await file.close();
    const sha256 = digests.known(file);
    const judge = (ref: ClassImageRef) => (sha256 === null ? ('being-taken' as const) : ref.sha256 === sha256 ? ('fits' as const) : ('differs' as const));
    const classes = refs.filter((ref) => ref.path === path).map((ref) => ({ class: ref.className, digest: judge(ref) }));
    return [{ name: path.slice(IMAGES_FOLDER.length), size: file.size, sha256, classes }];
  }

  async function lookAtAll(): Promise<ListedImage[]> {
    const refs = await classImages();
    const found: ListedImage[] = [];
    // One after the other: a folder may hold more files than a process may have open.
    for (const path of (await files.names()).filter((name) => name.startsWith(IMAGES_FOLDER))) found.push(...(await look(path, refs)));
    return found;
  }

  /** Whoever asks while a look is under way is given that one. */
  let looking: Promise<ListedImage[]> | null = null;
  function images(): Promise<ListedImage[]> {
    looking ??= lookAtAll().finally(() => (looking = null));
    return looking;
  }

  return {
    images,
    async sums() {
      const listed = await images();
      const pending = listed.filter(({ sha256 }) => sha256 === null).length;
      if (pending > 0) throw new MetalflowError('digests_pending', { count: pending });
      return listed.map(({ name, sha256 }) => sumLine(sha256!, name)).join('');
    },
  };
}

/** GNU coreutils escapes a backslash and a line end in a name, and says so by a backslash in front. */
function sumLine(sha256: string, name: string): string {
  const escaped = name.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r');
  return `${escaped === name ? '' : '\\'}${sha256}  ${escaped}\n`;
}
