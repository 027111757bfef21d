// Servers that are slow, broken, of another version or set to another time: the page stays, says
// what is wrong, and recovers by itself.

import type { Page } from '@playwright/test';
import { answer, type Json, sessions } from './answers';
import { expect, test } from './console';

/** A server without a stream of events, of which the page asks the status. */
async function withoutEvents(page: Page): Promise<void> {
  await answer(page, '/api/v1/events', (route) => route.fulfill({ status: 404, body: '' }));
}

/** Changes what the server answers. */
async function change(page: Page, path: string, edit: (body: Json) => Json): Promise<void> {
  await answer(page, path, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: edit((await response.json()) as Json) });
  });
}

test('an expired token in mid-view keeps the values and says what to do', async ({
  page,
  serve,
}) => {
  const server = await serve();
  await withoutEvents(page);
  await page.goto(server.page('#/now'));
  await expect(page.getByTestId('link-state')).toHaveText('Live');
  await answer(page, /^\/(status|titles|api\/)/, (route) =>
    route.fulfill({
      status: 401,
      json: { error: 'token-invalid', message: 'the token has expired' },
    }),
  );
  const notice = page.getByTestId('link-notice');
  await expect(notice).toContainText('has expired');
  await expect(notice).toContainText('/console/?token=TOKEN');
  await expect(page.getByTestId('disk')).toBeVisible();
});

for (const [what, reply] of [
  ['errors', { status: 500, json: { title: 'Error', detail: 'the store cannot be read' } }],
  ['garbage', { status: 200, body: '\u0000<html>not JSON' }],
  ['JSON of another kind', { status: 200, json: [null, 7, 'text'] }],
] as const) {
  test(`a server that answers ${what} does not blank the page`, async ({ page, serve }) => {
    const server = await serve();
    await page.goto(server.page('#/now'));
    await expect(page.getByTestId('link-state')).toHaveText('Live');
    let isBroken = true;
    await answer(page, /^\/(status|titles|api\/)/, (route) =>
      isBroken ? route.fulfill(reply) : route.fallback(),
    );
    await page.getByRole('link', { name: 'Library' }).click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Library');
    await expect(page.getByRole('alert').first()).toBeVisible();
    isBroken = false;
    await page.getByRole('button', { name: 'Try again' }).click();
    await expect(page.getByTestId('titles-shown')).toHaveText('2 titles');
  });
}

test('a broken status is shown, and recovered from', async ({ page, serve }) => {
  const server = await serve();
  await withoutEvents(page);
  let isBroken = true;
  await answer(page, '/status', (route) =>
    isBroken ? route.fulfill({ body: '{"disks": 7}' }) : route.fallback(),
  );
  await page.goto(server.page('#/now'));
  await expect(page.getByTestId('link-notice')).toContainText('another version');
  isBroken = false;
  await expect(page.getByTestId('link-state')).toHaveText('Live');
  await expect(page.getByTestId('link-notice')).toBeHidden();
});

test('a server of another version shows what it has', async ({ page, serve }) => {
  const server = await serve();
  await withoutEvents(page);
  await change(page, '/status', ({ version, uptime, disks }) => ({
    version: `${String(version)}-future`,
    uptime,
    disks: (disks as Json[]).map(({ store, uuid }) => ({ store, uuid, new_field: {} })),
    unknown: [1, 2, 3],
  }));
  await answer(page, '/api/v1/decisions', (route) => route.fulfill({ status: 404, body: '' }));
  await page.goto(server.page('#/now'));
  await expect(page.getByText(/Version .*-future/)).toBeVisible();
  await expect(page.getByTestId('disk')).toContainText('a.store');
  await expect(page.getByTestId('disk')).toContainText('No slot has ended yet.');
  await expect(page.getByText('No decisions yet.')).toBeVisible();
});

test('a slow API keeps the page usable', async ({ page, serve }) => {
  const server = await serve();
  const release: (() => void)[] = [];
  await answer(page, '/api/v1/sessions', async (route) => {
    await new Promise<void>((resolve) => release.push(resolve));
    await route.fallback();
  });
  await page.goto(server.page('#/now'));
  await expect(page.getByTestId('disk')).toBeVisible();
  await expect(page.getByTestId('sessions-shown')).toBeHidden();
  await page.getByRole('link', { name: 'Library' }).click();
  await expect(page.getByTestId('titles-shown')).toHaveText('2 titles');
  expect(release.length).toBeGreaterThan(0);
  release.forEach((go) => go());
});

test('a clock that differs by hours changes no age', async ({ page, serve }) => {
  const server = await serve();
  await withoutEvents(page);
  // The server's clock is five hours before the browser's.
  const ahead = -5 * 3600;
  const date = () => new Date(Date.now() + ahead * 1000).toUTCString();
  const now = () => Date.now() / 1000 + ahead;
  const refusal = {
    at: now() - 90,
    subject: 'session',
    verdict: 'refused',
    session: null,
    title: 'film',
    priority: 'normal',
    client: '192.0.2.1',
    offer: null,
    resource: 'disk',
    reason: 'sessions',
    detail: 'slots 31 to 40',
    until: now() + 600,
    preempted: [],
  };
  for (const [path, json] of [
    ['/api/v1/decisions', { total: 1, decisions: [refusal] }],
    ['/api/v1/headroom', { title: 'film', fits: 0, message: 'the disk is full', until: now() + 600 }],
  ] as const) {
    await answer(page, path, (route) => route.fulfill({ json, headers: { Date: date() } }));
  }
  await answer(page, /^\/(status|titles|api\/v1\/sessions)$/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, headers: { ...response.headers(), date: date() } });
  });
  await page.goto(server.page('#/now'));
  await page.getByTestId('headroom-title').selectOption('film');
  const decision = page.getByTestId('decision');
  await expect(decision).toContainText(/1 min (29|3\d|4\d) s ago/);
  await expect(decision).toContainText('slots 31 to 40');
  await expect(decision).toContainText(/one fits at .* \(in 9 min \d+ s\)/);
  await expect(page.getByTestId('sentence')).toHaveText('No more viewer of “\u2068film\u2069” fits now.');
  await expect(page.getByTestId('until')).toContainText(/in 9 min \d+ s/);
});

test('names with marks of direction and markup stay in their places', async ({ page, serve }) => {
  const server = await serve();
  await withoutEvents(page);
  const name = `\u202e<script>alert(1)</script>'"\u200f${'ü'.repeat(100)}`;
  await answer(page, '/api/v1/sessions', (route) => {
    const list = sessions(1);
    const first = (list['sessions'] as Json[])[0];
    const session = { ...first, title: name, subject: name, token_id: name };
    return route.fulfill({ json: { total: 1, sessions: [session] } });
  });
  await page.goto(server.page('#/now'));
  const row = page.locator('tr[data-session="1"]');
  await expect(row).toContainText("<script>alert(1)</script>'");
  await expect(row.getByRole('button', { name: 'End session 1' })).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(1280);
});

test('a refusal names the time of the next attempt', async ({ page, serve }) => {
  const server = await serve();
  await answer(page, '/t/film/master.m3u8', (route) =>
    route.fulfill({
      status: 503,
      headers: { 'Retry-After': '90' },
      json: {
        error: 'refused',
        cause: 'sessions',
        resource: 'disk',
        retry: 'exact',
        retry_after_ms: 89_500,
        message: 'the disk is fully reserved by sessions admitted before; try again in 90 s',
        detail: 'for logs',
      },
    }),
  );
  await page.goto(server.page(`#/library/${await server.disk()}/film`));
  await page.getByRole('button', { name: 'Play' }).click();
  const player = page.getByTestId('player');
  await expect(player).toContainText('The disk is fully reserved by sessions admitted before');
  await expect(player).toContainText(/expects room in 1 min \d+ s/);
});
