import type { SlotUse } from '../api/status';

/** Five minutes of slots of 500 ms. */
const MOST = 600;

/** The known slots and those that came; the later news of a slot holds. */
export function withNewSlots(known: readonly SlotUse[], news: readonly SlotUse[]): SlotUse[] {
  const first = news[0]?.slot ?? Number.POSITIVE_INFINITY;
  const before = known.filter(({ slot }) => slot < first);
  return [...before, ...news].slice(-MOST);
}
