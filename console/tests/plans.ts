// Plans in place of the server's: a hard disk of 20 TB, as `tenuto plan` computes it for streams of
// 5 Mb/s, and a disk whose streams are limited by memory.

import type { Page, Request, Route } from '@playwright/test';
import { answer, type Json } from './answers';

const KIB = 1024;

export const PLANNING = {
  models: [
    { name: 'ssd-nvme', title: 'NVMe solid-state disk, 3.84 TB', kind: 'ssd', capacity: 3.84e12 },
    { name: 'hdd-20tb', title: '20 TB nearline disk, 7,200 rpm', kind: 'hdd', capacity: 20e12 },
  ],
  policies: [
    { name: 'time-domain', guaranteed: true },
    { name: 'vbrsim', guaranteed: true },
    { name: 'time-domain-by-chance', guaranteed: false },
  ],
  read_sizes: [64, 1024, 2048, 4096, 8192].map((size) => size * KIB),
};

/** Read size in KiB; Özden, any place, zone-exact, usual; streams that admission takes. */
const ROWS: readonly (readonly [number, number, number, number, number, number | null])[] = [
  [64, 7, 5, 6, 11, 9],
  [1024, 101, 87, 108, 152, 109],
  [2048, 140, 127, 167, 213, 167],
  [4096, 174, 164, 226, 265, 226],
  [8192, 197, 191, 274, 300, null],
];
const GIB = 2 ** 30;
/** What a stream of the disk that lacks memory books. */
const BOOKED = 16 * 2 ** 20;

/** The answer to the query of a plan. */
export function planFor(query: URLSearchParams): Json {
  const disks = Number(query.get('disks') ?? 1);
  const memory = query.has('memory') ? Number(query.get('memory')) : null;
  const isSolid = query.get('model') === 'ssd-nvme';
  const policy = query.get('policy') ?? 'time-domain';
  const guaranteed = policy !== 'time-domain-by-chance';
  const wanted = query.has('read_size') ? Number(query.get('read_size')) : null;
  const inMemory = memory === null ? Infinity : Math.floor(memory / disks / BOOKED);
  const rows = ROWS.filter(([size]) => wanted === null || wanted === size * KIB).map(
    ([size, ozden, anyPlace, zoneExact, usual, admitted]) => {
      const bySpeed = isSolid ? 2000 : admitted;
      const streams = bySpeed === null ? null : Math.min(bySpeed, inMemory);
      return {
        read_size: size * KIB,
        lasts: (size * KIB * 8) / 5e6,
        ozden: isSolid ? null : ozden,
        any_place: isSolid ? null : anyPlace,
        zone_exact: isSolid ? null : zoneExact,
        usual: isSolid ? null : usual,
        in_memory: memory === null ? null : Math.floor(memory / disks / (2 * size * KIB)),
        admitted: streams === null ? null : {
          streams,
          short_of: streams === bySpeed ? 'disk' : 'memory',
          memory_booked: streams * BOOKED,
          late_reads: guaranteed ? 0 : 360,
        },
      };
    },
  );
  const [best] = rows
    .filter(({ admitted }) => admitted !== null && admitted.streams > 0)
    .sort((a, b) => (b.admitted?.streams ?? 0) - (a.admitted?.streams ?? 0));
  const streams = best?.admitted?.streams ?? 0;
  return {
    disk: isSolid ? 'NVMe solid-state disk, 3.84 TB' : '20 TB nearline disk, 7,200 rpm',
    slot: 0.5,
    bit_rate: Number(query.get('rate') ?? 5_550_000),
    memory,
    disks,
    policy,
    guaranteed,
    ratio: isSolid ? 2100 : 346,
    s_max: 330,
    r0: 1_653_588_816,
    t0: 0.0068,
    rows,
    best: best === undefined ? null : {
      read_size: best.read_size,
      streams,
      streams_in_all: streams * disks,
      short_of: best.admitted?.short_of ?? null,
      cycle: isSolid ? null : 4.887,
      buffer: isSolid ? null : 3_054_786,
      memory_needed: 2 * best.read_size * streams * disks,
      memory_booked: streams * disks * BOOKED,
      startup: 1,
      startup_in_rounds: 13.4217728,
    },
    shared: !query.has('titles') || memory === null || best === undefined ? null : {
      titles: Number(query.get('titles')),
      zipf: Number(query.get('zipf')),
      within: 7200,
      read_size: best.read_size,
      viewers: 2 * streams * disks,
      streams: streams * disks,
      short_of: 'memory',
    },
  };
}

/** Answers as a server that makes plans. Returns the queries that were asked, in their order. */
export async function planAsServer(
  page: Page,
  act: (route: Route, query: URLSearchParams) => Promise<void> = fulfilPlan,
): Promise<URLSearchParams[]> {
  const asked: URLSearchParams[] = [];
  await answer(page, '/api/v1/planning', (route) => route.fulfill({ json: PLANNING }));
  await answer(page, '/api/v1/plan', async (route) => {
    const query = queryOf(route.request());
    asked.push(query);
    await act(route, query);
  });
  return asked;
}

export async function fulfilPlan(route: Route, query: URLSearchParams): Promise<void> {
  await route.fulfill({ json: planFor(query) });
}

function queryOf(request: Request): URLSearchParams {
  return new URL(request.url()).searchParams;
}

/** A hash with settings. */
export function whatIf(settings: Readonly<Record<string, string | number>> = {}): string {
  const usual = { viewers: 1000, rate: 5e6, model: 'hdd-20tb', disks: 4, memory: 16 * GIB };
  const query = new URLSearchParams();
  const all: Record<string, string | number> = { ...usual, ...settings };
  for (const [name, value] of Object.entries(all)) query.set(name, String(value));
  return `#/what-if?${query}`;
}
