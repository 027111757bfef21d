// The pictures of the console in README and docs. They are made anew with SCREENSHOTS=1.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from '@playwright/test';
import { Cluster, freePort } from './cluster';
import { library } from './console';
import { HOSTILE } from './library';
import { expect, measured, open, test } from './meter';
import { whatIf } from './plans';

const TITLES = ['Nosferatu', 'Metropolis', 'The Golem'];
const SECONDS = 30;
/** Viewers of the first title, a second after each other. */
const VIEWERS = 12;

test('pictures, light and dark', async ({ page, serve }) => {
  test.setTimeout(180_000);
  await page.setViewportSize({ width: 1280, height: 1060 });
  // A modelled hard disk: its guarantee and its reads are of the same order.
  const server = await serve({ options: ['--as-disk', 'hdd-20tb', '--network', '30Mbps'] });
  for (const title of ['film', HOSTILE]) server.command('rm', title);
  TITLES.forEach((title, number) => {
    server.command('ingest', film(number), '--title', title, '--thumbnails=2s');
  });

  await page.goto(server.page('#/now'));
  for (let number = 0; number < VIEWERS; number += 1) {
    void watch(server.get(masterOf(TITLES[number % 3] ?? '')));
    await page.waitForTimeout(1_000);
  }
  await expect(page.getByTestId('sentence')).toContainText('fit');
  await expect(page.locator('.u-legend')).toBeAttached();
  await take(page, 'now');

  await page.goto(server.page(`#/library/${await server.disk()}/${TITLES[0]}`));
  await page.getByRole('button', { name: 'Play' }).click();
  await expect(page.getByTestId('cost-delivered')).not.toHaveText('0 B');
  await page.getByRole('slider', { name: 'Position' }).hover();
  await expect(page.locator('.preview')).toBeVisible();
  await take(page, 'title');
  await page.getByRole('link', { name: 'All titles' }).click();
  await expect(page.locator('.crop img')).toHaveCount(TITLES.length);
  await take(page, 'library');

  await page.goto(server.page(whatIf()));
  for (const model of ['ssd-sata', 'hdd-20tb']) {
    await page.getByRole('combobox', { name: 'Kind of disk' }).selectOption(`m${model}`);
    await page.getByRole('button', { name: 'Pin this row' }).click();
  }
  await expect(page.getByTestId('pins')).not.toContainText('…', { timeout: 60_000 });
  await expect(page.getByTestId('waiting')).toBeEmpty();
  await expect(page.getByTestId('answer')).toContainText('need 5 disks');
  await expect(page.locator('.u-legend')).toBeAttached();
  await page.mouse.move(0, 0);
  await take(page, 'what-if');
});

test('the page Measure, light and dark', async ({ page, meter }) => {
  await page.setViewportSize({ width: 1280, height: 1060 });
  measured(meter, 'hard-disk', 'hdd-20tb', 8);
  measured(meter, 'solid-state', 'ssd-sata', 8);
  await open(page, meter);
  await page.getByLabel('Model of the disk').selectOption('ssd-sata');
  await page.getByLabel('Most streams that are tried').fill('100');
  await page.getByLabel('Name of the report').fill('search');
  await page.getByRole('button', { name: 'Start' }).click();
  // The search goes up, and narrows down.
  await expect(page.getByTestId('lines').getByRole('listitem')).toHaveCount(7, { timeout: 25_000 });
  await take(page, 'measure');
});

test('the page Cluster, light and dark', async ({ page, serve }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 1280, height: 1060 });
  const cluster = new Cluster();
  try {
    await cluster.start();
    for (const name of ['n1', 'n2', 'n3']) {
      const port = await freePort();
      const options = [...cluster.nodeOptions(name, port), '--as-disk', 'hdd-20tb', '--network', '30Mbps'];
      const server = await serve({ port, hasTokens: false, options });
      server.command('rm', HOSTILE);
      server.command('rename', 'film', 'Nosferatu');
    }
    await page.goto(`${cluster.origin}/console/`);
    const summary = page.getByTestId('summary');
    await expect(summary).toContainText('3 of 3 nodes answer');
    await expect(page.getByTestId('cluster-title')).toHaveText([/Nosferatu\s*3: /]);
    for (let number = 0; number < VIEWERS; number += 1) {
      void watch(fetch(cluster.origin + masterOf('Nosferatu')));
      await page.waitForTimeout(1_000);
    }
    await expect(summary).toContainText(`${VIEWERS} viewers sent`);
    await take(page, 'cluster');
  } finally {
    await cluster.end();
  }
});

async function take(shown: Page, name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    // Without the changes of colours that take a while.
    await shown.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    const file = new URL(`../../docs/images/console-${name}-${colorScheme}.png`, import.meta.url);
    await shown.screenshot({ path: fileURLToPath(file) });
  }
}

function masterOf(title: string): string {
  return `/t/${encodeURIComponent(title)}/master.m3u8`;
}

/** A film of moving colours. */
function film(number: number): string {
  const name = join(library(), `colours-${number}.mkv`);
  const picture = `gradients=size=640x360:rate=25:duration=${SECONDS}:seed=${number + 3}:speed=0.02`;
  const sound = `sine=${220 * (number + 1)}:duration=${SECONDS}`;
  const inputs = ['-f', 'lavfi', '-i', picture, '-f', 'lavfi', '-i', sound];
  const codecs = '-c:v libx264 -preset ultrafast -crf 12 -g 50 -pix_fmt yuv420p -c:a aac';
  execFileSync('ffmpeg', ['-nostdin', '-v', 'error', '-y', ...inputs, ...codecs.split(' '), name]);
  return name;
}

/** A viewer who fetches a segment of the picture each two seconds, as a master playlist leads there. */
async function watch(asked: Promise<Response>): Promise<void> {
  const master = await asked;
  const base = new URL('.', master.url).href;
  const playlist = /^0\.m3u8.*$/m.exec(await master.text())?.[0];
  if (playlist === undefined) return;
  const segments = (await (await fetch(base + playlist)).text()).match(/^0\/\d+\.m4s.*$/gm) ?? [];
  for (const segment of segments) {
    const response = await fetch(base + segment).catch(() => null);
    // The test has ended, and its server with it.
    if (!response) return;
    await response.arrayBuffer().catch(() => null);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
  }
}
