/** `.env.example`, drawn from the settings table; scripts/docs.mjs writes it and fails when it is stale. */
import { SETTING_GROUPS, type SettingRow } from './settings.js';

const HEAD = [
  '# Every setting of metalflow with its default. Made from src/config/settings.ts by `npm run docs`; do not edit.',
  '# A secret X may also be given as X_FILE, the path of a file that holds it.',
];

function rowLines(row: SettingRow): string[] {
  const notes = row.secret ? ' (secret)' : '';
  return [`# ${row.of[0]!.toUpperCase()}${row.of.slice(1)}.${notes}`, `#${row.name}=${row.default ?? ''}`];
}

export function envExample(): string {
  const groups = Object.entries(SETTING_GROUPS).map(([title, rows]) => [`# ---- ${title}`, ...Object.values<SettingRow>(rows).flatMap(rowLines)].join('\n'));
  return `${[HEAD.join('\n'), ...groups].join('\n\n')}\n`;
}
