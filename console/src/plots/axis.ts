// One axis: from values to places on the page and back, and the values that are marked.

/** A range of values. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

export interface Axis {
  readonly range: Range;
  /** The place of a value, in pixels. */
  place(value: number): number;
  /** The value at a place. */
  value(place: number): number;
  /** The values that are marked. */
  readonly marks: readonly number[];
}

/** A linear axis between two places; `apart`: the least distance of two marks, in pixels. */
export function linearAxis(range: Range, start: number, end: number, apart: number): Axis {
  const scale = (end - start) / (range.to - range.from);
  const step = niceStep((range.to - range.from) / Math.max(1, Math.abs(end - start) / apart));
  const marks: number[] = [];
  for (let index = Math.ceil(range.from / step - SLACK); marks.length < MOST_MARKS; index += 1) {
    if (index * step > range.to + step * SLACK) break;
    marks.push(index * step);
  }
  return {
    range,
    place: (value) => start + (value - range.from) * scale,
    value: (place) => range.from + (place - start) / scale,
    marks,
  };
}

/** A logarithmic axis between two places, of values above zero. */
export function logAxis(range: Range, start: number, end: number, apart: number): Axis {
  const [low, high] = [Math.log(range.from), Math.log(range.to)];
  const scale = (end - start) / (high - low);
  const decades = (high - low) / Math.LN10;
  const perDecade = Math.abs(end - start) / apart / decades;
  const factors = perDecade >= 3 ? [1, 2, 5] : [1];
  // Of very many decades only each second, third and so on is marked.
  const each = Math.max(1, Math.ceil(1 / perDecade));
  const first = Math.floor(low / Math.LN10);
  const marks: number[] = [];
  for (let power = first; power <= high / Math.LN10 && marks.length < MOST_MARKS; power += 1) {
    if (power % each !== 0) continue;
    marks.push(...factors.map((factor) => factor * 10 ** power));
  }
  return {
    range,
    place: (value) => start + (Math.log(Math.max(value, range.from / 1e6)) - low) * scale,
    value: (place) => Math.exp(low + (place - start) / scale),
    marks: marks.filter((mark) => mark >= range.from && mark <= range.to),
  };
}

/** The next of 1, 2 and 5 times a power of ten. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = [1, 2, 5].find((factor) => factor * power >= least * (1 - SLACK)) ?? 10;
  return factor * power;
}

/** The value of a mark: as many digits as marks differ by. */
export function markText(mark: number): string {
  return short.format(Math.abs(mark) < 1e-12 ? 0 : mark);
}

/** A value under the pointer: with all digits that a measurement has. */
export function valueText(value: number): string {
  return Math.abs(value) >= 1e5 ? long.format(value) : exact.format(value);
}

const short = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 5 });
const exact = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 6 });
const long = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
/** What rounding may move a mark by, as a part of a step. */
const SLACK = 1e-9;
/** More marks than any axis has room for. */
const MOST_MARKS = 100;
