// The geometry of series: what is drawn, how far the axes go, and which values a place stands for.

import type { Axis, Range } from './axis';
import type { LinesData, Point, Series } from './data';

/** A point whose coordinates are known. */
export type Known = readonly [x: number, y: number];

/** The points of a series that are known, in the order of the series. */
export function known(points: readonly Point[]): Known[] {
  return points.filter(
    (point): point is Known => Number.isFinite(point[0]) && Number.isFinite(point[1]),
  );
}

/** The ranges of both axes that show all values. */
export function extent(data: LinesData, series: readonly Series[]): { x: Range; y: Range } {
  const all = series.flatMap(({ points }) => known(points));
  const most = (of: 0 | 1) => all.reduce((most, point) => Math.max(most, point[of]), 0) || 1;
  return {
    x: { from: 0, to: Math.max(most(0), data.end ?? 0) },
    y: { from: 0, to: Math.max(most(1) * MARGIN, data.top ?? 0) },
  };
}

/** The highest value of series between two x, with a margin; `null` where there is none. */
export function topWithin(series: readonly Series[], { from, to }: Range): number | null {
  let top = 0;
  for (const { shape, points } of series) {
    let before: Known | null = null;
    for (const point of known(points)) {
      const isWithin = point[0] >= from && point[0] <= to;
      if (isWithin || shape === 'limit') top = Math.max(top, point[1]);
      // What holds from before the first point in the range, or joins it, is seen, too.
      if (point[0] >= from && before !== null && before[0] < from) top = Math.max(top, before[1]);
      before = point;
    }
    if (before && before[0] < from && shape !== 'dots' && shape !== 'spans') {
      top = Math.max(top, before[1]);
    }
  }
  return top > 0 ? top * MARGIN : null;
}

/** The path that joins the points of a series, and for an area the path that is filled. */
export function paths(series: Series, x: Axis, y: Axis): { line: string; area: string | null } {
  const points = known(series.points);
  const at = (point: Known) => `${round(x.place(point[0]))},${round(y.place(point[1]))}`;
  const [first] = points;
  const last = points.at(-1);
  if (!first || !last) return { line: '', area: null };
  switch (series.shape) {
    case 'dots':
      // A line without length has round ends.
      return { line: points.map((point) => `M${at(point)}h0`).join(''), area: null };
    case 'limit': {
      const height = round(y.place(first[1]));
      return { line: `M${x.place(x.range.from)},${height}H${x.place(x.range.to)}`, area: null };
    }
    case 'spans': {
      const pairs = points.slice(0, points.length - (points.length % 2));
      const part = (point: Known, index: number) => `${index % 2 === 0 ? 'M' : 'L'}${at(point)}`;
      return { line: pairs.map(part).join(''), area: null };
    }
    case 'line':
      return { line: `M${points.map(at).join('L')}`, area: null };
    case 'step':
    case 'area': {
      const steps = points.map(
        (point, index) =>
          (index === 0 ? 'M' : `H${round(x.place(point[0]))}V`) +
          (index === 0 ? at(point) : String(round(y.place(point[1])))),
      );
      const line = steps.join('');
      if (series.shape === 'step') return { line, area: null };
      const ground = round(y.place(0));
      const area = `${line}V${ground}H${round(x.place(first[0]))}Z`;
      return { line, area };
    }
  }
}

/** A value of a series at a place. */
export interface Reading {
  /** The index of the series. */
  readonly series: number;
  readonly x: number;
  /** One value, or both ends of a span. */
  readonly y: readonly number[];
}

/** The x that is nearest to a place in pixels among all points that are shown. */
export function nearestX(
  series: readonly Series[],
  isShown: (index: number) => boolean,
  x: Axis,
  y: Axis,
  place: { x: number; y: number },
): number | null {
  let [best, found]: [number, number | null] = [Infinity, null];
  series.forEach(({ shape, points }, index) => {
    if (shape === 'limit' || !isShown(index)) return;
    // Points that stand alone are pointed at; lines are read from above and below.
    const weight = shape === 'dots' || shape === 'spans' ? 1 : 0.02;
    for (const point of known(points)) {
      if (point[0] < x.range.from || point[0] > x.range.to) continue;
      const across = x.place(point[0]) - place.x;
      const upward = (y.place(point[1]) - place.y) * weight;
      const distance = across * across + upward * upward;
      if (distance < best) [best, found] = [distance, point[0]];
    }
  });
  return found;
}

/** What each series that is shown has at an x; series without a value there are left out. */
export function readings(
  series: readonly Series[],
  isShown: (index: number) => boolean,
  x: number,
): Reading[] {
  return series.flatMap((one, index) => {
    if (!isShown(index)) return [];
    const values = valuesAt(one, x);
    return values.length > 0 ? [{ series: index, x, y: values }] : [];
  });
}

function valuesAt({ shape, points }: Series, x: number): number[] {
  const all = known(points);
  const here = all.filter((point) => point[0] === x).map((point) => point[1]);
  switch (shape) {
    case 'limit':
      return all.slice(0, 1).map((point) => point[1]);
    case 'spans':
      return here.slice(0, 2);
    case 'step':
    case 'area': {
      // A value holds until the next point, but not beyond the last one.
      const last = all.at(-1);
      if (here.length > 0) return here.slice(-1);
      const before = all.filter((point) => point[0] < x).at(-1);
      return before && last && x <= last[0] ? [before[1]] : [];
    }
    case 'line':
      return here.slice(-1);
    case 'dots':
      return here.slice(0, MOST_DOTS);
  }
}

/** All x at which a series that is shown has a point, in ascending order. */
export function places(series: readonly Series[], isShown: (index: number) => boolean): number[] {
  const all = series.flatMap(({ shape, points }, index) =>
    shape === 'limit' || !isShown(index) ? [] : known(points).map((point) => point[0]),
  );
  return [...new Set(all)].sort((a, b) => a - b);
}

const round = (place: number) => Math.round(place * 100) / 100;

/** The axis goes on above the highest value. */
const MARGIN = 1.08;
/** Values of dots at one x that are named. */
const MOST_DOTS = 6;
