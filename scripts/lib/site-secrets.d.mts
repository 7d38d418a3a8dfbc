/** @returns the names of the files that were made */
export function makeSecrets(folder: string): string[];
