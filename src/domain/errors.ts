/**
 * Every error metalflow can show: one row, one code. HTTP and gRPC errors, CLI exits and workflow failures are drawn
 * from this table, and docs/errors.md is generated from it.
 */

/** What a person can do about it; the one way out. */
export type Verb = 'resume' | 'retry' | 'approve' | 'adopt' | 'maintenance' | 'none';

export interface ErrorRow {
  /** One sentence for a person; `{name}` marks are filled from the error's details. */
  readonly text: string;
  readonly retryable: boolean;
  readonly http: number;
  readonly verb: Verb;
  /** What the operator, or the caller, should do. */
  readonly hint: string;
}

const row = (text: string, http: number, verb: Verb, hint: string, retryable = false): ErrorRow => ({ text, http, verb, hint, retryable });

export const ERRORS = {
  // ---- a run's failures -------------------------------------------------------------------------------------------
  bmc_unreachable: row('no answer from the BMC at {address} within {seconds} s; its power is unknown', 502, 'resume', 'check power and network of the BMC, then `resume`; or `cancel` the run and put the node in maintenance', true),
  bmc_not_sent: row('{command} was not sent to the BMC at {address}: {why}', 502, 'resume', 'nothing was asked of the machine: do what the reason says, then `resume` to ask again', true),
  bmc_busy: row('another worker has the lease on the BMC at {address}', 503, 'none', 'nothing to do: it is tried again', true),
  bmc_auth_failed: row('the BMC at {address} refuses the credentials of {secret}', 502, 'resume', 'fix the secret file, then `resume`'),
  bmc_refused: row('the BMC refused {step} with {value} ({meaning})', 502, 'resume', 'do what the meaning says, then `resume`'),
  bmc_answer_invalid: row('the BMC at {address} answered something that cannot be read: {why}', 502, 'resume', 'check that address and port are those of the BMC, then `resume`'),
  bmc_certificate_refused: row('the certificate of the BMC at {address} is not trusted: {why}', 502, 'resume', 'if the fingerprint is that of the BMC, pin it as metalflow.bmc_fingerprint in the config context of the device, or give the authority that signed it as METALFLOW_BMC_CA_FILE; if not, somebody else answers there; then `resume`'),
  bmc_tls_failed: row('no TLS with the BMC at {address}: {why}', 502, 'resume', 'check the port (AMT: 16992 plain, 16993 TLS), and METALFLOW_BMC_OLD_TLS for a BMC that speaks nothing newer than TLS 1.1; then `resume`'),
  bmc_is_another_machine: row('the BMC answers as UUID {found}, the device is {expected}', 409, 'resume', 'fix the BMC address or system_uuid in NetBox, then `resume`'),
  machine_changed: row('NetBox names the machine {expected} now, and this run has worked on {was}', 409, 'retry', '`retry`: a new run begins with the machine that NetBox names'),
  bmc_uuid_unreadable: row("the BMC does not say which machine it is, or the device's system_uuid is empty", 409, 'approve', 'check the wiring by hand, then `approve`; the approval is recorded'),
  bmc_run_open: row('{node} has an open run ({run}), which powers it itself', 409, 'none', '`metalflow node hold` or `cancel` first; or insist with --during-run and --reason'),
  bmc_is_a_devices: row('{address} is the BMC of {node}', 409, 'none', 'name the device instead of the address: then its runs, its machine UUID and its journal count'),
  bmc_still_on: row('asked off, still reads {power}', 504, 'resume', 'power it off by hand (the run goes on when the BMC reads off), or `resume` to ask again'),
  bmc_still_off: row('asked on, still reads {power}', 504, 'resume', 'power it on by hand (the run goes on when the BMC reads on), or `resume` to ask again'),
  bmc_outcome_unknown: row('{command} was sent to the BMC and never answered; the power reads {power}', 504, 'resume', 'look at the machine, then `resume` to ask again'),
  bmc_tool_missing: row('this worker has no {program}, which the driver needs', 500, 'resume', 'install the Debian package ipmitool on every worker of the site, then `resume`'),
  bmc_manual_task: row('a person has to do what the BMC cannot: {task}', 409, 'resume', 'do it, then say so with `resume`: your name is journalled as the word for it'),
  off_unprovable: row('the node has no BMC: nobody can read that it is off', 409, 'approve', 'when the machine is gone, an approver says so: `metalflow node approve <node> --attest-removed --reason …`; until then the node is not retired'),
  boot_not_seen: row('powered on {attempts} times, never asked for our boot file', 504, 'retry', 'check VLAN, DHCP and boot order, then `retry`'),
  attestation_not_seen: row('no attestation within {minutes} min of the boot', 504, 'retry', 'look at the console: did the netboot system come up? then `retry`'),
  attestation_refused: row('the attestation was refused: {reason}', 403, 'retry', '`metalflow node evidence <node>` shows what was attested: if it is the right machine, make NetBox say so (MAC, system_uuid, tpm_ek), or let its class admit a key that no TPM proves (allowUnproven), then `retry`; if it is not, nothing was given to it'),
  disk_none_matches: row('no disk matches {rule}; there are: {disks}', 422, 'retry', 'fix the class rule or root_disk, then `retry`'),
  disk_several_match: row('{count} disks match {rule}: {disks}', 422, 'retry', 'make the class rule or root_disk name one disk, then `retry`'),
  disk_not_listed: row('disk {serial} is not in wipe_disks of the device', 422, 'retry', "add the serial to the device's wipe_disks if it may be destroyed, then `retry`"),
  disk_too_small: row('disk {serial} has {have} bytes, the image needs {need}', 422, 'retry', 'use a larger disk or a smaller image, then `retry`'),
  disk_shared: row('disk {serial} is shared storage ({why})', 422, 'retry', 'take it off wipe_disks, then `retry`; shared storage is never wiped'),
  image_digest_mismatch: row('image {url}: expected sha256 {expected}, found {found}', 422, 'retry', 'fix the class or the store, then `retry`'),
  image_truncated: row('image {url}: expected {expected} bytes, got {found}', 422, 'retry', 'fix the class or the store, then `retry`', true),
  image_too_large: row('image {url} is larger than {limit} bytes', 422, 'retry', 'raise the cap or fix the class, then `retry`'),
  image_unreachable: row('image {url} cannot be fetched: {why}', 502, 'retry', 'check the asset server, then `retry`', true),
  image_size_wrong: row('image {url}: the class says {expected} bytes, there are {found}', 422, 'retry', 'fix sizeBytes of the class or the store, then `retry`'),
  image_digest_invalid: row('image {url}: {digest} is no SHA-256 digest, so nothing was fetched', 422, 'retry', 'give 64 hex digits in the class, then `retry`'),
  image_readback_mismatch: row('disk {serial} reads back as {found}, written was {expected}', 500, 'retry', 'suspect the disk; replace it, then `retry`'),
  image_encoding_unexpected: row('image {url} came with Content-Encoding {encoding}', 422, 'retry', 'serve the file as it is stored, then `retry`'),
  image_unpack_failed: row('image {url} cannot be unpacked as {compression}: {why}', 422, 'retry', 'fix compression and unpackedBytes of the class, then `retry`'),
  disk_wipe_unproven: row('disk {serial} still reads data at byte {at} after the wipe', 500, 'retry', 'suspect the disk; destroy or replace it, then `retry`'),
  seed_place_missing: row('disk {serial} has no place for the seed: {why}', 422, 'retry', 'check that the image of the class fits its payload, then `retry`'),
  seed_write_failed: row('{path} could not be written on disk {serial}: {why}', 500, 'retry', 'read the log, then `retry`'),
  template_invalid: row('{file}:{line}:{column}: {what}', 422, 'retry', 'fix the template, then `retry`'),
  class_unknown: row('there is no class {class}', 422, 'retry', 'fix node_class in NetBox or add the class to classes.yaml, then `retry`'),
  class_invalid: row('{file}: {what}', 422, 'none', 'fix the classes file; the last good one stays in force'),
  seed_invalid: row('the seed cannot be rendered: {what}', 422, 'retry', 'fix the seed template, then `retry`'),
  action_failed: row('{action} failed with exit {exit}: {tail}', 500, 'retry', 'read `metalflow node logs <node> --run <run>`, then `retry`'),
  action_timed_out: row('{action} took longer than {seconds} s', 504, 'retry', 'read `metalflow node logs <node> --run <run>`; raise its timeout in the template when it needs more, then `retry`'),
  order_not_taken: row('{action} was offered for {seconds} s and the agent never took it', 504, 'retry', 'look at the console of the node, then `retry`'),
  outcome_unknown: row('{action} was taken by the node and never reported', 504, 'retry', 'look at the node; `retry` grants it again, `resume --done` says that it was done'),
  agent_lost: row('no sign of the agent since {since}', 504, 'retry', 'look at the console, then `retry`', true),
  seed_not_fetched: row('installed, and never seen: its seed was not fetched within {minutes} min', 504, 'retry', 'look at the console; `resume` waits again, `retry` installs again'),
  netbox_conflict: row('a person changed {field} to {value} since our last write', 409, 'resume', '`resume` to let ours stand, or `adopt` to let theirs stand'),
  netbox_unreachable: row('NetBox cannot be read: {why}', 502, 'resume', 'check NetBox and its token, then `resume`', true),
  device_invalid: row('NetBox field {field}: {what}', 422, 'none', 'fix NetBox; it is read again, and goes on by itself'),
  device_not_found: row('NetBox has no device {device}', 404, 'none', 'check the device id'),
  installation_mismatch: row('the store and Temporal do not belong together: {why}', 409, 'adopt', 'check which of the two is right, then `metalflow node adopt`'),
  run_cancelled: row('cancelled by {by}', 409, 'retry', '`retry`, or make a new request'),
  run_terminated: row('the workflow of the run was terminated by hand', 409, 'retry', '`retry`, or make a new request'),
  run_superseded: row('a newer run took over', 409, 'none', 'nothing to do'),
  run_closed: row('this run was closed', 409, 'none', 'nothing to do: its outcome stands'),
  run_stale: row('this workflow run is not the current one of its run', 409, 'none', 'nothing to do'),
  attempt_superseded: row('boot attempt {attempt} is not the open one', 409, 'none', 'nothing to do: the run powers off and boots again'),
  attempt_unattested: row('boot attempt {attempt} has not attested', 409, 'none', 'nothing to do: orders are given to an attested boot only'),
  request_withdrawn: row('the request was taken back before it was taken', 409, 'none', 'nothing to do'),
  held_by_person: row('held by {by}: {reason}', 409, 'resume', '`resume` when the reason is gone'),
  site_without_worker: row('no worker serves site {site}', 503, 'resume', 'start a worker with METALFLOW_SITE set to that site, then `resume`', true),
  unexpected: row('unexpected: {what}', 500, 'resume', 'read the log; report it; then `resume`'),
  // ---- requests, routes and commands ----------------------------------------------------------------------------------
  request_refused: row('{request} is refused in state {state}: {why}', 409, 'none', 'ask for what the state allows'),
  request_pending: row('desired_action already asks for {asked}', 409, 'none', 'take that back first, then ask again'),
  verb_refused: row('{verb} does not fit: {why}', 409, 'none', 'look at the node: its state names the verb'),
  reason_required: row('{verb} needs a reason', 400, 'none', 'give --reason'),
  body_invalid: row('the body does not fit: {what}', 400, 'none', 'see the schema in docs and send it again'),
  body_too_large: row('the body is larger than {limit} bytes', 413, 'none', 'send a smaller body'),
  body_type_unsupported: row('the content type is not application/json', 415, 'none', 'send application/json'),
  request_malformed: row('the request cannot be read: {what}', 400, 'none', 'send well-formed HTTP/1.1'),
  request_too_slow: row('the request did not arrive within {seconds} s', 408, 'none', 'send it again, in one go', true),
  headers_too_large: row('the headers are larger than {limit} bytes', 431, 'none', 'send fewer or shorter headers'),
  signature_missing: row('X-Hook-Signature is missing', 401, 'none', 'set the secret of the webhook in NetBox'),
  signature_wrong: row('X-Hook-Signature does not fit the body', 401, 'none', 'NetBox and METALFLOW_NETBOX_WEBHOOK_SECRET must hold the same secret'),
  token_missing: row('a bearer token is needed', 401, 'none', 'send Authorization: Bearer'),
  token_unknown: row('the token is not known or no longer valid', 401, 'none', 'get a new token'),
  token_role: row('the token of {name} has role {role}; {needed} is needed', 403, 'none', 'ask somebody with that role'),
  route_not_found: row('there is no {route}', 404, 'none', 'see docs'),
  method_not_allowed: row('{method} is not allowed here; {allowed} is', 405, 'none', 'see docs'),
  node_not_found: row('there is no node {node}', 404, 'none', 'check the name or the NetBox device id'),
  node_ambiguous: row('several nodes are called {node}: {nodes}', 409, 'none', 'say the NetBox device id instead of the name'),
  run_not_found: row('there is no run {run}', 404, 'none', 'check the run'),
  order_not_found: row('there is no order {order} for this token', 404, 'none', 'ask for the next order'),
  endpoint_not_found: row('there is no endpoint {endpoint}; there are {count}, from 0', 404, 'none', 'see GET /api/endpoints'),
  order_closed: row('the order is {state}', 409, 'none', 'ask for the next order'),
  challenge_unknown: row('the challenge is not known, used or expired', 401, 'none', 'say hello again', true),
  mac_invalid: row('{mac} is no MAC address', 400, 'none', 'six octets, any usual spelling'),
  code_unknown: row('the install code is not known', 401, 'none', 'codes are given once, at attestation'),
  code_spent: row('the install code was used and its window is over', 410, 'none', 'reprovision the node if it lost its seed'),
  address_ambiguous: row('several devices declare the address {address}', 409, 'none', 'give each device its own address in NetBox, or ask with the session token'),
  credential_needed: row('{document} holds a secret: an address alone does not show it', 401, 'none', 'send Authorization: Bearer with the session token or the install code (NoCloud: `seedfrom` with `%s?code=`)'),
  install_code_needed: row('{document} holds the install code, which a session token does not know', 403, 'none', 'ask with the install code'),
  metadata_token_needed: row('a metadata token is needed', 401, 'none', 'PUT /latest/api/token first, or send the session token or the install code; METALFLOW_METADATA_TOKENS says whether one is needed'),
  metadata_token_wrong: row('the metadata token is expired, or was not given to this node', 401, 'none', 'PUT /latest/api/token for a new one'),
  metadata_ttl_invalid: row('X-aws-ec2-metadata-token-ttl-seconds must be a whole number of seconds, 1 to {most}', 400, 'none', 'send the header with such a number'),
  metadata_token_forwarded: row('a metadata token is not given through a proxy', 403, 'none', 'ask from the node itself; a proxy of the site belongs in METALFLOW_TRUSTED_PROXIES'),
  netboot_not_allowed: row('netboot-not-allowed', 403, 'none', 'boot your disk'),
  boot_script_invalid: row('the boot script cannot be rendered: {what}', 500, 'none', 'fix the boot settings; until then nodes boot their disks'),
  asset_not_found: row('there is no asset {path}', 404, 'none', 'check the path'),
  digests_pending: row('the digests of {count} images are still being taken', 503, 'none', 'ask again in a while; GET /assets/images/ shows which are known', true),
  listener_failed: row('{name} does not listen: {why}', 503, 'none', 'read the log of the role, then start it again', true),
  store_not_found: row('no metalflow keeps its store in {where}: {why}', 404, 'none', 'set METALFLOW_DATABASE_URL, or METALFLOW_DATA_DIR for the SQLite file of `metalflow up`, to what the roles of the site have'),
  store_unavailable: row('the store cannot be read: {why}', 503, 'none', 'check the database', true),
  temporal_unavailable: row('Temporal cannot be reached: {why}', 503, 'none', 'check Temporal; nothing is lost', true),
  rate_limited: row('too many requests', 429, 'none', 'wait a little', true),
  setting_invalid: row('setting {name}: {why}', 500, 'none', 'fix the setting; .env.example names them all'),
  setting_unknown: row('setting {name} is not known{guess}', 500, 'none', 'fix its name; .env.example names them all'),
  temporal_cli_missing: row('no `temporal` program was found', 500, 'none', 'set METALFLOW_TEMPORAL_CLI, put `temporal` on PATH, run the set-up (it installs .tools/), or allow the SDK to download it'),
  port_in_use: row('{what} cannot listen on {address}: {why}', 500, 'none', 'free the port or choose another'),
  port_forbidden: row('{what} may not listen on {address}: ports below {first} need a privilege', 500, 'none', 'give the service AmbientCapabilities=CAP_NET_BIND_SERVICE (systemd), or `setcap cap_net_bind_service=+ep` the node program, or lower net.ipv4.ip_unprivileged_port_start by sysctl, or choose a higher port'),
  address_not_here: row('{what} cannot listen on {address}: this host has no such address', 500, 'none', 'set METALFLOW_BIND_ADDRESS (operator plane: METALFLOW_OPERATOR_BIND_ADDRESS) to an address of this host, or to 0.0.0.0 for all'),
  proxy_dhcp_not_alone: row('another proxy DHCP answers at {address}', 500, 'none', 'stop that one, or set METALFLOW_PROXY_DHCP=off: of two, firmware takes whichever is quicker'),
  dhcp_config_unprintable: row('the DHCP configuration cannot be printed: {what}', 422, 'none', 'give the option that the text names; see docs/dhcp.md'),
  operator_unreachable: row('the operator plane at {url} does not answer: {why}', 502, 'none', 'start `metalflow operatorapi` or `metalflow up`, or give --url', true),
  operator_token_missing: row('no token for the operator plane was given', 401, 'none', 'give --token, set METALFLOW_OPERATOR_TOKEN, or write it to the file operator-token of the secrets folder'),
  internal: row('internal error', 500, 'none', 'read the log', true),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** Where each group of the table begins. */
export const ERROR_GROUPS = [
  { title: "A run's failures", first: 'bmc_unreachable' },
  { title: 'Requests, routes and commands', first: 'request_refused' },
] as const satisfies readonly { readonly title: string; readonly first: ErrorCode }[];
export type ErrorDetails = Readonly<Record<string, string | number | boolean>>;

export const isErrorCode = (value: unknown): value is ErrorCode => typeof value === 'string' && Object.hasOwn(ERRORS, value);

/** Fills the text of a code; a missing detail reads `?`. */
export function errorText(code: ErrorCode, details: ErrorDetails = {}): string {
  return ERRORS[code].text.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(details[name] ?? '?'));
}

/** A failure as it is stored, shown and sent: the code, the filled text, and what to do. */
export interface Failure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string;
  readonly details?: ErrorDetails;
}

export function failure(code: ErrorCode, details?: ErrorDetails): Failure {
  return { code, message: errorText(code, details), hint: ERRORS[code].hint, ...(details && { details }) };
}

/** Failures a person may mend by naming the machine, or its BMC, otherwise in NetBox: whoever says `resume` may have done so. */
export const namesMachine = (code: ErrorCode): boolean => code === 'device_invalid' || (code.startsWith('bmc_') && code !== 'bmc_manual_task');

/** The one exception class of the house. Thrown when a call cannot do what its name says; carries its row of the table. */
export class MetalflowError extends Error {
  override readonly name = 'MetalflowError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails;
  constructor(code: ErrorCode, details: ErrorDetails = {}, options?: { cause?: unknown }) {
    super(errorText(code, details), options);
    this.code = code;
    this.details = details;
  }
  get httpStatus(): number {
    return ERRORS[this.code].http;
  }
  get retryable(): boolean {
    return ERRORS[this.code].retryable;
  }
  toFailure(): Failure {
    return failure(this.code, this.details);
  }
}

export const isMetalflowError = (value: unknown): value is MetalflowError => value instanceof Error && value.name === 'MetalflowError' && isErrorCode((value as MetalflowError).code);
