/** Watches nodes through the operator plane, as a person's program would. */
import { request } from 'undici';
import type { NodeRow, RunRow } from '../../contracts/operator.js';

export interface Observer {
  nodes(): Promise<NodeRow[]>;
  run(deviceId: string, run: number): Promise<RunRow>;
}

export function createObserver({ url, token }: { url: string; token: string }): Observer {
  const read = async <T>(path: string): Promise<T> => {
    const { statusCode, body } = await request(`${url}${path}`, { headers: { authorization: `Bearer ${token}` }, headersTimeout: 10_000, bodyTimeout: 10_000 });
    const answer = (await body.json()) as T & { message?: string };
    if (statusCode !== 200) throw new Error(`${path}: ${statusCode} ${answer.message ?? ''}`);
    return answer;
  };
  return {
    nodes: async () => (await read<{ nodes: NodeRow[] }>('/api/v1/nodes')).nodes,
    run: async (deviceId, run) => (await read<{ run: RunRow }>(`/api/v1/runs/${deviceId}/${run}`)).run,
  };
}
