import { parseSyslog } from '../../src/boot/syslog/parse.js';

const RECEIVED = new Date('2027-01-01T00:00:03Z');
const BOM = '\ufeff';
const parse = (text: string, sender = '10.0.37.16') => parseSyslog(Buffer.from(text), sender, RECEIVED);

describe('syslog lines (S2)', () => {
  test.each([
    ['a: no header', '<38>User logged into the appliance. User: bmagistro.', { facility: 4, severity: 6, host: '10.0.37.16', app: null, text: 'User logged into the appliance. User: bmagistro.', at: '2027-01-01T00:00:03.000Z' }],
    ['b: RFC 3164', "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8", { facility: 4, severity: 2, host: 'mymachine', app: 'su', text: "'su root' failed for lonvick on /dev/pts/8", at: '2026-10-11T22:14:15.000Z' }],
    ['c: RFC 5424 with a byte order mark', `<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - ${BOM}'su root' failed for lonvick on /dev/pts/8`, { facility: 4, severity: 2, app: 'su', messageId: 'ID47', host: 'mymachine.example.com', text: "'su root' failed for lonvick on /dev/pts/8", at: '2003-10-11T22:14:15.003Z' }],
    ['d: structured data', `<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"] ${BOM}An application event log entry...`, { facility: 20, severity: 5, app: 'evntslog', text: 'An application event log entry...' }],
    ['e: ISO time without a version', '<167>2020-11-23T19:01:51.316Z esxi-dev-0 Rhttpproxy: verbose x', { facility: 20, severity: 7, host: 'esxi-dev-0', app: 'Rhttpproxy', text: 'verbose x', at: '2020-11-23T19:01:51.316Z' }],
    ["f: last year's line in January", '<30>Dec 31 23:59:58 hook dockerd: x', { facility: 3, severity: 6, host: 'hook', app: 'dockerd', text: 'x', at: '2026-12-31T23:59:58.000Z' }],
    ['a tag and no host', '<30>Jan  1 00:00:01 dockerd: x', { host: '10.0.37.16', app: 'dockerd', text: 'x', at: '2027-01-01T00:00:01.000Z' }],
    ['a tag alone', '<30>dockerd[12]: x', { host: '10.0.37.16', app: 'dockerd', text: 'x' }],
    ['escaped quotes in structured data', '<34>1 - - - - - [a b="]\\"]"][c] text', { host: '10.0.37.16', app: null, messageId: null, text: 'text', at: '2027-01-01T00:00:03.000Z' }],
    ['structured data that never ends', '<34>1 - h a - - [a b="', { text: '[a b="' }],
    ['no priority', 'hello', { facility: 1, severity: 5, text: 'hello' }],
    ['a priority out of range', '<192>hello', { facility: 1, severity: 5, text: '<192>hello' }],
    ['a day that a month does not have', '<30>Feb 31 00:00:00 hook x: y', { host: 'hook', app: 'x', text: 'y' }],
    ['a trailing line feed and NUL', '<30>x: y\n\0', { app: 'x', text: 'y' }],
  ])('%s', (_, text, expected) => {
    expect(parse(text)).toMatchObject({ sender: '10.0.37.16', ...expected });
  });

  test.each([['::ffff:10.0.37.16', '10.0.37.16'], ['fe80::1%eth0', 'fe80::1']])('g: the sender %s is %s', (shown, plain) => {
    expect(parse('<30>x', shown)).toMatchObject({ sender: plain, host: plain });
  });

  test.each(['', '\n', '\0\0', '  '])('%j is no line', (text) => {
    expect(parse(text)).toBeNull();
  });

  test('secrets and control characters do not pass', () => {
    expect(parse('<30>curl: GET /v1/seed/x?code=abcdef Authorization: Bearer s3cret \u001b[2J')!.text).toBe('GET /v1/seed/x?code=[redacted] Authorization: Bearer [redacted]  [2J');
  });

  test('a line is cut at 4096 characters', () => {
    expect(parse(`<30>x: ${'y'.repeat(60_000)}`)!.text).toHaveLength(4096);
  });
});
