/** /healthz: the process answers. /readyz: the store does, too. */
import { MetalflowError } from '../domain/errors.js';
import type { AttestationDesk } from '../contracts/agent-desk.js';
import type { HttpServer } from '../telemetry/http.js';

const READY_LIMIT_MS = 2000;
/** A locally administered address that no device declares: reading it asks the store the question an attestation asks. */
const NOBODY = '02:00:00:00:00:00';

export function addHealthRoutes(server: HttpServer, deps: { attestation: AttestationDesk }): void {
  server.get('/healthz', async () => ({ status: 'ok' }));

  server.get('/readyz', async () => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new MetalflowError('store_unavailable', { why: `no answer within ${READY_LIMIT_MS} ms` })), READY_LIMIT_MS);
    });
    try {
      await Promise.race([deps.attestation.findNode(NOBODY), late]);
    } catch (cause) {
      throw cause instanceof MetalflowError ? cause : new MetalflowError('store_unavailable', { why: 'the read failed' }, { cause });
    } finally {
      clearTimeout(timer);
    }
    return { status: 'ready' };
  });
}
