/** The rows of a long table that are to be drawn: from `first` up to, without, `end`. */
export interface RowWindow {
  readonly first: number;
  readonly end: number;
}

/** Rows beyond the visible ones, so that none is missing while the table is scrolled. */
const BEYOND = 12;

export function rowWindow(
  rows: number,
  rowHeight: number,
  scrolled: number,
  visibleHeight: number,
): RowWindow {
  const first = Math.floor(scrolled / rowHeight) - BEYOND;
  const end = Math.ceil((scrolled + visibleHeight) / rowHeight) + BEYOND;
  return { first: Math.min(Math.max(0, first), rows), end: Math.min(Math.max(0, end), rows) };
}
