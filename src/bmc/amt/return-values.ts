/**
 * What the ReturnValue of a method means. It comes inside an HTTP 200, and only zero is a yes.
 * Source: CIM_PowerManagementService, CIM_BootService and CIM_BootConfigSetting of Intel's AMT SDK, and refusals met in the field.
 */

export interface ReturnValueRow {
  /** `unknown`: AMT itself does not say whether it will be done. */
  readonly kind: 'accepted' | 'refused' | 'unknown';
  readonly meaning: string;
}

const row = (kind: ReturnValueRow['kind'], meaning: string): ReturnValueRow => ({ kind, meaning });

const POWER: Readonly<Record<number, ReturnValueRow>> = {
  0: row('accepted', 'accepted'),
  1: row('refused', 'not supported'),
  // sdague/amt#28, MeshCentral#4768: the answer to whatever does not fit the moment.
  2: row('refused', 'not now: the power state does not allow it, another change is under way, or a redirection session (KVM, SOL) is open'),
  3: row('unknown', 'cannot be completed in time'),
  4: row('refused', 'failed'),
  5: row('refused', 'invalid parameter'),
  6: row('refused', 'in use; ask again later'),
  16: row('refused', 'not permitted'),
  36: row('refused', 'invalid parameter'),
  2081: row('refused', 'user consent is required'),
  4096: row('accepted', 'job started'),
  4097: row('refused', 'invalid state transition'),
  4098: row('refused', 'a timeout is not supported'),
  4099: row('refused', 'busy; ask again later'),
};

const BOOT: Readonly<Record<number, ReturnValueRow>> = {
  0: row('accepted', 'accepted'),
  1: row('refused', 'not supported'),
  2: row('refused', 'unknown error'),
  3: row('refused', 'busy; ask again later'),
  4: row('refused', 'invalid reference'),
  5: row('refused', 'invalid parameter, or a boot setting forbids it'),
  6: row('refused', 'access denied'),
  2081: row('refused', 'user consent is required'),
};

export const METHODS = {
  RequestPowerStateChange: POWER,
  SetBootConfigRole: BOOT,
  ChangeBootOrder: BOOT,
} as const;
export type MethodName = keyof typeof METHODS;

/** The machine may have obeyed whoever answers in words that we do not know. */
export const returnValueRow = (method: MethodName, value: number): ReturnValueRow => METHODS[method][value] ?? row('unknown', 'a value that no document names');
