/** Classes, artefacts and templates, seen from the activities. */
import type { ErrorCode, Failure } from '../domain/errors.js';
import type { NodeClass } from './node-class.js';
import type { PlannedAction, PlannedImage } from './plan.js';

export interface ClassCatalog {
  /** null when there is no such class. The last good file stays in force when an edit is bad. */
  find(name: string): Promise<NodeClass | null>;
  /** The failure of the last edit, null when the file in force is the newest. */
  lastProblem(): Failure | null;
  list(): Promise<NodeClass[]>;
}

export type ImageCheck =
  | { readonly kind: 'good'; readonly sha256: string; readonly bytes: number }
  | { readonly kind: 'bad'; readonly code: Extract<ErrorCode, `image_${string}`>; readonly details: Readonly<Record<string, string | number>> };

export interface ImageStore {
  /** Resolves the class's source to the URL the node will fetch. */
  urlFor(source: string): string;
  /** Streams the artefact and hashes the bytes as fetched (I1); `progress` is called with bytes so far. */
  check(image: PlannedImage, progress: (bytes: number) => void, signal: AbortSignal): Promise<ImageCheck>;
}

/** What a template may use. */
export interface TemplateFacts {
  readonly run: { readonly kind: string; readonly number: number; readonly wipes: boolean };
  readonly device: { readonly id: string; readonly name: string; readonly site: string };
  readonly class: { readonly name: string; readonly payload: string } | null;
}

export interface TemplateCatalog {
  /** Renders, validates and evaluates `if`s. @throws MetalflowError template_invalid with file, line, column, what */
  render(name: string, facts: TemplateFacts): Promise<PlannedAction[]>;
}
