/** Templates by name: a site's own, or the built-in ones. Read anew for each run, which then pins what it got. */
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { TemplateCatalog } from '../contracts/images.js';
import { MetalflowError } from '../domain/errors.js';
import { BUILT_IN } from './built-in.js';
import { renderMarks, type Refuse } from './marks.js';
import { plannedActions } from './planned-actions.js';
import { readTemplate } from './template-yaml.js';

const MOST_BYTES = 256 * 1024;
const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

interface Source {
  readonly file: string;
  readonly text: string;
}

function refuseIn({ file, text }: Source): Refuse {
  return (offset, what) => {
    const before = text.slice(0, offset);
    throw new MetalflowError('template_invalid', { file, line: before.split('\n').length, column: offset - (before.lastIndexOf('\n') + 1) + 1, what });
  };
}

async function readSite(file: string): Promise<string | null> {
  const refuse = refuseIn({ file, text: '' });
  try {
    const { size } = await stat(file);
    return size > MOST_BYTES ? refuse(0, `is larger than ${MOST_BYTES} bytes`) : await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    if (error instanceof MetalflowError) throw error;
    return refuse(0, `cannot be read: ${code}`);
  }
}

/**
 * @param deps.folder the site's templates, `<name>.yaml`; one there stands for the built-in one of its name
 */
export function createTemplateCatalog(deps: { folder?: string | null }): TemplateCatalog {
  async function find(name: string): Promise<Source> {
    // The name comes from a class; a path in it would read files that are none of ours.
    const refuse = refuseIn({ file: name.slice(0, 100), text: '' });
    if (!NAME.test(name)) return refuse(0, 'is no name of a template (lower-case letters, digits and -)');
    if (deps.folder) {
      const file = path.join(deps.folder, `${name}.yaml`);
      const text = await readSite(file);
      if (text !== null) return { file, text };
    }
    const text = Object.hasOwn(BUILT_IN, name) ? BUILT_IN[name] : undefined;
    if (text !== undefined) return { file: `${name} (built in)`, text };
    return refuse(0, `there is no such template; built in are ${Object.keys(BUILT_IN).join(' and ')}${deps.folder ? `, and ${deps.folder} has no ${name}.yaml` : ''}`);
  }

  return {
    render: async (name, facts) => {
      const source = await find(name);
      const refuse = refuseIn(source);
      const rendered = renderMarks(source.text, facts, refuse);
      return plannedActions(readTemplate(rendered.text, (offset, what) => refuse(rendered.sourceOffset(offset), what)), facts);
    },
  };
}
