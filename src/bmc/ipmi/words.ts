/**
 * What ipmitool's words mean: one table. Its exit is no help: 1 for everything, and 0 for a refused boot device. The words are those of
 * ipmitool 1.8.18 and 1.8.19 (`-v`, LC_ALL=C), taken from runs against OpenIPMI's ipmi_sim, and the completion codes of IPMI 2.0 table 5-2.
 */
import type { BmcProblemCode } from '../../domain/power.js';

export interface WordsRow {
  readonly says: RegExp;
  readonly code: BmcProblemCode;
  /** `none`: the BMC surely did nothing. `possible`: it may have had the command, and its word on it is missing. */
  readonly effect: 'none' | 'possible';
  /** In words that tell the operator what to change; null: what ipmitool said. */
  readonly meaning: string | null;
  /** The next cipher suite may do. */
  readonly tryNextSuite?: true;
  /** Later it may do. */
  readonly tryAgain?: true;
}

const LEVEL = 'the account lacks the privilege: give it OPERATOR on the LAN channel';

/** The first row that fits counts: whatever fails while a session is opened ends with the same last line. */
export const WORDS: readonly WordsRow[] = [
  // ---- no session: nothing was asked of the machine -------------------------------------------------------------------
  { says: /RAKP 2 HMAC is invalid/i, code: 'bmc_auth_failed', effect: 'none', meaning: 'the password is wrong' },
  { says: /unauthorized (?:name|guid)|invalid user ?name/i, code: 'bmc_auth_failed', effect: 'none', meaning: 'there is no such user, or it may not use the LAN channel' },
  { says: /(?:password is longer|Username is too long)/i, code: 'bmc_auth_failed', effect: 'none', meaning: 'IPMI takes a user name of at most 16 and a password of at most 20 bytes' },
  { says: /unauthorized role|illegal role|invalid role|Set Session Privilege Level to \w+ failed|exceeds limit/i, code: 'bmc_refused', effect: 'none', meaning: LEVEL },
  {
    says: /no matching cipher suite|invalid (?:authentication|integrity|confidentiality) algorithm/i, code: 'bmc_refused', effect: 'none',
    meaning: 'the BMC takes none of the cipher suites that METALFLOW_IPMI_CIPHER_SUITES allows', tryNextSuite: true,
  },
  {
    says: /insufficient resources to create|No (?:session )?slot available|No session slot/i, code: 'bmc_refused', effect: 'none',
    meaning: 'all its sessions are taken; ask again later', tryAgain: true,
  },
  { says: /does not support IPMI v2/i, code: 'bmc_refused', effect: 'none', meaning: 'IPMI 2.0 over LAN is switched off: enable it in the firmware' },
  { says: /Address lookup for .* failed|Could not open socket/i, code: 'bmc_unreachable', effect: 'none', meaning: 'the host name is not known, or there is no route to it' },
  { says: /Unable to establish (?:IPMI|LAN|RMCP)/i, code: 'bmc_unreachable', effect: 'none', meaning: 'it does not answer on its IPMI port', tryAgain: true },
  // ---- a session, and an answer to the command ------------------------------------------------------------------------
  { says: /failed:? .*Insufficient privilege/i, code: 'bmc_refused', effect: 'none', meaning: LEVEL },
  { says: /failed:? .*not supported in present state/i, code: 'bmc_refused', effect: 'none', meaning: 'not now: the power state does not allow it' },
  { says: /failed:? .*Node busy/i, code: 'bmc_refused', effect: 'none', meaning: 'busy; ask again later', tryAgain: true },
  // 0xC3, 0xCE, 0xFF: it had the command, and cannot say what came of it.
  { says: /failed:? .*(?:Timeout|could not be provided|Unspecified error)/i, code: 'bmc_answer_invalid', effect: 'possible', meaning: null },
  { says: /failed:? /i, code: 'bmc_refused', effect: 'none', meaning: null },
  // ---- a session, and no answer -----------------------------------------------------------------------------------------
  { says: /Unable to (?:get|set) |No response|No data available/i, code: 'bmc_unreachable', effect: 'possible', meaning: 'it did not answer the command', tryAgain: true },
];

/** Lines of `-v` that say nothing of the outcome, `failed` though some read. */
const CHATTER = /^(?:Loading IANA|Get HPM|Running Get|Discovered IPMB|Invalid completion code received|Close Session command failed|Get Auth Capabilities error|Iana:|IPMI Request Match NOT FOUND$)/i;

/** What of its output counts: without blank lines and chatter. */
export const tellingLines = (output: string): string[] => output.split('\n').map((line) => line.trim()).filter((line) => line !== '' && !CHATTER.test(line));
