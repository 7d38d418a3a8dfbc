/** Markdown, as far as the generated pages need it. */

/** Stands below the title of each page. */
export const NOTE = '<!-- Made from the code by `npm run docs`; do not edit. -->';

/** A bar would end the cell, a line end the table; an angle bracket outside code would be read as HTML. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').replaceAll(/(`[^`]*`)|</g, (_, code?: string) => code ?? '&lt;').trim();

export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;
  return [line(titles), `|${titles.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}

export const code = (text: string): string => `\`${text}\``;

export const page = (title: string, ...parts: readonly string[]): string => `${[`# ${title}`, NOTE, ...parts].join('\n\n')}\n`;

/** `90` → `90 s`, `300` → `5 min`, `5400` → `90 min`, `86400` → `24 h`. */
export function duration(seconds: number): string {
  if (seconds >= 3600 && seconds % 3600 === 0) return `${seconds / 3600} h`;
  return seconds >= 60 && seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;
}

/** Replaces what stands between `<!-- name:begin -->` and `<!-- name:end -->`. @throws when the marks are not there, once each and in order */
export function replaceBlock(text: string, name: string, content: string): string {
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`];
  const [before = '', rest, ...more] = text.split(begin);
  const [, after, ...extra] = rest?.split(end) ?? [];
  if (after === undefined || more.length + extra.length > 0) throw new Error(`there is not one block between ${begin} and ${end}`);
  return `${before}${begin}\n${content}\n${end}${after}`;
}
