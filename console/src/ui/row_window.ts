/** The rows of a long table that are to be drawn: from `first` up to, without, `end`. */
export interface RowWindow {
  readonly first: number;
  readonly end: number;
  /** The most rows that a window has. Row N is drawn into element N modulo this number. */
  readonly size: number;
}

/** Rows beyond the visible ones, so that none is missing while the table is scrolled. */
const BEYOND = 16;

export function rowWindow(
  rows: number,
  rowHeight: number,
  scrolled: number,
  visibleHeight: number,
): RowWindow {
  const size = Math.ceil(visibleHeight / rowHeight) + 1 + 2 * BEYOND;
  const wanted = Math.floor(scrolled / rowHeight) - BEYOND;
  const first = Math.min(Math.max(0, wanted), Math.max(0, rows - size));
  return { first, end: Math.min(rows, first + size), size };
}
