import { connect } from 'node:net';
import { once } from 'node:events';
import { closeAgentPlanes, declareWithRun, openAgentPlane, testNode, type Sent } from '../support/agent-api-server.js';

afterEach(closeAgentPlanes);

const node = testNode(7);
const HELLO = '/v1/attest/hello';
const REPORT = '/v1/attest/report';
const goodHello = { systemUuid: node.systemUuid, bootMac: node.bootMac, akPublic: node.key.akPublic };
const deep = (levels: number): string => '{"a":'.repeat(levels) + '1' + '}'.repeat(levels);

describe('bad input', () => {
  const rows: { name: string; path: string; sent: Sent; status: number; code: string }[] = [
    { name: 'JSON nested 33 deep', path: HELLO, sent: { raw: deep(33) }, status: 400, code: 'body_invalid' },
    { name: 'JSON nested 5000 deep', path: HELLO, sent: { raw: deep(5000) }, status: 400, code: 'body_invalid' },
    { name: 'arrays nested 20000 deep, unclosed', path: HELLO, sent: { raw: '['.repeat(20_000) }, status: 400, code: 'body_invalid' },
    { name: 'a body of 3 MB', path: HELLO, sent: { raw: JSON.stringify({ ...goodHello, akPublic: 'A'.repeat(3_000_000) }) }, status: 413, code: 'body_too_large' },
    { name: 'a report of 3 MB', path: REPORT, sent: { raw: JSON.stringify({ challengeId: 'x', report: 'A'.repeat(3_000_000), signature: '' }) }, status: 413, code: 'body_too_large' },
    { name: 'truncated JSON', path: HELLO, sent: { raw: '{"systemUuid":' }, status: 400, code: 'body_invalid' },
    { name: 'a JSON list', path: HELLO, sent: { raw: '[]' }, status: 400, code: 'body_invalid' },
    { name: 'a JSON string', path: HELLO, sent: { raw: '"x"' }, status: 400, code: 'body_invalid' },
    { name: 'null', path: HELLO, sent: { raw: 'null' }, status: 400, code: 'body_invalid' },
    { name: 'no body', path: HELLO, sent: { method: 'POST' }, status: 400, code: 'body_invalid' },
    { name: 'an empty body that says JSON', path: HELLO, sent: { raw: '' }, status: 400, code: 'body_invalid' },
    { name: 'a __proto__ key', path: HELLO, sent: { raw: `{"__proto__":{"x":1},${JSON.stringify(goodHello).slice(1)}` }, status: 400, code: 'body_invalid' },
    { name: 'an escaped __proto__ key deep inside', path: HELLO, sent: { raw: `{"a":[{"\\u005f_proto__":1}],${JSON.stringify(goodHello).slice(1)}` }, status: 400, code: 'body_invalid' },
    { name: 'a constructor key', path: HELLO, sent: { raw: `{"constructor":{"prototype":{}},${JSON.stringify(goodHello).slice(1)}` }, status: 400, code: 'body_invalid' },
    { name: 'a number for the UUID', path: HELLO, sent: { body: { ...goodHello, systemUuid: 7 } }, status: 400, code: 'body_invalid' },
    { name: 'a UUID of ones', path: HELLO, sent: { body: { ...goodHello, systemUuid: 'ffffffff-ffff-ffff-ffff-ffffffffffff' } }, status: 400, code: 'body_invalid' },
    { name: 'a MAC that is none', path: HELLO, sent: { body: { ...goodHello, bootMac: '02:01:48:aa:bb:gg' } }, status: 400, code: 'body_invalid' },
    { name: 'an AK that is no base64', path: HELLO, sent: { body: { ...goodHello, akPublic: 'ü'.repeat(40) } }, status: 400, code: 'body_invalid' },
    { name: 'a list for the signature', path: REPORT, sent: { body: { challengeId: 'x', report: '', signature: [] } }, status: 400, code: 'body_invalid' },
    { name: 'a challenge id with a quote', path: REPORT, sent: { body: { challengeId: "x' OR 1=1", report: '', signature: '' } }, status: 400, code: 'body_invalid' },
    { name: 'XML', path: HELLO, sent: { raw: '<a/>', headers: { 'content-type': 'application/xml' } }, status: 415, code: 'body_type_unsupported' },
    { name: 'a form where JSON is expected', path: HELLO, sent: { raw: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } }, status: 415, code: 'body_type_unsupported' },
    { name: 'text', path: HELLO, sent: { raw: 'hello', headers: { 'content-type': 'text/plain' } }, status: 415, code: 'body_type_unsupported' },
    { name: 'an unknown route', path: '/v2/attest', sent: { body: {} }, status: 404, code: 'route_not_found' },
    { name: 'a GET of a POST route', path: HELLO, sent: {}, status: 404, code: 'route_not_found' },
    { name: 'no token', path: '/v1/orders/next', sent: {}, status: 401, code: 'token_missing' },
    { name: 'basic credentials', path: '/v1/orders/next', sent: { headers: { authorization: 'Basic YTpi' } }, status: 401, code: 'token_missing' },
    { name: 'a token of blanks', path: '/v1/orders/next', sent: { headers: { authorization: 'Bearer    ' } }, status: 401, code: 'token_missing' },
    { name: 'a token of 5000 letters', path: '/v1/orders/next', sent: { token: 'a'.repeat(5000) }, status: 401, code: 'token_missing' },
    { name: 'a token that nobody was given', path: '/v1/orders/next', sent: { token: 'garbage' }, status: 401, code: 'token_unknown' },
    { name: 'a prototype key as the token', path: '/v1/orders/next', sent: { token: '__proto__' }, status: 401, code: 'token_unknown' },
    { name: 'a report without token, before its body is looked at', path: '/v1/orders/x/report', sent: { raw: deep(5000) }, status: 401, code: 'token_missing' },
  ];
  test.each(rows)('$name is answered $status $code, and the plane goes on', async ({ path, sent, status, code }) => {
    const plane = await openAgentPlane();
    const reply = await plane.send(path, sent);
    expect(reply).toMatchObject({ status, json: { code, message: expect.any(String), hint: expect.any(String) }, headers: { 'cache-control': 'no-store' } });
    expect((await plane.send(HELLO, { body: goodHello })).status).toBe(200);
    expect(plane.desk.evidence).toEqual([]);
  });

  test.each([
    ['a wait of an hour', 'GET', '/v1/orders/next?wait=3600', undefined],
    ['a wait that is no number', 'GET', '/v1/orders/next?wait=soon', undefined],
    ['an order id with a slash', 'POST', '/v1/orders/..%2f..%2fetc/consume', {}],
    ['progress without numbers', 'POST', '/v1/orders/x/progress', { done: 'half', total: 1, unit: 'bytes' }],
    ['progress below zero', 'POST', '/v1/orders/x/progress', { done: -1, total: 1, unit: 'bytes' }],
    ['a result that is none', 'POST', '/v1/orders/x/report', { result: 'maybe', message: '' }],
    ['evidence that nests', 'POST', '/v1/orders/x/report', { result: 'succeeded', message: '', evidence: { a: { b: 1 } } }],
    ['a message of 5000 letters', 'POST', '/v1/orders/x/report', { result: 'succeeded', message: 'x'.repeat(5000) }],
  ])('%s of a node that attested is answered 400', async (_, method, path, body) => {
    const plane = await openAgentPlane();
    declareWithRun(plane.desk, node);
    const { token } = await plane.admit(node);
    expect(await plane.send(path, { method, token, body })).toMatchObject({ status: 400, json: { code: 'body_invalid' } });
  });

  test('JSON nested 32 deep is still read, and refused for what it says', async () => {
    const plane = await openAgentPlane();
    const reply = await plane.send(HELLO, { raw: deep(32) });
    expect(reply.status).toBe(400);
    expect(reply.json.message).toContain('systemUuid');
  });

  test.each([
    ['bytes that are no HTTP', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0xff, 0x00])],
    ['a header of 100 kB', Buffer.from(`GET /healthz HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`)],
    ['two lengths', Buffer.from('POST /v1/attest/hello HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\ncontent-length: 5\r\n\r\n{}')],
    ['a broken percent escape', Buffer.from('GET /v1/seed/%zz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')],
  ])('%s end their own connection only', async (_, bytes) => {
    const plane = await openAgentPlane();
    const socket = connect(plane.port, '127.0.0.1');
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1'))).on('error', () => undefined);
    const closed = once(socket, 'close');
    socket.write(bytes);
    await closed;
    expect(answer).toMatch(/^(HTTP\/1\.1 4\d\d |$)/);
    expect((await plane.send('/healthz')).status).toBe(200);
  });
});
