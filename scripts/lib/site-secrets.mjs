/** The secrets of a site that docker-compose.yml runs. */
import { createHash, randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** The user that the containers of metalflow and Temporal run as. */
const CONTAINER_USER = 1000;

const password = () => randomBytes(24).toString('base64url');

/**
 * Random passwords and one operator token, where there are none: a file that is there is never changed.
 * @param {string} folder made with everything in it, readable by its owner only
 * @returns {string[]} the names of the files that were made
 */
export function makeSecrets(folder) {
  const isRoot = process.getuid?.() === 0;
  const own = (file) => void (isRoot && chownSync(file, CONTAINER_USER, CONTAINER_USER));
  for (const each of [folder, path.join(folder, 'metalflow')]) {
    mkdirSync(each, { recursive: true, mode: 0o700 });
    own(each);
  }
  const made = [];
  const write = (name, content) => {
    const file = path.join(folder, name);
    if (existsSync(file)) return;
    writeFileSync(file, content(), { mode: 0o600, flag: 'wx' });
    own(file);
    made.push(name);
  };
  const read = (name) => readFileSync(path.join(folder, name), 'utf8').trim();

  write('temporal_db_password', password);
  write('store_db_password', password);
  write('store_database_url', () => `postgres://metalflow:${encodeURIComponent(read('store_db_password'))}@store-db:5432/metalflow`);
  write('netbox_webhook_secret', password);
  write('metalflow/operator-token', password);
  write('metalflow/operator-tokens.json', () => `${JSON.stringify({ tokens: [{ name: 'first operator', role: 'approver', sha256: createHash('sha256').update(read('metalflow/operator-token')).digest('hex') }] }, null, 2)}\n`);
  return made;
}
