/** Between the nodes and the agent plane: passes everything on, and keeps the secrets that go by, so that a test knows what to look for. */
import { createServer, request as ask } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Eavesdropper {
  /** For METALFLOW_AGENT_URL. */
  readonly url: string;
  readonly sessionTokens: ReadonlySet<string>;
  readonly installCodes: ReadonlySet<string>;
  close(): Promise<void>;
}

export async function startEavesdropper(agentPort: number): Promise<Eavesdropper> {
  const sessionTokens = new Set<string>();
  const installCodes = new Set<string>();
  const hear = (path: string, authorization: string | undefined): void => {
    const bearer = authorization?.replace(/^Bearer /i, '');
    const code = new URL(path, 'http://house').searchParams.get('code');
    if (bearer) (path.startsWith('/v1/orders') ? sessionTokens : installCodes).add(bearer);
    if (code) installCodes.add(code);
  };
  const server = createServer((incoming, outgoing) => {
    const path = incoming.url ?? '/';
    hear(path, incoming.headers.authorization);
    const onward = ask({ host: '127.0.0.1', port: agentPort, method: incoming.method, path, headers: incoming.headers }, (answer) => {
      const chunks: Buffer[] = [];
      if (path === '/v1/attest/report') {
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('end', () => {
          const { token, installCode } = JSON.parse(Buffer.concat(chunks).toString()) as { token?: string; installCode?: string };
          if (token) sessionTokens.add(token);
          if (installCode) installCodes.add(installCode);
        });
      }
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('aborted', () => outgoing.destroy());
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sessionTokens,
    installCodes,
    close: () => new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    }),
  };
}
