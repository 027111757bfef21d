// Answers in place of the server's.

import type { Page, Route } from '@playwright/test';

export type Json = Record<string, unknown>;

/** Answers an address of the API in place of the server. */
export async function answer(page: Page, path: string | RegExp, act: (route: Route) => Promise<void>) {
  await page.route(
    (url) => (typeof path === 'string' ? url.pathname === path : path.test(url.pathname)),
    act,
  );
}

/** A list of as many sessions. */
export function sessions(count: number): Json {
  return {
    total: count,
    sessions: Array.from({ length: count }, (_, index) => ({
      session: index + 1,
      title: `film ${index % 97}`,
      store: '/srv/a.store',
      priority: 'normal',
      age: index / 10,
      position: index / 20,
      delivered_until: index / 20 + 12,
      duration: 5400,
      rendition: { track: 0, width: 1920, height: 1080, bit_rate: 5_000_000 },
      drift: index % 1000 === 999 ? 0.042 : 0,
      buffered: index * 1024,
      delivered: index * 1_000_000,
      guaranteed_slack: 0.4,
      observed_slack: index % 3 === 0 ? null : 0.5,
      deadline_misses: 0,
      cmcd: null,
    })),
  };
}
