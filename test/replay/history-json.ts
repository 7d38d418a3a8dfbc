/** A history as `temporal workflow show --output json` writes it, as the worker takes it. */
import { createRequire } from 'node:module';
import { join } from 'node:path';

/**
 * The SDK's own reading of JSON fails where npm gave its packages a protobufjs each (grpc asks for an older one): a message type made
 * by one copy is no type to the other. So it is read with the copy that made the types.
 */
const ofSdk = createRequire(join(process.cwd(), 'package.json'));
const ofProto = createRequire(ofSdk.resolve('@temporalio/proto'));
const { fromJson } = ofProto('protobufjs/ext/protojson') as { fromJson(type: unknown, json: unknown, options: object): object };
const { patchProtobufRoot } = ofSdk('@temporalio/proto/lib/patch-protobuf-root') as { patchProtobufRoot(root: unknown): { lookupType(name: string): unknown } };
const History = patchProtobufRoot(ofSdk('@temporalio/proto')).lookupType('temporal.api.history.v1.History');

export const historyOf = (events: readonly object[]): object => fromJson(History, { events }, { ignoreUnknownFields: true });
