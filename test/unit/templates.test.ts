import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TemplateFacts } from '../../src/contracts/images.js';
import { evaluateCondition } from '../../src/templates/conditions.js';
import { renderMarks } from '../../src/templates/marks.js';
import { createTemplateCatalog } from '../../src/templates/template-catalog.js';

const facts = (change: Partial<TemplateFacts['run']> = {}, name = 'rack1-node7'): TemplateFacts => ({
  run: { kind: 'provision', number: 3, wipes: false, ...change },
  device: { id: '1007', name, site: 'lab' },
  class: { name: 'worker', payload: 'talos' },
});
const WIPING = facts({ kind: 'reprovision', wipes: true });

const template = (actions: string, head = 'global_timeout: 7200'): string => `version: "0.1"
name: site
${head}
tasks:
  - name: os
    worker: "{{ .device.name }}"
    actions:
${actions}`;
const action = (name: string, image: string, more = ''): string => `      - name: ${name}
        image: ${image}
${more}`;
const IMAGE = action('image', 'metalflow/write-image');

describe('templates', () => {
  let folder: string;
  beforeAll(() => { folder = mkdtempSync(path.join(tmpdir(), 'metalflow-templates-')); });
  afterAll(() => { rmSync(folder, { recursive: true }); });
  const render = (text: string, given = facts()): Promise<{ title: string; name: string; timeoutSeconds: number }[]> => {
    writeFileSync(path.join(folder, 'site.yaml'), text);
    return createTemplateCatalog({ folder }).render('site', given);
  };
  const names = async (planned: Promise<{ name: string }[]>): Promise<string[]> => (await planned).map(({ name }) => name);

  describe('built in', () => {
    const builtIn = createTemplateCatalog({});
    test('install writes, seeds, sets the next boot and reboots', async () => {
      expect(await names(builtIn.render('install', facts()))).toEqual(['write-image', 'write-seed', 'set-next-boot', 'reboot']);
    });
    test('install wipes first in a run that wipes', async () => {
      expect(await names(builtIn.render('install', WIPING))).toEqual(['wipe-disk', 'write-image', 'write-seed', 'set-next-boot', 'reboot']);
    });
    test('wipe wipes and no more, also for a device without a class', async () => {
      expect(await builtIn.render('wipe', { ...WIPING, class: null })).toEqual([{ title: 'wipe-disk', name: 'wipe-disk', timeoutSeconds: 28_800 }]);
    });
    test.each(['none', '../site', 'INSTALL', 'constructor', ''])('there is no template %j', async (name) => {
      await expect(builtIn.render(name, facts())).rejects.toMatchObject({ code: 'template_invalid', details: { line: 1, column: 1 } });
    });
  });

  test('a template of the site stands for the built-in one of its name', async () => {
    writeFileSync(path.join(folder, 'install.yaml'), template(IMAGE));
    expect(await names(createTemplateCatalog({ folder }).render('install', facts()))).toEqual(['write-image']);
    rmSync(path.join(folder, 'install.yaml'));
    expect(await names(createTemplateCatalog({ folder }).render('install', facts()))).toHaveLength(4);
  });

  test('actions of several tasks follow each other, with the names of the template', async () => {
    const text = `${template(IMAGE)}  - name: again\n    worker: "{{.device.id}}"\n    actions:\n${action('boot {{ .run.number }} of {{ .class.payload }}', 'metalflow/reboot', '        timeout: 60\n')}`;
    expect(await render(text)).toEqual([
      { title: 'image', name: 'write-image', timeoutSeconds: 3600 },
      { title: 'boot 3 of talos', name: 'reboot', timeoutSeconds: 60 },
    ]);
  });

  test.each<[string, string, number]>([
    ['absent', '', 3600],
    ['0', '        timeout: 0\n', 3600],
    ['given', '        timeout: 7200\n', 7200],
  ])('a timeout that is %s becomes %s', async (_, line, seconds) => {
    expect((await render(template(action('image', 'metalflow/write-image', line))))[0]!.timeoutSeconds).toBe(seconds);
  });

  test('the default timeout stays below the limit of the whole template', async () => {
    expect((await render(template(IMAGE, 'global_timeout: 600')))[0]!.timeoutSeconds).toBe(600);
  });

  test('empty container parts of a Tinkerbell template do no harm', async () => {
    expect(await names(render(template(action('image', 'metalflow/write-image', '        environment: {}\n        volumes: []\n        command:\n'))))).toEqual(['write-image']);
  });

  test.each<[string, string, TemplateFacts, number, number, RegExp]>([
    ['a container action', template(action('stream', 'quay.io/tinkerbell-actions/image2disk:v1.0.0')), facts(), 9, 16, /container actions come with the gRPC agent plane/],
    ['an action of ours that is none', template(action('x', 'metalflow/format-disk')), facts(), 9, 16, /there is no action metalflow\/format-disk; there are metalflow\/wipe-disk/],
    ['a tag on an action of ours', template(action('x', 'metalflow/reboot:v1')), facts(), 9, 16, /there is no action/],
    ['an environment', template(action('x', 'metalflow/reboot', '        environment:\n          A: b\n')), facts(), 11, 11, /^environment: .*gRPC agent plane/],
    ['volumes of a task', template(IMAGE).replace('    actions:', '    volumes:\n      - /dev:/dev\n    actions:'), facts(), 8, 7, /^volumes: /],
    ['a command', template(action('x', 'metalflow/reboot', '        command: [sh]\n')), facts(), 10, 18, /^command: /],
    ['one name twice', template(IMAGE + IMAGE), facts(), 10, 15, /action image is there twice/],
    ['one action twice', template(IMAGE + action('other', 'metalflow/write-image')), facts(), 10, 9, /metalflow\/write-image is there twice/],
    ['a timeout beyond the most', template(action('x', 'metalflow/reboot', '        timeout: 86401\n'), ''), facts(), 10, 18, /more than the 86400 s/],
    ['a timeout beyond the whole', template(action('x', 'metalflow/reboot', '        timeout: 7201\n')), facts(), 10, 18, /more than global_timeout, 7200 s/],
    ['a timeout below 0', template(action('x', 'metalflow/reboot', '        timeout: -1\n')), facts(), 10, 18, /timeout: /],
    ['an unknown key', template(action('x', 'metalflow/reboot', '        retries: 3\n')), facts(), 8, 9, /retries/],
    ['another version', template(IMAGE).replace('"0.1"', '"0.2"'), facts(), 1, 10, /^version: /],
    ['no tasks', 'version: "0.1"\nname: site\n', facts(), 1, 1, /^tasks: /],
    ['another node as worker', template(IMAGE).replace('{{ .device.name }}', '02:00:00:00:00:01'), facts(), 6, 13, /^worker: is not this node/],
    ['broken YAML', template(IMAGE).replace('tasks:', 'tasks: ['), facts(), 5, 11, /./],
    ['two documents', `${template(IMAGE)}---\na: 1\n`, facts(), 10, 1, /./],
    ['a condition that names no fact', template(action('x', 'metalflow/reboot', '        if: run.wips\n')), facts(), 10, 13, /^if: field not found: wips/],
    ['a condition that is no expression', template(action('x', 'metalflow/reboot', '        if: run.kind ==\n')), facts(), 10, 13, /^if: at character 10/],
    ['a condition that is neither true nor false', template(action('x', 'metalflow/reboot', '        if: run.kind\n')), facts(), 10, 13, /^if: is neither true nor false/],
    ['conditions that leave nothing', template(action('x', 'metalflow/reboot', '        if: run.number > 3\n')), facts(), 5, 3, /no action is left/],
    ['a wiping run without a wipe', template(IMAGE), WIPING, 5, 3, /this run wipes/],
    ['a wipe in a run that does not wipe', template(action('wipe', 'metalflow/wipe-disk') + IMAGE), facts(), 8, 9, /needs "if: run.wipes"/],
    ['a wipe after the image', template(IMAGE + action('wipe', 'metalflow/wipe-disk')), WIPING, 10, 9, /would destroy what was written/],
    ['a reboot before the end', template(action('boot', 'metalflow/reboot') + IMAGE), facts(), 8, 9, /must be the last action/],
    ['a fact that is missing', template(action('{{ .run.knd }}', 'metalflow/reboot')), facts(), 8, 15, /there is no fact \.run\.knd; there are \.run\.kind, /],
    ['a class fact of a device without class', template(action('{{ .class.name }}', 'metalflow/reboot')), { ...facts(), class: null }, 8, 15, /there is no fact \.class\.name/],
    ['an error behind a mark, at its place in the source', template(action('"{{ .device.site }}" x', 'metalflow/reboot')), facts(), 8, 36, /./],
    ['a device name that YAML could take for more', template(IMAGE), facts({}, 'a", image: "x'), 6, 14, /the value of \.device\.name has characters/],
  ])('%s is refused with its place', async (_, text, given, line, column, what) => {
    await expect(render(text, given)).rejects.toMatchObject({ code: 'template_invalid', details: { file: path.join(folder, 'site.yaml'), line, column, what: expect.stringMatching(what) } });
  });
});

describe('marks', () => {
  const refuse = (offset: number, what: string): never => { throw new Error(`${offset}: ${what}`); };
  test.each([
    ['{{ if .run.wipes }}', 'the control structure "if" is'],
    ['{{ end }}', 'the control structure "end" is'],
    ['{{- .run.kind -}}', 'trim marks ({{- and -}}) are'],
    ['{{ .run.kind | upper }}', 'pipelines (|) are'],
    ['{{ $x }}', 'variables ($) are'],
    ['{{/* why */}}', 'comments are'],
    ['{{ "text" }}', 'text in quotes is'],
    ['{{ printf .run.kind }}', 'the function "printf" is'],
    ['{{ . }}', 'the bare dot is'],
    ['{{}}', 'an empty mark is'],
    ['{{ .run.kind.. }}', 'this is'],
  ])('%s is refused by what it is', (mark, what) => {
    expect(() => renderMarks(`a ${mark}`, facts(), refuse)).toThrow(`2: ${what} not supported; only marks like {{ .run.kind }} are`);
  });
  test('a mark that is not closed is refused', () => {
    expect(() => renderMarks('a: {{ .run.kind\nb: }}', facts(), refuse)).toThrow('3: a mark {{ is not closed');
  });
  test.each(['.run.constructor', '.run.__proto__', '.toString', '.run'])('%s is no fact', (chain) => {
    expect(() => renderMarks(`{{ ${chain} }}`, facts(), refuse)).toThrow(`there is no fact ${chain}`);
  });
  test.each(['a: b', 'a #b', 'a\nb', '- a', '"a"', ' a', 'a ', '*a', '{a}', ''])('the value %j is kept out', (value) => {
    expect(() => renderMarks('{{ .device.name }}', facts({}, value), refuse)).toThrow('has characters that may not be put into a template');
  });
  test('a place in the text is found again in the source', () => {
    const rendered = renderMarks('a {{ .run.kind }} b {{ .run.number }} c', facts(), refuse);
    expect(rendered.text).toBe('a provision b 3 c');
    expect([0, 2, 10, 12, 14, 16, 99].map((offset) => rendered.sourceOffset(offset))).toEqual([0, 2, 2, 18, 20, 38, 39]);
  });
});

describe('conditions', () => {
  test.each([
    ['run.wipes', 'fails'],
    ['!run.wipes && class.payload == "talos"', 'holds'],
    ['run.number == 3 && run.number < 4', 'holds'],
    ['device.site in ["lab", "home"]', 'holds'],
    ['class != null', 'holds'],
    ['nothing.here', 'problem'],
    ['1 / 0 == 1', 'problem'],
    [`true${' || true'.repeat(100)}`, 'problem'],
  ])('%s %s', (expression, kind) => {
    expect(evaluateCondition(expression, facts()).kind).toBe(kind);
  });
});
