// The data of a plot, as reports embed it in JSON and as the console makes it.

/** How the points of a series are joined; the same words as in the reports. */
export type Shape = 'line' | 'step' | 'area' | 'dots' | 'spans' | 'limit';

/** A point; a coordinate that is not finite is `null`, and the point is left out. */
export type Point = readonly [x: number | null, y: number | null];

export interface Series {
  readonly name: string;
  readonly shape: Shape;
  readonly points: readonly Point[];
}

/** What all plots have: a title and the names of the axes, with their units. */
interface Labels {
  readonly title: string;
  readonly x: string;
  readonly y: string;
}

/** Series against common axes, which begin at zero. */
export interface LinesData extends Labels {
  readonly kind: 'lines';
  readonly series: readonly Series[];
  /** The least upper end of the vertical axis. */
  readonly top?: number;
  /** The least right end of the horizontal axis. */
  readonly end?: number;
}

/** A rectangle with a count: from x to x, from y to y. */
export type Cell = readonly [x0: number, x1: number, y0: number, y1: number, count: number];

/** Counts by x and y; the vertical axis is logarithmic. */
export interface HeatData extends Labels {
  readonly kind: 'heat';
  readonly cells: readonly Cell[];
  /** A height that is marked. */
  readonly limit: number | null;
  /** The least right end of the horizontal axis. */
  readonly end: number;
}

export type PlotData = LinesData | HeatData;

const SHAPES: readonly string[] = ['line', 'step', 'area', 'dots', 'spans', 'limit'];

/** The data in a JSON text; `null` where it has another form, as that of another version may. */
export function parsePlot(json: string): PlotData | null {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return null;
  }
  return isPlot(value) ? value : null;
}

function isPlot(value: unknown): value is PlotData {
  if (!isObject(value) || !['title', 'x', 'y'].every((key) => typeof value[key] === 'string')) {
    return false;
  }
  if (value['kind'] === 'lines') return isListOf(value['series'], isSeries);
  return value['kind'] === 'heat' && isListOf(value['cells'], (cell) => isListOf(cell, isNumber));
}

function isSeries(value: unknown): boolean {
  const isPoint = (point: unknown) =>
    isListOf(point, (part) => part === null || isNumber(part)) && point.length === 2;
  return (
    isObject(value) &&
    typeof value['name'] === 'string' &&
    SHAPES.includes(String(value['shape'])) &&
    isListOf(value['points'], isPoint)
  );
}

const isNumber = (value: unknown) => typeof value === 'number';

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isListOf(value: unknown, isItem: (item: unknown) => boolean): value is unknown[] {
  return Array.isArray(value) && value.every(isItem);
}
