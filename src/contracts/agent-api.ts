/** The agent plane's wire messages (HTTP, JSON, UTC). Errors everywhere: `{code, message, hint, details?}`. */
import { z } from 'zod';
import { Instant, Mac, MachineUuid, OpaqueId, RunNumber } from './primitives.js';
import { OrderProgress, OrderReport, SeedFile } from './order.js';

const Base64 = z.string().max(20_000).regex(/^[A-Za-z0-9+/]*={0,2}$/, 'is no base64');

/** POST /v1/attest/hello */
export const HelloRequest = z.object({
  systemUuid: MachineUuid,
  bootMac: Mac,
  /** SPKI DER of an ECDSA P-256 key, base64. */
  akPublic: Base64.min(20),
  /** TPM part; absent means that the AK has no proof. */
  ekPublic: Base64.optional(),
  ekCertificate: Base64.optional(),
});
export type HelloRequest = z.infer<typeof HelloRequest>;

export const HelloResponse = z.object({
  challengeId: OpaqueId,
  /** 32 bytes, base64. */
  nonce: z.string(),
  /** TPM credential to activate (base64), once the EK is known. */
  credential: z.string().optional(),
  expiresAt: Instant,
});
export type HelloResponse = z.infer<typeof HelloResponse>;

export const DiskReport = z.object({
  name: z.string().max(100),
  serial: z.string().max(200),
  wwn: z.string().max(200).optional(),
  model: z.string().max(200),
  sizeBytes: z.number().int().nonnegative(),
  bus: z.string().max(40),
});

/**
 * What the node says of itself. Signed as the exact UTF-8 bytes of `report` in the request, so no canonical form is needed.
 */
export const AttestationReport = z.object({
  version: z.literal(1),
  /** The challenge's nonce, base64. */
  nonce: z.string().max(100),
  systemUuid: MachineUuid,
  bootMac: Mac,
  /** LLDPDU after ethertype 88cc, hex; null when no neighbour was heard. */
  lldpFrame: z.string().regex(/^([0-9a-f]{2})*$/).max(3000).nullable(),
  disks: z.array(DiskReport).max(256),
  agent: z.object({ name: z.string().max(60), version: z.string().max(60) }),
});
export type AttestationReport = z.infer<typeof AttestationReport>;

/** POST /v1/attest/report */
export const ReportRequest = z.object({
  challengeId: OpaqueId,
  /** base64 of the JSON bytes of an AttestationReport. */
  report: z.string().max(200_000),
  /** ECDSA P-256/SHA-256 over those bytes, IEEE P1363 (r‖s, 64 bytes), base64. DER is refused as malformed (R1). */
  signature: Base64,
  /** Answer to the credential of the hello. */
  secret: Base64.optional(),
});
export type ReportRequest = z.infer<typeof ReportRequest>;

export const ReportResponse = z.object({
  token: z.string(),
  nodeId: z.string(),
  bootAttempt: OpaqueId.nullable(),
  run: RunNumber.nullable(),
  installCode: z.string().optional(),
  /** `orders`: a run is open; `intake`: admitted, wait for a run. */
  waitFor: z.enum(['orders', 'intake']),
});
export type ReportResponse = z.infer<typeof ReportResponse>;

export const ErrorBody = z.object({ code: z.string(), message: z.string(), hint: z.string(), details: z.record(z.string(), z.unknown()).optional() });
export type ErrorBody = z.infer<typeof ErrorBody>;

/** 403 of POST /v1/attest/report: code `attestation_refused`, `details.reason` a word of the evidence. */
export const RefusedResponse = ErrorBody.extend({ retryAfterSeconds: z.number().int().positive() });
export type RefusedResponse = z.infer<typeof RefusedResponse>;

/** GET /v1/orders/next?wait=30 */
export const NextOrderQuery = z.object({ wait: z.coerce.number().int().min(0).max(60).default(30) });
/** POST /v1/orders/:id/consume */
export const ConsumeResponse = z.object({ orderId: OpaqueId, consumedAt: Instant, deadlineAt: Instant });
export type ConsumeResponse = z.infer<typeof ConsumeResponse>;
/** POST /v1/orders/:id/progress */
export const ProgressRequest = OrderProgress;
export const ProgressResponse = z.object({ go: z.enum(['on', 'stop']) });
export type ProgressResponse = z.infer<typeof ProgressResponse>;
/** POST /v1/orders/:id/report */
export const OrderReportRequest = OrderReport;
/** `taken`: it moved the run; `repeated` and `late` are kept and move nothing (G1). */
export const OrderReportResponse = z.object({ report: z.enum(['taken', 'repeated', 'late']) });
export type OrderReportResponse = z.infer<typeof OrderReportResponse>;
/** GET /v1/orders/:id/seed: what a write-seed order places, with `@INSTALL_CODE@` where the agent puts its code. */
export const OrderSeedResponse = z.object({ files: z.array(SeedFile).max(50) });
export type OrderSeedResponse = z.infer<typeof OrderSeedResponse>;

/** fleet-seed.json, version 1: how the installed system finds its seed. */
export const FleetSeed = z.object({
  version: z.literal(1),
  systemUuid: MachineUuid,
  seedUrl: z.string(),
  seenUrl: z.string(),
  installCode: z.string(),
  nodeName: z.string(),
  instanceId: z.string(),
});
export type FleetSeed = z.infer<typeof FleetSeed>;

/** The mark that the agent replaces with its install code in seed files. */
export const INSTALL_CODE_MARK = '@INSTALL_CODE@';
