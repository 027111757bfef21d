/** What was sent until a moment of the server's uptime. */
export interface SentAt {
  readonly uptime: number;
  readonly bytes: number;
}

/** The bit rate of what was sent at the times, in seconds, before the last sample. */
export interface RateSeries {
  readonly seconds: readonly number[];
  readonly bitsPerSecond: readonly number[];
}

/** A rate is the mean of this many seconds: a response is sent in bursts. */
const MEAN_SECONDS = 2;

export function ratesOf(sent: readonly SentAt[]): RateSeries {
  const last = sent.at(-1);
  const seconds: number[] = [];
  const bitsPerSecond: number[] = [];
  if (!last) return { seconds, bitsPerSecond };
  let from = 0;
  sent.forEach((sample, index) => {
    while (from + 1 < index && sample.uptime - (sent[from + 1]?.uptime ?? 0) >= MEAN_SECONDS) {
      from += 1;
    }
    const before = sent[from];
    if (!before || sample.uptime <= before.uptime) return;
    seconds.push(sample.uptime - last.uptime);
    const bits = (sample.bytes - before.bytes) * 8;
    bitsPerSecond.push(Math.max(0, bits / (sample.uptime - before.uptime)));
  });
  return { seconds, bitsPerSecond };
}
