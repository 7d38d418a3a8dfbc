/** Fills deploy/secrets/ for docker-compose.yml, and says what only a person can put there. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { inRoot } from './lib/paths.mjs';
import { main, say } from './lib/run.mjs';
import { makeSecrets } from './lib/site-secrets.mjs';

const YOURS = {
  netbox_token: 'an API token of NetBox',
  agent_tls_cert: 'the certificate chain of the agent plane, PEM',
  agent_tls_key: 'its private key, PEM',
  'metalflow/bmc-amt.json': '{"username": …, "password": …} of the AMT BMCs',
};

await main(() => {
  const folder = inRoot('deploy', 'secrets');
  for (const name of makeSecrets(folder)) say(`made ${path.join(folder, name)}`);
  for (const [name, what] of Object.entries(YOURS)) {
    if (!existsSync(path.join(folder, name))) say(`still missing: ${path.join(folder, name)}: ${what}`);
  }
});
