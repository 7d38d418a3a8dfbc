interface LockedPackage { readonly name?: string; readonly version?: string; readonly integrity?: string; readonly dev?: boolean; readonly optional?: boolean; readonly devOptional?: boolean }
type Packages = Readonly<Record<string, LockedPackage>> | null;
export function whyInstall(locked: Packages, installed: Packages, what: { dev: boolean }): string | null;
export function ensureNodeModules(what: { dev: boolean }): Promise<void>;
