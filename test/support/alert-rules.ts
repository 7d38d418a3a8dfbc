/** docs/alerts/metalflow.rules.yml, read. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

export const RULES = join(process.cwd(), 'docs', 'alerts', 'metalflow.rules.yml');

export const ruleAlerts = (): { alert: string; expr: string }[] => (parse(readFileSync(RULES, 'utf8')) as { groups: { rules: { alert: string; expr: string }[] }[] }).groups.flatMap(({ rules }) => rules);

/** Every metric of ours that a rule names. */
export const metricsOfRules = (): string[] => [...new Set(ruleAlerts().flatMap(({ expr }) => expr.match(/\bmetalflow_\w+/g) ?? []))];
