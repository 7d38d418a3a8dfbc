/**
 * Every setting, one row each: its name, what it is for, its default, how its text is read. `.env.example` is drawn from
 * this table; nothing else in the house reads the environment.
 */
import type { z } from 'zod';
import { UNKNOWN_MAC_POLICIES } from '../contracts/boot.js';
import { METADATA_TOKEN_POLICIES } from '../contracts/metadata.js';
import { commaList, filePath, folderList, listenAddress, networks, numberList, oneOf, port, slug, text, url, wholeNumber, wordList, yesNo } from './parsers.js';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

interface Row {
  readonly name: `METALFLOW_${string}`;
  /** What it is for, one sentence. */
  readonly of: string;
  /** Text, read as if it had been set; `{NAME}` stands for another setting's text. null: nothing unless it is set. */
  readonly default: string | null;
  readonly parse: z.ZodType<unknown, string>;
  /** Never shown; may also be given as `<name>_FILE`, the path of a file that holds it. */
  readonly secret?: true;
}

export const SETTING_GROUPS = {
  'Where the roles listen (port 0 takes a free one)': {
    bindAddress: { name: 'METALFLOW_BIND_ADDRESS', of: 'address the node-facing roles (boot, agentapi) listen on; anything but loopback needs a certificate for the agent plane', default: '127.0.0.1', parse: listenAddress },
    operatorBindAddress: { name: 'METALFLOW_OPERATOR_BIND_ADDRESS', of: 'address the operator plane listens on; whoever reaches it with a token can wipe', default: '127.0.0.1', parse: listenAddress },
    tftpPort: { name: 'METALFLOW_TFTP_PORT', of: 'UDP port of TFTP', default: '69', parse: port },
    bootHttpPort: { name: 'METALFLOW_BOOT_HTTP_PORT', of: 'TCP port of iPXE scripts and assets', default: '7080', parse: port },
    bootHttpsPort: { name: 'METALFLOW_BOOT_HTTPS_PORT', of: 'TCP port of the same over TLS; open only with METALFLOW_BOOT_TLS_CERT', default: '7443', parse: port },
    syslogPort: { name: 'METALFLOW_SYSLOG_PORT', of: 'UDP port of the syslog receiver', default: '514', parse: port },
    syslogJournal: { name: 'METALFLOW_SYSLOG_JOURNAL', of: 'program that puts the lines of nodes into the system journal as well, called as `<program> --journald` (util-linux: logger); empty forwards none', default: '', parse: text },
    agentGrpcPort: { name: 'METALFLOW_AGENT_GRPC_PORT', of: 'TCP port kept for the gRPC service of the plain Tink agent, which is not there yet: it opens nothing, and no node is sent to it', default: '42113', parse: port },
    agentHttpPort: { name: 'METALFLOW_AGENT_HTTP_PORT', of: 'TCP port of attestation, orders, codes and seeds', default: '42114', parse: port },
    metadataPort: { name: 'METALFLOW_METADATA_PORT', of: 'TCP port of the metadata service', default: '50061', parse: port },
    operatorPort: { name: 'METALFLOW_OPERATOR_PORT', of: 'TCP port of the webhook, the nodes and the metrics', default: '8080', parse: port },
    metricsPort: { name: 'METALFLOW_METRICS_PORT', of: 'TCP port of the metrics of a boot role that runs alone, without a token, on METALFLOW_OPERATOR_BIND_ADDRESS; unset serves none (the operator plane has its own)', default: null, parse: port },
    trustedProxies: { name: 'METALFLOW_TRUSTED_PROXIES', of: 'proxies whose X-Forwarded-For is believed, comma-separated addresses or networks', default: '', parse: networks },
  },
  'How nodes reach us': {
    agentUrl: { name: 'METALFLOW_AGENT_URL', of: 'base URL of the agent plane as nodes reach it; without it, made from its address and port', default: null, parse: url('https:', 'http:') },
    metadataUrl: { name: 'METALFLOW_METADATA_URL', of: 'base URL of the metadata service as nodes reach it, for `{{ seedFrom }}` in seeds; without it, made from the host of the agent plane and its own port', default: null, parse: url('https:', 'http:') },
    assetsUrl: { name: 'METALFLOW_ASSETS_URL', of: 'base URL of the assets as nodes reach them; without it, made from the address and port of the boot plane', default: null, parse: url('https:', 'http:') },
    syslogHost: { name: 'METALFLOW_SYSLOG_HOST', of: 'host that nodes send their syslog lines to; without it, that of METALFLOW_ASSETS_URL, or the address of the boot plane', default: null, parse: text },
    agentTlsCert: { name: 'METALFLOW_AGENT_TLS_CERT', of: 'PEM file with the certificate chain of the agent plane', default: null, parse: filePath },
    agentTlsKey: { name: 'METALFLOW_AGENT_TLS_KEY', of: 'PEM file with the private key of the agent plane', default: null, parse: filePath },
    bootTlsCert: { name: 'METALFLOW_BOOT_TLS_CERT', of: 'PEM file with the certificate chain of the boot plane; may be that of the agent plane', default: null, parse: filePath },
    bootTlsKey: { name: 'METALFLOW_BOOT_TLS_KEY', of: 'PEM file with its private key', default: null, parse: filePath },
  },
  'The netboot system (files below the assets folder)': {
    netbootKernel: { name: 'METALFLOW_NETBOOT_KERNEL', of: 'kernel of the netboot system; `{arch}` in a name is `x86_64` or `aarch64`, as the node is', default: 'vmlinuz-{arch}', parse: text },
    netbootInitrd: { name: 'METALFLOW_NETBOOT_INITRD', of: 'its initrd', default: 'initramfs-{arch}', parse: text },
    netbootUki: { name: 'METALFLOW_NETBOOT_UKI', of: 'a signed UKI instead of kernel and initrd; served as it was signed, takes no argument', default: null, parse: text },
    netbootArguments: { name: 'METALFLOW_NETBOOT_ARGUMENTS', of: 'kernel arguments of the site, with spaces between', default: 'console=tty0 console=ttyS0,115200', parse: wordList },
    ipxeShell: { name: 'METALFLOW_IPXE_SHELL', of: 'offer a shell in the menu of a node that waits; whoever is at its console may then boot anything', default: 'false', parse: yesNo },
    agentImage: { name: 'METALFLOW_AGENT_IMAGE', of: 'container image of our agent, for HookOS, which does not start without one', default: null, parse: text },
  },
  'Where things are kept': {
    dataDir: { name: 'METALFLOW_DATA_DIR', of: 'folder of the embedded defaults: SQLite, the Temporal dev server', default: '.work/data', parse: filePath },
    databaseUrl: { name: 'METALFLOW_DATABASE_URL', of: 'PostgreSQL of the store; without it, SQLite in the data folder', default: null, parse: url('postgres:', 'postgresql:'), secret: true },
    secretsDir: { name: 'METALFLOW_SECRETS_DIR', of: 'folder with bmc-<type>.json, operator-tokens.json and user-data/<name>', default: '{METALFLOW_DATA_DIR}/secrets', parse: filePath },
    tftpRoots: { name: 'METALFLOW_TFTP_ROOT', of: 'folders TFTP reads firmware from, with `:` between; the first that has a name wins', default: '{METALFLOW_DATA_DIR}/tftp', parse: folderList },
    assetsDir: { name: 'METALFLOW_ASSETS_DIR', of: 'folder /assets/ is read from', default: '{METALFLOW_DATA_DIR}/assets', parse: filePath },
    retentionDays: { name: 'METALFLOW_RETENTION_DAYS', of: 'days for which journals, logs of nodes, evidence and told messages of the past are kept', default: '90', parse: wholeNumber(1, 36_500) },
    classesFile: { name: 'METALFLOW_CLASSES_FILE', of: 'YAML file of the classes; read again when it changes', default: '{METALFLOW_DATA_DIR}/classes.yaml', parse: filePath },
    templatesDir: { name: 'METALFLOW_TEMPLATES_DIR', of: "folder of the site's templates; one there stands for a built-in one of the same name", default: null, parse: filePath },
    seedsDir: { name: 'METALFLOW_SEEDS_DIR', of: "folder of the site's seed templates", default: null, parse: filePath },
  },
  NetBox: {
    netboxUrl: { name: 'METALFLOW_NETBOX_URL', of: 'NetBox, without /api', default: null, parse: url('https:', 'http:') },
    netboxToken: { name: 'METALFLOW_NETBOX_TOKEN', of: 'API token: reads devices, writes status, custom fields and journal entries', default: null, parse: text, secret: true },
    netboxWebhookSecret: { name: 'METALFLOW_NETBOX_WEBHOOK_SECRET', of: 'secret of the NetBox webhook; without it, every webhook is refused', default: null, parse: text, secret: true },
    reconcileSeconds: { name: 'METALFLOW_RECONCILE_SECONDS', of: 'seconds between two reads of NetBox that repair what a lost webhook left; each also compares 50 devices, in turn, for what NetBox stamps on none (a deletion, a MAC, an address, a config context)', default: '60', parse: wholeNumber(1, 86_400) },
  },
  BMCs: {
    ipmiCipherSuites: { name: 'METALFLOW_IPMI_CIPHER_SUITES', of: 'RMCP+ cipher suites, comma-separated; the next is tried only where a BMC does not know the last (17: SHA-256; 3: SHA-1, all that older BMCs have)', default: '17,3', parse: numberList(1, 17) },
    bmcCaFile: { name: 'METALFLOW_BMC_CA_FILE', of: 'PEM file of the authorities that sign the certificates of BMCs, in place of those that Node knows; a pin (`metalflow.bmc_fingerprint` in the config context) needs none', default: null, parse: filePath },
    bmcOldTls: { name: 'METALFLOW_BMC_OLD_TLS', of: 'speak TLS 1.0 and 1.1 with a BMC that has nothing newer, with the ciphers and key sizes of their time', default: 'false', parse: yesNo },
    bmcCalls: { name: 'METALFLOW_BMC_CALLS', of: 'calls of BMCs under way at once in one worker; each holds one connection', default: '64', parse: wholeNumber(1, 10_000) },
  },
  Policy: {
    site: { name: 'METALFLOW_SITE', of: 'site this worker reaches nodes of (NetBox slug); names its task queue', default: 'default', parse: slug },
    powerWatchSeconds: { name: 'METALFLOW_POWER_WATCH_SECONDS', of: 'seconds between two looks at the power of every node of the site; 0 looks at none', default: '300', parse: wholeNumber(0, 86_400) },
    powerWatchAtOnce: { name: 'METALFLOW_POWER_WATCH_AT_ONCE', of: 'BMCs that the power watch talks to at the same time', default: '8', parse: wholeNumber(1, 256) },
    unknownMac: { name: 'METALFLOW_UNKNOWN_MAC', of: 'what a MAC that no device declares is answered: menu, disk or silent', default: 'disk', parse: oneOf(UNKNOWN_MAC_POLICIES) },
    metadataTokens: { name: 'METALFLOW_METADATA_TOKENS', of: "whether the metadata that a node's address alone may read need an IMDSv2 token too: optional or required (NoCloud clients can send none and then need the install code); a secret always needs the session token or the install code", default: 'optional', parse: oneOf(METADATA_TOKEN_POLICIES) },
    proxyDhcp: { name: 'METALFLOW_PROXY_DHCP', of: 'answer PXE and UEFI HTTP firmware beside a DHCP server that gives the addresses: on or off; see docs/dhcp.md', default: 'off', parse: oneOf(['on', 'off']) },
    imageMaxBytes: { name: 'METALFLOW_IMAGE_MAX_BYTES', of: 'largest image, in bytes as fetched', default: '68719476736', parse: wholeNumber(1, Number.MAX_SAFE_INTEGER) },
    imageHosts: { name: 'METALFLOW_IMAGE_HOSTS', of: 'hosts an https image may come from, comma-separated; empty allows any', default: '', parse: commaList },
    logLevel: { name: 'METALFLOW_LOG_LEVEL', of: `one of ${LOG_LEVELS.join(', ')}`, default: 'info', parse: oneOf(LOG_LEVELS) },
  },
  "Temporal (its own TEMPORAL_* settings are read too; without an address, a profile or a config file, `metalflow up` starts the dev server)": {
    temporalCli: { name: 'METALFLOW_TEMPORAL_CLI', of: 'the `temporal` program; without it, PATH, .tools/ and the download of the SDK are tried', default: null, parse: filePath },
    temporalPort: { name: 'METALFLOW_TEMPORAL_PORT', of: 'TCP port of the embedded dev server', default: '7233', parse: port },
    temporalUiUrl: { name: 'METALFLOW_TEMPORAL_UI_URL', of: 'Temporal UI with its namespace, for links (`https://temporal.example/namespaces/default`); the embedded one is known', default: null, parse: url('https:', 'http:') },
    temporalUiPort: { name: 'METALFLOW_TEMPORAL_UI_PORT', of: 'TCP port of its web page', default: '8233', parse: port },
  },
  'The command line': {
    operatorUrl: { name: 'METALFLOW_OPERATOR_URL', of: 'operator plane that `metalflow node` speaks to', default: 'http://127.0.0.1:8080', parse: url('https:', 'http:') },
    operatorToken: { name: 'METALFLOW_OPERATOR_TOKEN', of: 'bearer token for it; without it, operator-token of the secrets folder', default: null, parse: text, secret: true },
  },
  'Demo and tests only': {
    simulation: { name: 'METALFLOW_SIMULATION', of: 'admit every attestation key without the proof of a TPM', default: 'false', parse: yesNo },
    limitsFile: { name: 'METALFLOW_LIMITS_FILE', of: 'JSON file {name: seconds} that shortens limits', default: null, parse: filePath },
    testCrashPoint: { name: 'METALFLOW_TEST_CRASH_POINT', of: 'name of the point at which the process kills itself', default: null, parse: text },
  },
} as const satisfies Record<string, Record<string, Row>>;

type Groups = typeof SETTING_GROUPS;
type Merged<T> = T extends unknown ? (rows: T) => void : never;
type Rows = Merged<Groups[keyof Groups]> extends (rows: infer All) => void ? All : never;
export type SettingKey = keyof Rows;
export type SettingRow = Row;

/** The value of each setting, by its key; null only where the row has no default. */
export type SettingValues = {
  readonly [K in SettingKey]: Rows[K] extends { default: infer D; parse: z.ZodType<infer T, string> } ? (D extends null ? T | null : T) : never;
};

export const SETTINGS = Object.assign({}, ...Object.values(SETTING_GROUPS)) as { readonly [K in SettingKey]: Row };
