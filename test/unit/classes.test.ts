import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { createClassCatalog } from '../../src/images/class-catalog.js';
import { readClasses } from '../../src/images/classes-yaml.js';
import { createLogger } from '../../src/telemetry/log.js';

const DIGEST = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
const classOf = (name: string, more = ''): string => `  - name: ${name}
    payload: talos
    image:
      url: asset:images/${name}.raw
      sha256: "${DIGEST}"
      sizeBytes: 3
${more}`;
const fileOf = (...classes: string[]): string => `classes:\n${classes.join('')}`;

describe('classes.yaml', () => {
  test('is read with its defaults', () => {
    expect(readClasses('c', fileOf(classOf('worker')))).toEqual([
      { name: 'worker', payload: 'talos', template: 'install', rootDisk: {}, retireWipes: false, allowUnproven: false, phoneHome: false, image: { url: 'asset:images/worker.raw', sha256: DIGEST, sizeBytes: 3, compression: 'none' } },
    ]);
  });

  test.each<[string, string, RegExp]>([
    ['an unknown payload', fileOf(classOf('worker').replace('talos', 'windows')), /^line 3, column 14: classes\.0\.payload: /],
    ['an unknown key', fileOf(classOf('worker', '    colour: red\n')), /^line 2, column 5: classes\.0: .*colour/],
    ['a digest that is none (I3)', fileOf(classOf('worker').replace(`"${DIGEST}"`, `"${DIGEST}  ./image.raw"`)), /^line 6, column 15: classes\.0\.image\.sha256: is no SHA-256/],
    ['a missing digest (I3)', fileOf(classOf('worker').replace(/ +sha256.*\n/, '')), /^line 5, column 7: classes\.0\.image\.sha256: /],
    ['a source that is neither https nor ours', fileOf(classOf('worker').replace('asset:images/worker.raw', 'file:///dev/zero')), /^line 5, column 12: classes\.0\.image\.url: /],
    ['a packed image without its unpacked size', fileOf(classOf('worker').replace('sizeBytes: 3', 'sizeBytes: 3\n      compression: gzip')), /unpackedBytes is needed/],
    ['one name twice', fileOf(classOf('worker'), classOf('worker')), /^line 8, column 11: classes\.1\.name: class worker is there twice/],
    ['a key twice', fileOf(classOf('worker', '    payload: talos\n')), /^line 8, column 5: /],
    ['broken YAML', 'classes: [', /^line 1, column \d+: /],
    ['aliases', 'a: &a [1]\nclasses: *a\n', /alias/i],
    ['an empty file', '', /^line 1, column 1: the file: /],
  ])('%s is refused with its place', (_, text, what) => {
    expect(() => readClasses('classes.yaml', text)).toThrow(expect.objectContaining({ code: 'class_invalid', details: { file: 'classes.yaml', what: expect.stringMatching(what) } }));
  });
});

describe('the class catalog', () => {
  let folder: string;
  let file: string;
  let logged: string;
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'metalflow-classes-'));
    file = path.join(folder, 'classes.yaml');
    logged = '';
  });
  afterEach(() => { rmSync(folder, { recursive: true }); });
  /** As editors do: a new file in place of the old one, so that every edit has its own inode. */
  const write = (text: string): void => {
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  };
  const catalog = (): ReturnType<typeof createClassCatalog> => {
    const destination = new PassThrough();
    destination.on('data', (chunk) => { logged += String(chunk); });
    return createClassCatalog({ file, log: createLogger({ level: 'info', role: 'test', destination }) });
  };
  const names = async (classes: ReturnType<typeof createClassCatalog>): Promise<string[]> => (await classes.list()).map(({ name }) => name);

  test('knows the classes of the file, and no others', async () => {
    write(fileOf(classOf('worker'), classOf('control')));
    const classes = catalog();
    expect(await names(classes)).toEqual(['worker', 'control']);
    expect(await classes.find('control')).toMatchObject({ name: 'control' });
    expect(await classes.find('none')).toBeNull();
    expect(classes.lastProblem()).toBeNull();
  });

  test('takes an edit without a restart', async () => {
    write(fileOf(classOf('worker')));
    const classes = catalog();
    write(fileOf(classOf('control')));
    expect(await names(classes)).toEqual(['control']);
  });

  test('keeps the last good classes when an edit is bad, says so once, and takes the next good one', async () => {
    write(fileOf(classOf('worker')));
    const classes = catalog();
    write('classes: {');
    expect(await names(classes)).toEqual(['worker']);
    expect(await classes.find('worker')).not.toBeNull();
    expect(classes.lastProblem()).toMatchObject({ code: 'class_invalid', message: expect.stringContaining('line 1') });
    expect(logged.match(/class_invalid/g)).toHaveLength(1);
    write(fileOf(classOf('control')));
    expect(await names(classes)).toEqual(['control']);
    expect(classes.lastProblem()).toBeNull();
  });

  test('keeps them when the file is gone', async () => {
    write(fileOf(classOf('worker')));
    const classes = catalog();
    rmSync(file);
    expect(await names(classes)).toEqual(['worker']);
    expect(classes.lastProblem()).toMatchObject({ details: { what: 'cannot be read: ENOENT' } });
  });

  test('a file that nobody named may be missing, and is taken once it is there', async () => {
    const classes = createClassCatalog({ file, mayBeMissing: true, log: createLogger({ level: 'silent', role: 'test' }) });
    expect(await names(classes)).toEqual([]);
    write(fileOf(classOf('worker')));
    expect(await names(classes)).toEqual(['worker']);
  });

  test.each<[string, () => void]>([
    ['is missing', () => {}],
    ['is bad', () => { write('classes: 1'); }],
  ])('does not begin with a file that %s', (_, prepare) => {
    prepare();
    expect(catalog).toThrow(expect.objectContaining({ code: 'class_invalid' }));
  });
});
