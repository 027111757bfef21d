// The live state of a director. It has no stream of events, so its status is asked for again and
// again.

import { type DirectorStatus, loadDirectorStatus } from '../api/cluster';
import { asFailure } from '../api/failure';
import { live } from '../live.svelte';
import { type CountedAt, withCounted } from './counted';

const PERIOD_MS = 1_000;
/** The counters go on while nobody sees the page. */
const HIDDEN_PERIOD_MS = 10_000;

class Director {
  latest = $state.raw<DirectorStatus | null>(null);
  counted = $state.raw<readonly CountedAt[]>([]);

  /** Follows the director. Returns what ends that. */
  start(): () => void {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      timer = undefined;
      const began = performance.now();
      await this.ask(stop.signal);
      if (stop.signal.aborted) return;
      const period = document.hidden ? HIDDEN_PERIOD_MS : PERIOD_MS;
      // A director whose answers take long is asked for less.
      timer = setTimeout(() => void ask(), Math.max(period, performance.now() - began));
    };
    const onVisibility = () => {
      if (document.hidden || timer === undefined) return;
      clearTimeout(timer);
      void ask();
    };
    void ask();
    document.addEventListener('visibilitychange', onVisibility);
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisibility);
    };
  }

  private async ask(stop: AbortSignal): Promise<void> {
    try {
      const status = await loadDirectorStatus(stop);
      if (stop.aborted) return;
      this.latest = status;
      this.counted = withCounted(this.counted, status);
      live.answered();
    } catch (thrown) {
      if (!stop.aborted) live.failed(asFailure(thrown));
    }
  }
}

export const director = new Director();
