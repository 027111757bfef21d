// The plots of the page: of the measurement that runs, and of two reports.

import type { Figures, Sample, SearchRun } from '../api/meter';
import { measureText } from '../measure_text';
import type { LinesData, Point, Series } from '../plots/data';

const text = measureText.plots;

/** Of the samples of a measurement: the rate, and the responses. */
export function livePlots(samples: readonly Sample[], figures: Figures | null): LinesData[] {
  const over = (value: (sample: Sample) => number): Point[] =>
    samples.map((sample) => [sample.at, value(sample)]);
  const limit: Series[] = figures
    ? [{ name: text.inTime, shape: 'limit', points: [[0, figures.allowed * 1e3]] }]
    : [];
  return [
    {
      kind: 'lines',
      title: text.rate,
      x: text.seconds,
      y: text.rateUnit,
      series: [
        { name: text.came, shape: 'area', points: over(({ bitsPerS }) => bitsPerS / 1e6) },
        { name: text.asked, shape: 'step', points: over(({ askedBitsPerS }) => askedBitsPerS / 1e6) },
      ],
    },
    {
      kind: 'lines',
      title: text.responses,
      x: text.seconds,
      y: text.milliseconds,
      series: [
        { name: text.response, shape: 'step', points: over(({ p99 }) => p99 * 1e3) },
        ...limit,
      ],
    },
  ];
}

/** Something of report A or B, by the report's name. */
export interface OfReport<T> {
  readonly mark: string;
  readonly name: string;
  readonly value: T;
}

/** The longest responses of two runs, second by second. */
export function secondsPlot(reports: readonly OfReport<readonly number[]>[]): LinesData {
  return {
    kind: 'lines',
    title: text.longest,
    x: text.seconds,
    y: text.milliseconds,
    series: reports.map(({ mark, name, value }) => ({
      name: text.of(mark, name),
      shape: 'step',
      points: value.map((seconds, second): Point => [second, seconds * 1e3]),
    })),
  };
}

/** The runs of two searches. */
export function searchPlot(reports: readonly OfReport<readonly SearchRun[]>[]): LinesData {
  const points = (runs: readonly SearchRun[], isHeld: boolean): Point[] =>
    runs
      .filter((run) => run.isHeld === isHeld)
      .map((run): Point => [run.streams, run.bitsPerS / 1e6])
      .sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0));
  return {
    kind: 'lines',
    title: text.search,
    x: text.streams,
    y: text.rateUnit,
    series: reports.flatMap(({ mark, name, value }): Series[] => [
      { name: text.of(mark, name), shape: 'dots', points: points(value, true) },
      { name: text.notHeld(mark, name), shape: 'dots', points: points(value, false) },
    ]),
  };
}
