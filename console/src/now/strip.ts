// The drawing of a disk's slots: what the reads of each slot were for, and the guarantee.
//
//   top ┬ ─ ─ ─ ─ ─ ─ ─ ─   guaranteed reads, or the most reads
//       │     ▓   ▒         written, in reads of the same size
//       │   ▒ ▓ ░ ▒         best effort, read ahead
//       │ █ █ █ █ █         due
//       ├───────────────
//       └ ▪ ▫ ▪ ▪ ▫         the busy part of each slot, as shade

import type { SlotUse } from '../api/status';

export interface Palette {
  readonly due: string;
  readonly ahead: string;
  readonly bestEffort: string;
  readonly written: string;
  readonly idle: string;
  readonly guarantee: string;
}

export interface StripSize {
  readonly width: number;
  readonly height: number;
}

/** What the height of the drawing stands for. */
export interface StripScale {
  /** Reads at the top. */
  readonly top: number;
  /** Whether the guarantee is beyond the top: drawn to scale, the reads would not be seen. */
  readonly isBeyond: boolean;
}

/** The guarantee is drawn to scale where the reads reach at least this part of it. */
const VISIBLE_PART = 0.08;
/** Room above the highest bar. */
const HEADROOM = 1.08;
const BUSY_HEIGHT = 6;
const GAP = 2;
/** Any read is seen. */
const LEAST_HEIGHT = 1.5;
const NARROWEST_BAR = 3;

/** The slots that there is room for, the latest ones. */
export function visibleSlots(slots: readonly SlotUse[], width: number): readonly SlotUse[] {
  return slots.slice(-Math.max(1, Math.floor(width / NARROWEST_BAR)));
}

export function scaleOf(slots: readonly SlotUse[], readSize: number): StripScale {
  const reads = Math.max(0, ...slots.map((slot) => slot.reads + writtenReads(slot, readSize)));
  const guarantee = Math.max(0, ...slots.map((slot) => slot.minRead));
  const isBeyond = reads > 0 && reads < guarantee * VISIBLE_PART;
  return { top: Math.max(1, isBeyond ? reads : Math.max(reads, guarantee)) * HEADROOM, isBeyond };
}

/** Which of the drawn slots is at a horizontal position; `null` beside them. */
export function slotAt(
  slots: readonly SlotUse[],
  width: number,
  x: number,
): SlotUse | null {
  const shown = visibleSlots(slots, width);
  const fromRight = Math.floor((width - x) / barWidth(width));
  return shown[shown.length - 1 - fromRight] ?? null;
}

export function drawStrip(
  context: CanvasRenderingContext2D,
  size: StripSize,
  slots: readonly SlotUse[],
  readSize: number,
  palette: Palette,
): void {
  const { width, height } = size;
  context.clearRect(0, 0, width, height);
  const shown = visibleSlots(slots, width);
  const bar = barWidth(width);
  const scale = scaleOf(shown, readSize);
  const bottom = height - BUSY_HEIGHT - GAP;
  const heightOf = (reads: number) =>
    reads > 0 ? Math.max(LEAST_HEIGHT, (reads / scale.top) * bottom) : 0;
  const left = (index: number) => width - (shown.length - index) * bar;

  context.fillStyle = palette.idle;
  context.fillRect(0, bottom + GAP, width, BUSY_HEIGHT);
  shown.forEach((slot, index) => {
    let y = bottom;
    for (const [reads, fill] of partsOf(slot, readSize, palette)) {
      const tall = heightOf(reads);
      y -= tall;
      context.fillStyle = fill;
      context.fillRect(left(index), y, bar - 1, tall);
    }
    if (slot.busy !== null) {
      context.globalAlpha = Math.min(1, Math.max(0, slot.busy));
      context.fillStyle = palette.due;
      context.fillRect(left(index), bottom + GAP, bar - 1, BUSY_HEIGHT);
      context.globalAlpha = 1;
    }
  });

  context.strokeStyle = palette.guarantee;
  context.lineWidth = 1.5;
  context.setLineDash(scale.isBeyond ? [4, 4] : []);
  context.beginPath();
  shown.forEach((slot, index) => {
    const y = scale.isBeyond ? 1 : bottom - (slot.minRead / scale.top) * bottom;
    context.lineTo(left(index), y);
    context.lineTo(left(index) + bar, y);
  });
  context.stroke();
  context.setLineDash([]);
}

function partsOf(slot: SlotUse, readSize: number, palette: Palette): [number, string][] {
  const written: [number, string] = [writtenReads(slot, readSize), palette.written];
  if (!slot.byKind) return [[slot.reads, palette.due], written];
  const { due, ahead, bestEffort } = slot.byKind;
  return [[due, palette.due], [ahead, palette.ahead], [bestEffort, palette.bestEffort], written];
}

/** What was written, in reads, so that one height stands for as many bytes. */
function writtenReads(slot: SlotUse, readSize: number): number {
  return readSize > 0 ? slot.written / readSize : 0;
}

function barWidth(width: number): number {
  return width / Math.max(1, Math.floor(width / NARROWEST_BAR));
}
