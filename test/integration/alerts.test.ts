/** The alert rules: Prometheus takes them, each one fires, each has a line of what to do. That their metrics exist, the e2e test of the power watch shows. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { ruleAlerts, RULES } from '../support/alert-rules.js';

const FIXTURE = join(process.cwd(), 'test', 'fixtures', 'alerts', 'metalflow.rules.test.yml');

/** @returns what it said; fails with that, and with the package's name when there is no promtool */
async function promtool(...args: string[]): Promise<string> {
  try {
    const { stdout, stderr } = await promisify(execFile)('promtool', args, { timeout: 60_000 });
    return stdout + stderr;
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: unknown; stdout?: string; stderr?: string };
    throw new Error(code === 'ENOENT' ? 'there is no promtool: install the Debian package prometheus' : `promtool ${args.join(' ')}:\n${stdout}${stderr}`);
  }
}

test('promtool takes the rules', async () => {
  expect(await promtool('check', 'rules', RULES)).toContain(`SUCCESS: ${ruleAlerts().length} rules found`);
});

test('each alert fires at what it is for, and is silent before that', async () => {
  expect(await promtool('test', 'rules', FIXTURE)).toContain('SUCCESS');
});

test('no alert goes untried, and each has its line of what to do', () => {
  const { tests } = parse(readFileSync(FIXTURE, 'utf8')) as { tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[] };
  const fired = tests.flatMap(({ alert_rule_test }) => alert_rule_test).filter(({ exp_alerts }) => exp_alerts.length > 0).map(({ alertname }) => alertname);
  const names = ruleAlerts().map(({ alert }) => alert);
  expect([...new Set(fired)].sort()).toEqual([...names].sort());
  const readme = readFileSync(join(process.cwd(), 'docs', 'alerts', 'README.md'), 'utf8');
  expect([...readme.matchAll(/^\| `(Metalflow\w+)` \| \S/gm)].map(([, name]) => name)).toEqual(names);
});
