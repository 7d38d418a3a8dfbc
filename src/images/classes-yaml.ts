/** classes.yaml: text to classes, or one error that names the place. Pure. */
import { isNode, LineCounter, parseDocument, type Document } from 'yaml';
import { ClassesFile, type NodeClass } from '../contracts/node-class.js';
import { MetalflowError } from '../domain/errors.js';

/** `line 3, column 5` of the deepest node on the path; a key that is missing is looked for where it should stand. */
function placeOf(document: Document, lines: LineCounter, path: readonly PropertyKey[]): string {
  for (let length = path.length; length >= 0; length -= 1) {
    const node = document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) {
      const { line, col } = lines.linePos(node.range[0]);
      return `line ${line}, column ${col}`;
    }
  }
  return 'line 1, column 1';
}

/**
 * @param file only for the message
 * @throws class_invalid with line, column and what is wrong there (up to three places)
 */
export function readClasses(file: string, text: string): NodeClass[] {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const refuse = (what: string): never => {
    throw new MetalflowError('class_invalid', { file, what });
  };
  const broken = document.errors[0];
  if (broken) {
    const { line, col } = lines.linePos(broken.pos[0]);
    return refuse(`line ${line}, column ${col}: ${broken.message}`);
  }
  let value: unknown;
  try {
    // Classes have no use for aliases, and a few lines of them can unfold to gigabytes.
    value = document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    return refuse((error as Error).message);
  }
  const parsed = ClassesFile.safeParse(value);
  if (parsed.success) return parsed.data.classes;
  return refuse(parsed.error.issues.slice(0, 3).map((issue) => `${placeOf(document, lines, issue.path)}: ${issue.path.join('.') || 'the file'}: ${issue.message}`).join('; '));
}
