/**
 * The character sets of an iPXE script. iPXE has no quoting: white space ends a word, `${…}` expands, and `||`, `&&`, `;` and a
 * leading `#` are read as words of their own. None of these can be written with the characters below.
 */

/** One kernel argument, or the value of one. */
export const KERNEL_WORD = /^[A-Za-z0-9._:/,=@%+~[\]-]+$/;
export const ARGUMENT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
/** What `echo` may say. */
export const ECHO_TEXT = /^[A-Za-z0-9 .,:/()_-]*$/;
export const LABEL = /^[a-z][a-z_]*$/;
/** Path of a URL on this server. */
export const URL_PATH = /^\/[A-Za-z0-9._/-]+$/;
export const ABSOLUTE_URL = /^https?:\/\/[A-Za-z0-9.:[\]-]+(\/[A-Za-z0-9._/-]*)?$/;
/** In the name of a file: the machine's architecture, which iPXE fills in. */
export const ARCH_MARK = '{arch}';
export const MAC = /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/;

/** x86 Linux reads 2047 characters of its command line; more is cut off silently. */
export const COMMAND_LINE_MOST = 2047;

/** Arguments that metalflow sets. */
export const RESERVED_ARGUMENTS: ReadonlySet<string> = new Set([
  'initrd', 'syslog_host', 'grpc_authority', 'tinkerbell_tls', 'tinkerbell_insecure_tls', 'worker_id', 'hw_addr', 'tink_worker_image', 'metalflow_url',
]);
