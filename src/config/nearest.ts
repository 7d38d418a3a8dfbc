/** The name that was probably meant. */

/** How many letters must be added, dropped or changed to make one text the other (Levenshtein). */
export function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      current.push(Math.min(previous[j]! + 1, current[j - 1]! + 1, previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    previous = current;
  }
  return previous[b.length]!;
}

/** The closest candidate, or null when none is close enough to be a slip. */
export function nearest(name: string, candidates: readonly string[]): string | null {
  if (name.length > 200) return null;
  const ranked = candidates.map((candidate) => ({ candidate, distance: editDistance(name, candidate) })).sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best && best.distance <= Math.max(2, Math.floor((name.length - 'METALFLOW_'.length) / 3)) ? best.candidate : null;
}
