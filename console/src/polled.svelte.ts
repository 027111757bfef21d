// A value that is loaded again and again while somebody sees it.

import { asFailure, type Failure } from './api/failure';
import { whileVisible } from './visible';

/**
 * A request may take at most this part of the time, so that slow responses are asked for less. Two in
 * a row have to be slow: a single one tells nothing of the next.
 */
const BUSY_PART = 1 / 20;

/**
 * The last value that was loaded, and why the last attempt failed, if it did: a failure does not
 * take the value away.
 */
export class Polled<T> {
  value = $state.raw<T | null>(null);
  failure = $state.raw<Failure | null>(null);
  private running: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private tookBefore = 0;

  constructor(
    private readonly load: (signal: AbortSignal) => Promise<T>,
    private readonly periodMs: number,
  ) {}

  /** Loads now and in each period while the page is visible. Returns what ends that. */
  start(): () => void {
    return whileVisible(
      () => this.refresh(),
      () => this.halt(),
    );
  }

  /** Loads now. */
  refresh(): void {
    this.halt();
    const running = new AbortController();
    this.running = running;
    void this.attempt(running.signal);
  }

  private halt(): void {
    clearTimeout(this.timer);
    this.running?.abort();
    this.running = null;
  }

  private async attempt(signal: AbortSignal): Promise<void> {
    const began = performance.now();
    try {
      const value = await this.load(signal);
      if (signal.aborted) return;
      this.value = value;
      this.failure = null;
    } catch (thrown) {
      if (signal.aborted) return;
      this.failure = asFailure(thrown);
    }
    const took = performance.now() - began;
    const slow = Math.min(took, this.tookBefore);
    this.tookBefore = took;
    this.timer = setTimeout(() => this.refresh(), Math.max(this.periodMs, slow / BUSY_PART));
  }
}
