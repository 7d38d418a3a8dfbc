export const FOUR_WAYS: string;
export function findTemporal(): string | null;
export function findTestServer(): string | null;
export function ensureTemporal(what: { tests: boolean }): Promise<void>;
