// The live state of the meter's console, which is asked for again and again while the page is seen.

import { asFailure } from '../api/failure';
import { loadMeterStatus, type MeterStatus, type Sample } from '../api/meter';
import { live } from '../live.svelte';
import { whileVisible } from '../visible';

const PERIOD_MS = { running: 500, idle: 2_000 };
/** As many as the console keeps. */
const MOST_SAMPLES = 1_200;

class Meter {
  latest = $state.raw<MeterStatus | null>(null);
  /** The samples of the latest measurement. */
  samples = $state.raw<readonly Sample[]>([]);
  /** Counts the measurements that have ended while the page was there: the reports have changed. */
  ended = $state(0);
  private next = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private running: AbortController | null = null;

  /** Follows the console while the page is visible. Returns what ends that. */
  start(): () => void {
    return whileVisible(
      () => this.refresh(),
      () => this.halt(),
    );
  }

  /** Asks now. */
  refresh(): void {
    this.halt();
    const running = new AbortController();
    this.running = running;
    void this.ask(running.signal);
  }

  private halt(): void {
    clearTimeout(this.timer);
    this.running?.abort();
    this.running = null;
  }

  private async ask(stop: AbortSignal): Promise<void> {
    const before = this.latest?.measurement ?? null;
    try {
      const status = await loadMeterStatus(before?.number ?? 0, this.next, stop);
      if (stop.aborted) return;
      const { measurement } = status;
      if (measurement) {
        const isSame = measurement.number === before?.number && measurement.from === this.next;
        const known = isSame ? this.samples : [];
        this.samples = [...known, ...measurement.samples].slice(-MOST_SAMPLES);
        this.next = measurement.from + measurement.samples.length;
        if (!measurement.isRunning && before?.isRunning) this.ended += 1;
      } else {
        this.samples = [];
        this.next = 0;
      }
      this.latest = status;
      live.answered();
    } catch (thrown) {
      if (stop.aborted) return;
      live.failed(asFailure(thrown));
    }
    const isRunning = this.latest?.measurement?.isRunning ?? false;
    const period = isRunning ? PERIOD_MS.running : PERIOD_MS.idle;
    this.timer = setTimeout(() => void this.ask(stop), period);
  }
}

export const meter = new Meter();
