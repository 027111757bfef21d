// What a director has counted, over the last minutes: differences of its counters.

import type { Counters, DirectorStatus } from '../api/cluster';

/** The counters at a moment of the director's uptime. */
export interface CountedAt extends Counters {
  readonly uptime: number;
}

/** Differences of the counters, and the seconds in which they came. */
export interface Change {
  readonly seconds: number;
  readonly admitted: number;
  /** By cause, the most frequent first; without causes that did not occur. */
  readonly refused: readonly (readonly [cause: string, number: number])[];
  readonly contentMisses: number;
  readonly healthMisses: number;
}

/** Viewers per second at the times, in seconds, before the last sample. */
export interface ViewerRates {
  readonly seconds: readonly number[];
  readonly admitted: readonly number[];
  /** By cause, those that occurred in the time, in the order of their names. */
  readonly refused: readonly (readonly [cause: string, rates: readonly number[]])[];
}

/** Seconds that are kept. */
const MOST_SECONDS = 300;
/** Seconds of the minute in the sentence; a status may be late by one. */
const MINUTE = 61;
/** A rate is the mean of this many seconds: viewers come one by one. */
const MEAN_SECONDS = 5;

const nothing: CountedAt = {
  uptime: 0,
  admitted: 0,
  refused: new Map(),
  questions: 0,
  nodeRefusals: 0,
  nodeSilent: 0,
  contentMisses: 0,
  healthMisses: 0,
};

/** The samples, oldest first, with the counters of a status, which has just arrived. */
export function withCounted(known: readonly CountedAt[], status: DirectorStatus): CountedAt[] {
  const sample = { uptime: status.uptime, ...status.counters };
  const last = known.at(-1);
  if (last === undefined || isOfAnother(sample, last)) {
    // Of a director that has just started it is known that it counted from zero.
    return sample.uptime > 0 && sample.uptime < MINUTE ? [nothing, sample] : [sample];
  }
  const kept = known.filter(
    ({ uptime }) => uptime < sample.uptime && sample.uptime - uptime <= MOST_SECONDS,
  );
  return [...kept, sample];
}

/** What was counted in the last minute, or as long as is known; `null` for less than two samples. */
export function lastMinute(samples: readonly CountedAt[]): Change | null {
  const last = samples.at(-1);
  const first = samples.find(({ uptime }) => last && last.uptime - uptime <= MINUTE);
  if (!last || !first || first === last) return null;
  const refused = [...last.refused]
    .map(([cause, number]) => [cause, number - (first.refused.get(cause) ?? 0)] as const)
    .filter(([, number]) => number > 0)
    .sort(([, a], [, b]) => b - a);
  return {
    seconds: last.uptime - first.uptime,
    admitted: last.admitted - first.admitted,
    refused,
    contentMisses: last.contentMisses - first.contentMisses,
    healthMisses: last.healthMisses - first.healthMisses,
  };
}

export function viewerRates(samples: readonly CountedAt[]): ViewerRates {
  const [first, last] = [samples[0], samples.at(-1)];
  if (!first || !last) return { seconds: [], admitted: [], refused: [] };
  const spans: [from: CountedAt, to: CountedAt][] = [];
  let from = 0;
  samples.forEach((to, index) => {
    while (from + 1 < index && to.uptime - (samples[from + 1]?.uptime ?? 0) >= MEAN_SECONDS) from += 1;
    const before = samples[from];
    if (before && before.uptime < to.uptime) spans.push([before, to]);
  });
  const rates = (of: (sample: CountedAt) => number) =>
    spans.map(([before, to]) => Math.max(0, of(to) - of(before)) / (to.uptime - before.uptime));
  const causes = [...last.refused.keys()].sort().filter((cause) => {
    return (last.refused.get(cause) ?? 0) > (first.refused.get(cause) ?? 0);
  });
  return {
    seconds: spans.map(([, to]) => to.uptime - last.uptime),
    admitted: rates((sample) => sample.admitted),
    refused: causes.map((cause) => [cause, rates((sample) => sample.refused.get(cause) ?? 0)]),
  };
}

/** Whether a sample is of a director that has started since the last one: it counts from zero. */
function isOfAnother(sample: CountedAt, last: CountedAt): boolean {
  if (sample.uptime < last.uptime || sample.admitted < last.admitted) return true;
  return [...last.refused].some(([cause, number]) => (sample.refused.get(cause) ?? 0) < number);
}
