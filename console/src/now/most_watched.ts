/** The title with the most sessions; `undefined` where none has any. */
export function mostWatched(sessions: ReadonlyMap<string, number>): string | undefined {
  let most: [string, number] | undefined;
  for (const entry of sessions) {
    if (!most || entry[1] > most[1]) most = entry;
  }
  return most?.[0];
}
