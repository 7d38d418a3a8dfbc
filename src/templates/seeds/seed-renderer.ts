/** What an installed system reads at first boot, from built-in defaults or the site's own seed. */
import { MetalflowError } from '../../domain/errors.js';
import type { SeedRenderer, SeedSubject } from '../../contracts/agent-desk.js';
import { seedDocument } from './seed-document.js';
import { efiFiles } from './seed-efi.js';
import { seedFacts } from './seed-marks.js';
import { noCloudFiles } from './seed-nocloud.js';
import { FILE_LIMIT, NO_SITE_SEED, readSiteSeed, type SiteSeed } from './site-seed.js';

/**
 * @param deps.folder the site's seeds, one folder a seed (see site-seed.ts); without it only the defaults are there
 * @param deps.agentUrl the agent plane as an installed system reaches it
 */
export function createSeedRenderer({ folder, agentUrl }: { folder?: string; agentUrl: string }): SeedRenderer {
  /** The seed the class names has to be there; the payload's own only replaces the default when it is. */
  async function siteSeed(subject: SeedSubject): Promise<SiteSeed> {
    const site = folder === undefined ? null : await readSiteSeed(folder, subject.seed ?? subject.payload);
    if (site) return site;
    if (subject.seed !== null) throw new MetalflowError('seed_invalid', { what: `there is no seed ${subject.seed}${folder === undefined ? ': the site has no seeds folder' : ''}` });
    return NO_SITE_SEED;
  }

  return {
    document: async (subject) => seedDocument(subject, await siteSeed(subject), seedFacts(subject, agentUrl, false), agentUrl),
    files: async (subject, place, baseUrl) => {
      const files = place === 'efi' ? efiFiles(subject, baseUrl) : noCloudFiles(subject, await siteSeed(subject), seedFacts(subject, baseUrl, true), baseUrl);
      const large = files.find(({ content }) => content.length > FILE_LIMIT);
      if (large) throw new MetalflowError('seed_invalid', { what: `${large.path} is larger than ${FILE_LIMIT} bytes once its marks are filled` });
      return files;
    },
  };
}
