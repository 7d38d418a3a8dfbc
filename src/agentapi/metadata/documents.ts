/** The four documents of cloud-init over the network: the very files that a write-seed action would put on the disk (field failure M3). */
import { MetalflowError } from '../../domain/errors.js';
import { INSTALL_CODE_MARK } from '../../contracts/agent-api.js';
import type { SeedRenderer } from '../../contracts/agent-desk.js';
import type { Asker } from './asker.js';

export const DOCUMENTS = ['meta-data', 'user-data', 'vendor-data', 'network-config'] as const;
export type DocumentName = (typeof DOCUMENTS)[number];

export interface Documents {
  /** Those there are, in DOCUMENTS' order; meta-data and user-data always are. @throws seed_invalid */
  names(asker: Asker): Promise<DocumentName[]>;
  /** null for one that the node has not. @throws seed_invalid, credential_needed, install_code_needed */
  read(asker: Asker, name: DocumentName): Promise<string | null>;
}

/** @param deps.baseUrl the agent plane as the node reaches it */
export function createDocuments({ renderer, baseUrl }: { renderer: SeedRenderer; baseUrl: string }): Documents {
  /** For an address alone the secret is not even read. */
  const render = async ({ subject, proof }: Asker): ReturnType<SeedRenderer['files']> =>
    renderer.files(proof === 'address' ? { ...subject, userData: null } : subject, 'nocloud', baseUrl);

  return {
    names: async (asker) => {
      const files = await render(asker);
      return DOCUMENTS.filter((name) => files.some(({ path }) => path === name));
    },
    read: async (asker, name) => {
      if (name === 'user-data' && asker.subject.userData && asker.proof === 'address') throw new MetalflowError('credential_needed', { document: name });
      const content = (await render(asker)).find(({ path }) => path === name)?.content ?? null;
      if (!content?.includes(INSTALL_CODE_MARK)) return content;
      switch (asker.proof) {
        case 'code': return content.replaceAll(INSTALL_CODE_MARK, () => asker.code);
        // The store keeps the code's hash alone.
        case 'session': throw new MetalflowError('install_code_needed', { document: name });
        case 'address': throw new MetalflowError('credential_needed', { document: name });
      }
    },
  };
}
