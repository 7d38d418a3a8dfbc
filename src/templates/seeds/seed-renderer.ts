/** What an installed system reads at first boot, from built-in defaults or the site's own seed. */
import { MetalflowError } from '../../domain/errors.js';
import type { SeedRenderer, SeedSubject } from '../../contracts/agent-desk.js';
import type { SeedFile } from '../../contracts/order.js';
import { seedDocument } from './seed-document.js';
import { efiFiles } from './seed-efi.js';
import { readSecretUserData } from './secret-user-data.js';
import { seedFacts, type SeedFacts } from './seed-marks.js';
import { noCloudFiles } from './seed-nocloud.js';
import { FILE_LIMIT, NO_SITE_SEED, readSiteSeed, type SiteSeed } from './site-seed.js';

/**
 * @param deps.folder the site's seeds, one folder a seed (see site-seed.ts); without it only the defaults are there
 * @param deps.agentUrl the agent plane as an installed system reaches it
 * @param deps.metadataUrl the metadata service, likewise; without it no seed can name it
 * @param deps.secretsFolder where `secret:<name>` is looked for
 */
export function createSeedRenderer({ folder, agentUrl, metadataUrl, secretsFolder }: { folder?: string; agentUrl: string; metadataUrl?: string; secretsFolder?: string }): SeedRenderer {
  const facts = (subject: SeedSubject, baseUrl: string, withInstallCode: boolean): SeedFacts => seedFacts(subject, { baseUrl, ...(metadataUrl !== undefined && { metadataUrl }) }, withInstallCode);

  /** The seed the class names has to be there; the payload's own only replaces the default when it is. */
  async function siteSeed(subject: SeedSubject): Promise<SiteSeed> {
    const site = folder === undefined ? null : await readSiteSeed(folder, subject.seed ?? subject.payload);
    if (site) return site;
    if (subject.seed !== null) throw new MetalflowError('seed_invalid', { what: `there is no seed ${subject.seed}${folder === undefined ? ': the site has no seeds folder' : ''}` });
    return NO_SITE_SEED;
  }

  async function tree(subject: SeedSubject, baseUrl: string): Promise<SeedFile[]> {
    const userData = subject.userData ? await readSecretUserData(secretsFolder, subject.userData) : null;
    return noCloudFiles(subject, { site: await siteSeed(subject), userData, facts: facts(subject, baseUrl, true), baseUrl });
  }

  return {
    document: async (subject) => seedDocument(subject, await siteSeed(subject), facts(subject, agentUrl, false), agentUrl),
    files: async (subject, place, baseUrl) => {
      const files = place === 'efi' ? efiFiles(subject, baseUrl) : await tree(subject, baseUrl);
      const large = files.find(({ content }) => content.length > FILE_LIMIT);
      if (large) throw new MetalflowError('seed_invalid', { what: `${large.path} is larger than ${FILE_LIMIT} bytes once its marks are filled` });
      return files;
    },
  };
}
