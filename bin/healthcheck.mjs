/** For container health checks: ends with 0 when the URL answers 200 within three seconds. `node healthcheck.mjs <url>` */
import http from 'node:http';
import https from 'node:https';

const url = process.argv[2] ?? '';
const get = url.startsWith('https:') ? https.get : http.get;

// Only whether it answers is asked here, by an address; the name on the certificate is the nodes' business.
get(url, { rejectUnauthorized: false, timeout: 3000 }, (response) => process.exit(response.statusCode === 200 ? 0 : 1))
  .on('timeout', () => process.exit(1))
  .on('error', () => process.exit(1));
