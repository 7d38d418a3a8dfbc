/**
 * The store's tables as TypeScript sees them. Portable between SQLite and PostgreSQL: text, integer, ISO instants (UTC) as
 * text, JSON as text, booleans as 0/1; ids are drawn here, never by the database.
 */
export interface InstallationTable {
  /** Always 1: there is one row. */
  row: number;
  installation_id: string;
  /** pending: written here, not yet in Temporal. mismatch: the two do not belong together. */
  status: 'pending' | 'confirmed' | 'mismatch';
  /** Rises with every mismatch; a device is held until it was adopted in the present epoch. */
  epoch: number;
  why: string | null;
  since: string;
}

export interface DeviceTable {
  device_id: string;
  name: string;
  site: string;
  node_class: string | null;
  system_uuid: string | null;
  tpm_ek: string | null;
  /** Of its class, when the device was last looked at. */
  allow_unproven: number;
  state: string;
  state_since: string;
  previous_state: string | null;
  hold: string | null;
  adopted: number;
  /** The status we last wrote to NetBox, or found when we first took the device up. */
  netbox_status: string | null;
  next_request: string | null;
  power: string;
  power_at: string | null;
  /** Address of its BMC: JSON. */
  bmc: string | null;
  /** When the BMC last said what the power is. */
  bmc_seen_at: string | null;
  /** The power that the lifecycle was told last. */
  power_told: string | null;
  /** What does not fit the state, as it was judged last: JSON. */
  power_drift: string | null;
  proof: string | null;
  /** UUID mismatches an approver accepted: the UUID that was found. */
  approved_uuid: string | null;
  next_run: number;
  open_run: number | null;
  adopted_epoch: number;
  /** What only the node's metadata tell: JSON of DeviceMetadata. */
  metadata: string | null;
}

export interface DeviceMacTable {
  mac: string;
  device_id: string;
}
export interface DeviceAddressTable {
  address: string;
  device_id: string;
}
export interface SenderTable {
  address: string;
  mac: string;
  at: string;
}

export interface RunTable {
  device_id: string;
  number: number;
  kind: string;
  /** Who asked, and the attestation of a node that waited already: JSON of what the run is begun with. */
  asked: string;
  workflow_id: string;
  /** The Temporal run id that holds the fence; null until the run's first activity. */
  fence: string | null;
  opened_at: string;
  closed_at: string | null;
  phase: string;
  phase_since: string;
  hold: string | null;
  plan: string | null;
  /** Set before desired_action is cleared; whoever finds it set never reads the field again. */
  taken_at: string | null;
  cleared_at: string | null;
  destroyed: number;
  outcome: string | null;
}

export interface BootAttemptTable {
  id: string;
  device_id: string;
  run: number;
  /** The Temporal run id that opened it. */
  fence: string;
  opened_at: string;
  closed_at: string | null;
  boot_seen_at: string | null;
  attested_at: string | null;
  /** Its permission was withdrawn for good: no renewal that comes late may lease it again. */
  disarmed_at: string | null;
  ak_thumbprint: string | null;
}

export interface PermissionTable {
  device_id: string;
  run: number;
  boot_attempt: string;
  expires_at: string;
}

export interface BmcLockTable {
  bmc: string;
  holder: string;
  expires_at: string;
}

export interface PowerIntentTable {
  id: string;
  device_id: string;
  run: number;
  command: string;
  written_at: string;
  answered_at: string | null;
  answer: string | null;
}

export interface PowerWatchTable {
  site: string;
  every_seconds: number;
  since: string;
  /** End of the last walk. */
  walked_at: string | null;
}

export interface ChallengeTable {
  id: string;
  nonce: string;
  system_uuid: string;
  boot_mac: string;
  ak_public: string;
  ek_public: string | null;
  ek_certificate: string | null;
  expires_at: string;
  taken_at: string | null;
}

export interface AttestationTable {
  id: string;
  device_id: string | null;
  run: number | null;
  boot_attempt: string | null;
  at: string;
  accepted: number;
  reason: string | null;
  proof: string;
  boot_mac: string;
  system_uuid: string;
  ak_thumbprint: string;
  neighbour: string | null;
  disks: string | null;
  sender: string;
}

export interface SessionTable {
  token_hash: string;
  device_id: string;
  run: number | null;
  boot_attempt: string | null;
  ak_thumbprint: string;
  created_at: string;
  expires_at: string;
  revoked_at: string | null;
  last_seen_at: string | null;
}

export interface InstallCodeTable {
  code_hash: string;
  device_id: string;
  run: number;
  system_uuid: string;
  expires_at: string;
  redeemed_at: string | null;
  redeemer: string | null;
  seen_at: string | null;
  revoked_at: string | null;
}

export interface AgentOrderTable {
  id: string;
  device_id: string;
  run: number;
  boot_attempt: string;
  title: string;
  grant_no: number;
  state: string;
  action: string;
  action_name: string;
  destructive: number;
  timeout_seconds: number;
  queued_at: string;
  queue_deadline: string;
  consumed_at: string | null;
  /** Hash of the session token that took it. */
  consumed_by: string | null;
  deadline_at: string | null;
  last_sign_at: string | null;
  progress: string | null;
  report: string | null;
  reported_at: string | null;
  /** Why it was cancelled or became unknown. */
  closed_why: string | null;
  /** Temporal's task token of the activity that mirrors the order, base64. */
  task_token: string | null;
  /** 1 while its activity is paused in Temporal: it is not offered, and its time to be taken stands still. */
  withheld: number;
  heartbeat_at: string | null;
}

export interface OutboxTable {
  id: string;
  kind: 'signal-run' | 'signal-lifecycle' | 'complete';
  /** Workflow id, device id or task token. */
  target: string;
  name: string;
  payload: string;
  created_at: string;
  next_try_at: string;
  tries: number;
  delivered_at: string | null;
  result: string | null;
}

export interface JournalTable {
  id: string;
  device_id: string;
  run: number | null;
  at: string;
  kind: string;
  text: string;
  by_whom: string | null;
}

export interface HookTable {
  device_id: string;
  last_updated: string;
  digest: string;
}

export interface AuditTable {
  id: string;
  at: string;
  by_whom: string;
  role: string;
  what: string;
  device_id: string | null;
  result: string;
}

export interface NodeLogTable {
  id: string;
  device_id: string;
  /** The run that was open when it came. */
  run: number | null;
  at: string;
  received_at: string;
  severity: number;
  facility: number;
  host: string;
  program: string | null;
  message: string;
}

export interface TallyTable {
  what: string;
  /** JSON, its keys in order. */
  labels: string;
  times: number;
  seconds: number;
}

export interface RefusedDeviceTable {
  device_id: string;
  /** Empty where NetBox has none. */
  name: string;
  /** JSON of a Failure. */
  failure: string;
  since: string;
  told: number;
}

export interface Schema {
  installation: InstallationTable;
  device: DeviceTable;
  device_mac: DeviceMacTable;
  device_address: DeviceAddressTable;
  sender: SenderTable;
  run: RunTable;
  boot_attempt: BootAttemptTable;
  permission: PermissionTable;
  bmc_lock: BmcLockTable;
  power_intent: PowerIntentTable;
  power_watch: PowerWatchTable;
  challenge: ChallengeTable;
  attestation: AttestationTable;
  session: SessionTable;
  install_code: InstallCodeTable;
  agent_order: AgentOrderTable;
  outbox: OutboxTable;
  journal: JournalTable;
  hook: HookTable;
  audit: AuditTable;
  node_log: NodeLogTable;
  tally: TallyTable;
  refused_device: RefusedDeviceTable;
}
