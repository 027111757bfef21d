// The drawing of a disk's slots: what the reads of each slot were for, and the guarantee.
//
//   top ┬ ─ ─ ─ ─ ─ ─ ─ ─   guaranteed reads, or the most reads
//       │     ▓   ▒         writes of recordings
//       │   ▒ ▓ ░ ▒         best effort, read ahead
//       └ █ █ █ █ █         due

import type { SlotUse } from '../api/status';

export interface Palette {
  readonly due: string;
  readonly ahead: string;
  readonly bestEffort: string;
  readonly writes: string;
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
/** Any read is seen. */
const LEAST_HEIGHT = 1.5;
const NARROWEST_BAR = 3;

/** The slots that there is room for, the latest ones. */
export function visibleSlots(slots: readonly SlotUse[], width: number): readonly SlotUse[] {
  return slots.slice(-Math.max(1, Math.floor(width / NARROWEST_BAR)));
}

export function scaleOf(slots: readonly SlotUse[]): StripScale {
  const reads = Math.max(0, ...slots.map((slot) => slot.reads + slot.bestEffort + slot.writes));
  const guarantee = Math.max(0, ...slots.map((slot) => slot.minRead));
  const isBeyond = reads > 0 && reads < guarantee * VISIBLE_PART;
  return { top: Math.max(1, isBeyond ? reads : Math.max(reads, guarantee)) * HEADROOM, isBeyond };
}

/** Which of the drawn slots is at a horizontal position; `null` beside them. */
export function slotAt(slots: readonly SlotUse[], width: number, x: number): SlotUse | null {
  const shown = visibleSlots(slots, width);
  const fromRight = Math.floor((width - x) / barWidth(width));
  return shown[shown.length - 1 - fromRight] ?? null;
}

export function drawStrip(
  context: CanvasRenderingContext2D,
  size: StripSize,
  slots: readonly SlotUse[],
  palette: Palette,
): void {
  const { width, height } = size;
  context.clearRect(0, 0, width, height);
  const shown = visibleSlots(slots, width);
  const bar = barWidth(width);
  const scale = scaleOf(shown);
  const heightOf = (reads: number) =>
    reads > 0 ? Math.max(LEAST_HEIGHT, (reads / scale.top) * height) : 0;
  const left = (index: number) => width - (shown.length - index) * bar;

  shown.forEach((slot, index) => {
    let y = height;
    for (const [reads, fill] of partsOf(slot, palette)) {
      const tall = heightOf(reads);
      y -= tall;
      context.fillStyle = fill;
      context.fillRect(left(index), y, bar - 1, tall);
    }
  });

  context.strokeStyle = palette.guarantee;
  context.lineWidth = 1.5;
  context.setLineDash(scale.isBeyond ? [4, 4] : []);
  context.beginPath();
  shown.forEach((slot, index) => {
    const y = scale.isBeyond ? 1 : height - (slot.minRead / scale.top) * height;
    context.lineTo(left(index), y);
    context.lineTo(left(index) + bar, y);
  });
  context.stroke();
  context.setLineDash([]);
}

function partsOf(slot: SlotUse, palette: Palette): [number, string][] {
  return [
    [slot.due, palette.due],
    [slot.ahead, palette.ahead],
    [slot.bestEffort, palette.bestEffort],
    [slot.writes, palette.writes],
  ];
}

function barWidth(width: number): number {
  return width / Math.max(1, Math.floor(width / NARROWEST_BAR));
}
