/** The pages that are drawn from the code, and what the written ones say of it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { SETTINGS } from '../../src/config/settings.js';
import { CUSTOM_FIELDS } from '../../src/contracts/device.js';
import { SEARCH_ATTRIBUTES } from '../../src/contracts/messages.js';
import { ORDER_STATES } from '../../src/domain/actions.js';
import { ERRORS } from '../../src/domain/errors.js';
import { LIMITS } from '../../src/domain/limits.js';
import { RUN_ENDS, RUN_PHASES } from '../../src/domain/runs.js';
import { LIFECYCLE_STATES } from '../../src/domain/states.js';
import { TRANSITIONS } from '../../src/domain/transitions.js';
import { FAULT_SWITCHES } from '../../src/simulator/amt/faults.js';
import { runCli } from '../../src/cli/index.js';
import docs from '../../src/main/docs.js';
import { describedProgram, leavesOf } from '../../src/main/docs/commands-page.js';
import { interruptions, nodesWay } from '../../src/main/docs/diagrams.js';
import { duration, replaceBlock, table } from '../../src/main/docs/markdown.js';

const ROOT = path.join(__dirname, '../..');
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');
const inFolder = (folder: string): string[] => readdirSync(path.join(ROOT, folder)).filter((name) => name.endsWith('.md')).map((name) => `${folder}/${name}`);
const PAGES = ['README.md', 'CHANGELOG.md', ...inFolder('docs'), ...inFolder('docs/runbooks'), ...inFolder('docs/decisions')];
/** For people to act by: what they name must exist. */
const GUIDES = ['README.md', ...inFolder('docs/runbooks')];

const generated = docs();

describe('the generated pages', () => {
  test.each(['README.md', 'docs/states.md', 'docs/errors.md', 'docs/settings.md', 'docs/commands.md', 'docs/amt-simulator.md'])('%s is what the code says (else run `npm run docs`)', async (file) => {
    expect(read(file)).toBe((await generated)[file]);
  });

  test('every state, transition, phase, end, order state and limit is in states.md', async () => {
    const page = (await generated)['docs/states.md']!;
    const rows = page.split('\n').filter((line) => line.startsWith('| '));
    for (const name of [...LIFECYCLE_STATES, ...RUN_PHASES, ...Object.keys(RUN_ENDS), ...Object.keys(ORDER_STATES), ...Object.keys(LIMITS)]) {
      expect(rows.filter((row) => row.startsWith(`| \`${name}\``))).not.toHaveLength(0);
    }
    for (const { on, because } of TRANSITIONS) expect(rows.some((row) => row.includes(`| ${on} |`) && row.includes(because))).toBe(true);
  });

  test('every error code is in errors.md once, with its verb and its status', async () => {
    const rows = (await generated)['docs/errors.md']!.split('\n').filter((line) => line.startsWith('| `'));
    expect(rows.map((row) => row.split('`')[1])).toEqual(Object.keys(ERRORS));
    for (const [code, { verb, http }] of Object.entries(ERRORS)) {
      expect(rows.find((row) => row.startsWith(`| \`${code}\` |`))).toMatch(new RegExp(`\\| ${verb === 'none' ? '–' : `\`${verb}\``} \\|.*\\| ${http} \\| (yes|no) \\|$`));
    }
  });

  test('every switch of the simulated AMT is in amt-simulator.md with its sentence', async () => {
    const rows = (await generated)['docs/amt-simulator.md']!.split('\n').filter((line) => line.startsWith('| `'));
    for (const [name, { of }] of Object.entries(FAULT_SWITCHES)) expect(rows.filter((row) => row.startsWith(`| \`${name}\` |`) && row.endsWith(`| ${of} |`))).toHaveLength(1);
  });

  test('every setting is in settings.md', async () => {
    const page = (await generated)['docs/settings.md']!;
    for (const { name } of Object.values(SETTINGS)) expect(page).toContain(`| \`${name}\` |`);
  });

  test('the pictures have an arrow for each move of the table, and none besides', () => {
    const ids = (name: string): string => (name === 'previous' ? 'before' : name.replaceAll('-', '_'));
    const arrows = `${nodesWay()}\n${interruptions()}`.split('\n').flatMap((line) => {
      const [, from, to, labels] = /^ {2}(\w+) --> (\w+): (.*)$/.exec(line) ?? [];
      const froms = from === 'idle' ? ['planned', 'available', 'active', 'failed'] : [from];
      return labels ? froms.flatMap((one) => labels.split(' / ').map((label) => `${one} ${label} ${to}`)) : [];
    });
    expect(arrows.sort()).toEqual(TRANSITIONS.flatMap(({ from, on, to }) => from.map((one) => `${ids(one)} ${on} ${ids(to)}`)).sort());
  });

  test('the commands page knows every command that the program offers', async () => {
    let help = '';
    await runCli(['--help'], { version: '0', terminal: { out: (text) => void (help += text), err: () => undefined, isTerminal: false }, roles: () => Promise.reject(new Error('no')), readConfig: () => { throw new Error('no'); } });
    const offered = [...help.split('Commands:')[1]!.matchAll(/^ {2}(\w[\w-]*)/gm)].map(([, name]) => name).filter((name) => name !== 'help');
    expect(offered).toEqual(describedProgram().commands.map((command) => command.name()));
  });
});

describe('the parts of a page', () => {
  test.each([[5, '5 s'], [90, '90 s'], [120, '2 min'], [3600, '1 h'], [5400, '90 min'], [86_400, '24 h']])('%d seconds read as %s', (seconds, text) => {
    expect(duration(seconds)).toBe(text);
  });

  test('a bar, a line end or an angle bracket in a cell does not break the table', () => {
    expect(table(['a'], [['x | y\nz <b> `<node>`']])).toBe('| a |\n|---|\n| x \\| y z &lt;b> `<node>` |');
  });

  test('a block is replaced between its marks and nowhere else', () => {
    expect(replaceBlock('a\n<!-- x:begin -->\nold\n<!-- x:end -->\nb', 'x', 'new')).toBe('a\n<!-- x:begin -->\nnew\n<!-- x:end -->\nb');
  });

  test.each(['no marks', '<!-- x:end --> <!-- x:begin -->', '<!-- x:begin -->', '<!-- x:begin --><!-- x:end --><!-- x:begin --><!-- x:end -->'])('%s: refused', (text) => {
    expect(() => replaceBlock(text, 'x', 'new')).toThrow('not one block');
  });
});

describe('the written pages', () => {
  const withoutMarks = (text: string): string => text.replaceAll(/[^\p{L}\p{N} _-]/gu, '');
  const anchorsOf = (text: string): string[] => [...text.matchAll(/^#+ (.+)$/gm)].map(([, title]) => withoutMarks(title!.toLowerCase()).replaceAll(' ', '-'));

  test.each(PAGES)('%s links only to what is there', (file) => {
    const links = [...read(file).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!).filter((target) => !/^https?:/.test(target));
    const broken = links.filter((target) => {
      const [page = '', anchor] = target.split('#');
      const wanted = page === '' ? file : path.join(path.dirname(file), page);
      return !existsSync(path.join(ROOT, wanted)) || (anchor !== undefined && !anchorsOf(read(wanted)).includes(anchor));
    });
    expect(broken).toEqual([]);
  });

  test.each(GUIDES)('%s names only settings and search attributes that are there', (file) => {
    const known = new Set<string>([...Object.values(SETTINGS).map(({ name }) => name), ...Object.values(SEARCH_ATTRIBUTES)]);
    const named = read(file).match(/METALFLOW_[A-Z_]+[A-Z]|Metalflow[A-Z]\w+/g) ?? [];
    expect(named.filter((name) => !known.has(name))).toEqual([]);
  });

  test.each(GUIDES)('%s names only commands and options of metalflow that are there', (file) => {
    const leaves = leavesOf(describedProgram());
    const said = [...read(file).matchAll(/\bmetalflow ((?:node|simulate|up|worker|boot|agentapi|operatorapi|demo|doctor)\b[^`\n#]*)/g)].map(([, words]) => words!.trim().split(/\s+/));
    const wrong = said.filter(([first, second = '', ...rest]) => {
      const names = first === 'node' || first === 'simulate' ? second.split('|') : [null];
      return names.some((name) => {
        if (name?.startsWith('<')) return false;
        const leaf = leaves.find(({ words }) => words.join(' ') === [first, ...(name ? [name] : [])].join(' '));
        return !leaf || rest.some((word) => word.startsWith('--') && !leaf.command.options.some(({ long }) => long === word));
      });
    });
    expect(wrong.map((words) => words.join(' '))).toEqual([]);
  });

  test('the README names every custom field', () => {
    for (const field of CUSTOM_FIELDS) expect(read('README.md')).toContain(`\`${field}\``);
  });

  test.each(inFolder('docs/runbooks'))('%s names only error codes that are there', (file) => {
    const words = [...read(file).matchAll(/`([a-z]+(?:_[a-z]+)+)`/g)].map(([, word]) => word!);
    const others = new Set<string>([...CUSTOM_FIELDS, 'oob_ip']);
    expect(words.filter((word) => !Object.hasOwn(ERRORS, word) && !others.has(word))).toEqual([]);
  });
});
