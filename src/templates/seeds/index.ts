export { createSeedRenderer } from './seed-renderer.js';
