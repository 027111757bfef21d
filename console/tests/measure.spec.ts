// The page Measure of `tenuto meter console`, with real measurements of simulated disks and of files.

import type { Locator, Page } from '@playwright/test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { violations } from './axe';
import { expect, measured, open, test } from './meter';
import { end } from './program';

const measurement = (page: Page): Locator => page.getByTestId('measurement');
const row = (page: Page, name: string): Locator =>
  page.getByTestId('reports').getByRole('row').filter({ has: page.getByText(name, { exact: true }) });

test('a capacity search is started, watched, and its report opened', async ({ page, context, meter }) => {
  await open(page, meter);
  await expect(page.getByText('There is no report in this directory yet.')).toBeVisible();
  await page.getByLabel('Model of the disk').selectOption('ssd-sata');
  await page.getByLabel('Most streams that are tried').fill('24');
  await page.getByLabel('Length of the last run').fill('600');
  await page.getByLabel('Name of the report').fill('found');
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(measurement(page)).toContainText('Measuring for');
  await expect(page.getByRole('button', { name: 'Start' })).toBeDisabled();
  await expect(page.getByTestId('streams')).toBeVisible();
  await expect(measurement(page).locator('.plot').first()).toContainText('Mb/s');
  await expect(page.getByTestId('sentence')).toHaveText('Held');
  // The number of streams goes up from run to run.
  const runs = page.getByTestId('lines').getByRole('listitem').filter({ hasText: 'Run' }).locator('.name');
  const streams = (await runs.allTextContents()).map((run) => Number.parseInt(run, 10));
  expect(streams).toEqual([1, 4, 16, 24, 24, 24]);
  await expect(row(page, 'found')).toContainText('holds 24 streams');
  expect(readdirSync(join(meter.reports, 'found'))).toContain('summary.json');

  const opened = context.waitForEvent('page');
  await row(page, 'found').getByRole('link', { name: /Open/ }).click();
  const report = await opened;
  await expect(report.getByRole('heading', { level: 1 })).toContainText('xdcam422');
  const plot = report.locator('.plot').first();
  await plot.locator('.plot-holder').focus();
  await report.keyboard.press('End');
  await expect(plot.locator('.plot-tip')).toContainText(/streams: \d+/);
});

test('a run of files is stopped, reports what it has, and leaves no files', async ({ page, meter }) => {
  await open(page, meter);
  await page.getByLabel('Question').selectOption('run');
  await page.getByRole('combobox', { name: 'Storage' }).selectOption('path');
  await expect(page.getByLabel('Path')).toHaveValue(join(meter.folder, 'films'));
  await page.getByLabel('Size of the files together').fill('0.05');
  await page.getByLabel('Streams', { exact: true }).fill('1');
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(page.getByTestId('streams')).toHaveText('1');
  await page.getByRole('button', { name: 'Stop' }).click();
  await expect(page.getByTestId('sentence')).toHaveText('No valid result, or stopped early');
  await expect(row(page, 'run-xdcam422-films')).toContainText('stopped early');
  expect(readdirSync(join(meter.folder, 'films'))).toEqual([]);
});

test('targets that may not be measured are refused with what to do', async ({ page, meter }) => {
  await open(page, meter);
  const start = page.getByRole('button', { name: 'Start' });
  await page.getByRole('combobox', { name: 'Storage' }).selectOption('path');
  await page.getByLabel('Path').fill('/etc');
  await start.click();
  const alert = page.getByRole('alert');
  await expect(alert).toContainText('/etc lies outside of what this console may touch');
  await expect(alert).toContainText('--allow DIR');
  await page.getByLabel('Path').fill('http://127.0.0.1:8080/');
  await start.click();
  await expect(alert).toContainText('is an address');
  await page.getByRole('combobox', { name: 'Storage' }).selectOption('model');
  await page.getByLabel('Name of the report').fill('../out');
  await start.click();
  await expect(alert).toContainText('cannot be the name of a report');
  expect(readdirSync(meter.reports)).toEqual([]);

  // Other pages of the browser, and names that lead here, start nothing.
  const post = (headers: Record<string, string>) =>
    fetch(`${meter.origin}/api/v1/meter/runs`, {
      method: 'POST',
      headers,
      body: '{"kind":"run","profile":"xdcam422","target":"null:"}',
    });
  expect((await post({})).status).toBe(403);
  expect((await post({ 'Tenuto-Console': '1', Origin: 'http://other.example' })).status).toBe(403);
  expect(readdirSync(meter.reports)).toEqual([]);
});

test('two runs are compared, and one is removed', async ({ page, meter }) => {
  measured(meter, 'slow', 'hdd-20tb', 8);
  measured(meter, 'fast', 'ssd-sata', 8);
  await open(page, meter);
  await expect(row(page, 'slow')).toContainText('8 streams not held');
  await expect(row(page, 'fast')).toContainText('8 streams held');
  const compare = page.getByRole('button', { name: 'Compare the two' });
  await expect(compare).toBeDisabled();
  await page.getByRole('checkbox', { name: 'slow' }).check();
  await page.getByRole('checkbox', { name: 'fast' }).check();
  await compare.click();
  const comparison = page.getByTestId('comparison');
  await expect(comparison.getByRole('row', { name: /Late frames/ })).toContainText('better');
  await expect(comparison).toContainText('they differ in target');
  const plot = comparison.locator('.plot');
  await plot.locator('.plot-holder').focus();
  await page.keyboard.press('Home');
  await expect(plot.locator('.plot-tip')).toContainText(/start: 0A: slow: [\d.,]+B: fast: [\d.]+/);
  expect(await violations(page)).toEqual([]);

  await row(page, 'slow').getByRole('button', { name: /Remove/ }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('cannot be undone');
  await dialog.getByRole('button', { name: 'Remove' }).click();
  await expect(row(page, 'slow')).toHaveCount(0);
  await expect(comparison).toHaveCount(0);
  expect(readdirSync(meter.reports)).toEqual(['fast']);
});

test('names of reports stay text, and are opened and removed under them', async ({
  page,
  context,
  meter,
}) => {
  const name = `<img src=x onerror=alert(1)> "a" & b?c#d% עברית`;
  measured(meter, name, 'ssd-sata', 8);
  page.on('dialog', () => {
    throw new Error('a name was run as a script');
  });
  await open(page, meter);
  await expect(row(page, name)).toContainText('8 streams held');
  await expect(page.locator('img')).toHaveCount(0);
  const opened = context.waitForEvent('page');
  await row(page, name).getByRole('link', { name: /Open/ }).click();
  await expect((await opened).locator('.plot').first()).toBeVisible();
  await row(page, name).getByRole('button', { name: /Remove/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await expect(page.getByText('There is no report in this directory yet.')).toBeVisible();
  expect(readdirSync(meter.reports)).toEqual([]);
});

test('the page fits a telephone and a dark screen, and says when the meter is gone', async ({
  page,
  meter,
}) => {
  measured(meter, 'a-report-with-a-name-that-is-longer-than-the-screen-of-a-telephone', 'ssd-sata', 8);
  await page.setViewportSize({ width: 360, height: 700 });
  await page.emulateMedia({ colorScheme: 'dark' });
  await open(page, meter);
  await expect(page.getByTestId('reports')).toBeVisible();
  const widths = () => page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  expect(await widths()).toEqual([360, 360]);
  expect(await violations(page)).toEqual([]);
  await page.getByLabel('Question').selectOption('run');
  await page.getByRole('combobox', { name: 'Storage' }).selectOption('none');
  await page.getByLabel('Length of a run').fill('5');
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(measurement(page).locator('.plot').first()).toBeVisible();
  expect(await widths()).toEqual([360, 360]);
  expect(await violations(page)).toEqual([]);
  await end(meter.child);
  await expect(page.getByTestId('link-notice')).toContainText('tenuto meter console');
});
