/** The artefact is checked before it is offered to any node. */
import { failure, type Failure } from '../domain/errors.js';
import type { ImageStore } from '../contracts/images.js';
import type { PlannedImage } from '../contracts/plan.js';
import { cancellationSignal, heartbeat } from './context.js';

export function createImageActivities({ images }: { images: ImageStore }) {
  return {
    async checkImage({ image }: { image: PlannedImage }): Promise<{ kind: 'good'; bytes: number } | { kind: 'bad'; failure: Failure }> {
      const result = await images.check(image, (bytes) => heartbeat({ hashed: bytes, of: image.sizeBytes }), cancellationSignal());
      if (result.kind === 'good') return { kind: 'good', bytes: result.bytes };
      return { kind: 'bad', failure: failure(result.code, { url: image.source, expected: image.sha256, found: '?', ...result.details }) };
    },
  };
}
export type ImageActivities = ReturnType<typeof createImageActivities>;
