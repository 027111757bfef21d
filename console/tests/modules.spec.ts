// Modules of the page without a browser: input and expected output.

import type { DirectorStatus } from '../src/api/cluster';
import { EventParser } from '../src/api/event_stream';
import { type CountedAt, lastMinute, viewerRates, withCounted } from '../src/cluster/counted';
import { consoleOf } from '../src/cluster/node_columns';
import { position, shortBitRate, shortBytes, span } from '../src/format';
import { isBehind, justBefore } from '../src/library/names';
import { ratesOf } from '../src/now/rates';
import { withNewSlots } from '../src/now/slot_history';
import { scaleOf } from '../src/now/strip';
import { rowWindow } from '../src/ui/row_window';
import type { Plan, Question } from '../src/api/planning';
import { disksNeeded } from '../src/whatif/needed';
import { parseBitRate, parseBytes, parseCount } from '../src/whatif/quantities';
import { parsePins, parseWhatIf, queryOf } from '../src/whatif/question';
import { diskStops, memoryStops, nearestStop, rateStops, viewerStops } from '../src/whatif/stops';
import { expect, test } from '@playwright/test';

const slot = (number: number, reads = 0, minRead = 0) => ({
  slot: number,
  reads,
  due: reads,
  ahead: 0,
  bestEffort: 0,
  writes: 0,
  minRead,
});

test('events are the same wherever their bytes are cut', () => {
  const stream = ': hello\n\nevent: status\ndata: {"a":1}\n\ndata: one\r\ndata: two\r\nid: 7\r\n\r\n';
  const expected = [
    { name: 'status', data: '{"a":1}' },
    { name: 'message', data: 'one\ntwo' },
  ];
  for (let cut = 0; cut <= stream.length; cut += 1) {
    const parser = new EventParser();
    const events = [...parser.push(stream.slice(0, cut)), ...parser.push(stream.slice(cut))];
    expect(events, `cut at ${cut}`).toEqual(expected);
  }
});

test('the slots of each event are added once', () => {
  const known = [slot(1), slot(2, 5)];
  expect(withNewSlots(known, [slot(2, 6), slot(3)])).toEqual([slot(1), slot(2, 6), slot(3)]);
  expect(withNewSlots(known, [])).toEqual(known);
  const many = Array.from({ length: 700 }, (_, number) => slot(number));
  expect(withNewSlots(many, [slot(700)])).toHaveLength(600);
});

test('the guarantee is to scale unless the reads could not be seen then', () => {
  expect(scaleOf([slot(1, 40, 50)])).toMatchObject({ isBeyond: false });
  expect(scaleOf([slot(1, 3, 1000)])).toMatchObject({ isBeyond: true });
  expect(scaleOf([slot(1, 0, 1000)])).toMatchObject({ isBeyond: false });
  expect(scaleOf([])).toMatchObject({ isBeyond: false });
});

test('names are in the order of their bytes, and a name is next behind that just before it', () => {
  const names = ['', '\0', 'A', 'Z', 'Za', 'a', 'a\0', 'a/b', 'ä', '\ud7ff', '\ue000', '\uffff', '\u{1f3ac}'];
  const bytes = (name: string) => Buffer.from(name);
  for (const name of names) {
    const before = justBefore(name);
    for (const other of names) {
      expect(isBehind(name, other), `${name} ${other}`).toBe(bytes(name).compare(bytes(other)) > 0);
      const isFrom = before === null || isBehind(other, before);
      expect(isFrom, `${other} from ${name} on`).toBe(bytes(other).compare(bytes(name)) >= 0);
    }
  }
});

test('the window of rows is as long everywhere, and within the table', () => {
  for (const [rows, scrolled] of [
    [0, 0],
    [5, 0],
    [10_000, 0],
    [10_000, 170_000],
    [10_000, 340_000],
    // The table has become shorter since it was scrolled.
    [100, 340_000],
  ] as const) {
    const { first, end, size } = rowWindow(rows, 34, scrolled, 340);
    expect(end - first).toBe(Math.min(rows, size));
    expect(first).toBeGreaterThanOrEqual(0);
    expect(end).toBeLessThanOrEqual(rows);
  }
});

test('rates are of the last seconds, and never below zero', () => {
  const sent = [0, 1, 2, 3, 4].map((uptime) => ({ uptime, bytes: uptime * 1000 }));
  expect(ratesOf(sent).bitsPerSecond).toEqual([8000, 8000, 8000, 8000]);
  expect(ratesOf(sent).seconds).toEqual([-3, -2, -1, 0]);
  expect(ratesOf([]).seconds).toEqual([]);
  expect(ratesOf([{ uptime: 1, bytes: 9 }, { uptime: 2, bytes: 0 }]).bitsPerSecond).toEqual([0]);
});

test('spans and positions', () => {
  const spans = [0, 0.4, 41, 60, 200, 7500, 93_600].map(span);
  expect(spans).toEqual(['0 s', '0 s', '41 s', '1 min', '3 min 20 s', '2 h 5 min', '1 d 2 h']);
  expect([0, 61.4, 3723, -1].map(position)).toEqual(['0:00', '1:01', '1:02:03', '0:00']);
});

test('typed quantities', () => {
  const rates = ['5 Mbps', '5mb/s', '5,5 Mbit/s', '800k', '2 MB/s', '0.1 Gbps', '5', 'fast', '-5 Mbps', '0 Mbps'];
  expect(rates.map(parseBitRate)).toEqual([
    5e6, 5e6, 5.5e6, 8e5, 16e6, 1e8, undefined, undefined, undefined, undefined,
  ]);
  const sizes = ['4 GiB', '4gib', '1.5 MiB', '4G', '4 GB', '64 KiB', '4 Gb/s', '4', '', '9e99 TiB'];
  expect(sizes.map(parseBytes)).toEqual([
    2 ** 32, 2 ** 32, 1.5 * 2 ** 20, 2 ** 32, 4e9, 65536, undefined, undefined, undefined, undefined,
  ]);
  const counts = ['1000', '1,000', '1.000', '1 000 000', ' 7 ', '0', '1.5', '-1', 'ten', '1,00'];
  expect(counts.map(parseCount)).toEqual([
    1000, 1000, 1000, 1e6, 7, undefined, undefined, undefined, undefined, undefined,
  ]);
});

test('quantities are typed as they are shown', () => {
  for (const rate of rateStops) expect(parseBitRate(shortBitRate(rate))).toBe(rate);
  for (const size of memoryStops) if (size !== null) expect(parseBytes(shortBytes(size))).toBe(size);
});

test('the stops of sliders rise, and their own values are nearest to them', () => {
  for (const stops of [viewerStops, rateStops, diskStops, memoryStops]) {
    const numbers = stops.filter((stop) => stop !== null);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    stops.forEach((stop, index) => expect(nearestStop(stops, stop)).toBe(index));
    expect(nearestStop(stops, Number.MAX_SAFE_INTEGER)).toBe(numbers.length - 1);
  }
  for (const number of [1, 10, 100, 1000]) expect(viewerStops).toContain(number);
  expect(rateStops).toContain(5_000_000);
  expect(diskStops.slice(0, 33)).toEqual(Array.from({ length: 32 }, (_, index) => index + 1).concat(36));
});

test('a question is in the address, and the same again from it', () => {
  const name = '<b>a&pin=b#c/50 %\u202e?';
  for (const query of [
    'viewers=7&rate=2500000&model=ssd-nvme&disks=3&memory=unlimited&read_size=65536&policy=vbrsim',
    `viewers=7&${new URLSearchParams({ title: name })}&disk=00ff&disks=3&memory=1048576`,
  ]) {
    const pins = parsePins(`pin=${encodeURIComponent(query)}&pin=viewers%3D1&pin=viewers%3D1`);
    expect(pins).toEqual([query, 'viewers=1']);
    const written = queryOf(parseWhatIf(query), pins);
    expect(parseWhatIf(written)).toEqual(parseWhatIf(query));
    expect(parsePins(written)).toEqual(pins);
  }
  expect(parseWhatIf(`title=${encodeURIComponent(name)}`).demand).toEqual({ title: name });
  expect(parseWhatIf('titles=500&zipf=1.1').popularity).toEqual({ titles: 500, zipf: 1.1 });
  expect(parseWhatIf('titles=500&zipf=11').popularity).toEqual({ titles: 500, zipf: 0.8 });
  // People may write units, too, and what is wrong is as at first.
  expect(parseWhatIf('rate=8Mbps&memory=2GiB')).toMatchObject({ demand: { rate: 8e6 }, memory: 2 ** 31 });
  expect(parseWhatIf('viewers=-1&rate=x&disks=&memory=much&read_size=0&policy=')).toEqual(parseWhatIf(''));
});

test('disks are sought until a plan holds the viewers, or more disks hold no more', () => {
  const question = (disks: number, memory: number | null): Question => ({
    disk: { model: 'hdd' },
    demand: { rate: 5e6 },
    disks,
    memory,
    readSize: null,
    policy: null,
    popularity: null,
  });
  const plan = (disks: number, streams: number) =>
    ({ disks, best: { streams, streamsInAll: streams * disks } }) as Plan;
  const seek = (viewers: number, memory: number | null, streams: (disks: number) => number | null) => {
    const made = [1];
    for (;;) {
      const found = disksNeeded(viewers, question(1, memory), plan(1, streams(1) ?? 0), (other) => {
        if (!made.includes(other.disks)) return undefined;
        const held = streams(other.disks);
        return held === null ? null : plan(other.disks, held);
      });
      if (!('ask' in found)) return { ...found, made };
      made.push(found.ask.disks);
    }
  };
  expect(seek(1000, null, () => 226)).toEqual({ disks: 5, made: [1] });
  expect(seek(1000, 1, () => 226)).toEqual({ disks: 5, made: [1, 5] });
  // Each disk holds less as the memory is divided.
  expect(seek(1000, 1, (disks) => 300 - 20 * disks)).toEqual({ disks: 5, made: [1, 4, 5] });
  expect(seek(1000, 1, (disks) => Math.floor(600 / disks))).toEqual({ never: true, made: [1, 2] });
  expect(seek(1000, 1, () => 0)).toEqual({ never: true, made: [1] });
  expect(seek(1e9, 1, () => 1)).toEqual({ never: true, made: [1] });
  expect(seek(1000, 1, (disks) => (disks > 1 ? null : 226))).toEqual({ unknown: true, made: [1, 5] });
});

test('what a director counted is counted from zero after its start', () => {
  const status = (uptime: number, admitted: number, full = 0) =>
    ({ uptime, counters: { admitted, refused: new Map([['full', full]]) } }) as unknown as DirectorStatus;
  const all = (...statuses: DirectorStatus[]) => statuses.reduce(withCounted, [] as CountedAt[]);
  const last = (...statuses: DirectorStatus[]) => lastMinute(all(...statuses));
  expect(last()).toBe(null);
  // Nothing is known of the time before the first sample, unless the director has just started.
  expect(last(status(500, 9))).toBe(null);
  expect(last(status(10, 9))).toMatchObject({ seconds: 10, admitted: 9, refused: [] });
  expect(last(status(500, 9), status(530, 12, 1))).toMatchObject({
    seconds: 30,
    admitted: 3,
    refused: [['full', 1]],
  });
  // The minute ends where the samples are older.
  expect(last(status(500, 9), status(550, 12), status(600, 20))).toMatchObject({ seconds: 50, admitted: 8 });
  // Started again: by the uptime, and by each counter.
  expect(last(status(500, 9), status(5, 30))).toMatchObject({ seconds: 5, admitted: 30 });
  expect(last(status(500, 9), status(600, 8))).toBe(null);
  expect(last(status(500, 9, 3), status(600, 10, 2))).toBe(null);
  // The same answer again, and samples of more than five minutes ago.
  expect(all(status(500, 9), status(500, 9))).toHaveLength(1);
  expect(all(status(100, 1), status(200, 2), status(450, 3)).map(({ uptime }) => uptime)).toEqual([200, 450]);
});

test('rates of viewers are means of some seconds, of causes that occurred', () => {
  const sample = (uptime: number) => {
    const refused = new Map([['full', uptime], ['no-copy', 3]]);
    return { uptime, counters: { admitted: uptime * 2, refused } } as unknown as DirectorStatus;
  };
  const rates = viewerRates([100, 101, 102, 110].map(sample).reduce(withCounted, [] as CountedAt[]));
  expect(rates.seconds).toEqual([-9, -8, 0]);
  expect(rates.admitted).toEqual([2, 2, 2]);
  expect(rates.refused).toEqual([['full', [1, 1, 1]]]);
  expect(viewerRates([])).toEqual({ seconds: [], admitted: [], refused: [] });
});

test('only addresses that a browser opens lead to the console of a node', () => {
  const addresses = ['http://n1:80', 'HTTPS://n1/a/', 'javascript:alert(1)', '//n1', 'http://', 'n1:80', ' http://n1'];
  expect(addresses.map(consoleOf)).toEqual([
    'http://n1:80/console/', 'HTTPS://n1/a/console/', null, null, null, null, null,
  ]);
});
