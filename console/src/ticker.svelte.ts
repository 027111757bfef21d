// The time, once a second, for texts that count.

import { createSubscriber } from 'svelte/reactivity';
import { serverClock } from './api/clock';

const subscribe = createSubscriber((update) => {
  const timer = setInterval(update, 1000);
  return () => clearInterval(timer);
});

export const ticker = {
  /** The server's Unix time in seconds; `null` before its first response. */
  get server(): number | null {
    subscribe();
    return serverClock.now();
  },
  /** The browser's monotonic time in milliseconds. */
  get monotonic(): number {
    subscribe();
    return performance.now();
  },
};
