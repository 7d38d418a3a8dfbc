/** Where an installed system finds the agent plane. */
import type { SeedSubject } from '../../contracts/agent-desk.js';

const under = (baseUrl: string, path: string): string => `${baseUrl.replace(/\/+$/, '')}${path}`;

export const seedUrl = (baseUrl: string, subject: SeedSubject): string => under(baseUrl, `/v1/seed/${subject.systemUuid}`);
/** For cloud-init's `seedfrom`, which puts the documents' names right behind it: it has to end in `/` (field failure M3). */
export const seedFromUrl = (metadataUrl: string, subject: SeedSubject): string => under(metadataUrl, `/nocloud/${subject.systemUuid}/`);
export const seenUrl = (baseUrl: string, subject: SeedSubject): string => under(baseUrl, `/v1/seen/${subject.systemUuid}`);
