/** docs/settings.md: the settings table. */
import { SETTING_GROUPS, type SettingRow } from '../../config/settings.js';
import { code, page, table } from './markdown.js';

const settingCells = (row: SettingRow): string[] => [code(row.name), row.of, row.default === null ? '–' : row.default === '' ? 'empty' : code(row.default), row.secret ? 'yes' : 'no'];

export const settingsPage = (): string => page(
  'Settings',
  'Environment variables, read once at the start; a value that cannot be read, or a `METALFLOW_` name that is none, stops the start and says which. A secret `X` may also be given as `X_FILE`, the path of a file that holds it. `{NAME}` in a default stands for that setting. Temporal\'s own `TEMPORAL_*` (address, namespace, TLS, profiles) are read as every Temporal program reads them.',
  ...Object.entries(SETTING_GROUPS).flatMap(([title, rows]) => [`## ${title}`, table(['setting', 'what it is for', 'default', 'secret'], Object.values<SettingRow>(rows).map(settingCells))]),
);
