// Self-contained reports, opened as files: what `tenuto meter` and `reproduce` write with --out.

import type { Locator, Page } from '@playwright/test';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { violations } from './axe';
import { expect, test } from './console';
import { tenuto } from './program';

const RUN = ['meter', 'run', '--profile', 'xdcam422', '--duration', '1min'];
let folder: string;

test.beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tenuto-reports-'));
});
test.afterEach(() => rmSync(folder, { recursive: true, force: true }));

const address = (...path: string[]) => pathToFileURL(join(folder, ...path)).href;

/** The plot with a title. */
function plot(page: Page, title: string): Locator {
  return page.locator('.plot').filter({ has: page.locator('.plot-title', { hasText: title }) });
}

/** Moves the pointer to a place of a plot, from 0 to 1 of its width and height. */
async function point(page: Page, plot: Locator, across: number, down = 0.5): Promise<void> {
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.locator('.plot-picture').boundingBox();
  if (!box) throw new Error('the plot is not shown');
  await page.mouse.move(box.x + box.width * across, box.y + box.height * down);
}

test('the pointer shows exact values, a drag zooms, and Escape shows all again', async ({ page }) => {
  tenuto(folder, ...RUN, '--streams', '2', '--target', 'sim:hdd-20tb', '--out', 'run');
  await page.goto(address('run', 'report.html'));
  const responses = plot(page, 'The longest response of each second');
  await point(page, responses, 0.5);
  const tip = responses.locator('.plot-tip');
  await expect(tip).toContainText(/seconds since the start: \d+longest response: [\d.,]+/);
  const [, second, shown] = /start: (\d+)longest response: ([\d.]+)/.exec((await tip.textContent()) ?? '') ?? [];
  const rows = readFileSync(join(folder, 'run', 'seconds.csv'), 'utf8').split('\n');
  const nanoseconds = Number(rows[Number(second) + 1]?.split(',').at(-1));
  expect(Number(shown)).toBeCloseTo(nanoseconds / 1e6, 2);
  await expect(tip).toContainText('in time: 320');

  const marks = responses.locator('.plot-mark');
  const all = await marks.allTextContents();
  await page.mouse.down();
  await point(page, responses, 0.7);
  await page.mouse.up();
  await expect.poll(() => marks.allTextContents()).not.toEqual(all);
  await expect(marks.filter({ hasText: /^60$/ })).toHaveCount(0);
  await responses.locator('.plot-holder').focus();
  await page.keyboard.press('Escape');
  await expect.poll(() => marks.allTextContents()).toEqual(all);

  await page.keyboard.press('ArrowRight');
  await expect(tip).toContainText('seconds since the start: 0');
  await page.keyboard.press('End');
  await expect(tip).toContainText('seconds since the start: 60');
  await page.keyboard.press('+');
  await expect(marks.filter({ hasText: /^20$/ })).toHaveCount(0);
  await responses.getByRole('button', { name: 'Show all' }).click();
  await expect.poll(() => marks.allTextContents()).toEqual(all);

  // Without its deadline the axis fits the responses.
  await responses.getByRole('button', { name: 'in time' }).click();
  await expect.poll(() => marks.allTextContents()).not.toEqual(all);

  const heat = plot(page, 'Responses over time');
  await heat.locator('.plot-holder').focus();
  await page.keyboard.press('ArrowRight');
  await expect(heat.locator('.plot-tip')).toContainText(/milliseconds: [\d.]+ to [\d.]+count: \d+/);
});

test('a report of a reproduction is interactive, too', async ({ page }) => {
  tenuto(folder, 'reproduce', 'lee-streams', '--out', 'charts');
  await page.goto(address('charts', 'lee-streams.html'));
  await page.locator('.plot-holder').first().focus();
  await page.keyboard.press('End');
  await expect(page.locator('.plot-tip').first()).toContainText(/^streams: \d+eq\. 3: \d/);
});

test('names in a report stay text', async ({ page }) => {
  mkdirSync(join(folder, 'job<'));
  const name = 'script><img src=x onerror=alert(1)>.toml';
  const group = '[[group]]\nname = "play-out"\nprofile = "xdcam422"\nstreams = 4\n';
  const job = `duration = "5s"\n[global]\ntarget = "sim:ssd-sata"\n${group}`;
  writeFileSync(join(folder, 'job<', name), job);
  tenuto(folder, 'meter', 'run', `job</${name}`, '--out', 'job');
  page.on('dialog', () => {
    throw new Error('a name was run as a script');
  });
  await page.goto(address('job', 'report.html'));
  await expect(page.getByRole('heading', { level: 1 })).toContainText(`job</${name}`);
  await expect(page.locator('.plot').first()).toBeVisible();
  await expect(page.locator('img')).toHaveCount(0);
});

test('a report fits a telephone, a dark screen, paper, and a browser without scripts', async ({
  browser,
  page,
}) => {
  tenuto(folder, ...RUN, '--streams', '20', '--target', 'sim:ssd-sata', '--out', 'run');
  await page.setViewportSize({ width: 360, height: 700 });
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.goto(address('run', 'report.html'));
  await expect(page.locator('.plot').first()).toBeVisible();
  const widths = () => page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  expect(await widths()).toEqual([360, 360]);
  const colour = (name: string) =>
    page.locator(name).first().evaluate((found) => getComputedStyle(found).fill);
  expect(await colour('.plot-title')).toBe('rgb(231, 235, 240)');
  expect(await violations(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'light' });
  expect(await violations(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark', media: 'print' });
  expect(await colour('.plot-title')).toBe('rgb(20, 24, 31)');
  await expect(page.locator('.plot-hint').first()).toBeHidden();

  const context = await browser.newContext({ javaScriptEnabled: false });
  const plain = await context.newPage();
  await plain.goto(address('run', 'report.html'));
  await expect(plain.locator('figure svg')).toHaveCount(4);
  await expect(plain.locator('figure svg').first()).toBeVisible();
  await context.close();
});
