// Modules of the page without a browser: input and expected output.

import { EventParser } from '../src/api/event_stream';
import { position, span } from '../src/format';
import { ratesOf } from '../src/now/rates';
import { withNewSlots } from '../src/now/slot_history';
import { scaleOf } from '../src/now/strip';
import { rowWindow } from '../src/now/window';
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
