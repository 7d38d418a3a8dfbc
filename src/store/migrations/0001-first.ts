/** The first schema. Only what SQLite and PostgreSQL share. */
import type { Kysely } from 'kysely';

const T = 'text' as const;
const I = 'integer' as const;
type Column = readonly [name: string, type: typeof T | typeof I, constraint?: 'key' | 'null'];

const TABLES: Readonly<Record<string, readonly Column[]>> = {
  installation: [['row', I, 'key'], ['installation_id', T], ['status', T], ['epoch', I], ['why', T, 'null'], ['since', T]],
  device: [
    ['device_id', T, 'key'], ['name', T], ['site', T], ['node_class', T, 'null'], ['system_uuid', T, 'null'], ['tpm_ek', T, 'null'], ['allow_unproven', I],
    ['state', T], ['state_since', T], ['previous_state', T, 'null'], ['hold', T, 'null'], ['adopted', I], ['netbox_status', T, 'null'],
    ['next_request', T, 'null'], ['power', T], ['power_at', T, 'null'], ['proof', T, 'null'], ['approved_uuid', T, 'null'],
    ['next_run', I], ['open_run', I, 'null'], ['adopted_epoch', I],
  ],
  device_mac: [['mac', T, 'key'], ['device_id', T]],
  device_address: [['address', T, 'key'], ['device_id', T, 'key']],
  sender: [['address', T, 'key'], ['mac', T], ['at', T]],
  run: [
    ['device_id', T, 'key'], ['number', I, 'key'], ['kind', T], ['asked', T], ['workflow_id', T], ['fence', T, 'null'], ['opened_at', T], ['closed_at', T, 'null'],
    ['phase', T], ['phase_since', T], ['hold', T, 'null'], ['plan', T, 'null'], ['taken_at', T, 'null'], ['cleared_at', T, 'null'], ['destroyed', I], ['outcome', T, 'null'],
  ],
  boot_attempt: [
    ['id', T, 'key'], ['device_id', T], ['run', I], ['fence', T], ['opened_at', T], ['closed_at', T, 'null'], ['boot_seen_at', T, 'null'],
    ['attested_at', T, 'null'], ['disarmed_at', T, 'null'], ['ak_thumbprint', T, 'null'],
  ],
  permission: [['device_id', T, 'key'], ['run', I], ['boot_attempt', T], ['expires_at', T]],
  bmc_lock: [['bmc', T, 'key'], ['holder', T], ['expires_at', T]],
  power_intent: [['id', T, 'key'], ['device_id', T], ['run', I], ['command', T], ['written_at', T], ['answered_at', T, 'null'], ['answer', T, 'null']],
  challenge: [
    ['id', T, 'key'], ['nonce', T], ['system_uuid', T], ['boot_mac', T], ['ak_public', T], ['ek_public', T, 'null'], ['ek_certificate', T, 'null'],
    ['expires_at', T], ['taken_at', T, 'null'],
  ],
  attestation: [
    ['id', T, 'key'], ['device_id', T, 'null'], ['run', I, 'null'], ['boot_attempt', T, 'null'], ['at', T], ['accepted', I], ['reason', T, 'null'],
    ['proof', T], ['boot_mac', T], ['system_uuid', T], ['ak_thumbprint', T], ['neighbour', T, 'null'], ['disks', T, 'null'], ['sender', T],
  ],
  session: [
    ['token_hash', T, 'key'], ['device_id', T], ['run', I, 'null'], ['boot_attempt', T, 'null'], ['ak_thumbprint', T], ['created_at', T],
    ['expires_at', T], ['revoked_at', T, 'null'], ['last_seen_at', T, 'null'],
  ],
  install_code: [
    ['code_hash', T, 'key'], ['device_id', T], ['run', I], ['system_uuid', T], ['expires_at', T], ['redeemed_at', T, 'null'], ['redeemer', T, 'null'],
    ['seen_at', T, 'null'], ['revoked_at', T, 'null'],
  ],
  agent_order: [
    ['id', T, 'key'], ['device_id', T], ['run', I], ['boot_attempt', T], ['title', T], ['grant_no', I], ['state', T], ['action', T], ['action_name', T],
    ['destructive', I], ['timeout_seconds', I], ['queued_at', T], ['queue_deadline', T], ['consumed_at', T, 'null'], ['consumed_by', T, 'null'], ['deadline_at', T, 'null'],
    ['last_sign_at', T, 'null'], ['progress', T, 'null'], ['report', T, 'null'], ['reported_at', T, 'null'], ['closed_why', T, 'null'],
    ['task_token', T, 'null'], ['withheld', I], ['heartbeat_at', T, 'null'],
  ],
  outbox: [
    ['id', T, 'key'], ['kind', T], ['target', T], ['name', T], ['payload', T], ['created_at', T], ['next_try_at', T], ['tries', I],
    ['delivered_at', T, 'null'], ['result', T, 'null'],
  ],
  journal: [['id', T, 'key'], ['device_id', T], ['run', I, 'null'], ['at', T], ['kind', T], ['text', T], ['by_whom', T, 'null']],
  hook: [['device_id', T, 'key'], ['last_updated', T], ['digest', T]],
  audit: [['id', T, 'key'], ['at', T], ['by_whom', T], ['role', T], ['what', T], ['device_id', T, 'null'], ['result', T]],
};

const INDEXES: readonly (readonly [name: string, table: string, columns: readonly string[], unique?: true])[] = [
  ['device_name', 'device', ['name']],
  ['device_mac_device', 'device_mac', ['device_id']],
  // One open order of an action and grant: posting twice is one row.
  // Not `…_key`: that is the primary key's, and PostgreSQL has one name space for both. (A SQLite made before has it as agent_order_key.)
  ['agent_order_once', 'agent_order', ['device_id', 'run', 'title', 'grant_no'], true],
  ['agent_order_state', 'agent_order', ['state']],
  ['boot_attempt_run', 'boot_attempt', ['device_id', 'run']],
  ['attestation_device', 'attestation', ['device_id', 'at']],
  ['session_device', 'session', ['device_id']],
  ['outbox_due', 'outbox', ['delivered_at', 'next_try_at']],
  ['journal_device', 'journal', ['device_id', 'id']],
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [table, columns] of Object.entries(TABLES)) {
    let builder = db.schema.createTable(table);
    for (const [name, type, constraint] of columns) builder = builder.addColumn(name, type, (column) => (constraint === 'null' ? column : column.notNull()));
    const keys = columns.filter(([, , constraint]) => constraint === 'key').map(([name]) => name);
    await builder.addPrimaryKeyConstraint(`${table}_key`, keys as never).execute();
  }
  for (const [name, table, columns, unique] of INDEXES) {
    const builder = db.schema.createIndex(name).on(table).columns([...columns]);
    await (unique ? builder.unique() : builder).execute();
  }
}
