/** What HookOS does with its logs: each line a datagram to the `syslog_host` of the kernel's command line (RFC 3164). */
import { createSocket } from 'node:dgram';
import { isIP } from 'node:net';
import { hostname } from 'node:os';

export interface HookSyslog {
  /** Sent and forgotten, as syslog is. */
  say(program: string, text: string): void;
  close(): void;
}

/** HookOS knows no port but 514; a test has another. */
export interface SyslogSettings {
  readonly port: number;
  /** Address of the machine: by it the receiver tells nodes apart. */
  readonly from: string;
}

export interface HookSyslogOptions extends SyslogSettings {
  /** `syslog_host` of the kernel's command line. */
  readonly host: string;
}

/** Daemon, info. */
const PRIORITY = 30;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

const stamp = (at: Date): string => `${MONTHS[at.getUTCMonth()]} ${String(at.getUTCDate()).padStart(2)} ${at.toISOString().slice(11, 19)}`;

export function createHookSyslog({ host, port, from }: HookSyslogOptions): HookSyslog {
  const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4');
  // A network that is not there loses lines; it stops no machine.
  socket.on('error', () => undefined);
  socket.bind(0, from);
  socket.unref();
  let isOpen = true;
  return {
    say(program, text) {
      if (isOpen) socket.send(`<${PRIORITY}>${stamp(new Date())} ${hostname()} ${program}: ${text}`, port, host, () => undefined);
    },
    close() {
      isOpen = false;
      socket.close();
    },
  };
}
