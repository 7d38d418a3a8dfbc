/** Classes, templates and images of this site. */
import { join } from 'node:path';
import type { Config } from '../config/index.js';
import type { ClassCatalog, ImageStore, TemplateCatalog } from '../contracts/images.js';
import { createClassCatalog, createImageStore } from '../images/index.js';
import { createTemplateCatalog } from '../templates/index.js';
import type { Logger } from '../telemetry/log.js';
import { isLoopback } from '../config/index.js';
import { urlOf } from './role.js';

export interface Libraries {
  readonly classes: ClassCatalog;
  readonly templates: TemplateCatalog;
  readonly images: ImageStore;
}

/** @param bootUrl base URL of the boot plane in this process; null takes it from the settings. @throws class_invalid */
export function openLibraries(config: Config, bootUrl: string | null, log: Logger): Libraries {
  const base = bootUrl ?? urlOf('http', config.bindAddress, config.bootHttpPort);
  return {
    classes: createClassCatalog({ file: config.classesFile, mayBeMissing: config.classesFile === join(config.dataDir, 'classes.yaml'), log }),
    templates: createTemplateCatalog({ folder: config.templatesDir }),
    images: createImageStore({
      assetsDir: config.assetsDir, assetsUrl: config.assetsUrl ?? `${base}/assets`, maxBytes: config.imageMaxBytes, hosts: config.imageHosts, log,
      ...(isLoopback(new URL(base).hostname) && { allowHttpFor: base }),
    }),
  };
}
