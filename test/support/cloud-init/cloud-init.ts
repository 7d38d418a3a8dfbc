/** Runs Debian's cloud-init (its Python modules, no service) in a folder of its own. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** Debian's own: another one on PATH does not have Debian's modules. */
const PYTHON = '/usr/bin/python3';

export interface CloudInitRequest {
  readonly source: 'Ec2' | 'NoCloud';
  readonly settings: Readonly<Record<string, unknown>>;
  readonly aws?: boolean;
  readonly local?: boolean;
  readonly macs?: Readonly<Record<string, string>>;
  /** Its seed folder is `<folder>/seed`; a new one by default. */
  readonly folder?: string;
}

export interface CloudInitFound {
  readonly found: true;
  readonly name: string;
  readonly instanceId: string;
  readonly hostname: string;
  readonly zone: string | null;
  readonly keys: readonly string[];
  readonly userData: Buffer;
  readonly vendorData: Buffer;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly network: unknown;
  readonly networks: unknown;
  /** Whether it used an IMDSv2 token. */
  readonly token: boolean;
}

/** @throws Error saying which package to install */
export async function needCloudInit(): Promise<void> {
  await run(PYTHON, ['-c', 'import cloudinit.sources.DataSourceEc2, cloudinit.sources.DataSourceNoCloud']).catch((error: Error) => {
    throw new Error(`cloud-init is not there: install the Debian package cloud-init (${error.message.split('\n').at(-2) ?? ''})`);
  });
}

export async function cloudInit(request: CloudInitRequest): Promise<{ found: CloudInitFound | null; log: string }> {
  const folder = request.folder ?? (await mkdtemp(join(tmpdir(), 'metalflow-cloud-init-')));
  try {
    const { stdout, stderr } = await run(PYTHON, [join(__dirname, 'datasource.py'), JSON.stringify({ ...request, folder })], {
      timeout: 240_000, env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', no_proxy: '*', PYTHONDONTWRITEBYTECODE: '1', LC_ALL: 'C.UTF-8' }, maxBuffer: 16 * 1024 * 1024,
    });
    const said = JSON.parse(stdout) as { found: false } | (Omit<CloudInitFound, 'userData' | 'vendorData'> & { userData: string | null; vendorData: string | null });
    const bytes = (text: string | null): Buffer => Buffer.from(text ?? '', 'base64');
    return { found: said.found ? { ...said, userData: bytes(said.userData), vendorData: bytes(said.vendorData) } : null, log: stderr };
  } finally {
    if (request.folder === undefined) await rm(folder, { recursive: true, force: true });
  }
}
