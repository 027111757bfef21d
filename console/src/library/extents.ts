// The drawing of a disk as a map: rows from its start to its end, and on them a title's extents.

import type { Track } from '../api/titles';

export interface MapSize {
  readonly width: number;
  readonly rowHeight: number;
  readonly rows: number;
}

export interface MapColours {
  readonly empty: string;
  readonly of: (kind: string) => string;
}

const GAP = 2;
/** An extent that is a millionth of the disk is seen, too. */
const LEAST_WIDTH = 2;

export function drawExtents(
  context: CanvasRenderingContext2D,
  { width, rowHeight, rows }: MapSize,
  chunks: number,
  tracks: readonly Track[],
  colours: MapColours,
): void {
  const perRow = Math.max(1, chunks / rows);
  const height = rowHeight - GAP;
  context.fillStyle = colours.empty;
  for (let row = 0; row < rows; row += 1) context.fillRect(0, row * rowHeight, width, height);
  for (const track of tracks) {
    context.fillStyle = colours.of(track.kind);
    for (const { start, chunks: length } of track.extents) {
      const last = Math.min(rows - 1, Math.floor((start + length - 1) / perRow));
      for (let row = Math.floor(start / perRow); row <= last; row += 1) {
        const from = Math.max(0, start - row * perRow) / perRow;
        const to = Math.min(perRow, start + length - row * perRow) / perRow;
        const wide = Math.max(LEAST_WIDTH, (to - from) * width);
        context.fillRect(Math.min(from * width, width - wide), row * rowHeight, wide, height);
      }
    }
  }
}
