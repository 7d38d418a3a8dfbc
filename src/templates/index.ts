export { createTemplateCatalog } from './template-catalog.js';
