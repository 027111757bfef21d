// The page Library, with a real server: playing, uploads, names.

import type { Page } from '@playwright/test';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { answer } from './answers';
import { expect, library, test } from './console';
import { FILM_SECONDS, HOSTILE, LONG, LONG_SECONDS, UNDECODABLE } from './library';

/**
 * Counts, beside the page, when the video has nothing to play after its first picture. Returns what
 * compares that with what the page shows.
 */
async function countStalls(page: Page): Promise<() => Promise<boolean>> {
  await page.addInitScript(() => {
    const counted = window as unknown as { stallsSeen: number };
    counted.stallsSeen = 0;
    const count = ({ target }: Event) => {
      const video = target as HTMLVideoElement;
      if (video.currentTime > 0 && !video.seeking && !video.ended) counted.stallsSeen += 1;
    };
    addEventListener('waiting', count, true);
  });
  return () =>
    page.evaluate(() => {
      const { stallsSeen } = window as unknown as { stallsSeen: number };
      return document.querySelector('[data-testid=stalls]')?.textContent === String(stallsSeen);
    });
}

test('a title plays to its end with subtitles, and its stalls are counted', async ({ page, serve }) => {
  // None, unless this machine is too busy to play.
  const areCounted = await countStalls(page);
  const server = await serve();
  await page.goto(server.page('#/library'));
  await page.getByRole('link', { name: 'film' }).click();
  await page.getByRole('button', { name: 'Play' }).click();
  const state = page.getByTestId('player-state');
  await expect(state).toHaveAttribute('data-phase', 'playing');
  await page.getByRole('combobox', { name: 'Subtitles' }).selectOption({ index: 1 });
  await expect(page.getByTestId('cost-session')).toHaveText('1');
  await expect(page.getByTestId('cost-delivered')).not.toHaveText('0 B');

  const shownText = () =>
    page.getByTestId('video').evaluate((video: HTMLVideoElement) =>
      [...video.textTracks]
        .filter((track) => track.mode === 'showing')
        .flatMap((track) => [...(track.activeCues ?? [])])
        .map((cue) => (cue as VTTCue).text)
        .join(),
    );
  await expect.poll(shownText).toBe('The second line');
  await expect.poll(areCounted).toBe(true);
  await expect(state).toHaveAttribute('data-phase', 'ended', { timeout: FILM_SECONDS * 2_000 });
  const played = await page
    .getByTestId('video')
    .evaluate((video: HTMLVideoElement) => video.currentTime);
  expect(played).toBeGreaterThan(FILM_SECONDS - 0.5);
  await expect.poll(() => server.sessions()).toBe(0);
});

test.describe('over TLS', () => {
  test.use({ ignoreHTTPSErrors: true });

  test('a title plays to its end over HTTP/2', async ({ page, serve }, info) => {
    const [certificate, key] = ['certificate.pem', 'key.pem'].map((name) => info.outputPath(name)) as [string, string];
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
    const files = ['-keyout', key, '-out', certificate];
    execFileSync('openssl', ['req', '-x509', '-days', '2', ...curve, ...name, ...files], { stdio: 'pipe' });
    const server = await serve({ options: ['--tls-certificate', certificate, '--tls-key', key] });
    await page.goto(server.page('#/library'));
    await page.getByRole('link', { name: 'film' }).click();
    await page.getByRole('button', { name: 'Play' }).click();
    const video = page.getByTestId('video');
    await expect.poll(() => video.evaluate((shown: HTMLVideoElement) => shown.currentTime)).toBeGreaterThan(5);
    const state = page.getByTestId('player-state');
    await expect(state).toHaveAttribute('data-phase', 'ended', { timeout: FILM_SECONDS * 2_000 });
    const protocols = await page.evaluate(() =>
      (performance.getEntriesByType('resource') as PerformanceResourceTiming[])
        .filter(({ name }) => /\.(m3u8|m4s|mp4)\b/.test(name))
        .map(({ nextHopProtocol }) => nextHopProtocol),
    );
    expect(protocols.length).toBeGreaterThan(5);
    expect(new Set(protocols)).toEqual(new Set(['h2']));
    const sessions = async () => {
      const status = await page.request.get(`${server.origin}/status?token=${encodeURIComponent(server.token)}`);
      return ((await status.json()) as { sessions: number }).sessions;
    };
    await expect.poll(sessions).toBe(0);
  });
});

test('a title is wound by its key frames, forwards and backwards', async ({ page, serve }) => {
  // At four times the speed a short film is over before a busy machine has looked twice.
  const server = await serve();
  server.command('ingest', join(library(), LONG));
  const keyFrames: string[] = [];
  page.on('response', (response) => {
    if (/\/iframe-\d+\.m4s/.test(response.url()) && response.ok()) keyFrames.push(response.url());
  });
  await page.goto(server.page(`#/library/${await server.disk()}/long`));
  await page.getByRole('button', { name: 'Play' }).click();
  const video = page.getByTestId('video');
  await expect(video).toHaveJSProperty('paused', false);
  const forward = page.getByRole('button', { name: 'Fast forward' });
  const picture = page.getByTestId('wound');
  await expect(picture).toBeHidden();
  const position = page.getByRole('slider', { name: 'Position' });
  await position.fill('20');
  await expect(page.getByTestId('position')).toHaveText(/^0:2\d /);
  await forward.click();
  await expect(forward).toHaveText('Fast forward: 4×');
  await expect(picture).toBeVisible();
  await expect(video).toHaveJSProperty('paused', true);
  await expect.poll(() => keyFrames.length).toBeGreaterThan(2);
  await expect.poll(() => picture.evaluate((shown: HTMLVideoElement) => shown.currentTime)).toBeGreaterThan(22);

  const backward = page.getByRole('button', { name: 'Rewind' });
  await backward.click();
  await expect(backward).toHaveText('Rewind: 4×');
  await expect(forward).toHaveText('Fast forward');
  await backward.click();
  await expect(backward).toHaveText('Rewind: 8×');
  // At the beginning it plays on, with the same session.
  await expect(picture).toBeHidden();
  await expect(video).toHaveJSProperty('paused', false);
  await expect(page.getByTestId('position')).toHaveText(/^0:0\d /);
  expect(await server.sessions()).toBe(1);

  await forward.click();
  await position.fill(`${LONG_SECONDS - 2}`);
  await expect(picture).toBeHidden();
  await expect(page.getByTestId('position')).toHaveText(/^1:(2[89]|30) /);
  await expect(page.getByTestId('player-state')).toHaveAttribute('data-phase', 'ended', {
    timeout: FILM_SECONDS * 2_000,
  });
  await expect(page.getByTestId('stalls')).toBeHidden();
  await expect.poll(() => server.sessions()).toBe(0);
});

test('a title that is not wound plays on, with the reason', async ({ page, serve }) => {
  const server = await serve();
  await answer(page, /\/iframe-\d+\.m4s$/, (route) =>
    route.fulfill({
      status: 503,
      json: { error: 'refused', message: 'the disk is fully reserved', detail: 'for logs' },
    }),
  );
  await page.goto(server.page(`#/library/${await server.disk()}/film`));
  await page.getByRole('button', { name: 'Play' }).click();
  const video = page.getByTestId('video');
  await expect(video).toHaveJSProperty('paused', false);
  await page.getByRole('button', { name: 'Fast forward' }).click();
  const state = page.getByTestId('player-state');
  await expect(state).toContainText('does not wind this title now: the disk is fully reserved');
  await expect(video).toHaveJSProperty('paused', false);
  await expect(state).toHaveAttribute('data-phase', 'ended', { timeout: FILM_SECONDS * 2_000 });
});

test('a viewer whose next segment is refused learns why, and plays on', async ({ page, serve }) => {
  const server = await serve();
  let isRefused = true;
  await answer(page, /\/0\/[1-9]\d*\.m4s$/, (route) =>
    isRefused
      ? route.fulfill({
          status: 503,
          json: { error: 'refused', message: 'the disk is fully reserved', detail: 'for logs' },
        })
      : route.fallback(),
  );
  await page.goto(server.page(`#/library/${await server.disk()}/film`));
  await page.getByRole('button', { name: 'Play' }).click();
  const state = page.getByTestId('player-state');
  await expect(state).toContainText('refused to continue from here: the disk is fully reserved');
  await expect(state).toHaveAttribute('data-phase', 'playing');
  isRefused = false;
  await expect(state).toHaveAttribute('data-phase', 'ended', { timeout: FILM_SECONDS * 2_000 });
});

test('the place is given back when the viewer leaves', async ({ page, serve }) => {
  const server = await serve();
  const title = `#/library/${await server.disk()}/film`;
  const isPlaying = () =>
    expect(page.getByTestId('player-state')).toHaveAttribute('data-phase', 'playing');

  await page.goto(server.page(title));
  await page.getByRole('button', { name: 'Play' }).click();
  await isPlaying();
  await expect.poll(() => server.sessions()).toBe(1);
  await page.getByRole('button', { name: 'Stop' }).click();
  await expect.poll(() => server.sessions()).toBe(0);

  await page.getByRole('button', { name: 'Play' }).click();
  await isPlaying();
  await expect.poll(() => server.sessions()).toBe(1);
  await page.getByRole('link', { name: 'Now' }).click();
  await expect.poll(() => server.sessions()).toBe(0);

  await page.goto(server.page(title));
  await page.getByRole('button', { name: 'Play' }).click();
  await isPlaying();
  await expect.poll(() => server.sessions()).toBe(1);
  await page.goto('about:blank');
  await expect.poll(() => server.sessions()).toBe(0);
});

test('the position bar shows thumbnails', async ({ page, serve }) => {
  const server = await serve();
  await page.goto(server.page(`#/library/${await server.disk()}/film`));
  await page.getByRole('button', { name: 'Play' }).click();
  const bar = page.getByRole('slider', { name: 'Position' });
  await expect(bar).toHaveAttribute('max', /^8/);
  await bar.hover();
  await expect(page.locator('.preview img')).toHaveAttribute('src', /thumbnails\/0\.jpg/);
});

test('a refused viewer learns why', async ({ page, serve }) => {
  const server = await serve({ options: ['--network', '1Mbps'] });
  await page.goto(server.page(`#/library/${await server.disk()}/film`));
  await page.getByRole('button', { name: 'Play' }).click();
  const player = page.getByTestId('player');
  await expect(page.getByTestId('player-state')).toHaveAttribute('data-phase', 'refused');
  await expect(player).toContainText('--network');
  await expect(player.getByRole('button', { name: 'Try again' })).toBeVisible();
});

test('a title that the browser cannot decode holds no place', async ({ page, serve }) => {
  const server = await serve();
  server.command('ingest', join(library(), UNDECODABLE));
  await page.goto(server.page(`#/library/${await server.disk()}/prores`));
  await page.getByRole('button', { name: 'Play' }).click();
  await expect(page.getByTestId('player')).toContainText(/no decoder for .*prores/);
  await expect.poll(() => server.sessions()).toBe(0);
});

test('a file is uploaded, renamed, and removed', async ({ page, serve }) => {
  const server = await serve();
  await page.goto(server.page('#/library'));
  await page.locator('input[type=file]').setInputFiles(join(library(), 'small.mkv'));
  const upload = page.getByTestId('upload');
  await upload.getByLabel('Title name for small.mkv').fill('a new/title');
  await upload.getByRole('button', { name: 'Upload a new/title' }).click();
  await expect(upload).toHaveAttribute('data-state', 'done');
  await page.getByRole('link', { name: 'a new/title' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('a new/title');

  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByLabel('New name').fill('film');
  await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click();
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText('film');
  await page.getByLabel('New name').fill('another "name" %');
  await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('another "name" %');

  await page.getByRole('button', { name: 'Remove' }).click();
  await expect(page.getByRole('dialog')).toContainText('cannot be undone');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove the title' }).click();
  await expect(page.getByTestId('titles-shown')).toHaveText('2 titles');
  await expect(page.getByRole('link', { name: 'another' })).toBeHidden();
});

test('a file is downloaded from its address, and a download is cancelled', async ({ page, serve }) => {
  const film = readFileSync(join(library(), 'small.mkv'));
  const origin = createServer((request, response) => {
    response.writeHead(200, { 'Content-Length': film.length });
    // The other one never comes to its end.
    if (request.url?.startsWith('/small.mkv')) response.end(film);
    else response.write(film.subarray(0, 1000));
  });
  await new Promise<void>((listening) => origin.listen(0, '127.0.0.1', listening));
  const address = `http://127.0.0.1:${(origin.address() as AddressInfo).port}`;
  const server = await serve({ options: ['--ingest-from', address] });
  await page.goto(server.page('#/library'));
  const field = page.getByLabel('or the address of a file');
  const upload = page.getByTestId('upload');
  await field.fill(`${address}/small.mkv?key=1`);
  await field.press('Enter');
  await upload.getByLabel('Title name for').fill('downloaded');
  await upload.getByRole('button', { name: 'Upload downloaded' }).click();
  await expect(upload).toHaveAttribute('data-state', 'done');
  await page.getByRole('button', { name: 'Remove downloaded from the list' }).click();

  await field.fill(`${address}/endless.mkv`);
  await field.press('Enter');
  await upload.getByRole('button', { name: 'Upload endless' }).click();
  await expect(upload).toContainText(' of ');
  await upload.getByRole('button', { name: 'Cancel the upload of endless' }).click();
  await expect(upload).toHaveAttribute('data-state', 'cancelled');
  await expect.poll(() => readdirSync(join(server.folder, 'uploads')).length).toBe(0);
  origin.closeAllConnections();
  origin.close();
});

test('a dropped file is offered for upload', async ({ page, serve }) => {
  const server = await serve();
  await page.goto(server.page('#/library'));
  await page.getByTestId('uploads').waitFor();
  const data = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(['no film'], 'notes.txt'));
    return transfer;
  });
  await page.dispatchEvent('body', 'dragover', { dataTransfer: data });
  await page.dispatchEvent('body', 'drop', { dataTransfer: data });
  const upload = page.getByTestId('upload');
  await upload.getByRole('button', { name: 'Upload notes' }).click();
  await expect(upload).toHaveAttribute('data-state', 'failed');
  await expect(upload.getByRole('alert')).not.toBeEmpty();
});

test('a server without uploads says how to allow them', async ({ page, serve }) => {
  const server = await serve({ takesUploads: false });
  await page.goto(server.page('#/library'));
  await page.locator('input[type=file]').setInputFiles(join(library(), 'small.mkv'));
  await page.getByRole('button', { name: 'Upload small' }).click();
  await expect(page.getByTestId('upload').getByRole('alert')).toContainText('--uploads');
});

test('a library of very many titles is shown and searched page by page', async ({ page, serve }) => {
  const server = await serve();
  const titles = Array.from({ length: 25_000 }, (_, number) => ({
    name: `film ${String(number).padStart(5, '0')}`,
    kind: 'file',
    bytes: number,
  }));
  await answer(page, '/api/v1/disks', async (route) => {
    const { disks } = (await (await route.fetch()).json()) as { disks: Record<string, unknown>[] };
    await route.fulfill({ json: { disks: disks.map((disk) => ({ ...disk, titles: titles.length })) } });
  });
  const limits: number[] = [];
  await answer(page, /^\/api\/v1\/disks\/[^/]+\/titles$/, (route) => {
    const query = new URL(route.request().url()).searchParams;
    const limit = Number(query.get('limit'));
    limits.push(limit);
    const first = titles.findIndex(({ name }) => name > (query.get('after') ?? ''));
    // As the server searches: a bounded number of names for a page.
    const search = query.get('search') ?? '';
    const looked = first < 0 ? [] : titles.slice(first, first + (search ? 1_000 : limit));
    const wanted = looked.filter(({ name }) => name.includes(search)).slice(0, limit);
    const last = (wanted.length === limit ? wanted : looked).at(-1)?.name ?? null;
    const next = last === titles.at(-1)?.name ? null : last;
    return route.fulfill({ json: { titles: wanted, next } });
  });
  await page.goto(server.page('#/library'));
  const shown = page.getByTestId('titles-shown');
  await expect(shown).toHaveText('The first 60 of 25,000 titles');
  await expect(page.getByTestId('title')).toHaveCount(60);
  for (let count = 120; count <= 660; count += 60) {
    await page.getByRole('button', { name: 'Show 60 more titles' }).click();
    await expect(page.getByTestId('title')).toHaveCount(count);
  }
  await expect(shown).toHaveText('The first 660 of 25,000 titles');
  await expect(page.getByTestId('title').last()).toContainText('film 00659');
  expect(Math.max(...limits), 'no more than the pages that are shown').toBe(1200);
  await page.getByRole('searchbox').fill('film 12345');
  await expect(shown).toHaveText('At least 0 of 25,000 titles');
  const further = page.getByRole('button', { name: 'Search further' });
  await further.click();
  await expect(shown).toHaveText('At least 1 of 25,000 titles');
  await expect(page.getByTestId('title')).toContainText('film 12345');
  await further.click();
  await expect(shown).toHaveText('1 of 25,000 titles');
  await expect(further).toBeHidden();
});

test('a hostile name is nothing but text', async ({ page, serve }) => {
  const server = await serve();
  await page.goto(server.page('#/library'));
  await page.getByRole('searchbox').fill('onerror');
  await expect(page.getByTestId('titles-shown')).toHaveText('1 of 2 titles');
  await page.getByTestId('title').getByRole('link').click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(HOSTILE);
  await expect(page.locator('img[src=x]')).toHaveCount(0);
  await page.getByRole('button', { name: 'Play' }).click();
  await expect(page.getByTestId('player-state')).toHaveAttribute('data-phase', 'playing');
});

test('a title that is gone says where the others are', async ({ page, serve }) => {
  const server = await serve();
  await page.goto(server.page(`#/library/${await server.disk()}/nothing`));
  await expect(page.getByRole('alert')).toContainText('There is no title');
  await page.getByRole('link', { name: 'All titles' }).click();
  await expect(page.getByTestId('titles-shown')).toHaveText('2 titles');
});

test('a recording is shown while it grows, and plays', async ({ page, serve }) => {
  const server = await serve();
  const end = server.record('live/show');
  try {
    await page.goto(server.page('#/library'));
    const recording = page.getByTestId('recording');
    await expect(recording).toContainText('live/show', { timeout: 15_000 });
    const before = (await page.getByTestId('recorded').textContent()) ?? '';
    await expect(page.getByTestId('recorded')).not.toHaveText(before);
    await expect(async () => {
      await recording.getByRole('button', { name: /Play|Try again/ }).click({ timeout: 1_000 });
      await expect(recording.getByTestId('video')).toHaveJSProperty('paused', false, { timeout: 5_000 });
    }).toPass();
    await expect(page.getByTestId('cost-session')).toHaveText(/\d/);
  } finally {
    end();
  }
});

test('a recording is ended, and a drain names what its disk waits for', async ({ page, serve }) => {
  const server = await serve();
  const kill = server.record('live/long');
  try {
    await page.goto(server.page('#/library'));
    const recording = page.getByTestId('recording');
    await expect(recording).toContainText('live/long', { timeout: 15_000 });
    await expect(page.getByTestId('recorded')).toBeVisible({ timeout: 15_000 });
    const { disks } = await server.json<{ disks: { uuid: string }[] }>('/api/v1/disks');
    expect((await server.post(`/api/v1/disks/${disks[0]?.uuid}/drain`)).ok).toBe(true);
    await page.goto(server.page('#/now'));
    const drain = page.getByTestId('drain');
    await expect(drain).toContainText('the recording “\u2068live/long\u2069”, until it is ended');
    await page.goto(server.page('#/library'));
    await recording.getByRole('button', { name: /^End the recording/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End the recording' }).click();
    await expect(recording).toHaveCount(0, { timeout: 15_000 });
    await expect(page.getByTestId('title').filter({ hasText: 'live/long' })).toBeVisible({ timeout: 15_000 });
    await page.goto(server.page('#/now'));
    await expect(drain).toContainText('Drained: no session is read from the disk');
  } finally {
    kill();
  }
});

test('who watches a recording goes on when it has ended', async ({ page, serve }) => {
  const server = await serve();
  const end = server.record('live/end');
  try {
    await page.goto(server.page('#/library'));
    const recording = page.getByTestId('recording');
    await expect(recording).toContainText('live/end', { timeout: 15_000 });
    const video = recording.getByTestId('video');
    await expect(async () => {
      await recording.getByRole('button', { name: /Play|Try again/ }).click({ timeout: 1_000 });
      await expect(video).toHaveJSProperty('paused', false, { timeout: 5_000 });
    }).toPass();
    // A browser plays another element from its beginning, and keeps no mark.
    await video.evaluate((element) => element.setAttribute('data-mark', 'first'));
    end();
    await expect(recording).toContainText('The recording has ended.', { timeout: 15_000 });
    const title = page.getByTestId('title').filter({ hasText: 'live/end' });
    await expect(title).toBeVisible({ timeout: 15_000 });
    await expect(recording.getByTestId('player-state')).toHaveAttribute('data-phase', 'ended', { timeout: 30_000 });
    await expect(video).toHaveAttribute('data-mark', 'first');
    await expect(video).toHaveJSProperty('ended', true);
    await recording.getByRole('button', { name: 'Close' }).click();
    await expect(recording).toHaveCount(0);
  } finally {
    end();
  }
});
