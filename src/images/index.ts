export { createClassCatalog } from './class-catalog.js';
export { createImageStore, type ImageStoreDeps } from './image-store.js';
