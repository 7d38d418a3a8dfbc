/** Where things are in the checkout. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const inRoot = (...parts) => path.join(ROOT, ...parts);
/** Whether this file was started itself, rather than imported. */
export const isMain = (importMeta) => process.argv[1] !== undefined && path.resolve(process.argv[1]) === fileURLToPath(importMeta.url);
