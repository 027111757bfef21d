// The page Now, with a real server.

import { answer } from './answers';
import { expect, ROOM_FOR_FEW, test } from './console';
import { HOSTILE } from './library';

test('live values move without a reload', async ({ page, serve }) => {
  const server = await serve();
  await page.goto(server.page('#/now'));
  await expect(page.getByTestId('link-state')).toHaveText('Live');
  await expect(page.getByTestId('sessions-total')).toHaveText('0');
  await expect(page.getByText('No sessions. A session begins')).toBeVisible();
  const uptime = await page.getByTestId('uptime').textContent();

  expect(await server.view('film')).toBe(200);
  await expect(page.getByTestId('sessions-total')).toHaveText('1');
  await expect(page.getByTestId('sessions').getByRole('row')).toHaveCount(1 + 1);
  await expect(page.getByTestId('uptime')).not.toHaveText(uptime ?? '');
  await expect(page.getByTestId('slot-readout')).toContainText('guaranteed reads');
});

test('the sentence is about the chosen title', async ({ page, serve }) => {
  const server = await serve({ options: ROOM_FOR_FEW });
  await page.goto(server.page('#/now'));
  const sentence = page.getByTestId('sentence');
  await page.getByTestId('headroom-title').selectOption('film');
  await expect(sentence).toContainText('“\u2068film\u2069”');
  await expect(sentence).toHaveText(/^\d+ more viewers? of .* fits? now\.$/);
});

test('a title of very many is found by a part of its name', async ({ page, serve }) => {
  const server = await serve({ options: ROOM_FOR_FEW });
  // As of a server with more titles than a field has.
  await answer(page, '/titles', (route) => {
    if (new URL(route.request().url()).searchParams.has('search')) return route.continue();
    return route.fulfill({ json: { titles: [{ name: 'another', kind: 'media' }], next: 'another' } });
  });
  await page.goto(server.page('#/now'));
  const choice = page.getByTestId('headroom-title');
  const search = page.getByRole('searchbox', { name: 'Search titles' });
  await expect(choice).toHaveValue('another');
  await search.fill('FIL');
  await choice.selectOption('film');
  await expect(page.getByTestId('sentence')).toHaveText(/^\d+ more viewers? of .*film.* fits? now\.$/);
  await search.fill('');
  await expect(choice.getByRole('option')).toHaveText(['film', 'another']);
  await expect(choice).toHaveValue('film');

  await page.goto(server.page('#/what-if'));
  await search.fill('FIL');
  const stream = page.getByRole('combobox', { name: 'A stream is' });
  await stream.selectOption('film');
  await search.fill('none');
  await expect(stream).toHaveValue('tfilm');
});

test('a refusal appears within a second, with its reason', async ({ page, serve }) => {
  const server = await serve({ options: ROOM_FOR_FEW });
  await page.goto(server.page('#/now'));
  await expect(page.getByTestId('link-state')).toHaveText('Live');
  const decisions = page.getByTestId('decision');

  let admitted = 0;
  while ((await server.view('film')) === 200) admitted += 1;
  const refused = decisions.filter({ hasText: 'refused' });
  await expect(refused.first()).toBeVisible({ timeout: 1_000 });
  await expect(refused.first()).toContainText('other sessions hold what it needs');
  await expect(refused.first()).toContainText('short of network rate');
  expect(admitted).toBeGreaterThan(0);
  await expect(decisions.filter({ hasText: 'admitted' })).toHaveCount(admitted);
});

test('sessions are filtered, sorted and ended', async ({ page, serve }) => {
  const server = await serve();
  for (const title of ['film', 'film', HOSTILE]) {
    expect(await server.view(title)).toBe(200);
  }
  await page.goto(server.page('#/now'));
  const rows = page.getByTestId('sessions').locator('tr[data-session]');
  await expect(rows).toHaveCount(3);

  await page.getByRole('button', { name: 'Session' }).first().click();
  await expect(rows.first()).toHaveAttribute('data-session', '3');
  await page.getByRole('searchbox').fill('FILM');
  await expect(rows).toHaveCount(2);
  await expect(page.getByTestId('sessions-shown')).toHaveText(/^2 of 3 sessions/);

  const ended = (await rows.first().getAttribute('data-session')) ?? '';
  await page.getByRole('button', { name: `End session ${ended}` }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('cannot play on');
  await dialog.getByRole('button', { name: 'End the session' }).click();
  await expect(dialog).toBeHidden();
  await expect(rows).toHaveCount(1);
  await expect(page.getByTestId('decision').first()).toBeVisible();
});

test('a session shows where its viewer is', async ({ page, serve }) => {
  const server = await serve();
  await page.goto(server.page('#/now'));
  await expect(page.getByTestId('link-state')).toHaveText('Live');
  expect(await server.watch('film')).toBeGreaterThan(0);
  await expect(page.getByTestId('booked')).toHaveText(/^\d+ per slot \(\d+%\)$/);
  await expect(page.locator('tr[data-session]')).toHaveCount(1);
  const table = page.getByTestId('sessions');
  const columns = await table.locator('th').allTextContents();
  const cell = (name: string) => {
    const number = columns.findIndex((column) => column.trim() === name);
    return table.locator('tr[data-session] td').nth(number);
  };
  // It goes on with the play-out clock, up to what was delivered.
  await expect(cell('Position')).toHaveText(/^0:0[1-8] of 0:08$/);
  await expect(cell('Rendition')).toHaveText(/^\d+×\d+$/);
  await expect(cell('Ahead')).toHaveText(/^\d+\.\d\d? s$/);
  await expect(cell('Drift')).toHaveText('0');
});

test('a change that the server refuses is explained', async ({ page, serve }) => {
  const server = await serve({ hasTokens: false });
  expect(await server.view('film')).toBe(200);
  await page.goto(server.page('#/now'));
  await page.getByRole('button', { name: 'End session 1' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'End the session' }).click();
  await expect(dialog.getByRole('alert')).toContainText('no tokens');
  await expect(dialog.getByRole('alert')).toContainText('--tokens');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await expect(dialog).toBeHidden();
});

test('a killed server is shown, and recovered from when it starts again', async ({
  page,
  serve,
}) => {
  const server = await serve();
  await page.goto(server.page('#/now'));
  await expect(page.getByTestId('link-state')).toHaveText('Live');
  await expect(page.getByTestId('disk')).toHaveCount(1);
  await server.kill();
  await expect(page.getByTestId('link-notice')).toContainText('No connection to the server');
  await expect(page.getByTestId('link-notice')).toContainText('tenuto serve');
  // The last values stay.
  await expect(page.getByTestId('disk')).toHaveCount(1);

  await page.evaluate(() => document.body.setAttribute('data-loaded', 'once'));
  await server.start();
  await expect(page.getByTestId('link-state')).toHaveText('Live', { timeout: 15_000 });
  await expect(page.getByTestId('link-notice')).toBeHidden();
  expect(await server.view('film')).toBe(200);
  await expect(page.getByTestId('sessions-total')).toHaveText('1');
  await expect(page.locator('body')).toHaveAttribute('data-loaded', 'once');
});

test('without a token the page says which to use', async ({ page, serve }) => {
  const server = await serve();
  await page.goto(`${server.origin}/console/`);
  await expect(page.getByRole('alert')).toContainText('/console/?token=TOKEN');
  await expect(page.getByTestId('link-state')).toHaveText('Not permitted');
});

test('the page is served with a policy that forbids inline scripts and styles', async ({
  page,
  serve,
}) => {
  const server = await serve();
  const response = await page.goto(server.page('#/now'));
  const policy = response?.headers()['content-security-policy'] ?? '';
  expect(policy).toContain("default-src 'self'");
  expect(policy).not.toContain('unsafe');
});
