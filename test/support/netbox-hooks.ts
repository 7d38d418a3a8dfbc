/** Webhooks as NetBox sends them: recorded ones, and ones made after them. */
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface RecordedHook {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly secret: string;
}

/** One or several deliveries of a recording, oldest first. */
export function recordedHooks(name: string): RecordedHook[] {
  const recorded = JSON.parse(readFileSync(join(__dirname, '../fixtures/netbox', `webhook-${name}.json`), 'utf8')) as RecordedHook | RecordedHook[];
  return Array.isArray(recorded) ? recorded : [recorded];
}

export const HOOK_SECRET = 'capture-secret-not-real';
export const sign = (body: string, secret = HOOK_SECRET): string => createHmac('sha512', secret).update(body).digest('hex');

/** The recorded device event with some of its data replaced. */
export function deviceHook(change: { id?: number; action?: unknown; lastUpdated?: string; requestId?: string; event?: string; data?: Record<string, unknown>; top?: Record<string, unknown> } = {}): string {
  const hook = JSON.parse(recordedHooks('device-updated-desired-action-set')[0]!.body);
  hook.data = { ...hook.data, ...(change.id !== undefined && { id: change.id }), ...(change.lastUpdated !== undefined && { last_updated: change.lastUpdated }), ...change.data };
  if ('action' in change) hook.data.custom_fields = { ...hook.data.custom_fields, desired_action: change.action };
  if (change.requestId !== undefined) hook.request.id = change.requestId;
  if (change.event !== undefined) hook.event = change.event;
  return JSON.stringify({ ...hook, ...change.top });
}

export async function postHook(url: string, body: string | Buffer, headers: Record<string, string> = { 'x-hook-signature': sign(body.toString()) }): Promise<{ status: number; body: any }> { // eslint-disable-line @typescript-eslint/no-explicit-any
  const answer = await fetch(`${url}/webhooks/netbox`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });
  return { status: answer.status, body: await answer.json() };
}
