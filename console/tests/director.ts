// A director in place of the server, and its answers.

import type { Page } from '@playwright/test';
import type { Json } from './answers';

const GIB = 2 ** 30;

/** A node with two disks, of which a part is free. */
export function node(name: string, fields: Json = {}): Json {
  const share = (guaranteed: number, free: number) => ({ guaranteed, free });
  return {
    name,
    address: `http://${name}.example:8080`,
    rack: 'r1',
    answers: true,
    lease: 10,
    disks: [share(1e9, 0.5e9), share(1e9, 0.74e9)],
    network: share(2 ** 50, 2 ** 50 - 1e6),
    memory: share(4 * GIB, GIB),
    space: [share(100 * GIB, 25 * GIB), share(100 * GIB, 50 * GIB)],
    drained: false,
    fills_ordered: 0,
    ...fields,
  };
}

export function title(name: string, ready: readonly string[], filling: readonly string[] = []): Json {
  return { name, bit_rate: 5_000_000, bytes: 2 ** 32, ready, filling, hls: `/t/${name}/master.m3u8` };
}

/** What a director answers; tests change it. */
export interface Directed {
  nodes: Json[];
  away: Json[];
  titles: Json[];
  uptime: number;
  etcd: Json;
  counters: Json;
  planning: Json;
  /** What it answers instead; `lost` for no answer. */
  instead: 'lost' | { status: number; json: unknown } | null;
  /** The addresses that were requested, without those of the page itself. */
  readonly asked: string[];
}

/** Answers as a director with four nodes, one of which does not answer. */
export async function directorAs(page: Page, changes: Partial<Directed> = {}): Promise<Directed> {
  const directed: Directed = {
    nodes: [node('n1'), node('n2'), node('n3', { answers: false, rack: 'r2' }), node('n10')],
    away: [],
    titles: [title('alpha', ['n1', 'n2']), title('beta', ['n1'], ['n2']), title('gamma', [])],
    uptime: 5000,
    etcd: {},
    counters: {},
    planning: { planner: null, here: null },
    instead: null,
    asked: [],
    ...changes,
  };
  await page.route(
    ({ pathname }) => !pathname.startsWith('/console/'),
    async (route) => {
      const { pathname } = new URL(route.request().url());
      directed.asked.push(pathname);
      const { instead } = directed;
      if (instead === 'lost') return route.abort();
      if (instead !== null) return route.fulfill(instead);
      if (pathname === '/status') return route.fulfill({ json: statusOf(directed) });
      if (pathname === '/titles') return route.fulfill({ json: { titles: directed.titles } });
      return route.fulfill({ status: 404, body: '' });
    },
  );
  return directed;
}

function statusOf({ nodes, away, titles, uptime, etcd, counters, planning }: Directed): Json {
  return {
    planning,
    version: '1.2.3',
    cluster: 'films',
    uptime,
    connections: 7,
    etcd: {
      endpoint: 'http://10.0.0.1:2379',
      error: null,
      age: 1.2,
      lists: 1,
      writes: 0,
      unusable_records: 0,
      ...etcd,
    },
    revision: 1234,
    epoch: 1,
    nodes,
    away,
    titles: titles.length,
    counters: {
      admitted: 1000,
      refused: { full: 20, 'no-copy': 5, unreachable: 0 },
      questions: 1100,
      node_refusals: 40,
      node_silent: 3,
      content_misses: 5,
      health_misses: 25,
      ...counters,
    },
  };
}
