/** iPXE's settings: what the machine brings, what a script sets, and `${name:type}` in a word. */

export interface Variables {
  get(name: string): string;
  /** An empty value clears the setting, as in iPXE. */
  set(name: string, value: string): void;
  /** Replaces `${…}` from the inside out; a setting that does not exist is empty. */
  expand(word: string): string;
}

export interface Machine {
  readonly mac: string;
  readonly systemUuid: string;
  /** Address of the TFTP server, which DHCP calls next-server. */
  readonly nextServer: string;
}

const FORMATS: Readonly<Record<string, (value: string) => string>> = {
  string: (value) => value,
  hex: (value) => value,
  hexhyp: (value) => value.replaceAll(':', '-'),
  hexraw: (value) => value.replaceAll(':', ''),
  int32: (value) => value,
  uint32: (value) => value,
  ipv4: (value) => value,
  uuid: (value) => value,
};

/** `name:type` and the scope in front of a name (`net0/mac`) lead to one setting. */
const bareName = (name: string): string => name.split(':')[0]!.replace(/^(net0|netX)\//, '');

/** Enough for every honest script; a value that contains itself would go on for ever. */
const MAX_EXPANSIONS = 100;
const MAX_WORD = 8192;

export function createVariables(machine: Machine): Variables {
  const values = new Map<string, string>([
    ['mac', machine.mac],
    ['uuid', machine.systemUuid],
    ['next-server', machine.nextServer],
    ['buildarch', 'x86_64'],
    ['platform', 'efi'],
  ]);
  const get = (name: string): string => {
    const format = name.split(':')[1] ?? 'string';
    const value = values.get(bareName(name)) ?? '';
    return Object.hasOwn(FORMATS, format) ? FORMATS[format]!(value) : value;
  };
  return {
    get,
    set(name, value) {
      if (value === '') values.delete(bareName(name));
      else values.set(bareName(name), value.slice(0, MAX_WORD));
    },
    expand(word) {
      let text = word;
      for (let count = 0; count < MAX_EXPANSIONS; count++) {
        const innermost = /\$\{([^${}]*)\}/.exec(text);
        if (!innermost) break;
        text = `${text.slice(0, innermost.index)}${get(innermost[1]!)}${text.slice(innermost.index + innermost[0].length)}`.slice(0, MAX_WORD);
      }
      return text;
    },
  };
}
