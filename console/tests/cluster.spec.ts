// The page Cluster: its states with answers in place of a director's, and with a real one.

import type { Page } from '@playwright/test';
import { answer } from './answers';
import { violations } from './axe';
import { expect, test } from './console';
import { directorAs, node, title } from './director';
import { HOSTILE } from './library';

const summary = (page: Page) => page.getByTestId('summary');
const rows = (page: Page) => page.getByTestId('nodes').locator('tr[data-node]');
const trouble = (page: Page, id: string) => page.locator(`[data-trouble="${id}"]`);
const width = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth);

test('a director has the page Cluster alone, and is asked for nothing else', async ({ page, serve }) => {
  const server = await serve();
  const directed = await directorAs(page);
  const loaded: string[] = [];
  page.on('request', (request) => loaded.push(new URL(request.url()).pathname));
  await page.goto(`${server.origin}/console/#/library`);
  await expect(summary(page)).toContainText('3 of 4 nodes answer; 62% of their disks’ rate is free');
  await expect(page).toHaveTitle(/^Cluster/);
  await expect(page.getByTestId('link-state')).toHaveText('Live');
  await expect(page.getByRole('navigation').getByRole('link')).toHaveText(['Cluster']);
  await expect(page.getByTestId('cluster-title')).toHaveCount(3);
  await expect.poll(() => directed.asked.filter((path) => path === '/titles').length).toBeGreaterThan(1);
  expect([...new Set(directed.asked)].sort()).toEqual(['/status', '/titles']);
  expect(directed.asked[0]).toBe('/status');
  expect(loaded.filter((path) => /ServerPages|WhatIf|hls/.test(path))).toEqual([]);
});

test('a server has its pages, and loads nothing of the page Cluster', async ({ page, serve }) => {
  const server = await serve();
  const loaded: string[] = [];
  page.on('request', (request) => loaded.push(new URL(request.url()).pathname));
  await page.goto(server.page('#/cluster'));
  await expect(page.getByTestId('disk')).toBeVisible();
  await expect(page).toHaveTitle(/^Now/);
  await expect(page.getByRole('navigation').getByRole('link')).toHaveText(['Now', 'Library', 'What if']);
  expect(loaded.filter((path) => path.includes('Cluster'))).toEqual([]);
});

test('viewers are counted from when the page was opened, and refusals by cause', async ({ page, serve }) => {
  const server = await serve();
  const directed = await directorAs(page);
  await page.goto(`${server.origin}/console/`);
  await expect(rows(page)).toHaveCount(4);
  await expect(page.getByText('Nobody was refused in the last minutes.')).toBeVisible();
  directed.uptime += 12;
  directed.counters = {
    admitted: 1118,
    refused: { full: 22, 'no-copy': 6, unreachable: 0 },
    content_misses: 6,
    health_misses: 25,
  };
  await expect(summary(page)).toHaveText(
    /; the last 12 s: 118 viewers sent, 3 refused \(2 full, 1 no copy\)\.$/,
  );
  await expect(page.getByRole('img', { name: /sent to a node.*Now 9\.83\./ })).toBeVisible();
  await expect(page.getByRole('img', { name: /refused, by cause.*full 0\.17, no copy 0\.08\./ })).toBeVisible();
  await expect(page.getByTestId('content-misses')).toContainText('6, 1 of them in the last minute.');
  await expect(page.getByTestId('content-misses')).toContainText('copies are missing');
  await expect(page.getByTestId('health-misses')).toContainText('25, 0 of them in the last minute.');
  await expect(page.getByTestId('counters')).toContainText('22 full, 6 no copy since the start');

  // Later the oldest samples are no part of the minute.
  directed.uptime += 49;
  directed.counters = { ...directed.counters, admitted: 1200 };
  await expect(summary(page)).toContainText('the last minute: 200 viewers sent, 3 refused');
  directed.uptime += 30;
  await expect(summary(page)).toContainText('the last 30 s: 0 viewers sent, 0 refused.');
});

test('counters that start again count from zero', async ({ page, serve }) => {
  const server = await serve();
  const directed = await directorAs(page);
  await page.goto(`${server.origin}/console/`);
  await expect(rows(page)).toHaveCount(4);
  directed.uptime = 3;
  directed.counters = { admitted: 7, refused: { full: 2 } };
  await expect(summary(page)).toContainText('the last 3 s: 7 viewers sent, 2 refused (2 full).');
  // One that was away for longer than it was up before is known by its counters.
  directed.uptime = 90;
  directed.counters = { admitted: 4, refused: {} };
  await expect(summary(page)).not.toContainText('viewers sent');
  directed.uptime = 91;
  directed.counters = { admitted: 5, refused: {} };
  await expect(summary(page)).toContainText('the last 1 s: 1 viewer sent, 0 refused.');
});

test('a director that is lost is shown, and recovered from when it is back', async ({ page, serve }) => {
  const server = await serve();
  const directed = await directorAs(page);
  await page.goto(`${server.origin}/console/`);
  await expect(rows(page)).toHaveCount(4);
  directed.instead = 'lost';
  const notice = page.getByTestId('link-notice');
  await expect(notice).toContainText('No connection to the director');
  await expect(notice).toContainText('tenuto director');
  await expect(page.getByTestId('link-state')).toHaveText('No connection');
  // The last values stay.
  await expect(rows(page)).toHaveCount(4);
  directed.instead = { status: 500, json: { detail: 'out of memory' } };
  await expect(notice).toContainText('The director reports an error: Out of memory.');
  directed.instead = { status: 200, json: { disks: [] } };
  await expect(notice).toContainText('The director has sent nothing that this page understands');
  directed.instead = null;
  await expect(notice).toBeHidden();
  await expect(page.getByTestId('link-state')).toHaveText('Live');
});

test('what is lost or broken at the start is found out later', async ({ page, serve }) => {
  const server = await serve();
  const directed = await directorAs(page, { instead: 'lost' });
  await page.goto(`${server.origin}/console/`);
  const notice = page.getByTestId('link-notice');
  await expect(notice).toContainText('No connection to the server');
  directed.instead = { status: 200, json: [] };
  await expect(notice).toContainText('another version');
  expect([...new Set(directed.asked)]).toEqual(['/status']);
  directed.instead = null;
  await expect(summary(page)).toContainText('3 of 4 nodes answer');
  await expect(notice).toBeHidden();
});

test('a slow first answer is waited for', async ({ page, serve }) => {
  const server = await serve();
  let release = () => {};
  const isReleased = new Promise<void>((resolve) => (release = resolve));
  const directed = await directorAs(page);
  await answer(page, '/status', async (route) => {
    await isReleased;
    await route.fallback();
  });
  await page.goto(`${server.origin}/console/`);
  await expect(page.getByTestId('link-state')).toHaveText('Connecting');
  await expect(page.locator('main').getByRole('status')).toContainText('Loading');
  expect(directed.asked).toEqual([]);
  release();
  await expect(rows(page)).toHaveCount(4);
});

test('each trouble says what it means and what to do', async ({ page, serve }) => {
  const server = await serve();
  const directed = await directorAs(page);
  await page.goto(`${server.origin}/console/`);
  await expect(trouble(page, 'nodes')).toContainText('\u2068n3\u2069 does not answer.');
  await expect(trouble(page, 'nodes')).toContainText('when its lease has ended, after 10 s');
  await expect(trouble(page, 'nodes')).toContainText('tenuto serve');
  await expect(page.getByTestId('troubles').getByRole('status')).toHaveText('\u2068n3\u2069 does not answer.');

  directed.nodes = [node('n1')];
  directed.etcd = { age: 95, error: 'etcd cannot be used: <b>connection refused</b>' };
  await expect(trouble(page, 'silent')).toContainText('etcd does not answer.');
  await expect(trouble(page, 'silent')).toContainText('Its last answer was 1 min 35 s ago.');
  await expect(trouble(page, 'silent')).toContainText('Nodes admit nobody when their leases have ended.');
  await expect(trouble(page, 'silent')).toContainText('http://10.0.0.1:2379');
  await expect(trouble(page, 'silent')).toContainText('<b>connection refused</b>');
  await expect(trouble(page, 'nodes')).toHaveCount(0);
  directed.etcd = { age: 4, error: 'etcd cannot be used: timed out' };
  await expect(trouble(page, 'unread')).toContainText('tries again');
  directed.etcd = { age: null, lists: 0, error: 'no route to host' };
  await expect(trouble(page, 'unlisted')).toContainText('refuses every viewer');
  directed.etcd = { unusable_records: 2 };
  await expect(trouble(page, 'records')).toContainText('2 records were left out');
  await expect(trouble(page, 'unlisted')).toHaveCount(0);
  directed.etcd = {};
  directed.away = [
    { name: 'n3', titles: 1, drained: false },
    { name: 'n<4>', titles: 0, drained: true },
  ];
  await expect(trouble(page, 'away')).toContainText('\u2068n3\u2069, \u2068n<4>\u2069 are away.');
  await expect(trouble(page, 'away')).toContainText('tenuto cluster forget NODE');
  await expect(trouble(page, 'away')).toContainText('\u2068n3\u2069 had 1 title, \u2068n<4>\u2069 had 0 titles.');
  directed.away = [];
  await expect(page.locator('[data-trouble]')).toHaveCount(0);
  await expect(summary(page)).toContainText('1 of 1 node answers; 62% of');
});

test('an empty cluster says how to begin', async ({ page, serve }) => {
  const server = await serve();
  const directed = await directorAs(page, { nodes: [], titles: [], etcd: { age: null, lists: 0 } });
  await page.goto(`${server.origin}/console/`);
  await expect(summary(page)).toHaveText('No node is registered.');
  await expect(page.locator('main')).toContainText('--cluster-name \u2068films\u2069 --node n1');
  await expect(page.locator('main')).toContainText('Titles appear when their nodes are registered.');
  directed.nodes = [node('n1')];
  await expect(page.locator('main')).toContainText('tenuto ingest STORE FILE');
});

test('nodes are sorted, filtered, and lead to their own consoles', async ({ page, serve }) => {
  const server = await serve();
  const full = { disks: [{ guaranteed: 1e9, free: 0 }], network: { guaranteed: 1e9, free: 5e8 } };
  const nodes = [
    node('n10', { lease: 2 }),
    node('n2', { ...full, rack: 'r9', answers: false }),
    node('n1', { address: 'http://n1.example:8080/' }),
  ];
  await directorAs(page, { nodes });
  await page.goto(`${server.origin}/console/`);
  const names = () => rows(page).evaluateAll((all) => all.map((row) => row.getAttribute('data-node')));
  await expect.poll(names).toEqual(['n1', 'n2', 'n10']);
  await expect(rows(page).nth(1)).toContainText(/n2\s*r9.*no.*0% free.*50% free.*25% free/s);
  await expect(rows(page).nth(1)).toContainText('500.0 Mb/s of 1.00 Gb/s free');
  await expect(rows(page).first()).toContainText(/yes.*1\.24 Gb\/s of 2\.00 Gb\/s free, 2 disks.*unlimited/s);
  await expect(page.getByRole('link', { name: 'Console of n1' }).first()).toHaveAttribute(
    'href',
    'http://n1.example:8080/console/',
  );
  await page.getByRole('button', { name: 'Disks' }).focus();
  await page.keyboard.press('Enter');
  await expect.poll(names).toEqual(['n2', 'n1', 'n10']);
  await page.getByRole('button', { name: 'Lease' }).click();
  await expect.poll(names).toEqual(['n10', 'n1', 'n2']);
  await page.getByRole('button', { name: 'Lease' }).click();
  await expect(page.getByRole('columnheader', { name: 'Lease' })).toHaveAttribute('aria-sort', 'descending');
  await expect.poll(names).toEqual(['n1', 'n2', 'n10']);
  await page.getByRole('searchbox', { name: 'Filter by name, rack' }).fill('R9 n2');
  await expect.poll(names).toEqual(['n2']);
  await expect(page.getByTestId('nodes-shown')).toHaveText('1 of 3 nodes');
});

test('the page shows who plans placement, and what is to be filled', async ({ page, serve }) => {
  const server = await serve();
  const nodes = [node('n1', { drained: true }), node('n2', { fills_ordered: 12 })];
  const directed = await directorAs(page, { nodes });
  await page.goto(`${server.origin}/console/`);
  const placement = page.getByTestId('placement');
  await expect(placement).toContainText('by hand: no director has a bucket');
  await expect(rows(page).first()).toContainText(/yes drained.*75\.0 GiB of 200 GiB free/s);
  await expect(rows(page).nth(1)).toContainText(/12$/);
  await page.getByRole('button', { name: 'To fill' }).click();
  await page.getByRole('button', { name: 'To fill' }).click();
  await expect(rows(page).first()).toHaveAttribute('data-node', 'n2');
  directed.planning = { planner: '10.0.0.5:8090', here: null };
  await expect(placement).toHaveText('planned by 10.0.0.5:8090');
  const error = 'the bucket does not answer';
  directed.planning = { planner: null, here: { plans: false, error } };
  await expect(placement).toHaveText('by nobody at present');
  const trouble = page.locator('[data-trouble="placement"]');
  await expect(trouble).toContainText('The titles of record are not known.');
  await expect(trouble).toContainText(error);
});

test('titles with few copies come first, and titles are found by name', async ({ page, serve }) => {
  const server = await serve();
  const many = Array.from({ length: 9 }, (_, index) => `n${index + 1}`);
  const others = Array.from({ length: 70 }, (_, index) => title(`other ${index}`, ['n1', 'n2']));
  const titles = [title('alpha', many), title('beta', ['n1'], ['n2']), title('gamma', []), ...others];
  const unknown = { name: 'delta', bit_rate: null, bytes: null, ready: ['n1', 'n2'], filling: [] };
  await directorAs(page, { titles: [...titles, unknown] });
  await page.goto(`${server.origin}/console/`);
  const listed = page.getByTestId('cluster-title');
  await expect(listed).toHaveCount(60);
  await expect(listed.nth(0)).toContainText(/gamma\s*no ready copy/);
  await expect(listed.nth(1)).toContainText(/beta\s*1 copy\s*\u2068n1\u2069\s*1: \u2068n2\u2069\s*5\.0 Mb\/s\s*4\.0 GiB/);
  await expect(listed.nth(2)).toContainText(/alpha\s*9: .*\u2068n5\u2069 and 4 more/);
  await expect(page.getByTestId('few-copies')).toContainText('2 titles have fewer than two ready copies.');
  await page.getByRole('button', { name: 'Show 14 more titles' }).click();
  await expect(listed).toHaveCount(74);
  const search = page.getByRole('searchbox', { name: 'Filter titles' });
  await search.fill('DELT');
  await expect(listed).toHaveCount(1);
  await expect(listed).toContainText(/delta\s*2: .*–\s*–\s*–/);
  await expect(page.getByTestId('titles-shown')).toHaveText('1 of 74 titles');
  await search.fill('nothing');
  await expect(page.getByText('No title matches the filter.')).toBeVisible();
});

test('titles that the bucket has not are marked', async ({ page, serve }) => {
  const server = await serve();
  const listed = (name: string, inBucket: boolean | null) => ({
    ...title(name, ['n1', 'n2']),
    in_bucket: inBucket,
  });
  const titles = [listed('alpha', true), listed('beta', false), listed('gamma', null)];
  await directorAs(page, { titles });
  await page.goto(`${server.origin}/console/`);
  await expect(page.getByTestId('cluster-title')).toHaveText([/alpha\s*2:/, /beta not in bucket\s*2:/, /gamma\s*2:/]);
  await expect(page.getByTestId('not-in-bucket')).toContainText('1 title is on nodes and not in the bucket.');
  await expect(page.getByTestId('not-in-bucket')).toContainText('tenuto rm STORE TITLE');
});

test('copies that differ from the bucket are marked', async ({ page, serve }) => {
  const server = await serve();
  const titles = [
    { ...title('alpha', ['n1', 'n2']), outdated: ['n2'], own: [] },
    { ...title('beta', ['n1', 'n2']), outdated: [], own: ['n1', 'n2'] },
    title('gamma', ['n1', 'n2']),
  ];
  await directorAs(page, { titles });
  await page.goto(`${server.origin}/console/`);
  await expect(page.getByTestId('cluster-title')).toHaveText([
    /alpha\s*2: .* old content: \u2068n2\u2069/,
    /beta\s*2: .* other content: \u2068n1\u2069, \u2068n2\u2069/,
    /gamma\s*2: \S+ \S+\s*–/,
  ]);
  await expect(page.getByTestId('outdated')).toContainText('1 title was replaced in the bucket');
  await expect(page.getByTestId('own-content')).toContainText('1 title has another content on nodes');
  await expect(page.getByTestId('own-content')).toContainText('tenuto rm STORE TITLE');
});

test('titles that cannot be listed do not take the nodes away', async ({ page, serve }) => {
  const server = await serve();
  await directorAs(page);
  let isBroken = true;
  await answer(page, '/titles', (route) =>
    isBroken ? route.fulfill({ status: 500, json: { detail: 'no titles' } }) : route.fallback(),
  );
  await page.goto(`${server.origin}/console/`);
  await expect(rows(page)).toHaveCount(4);
  await expect(page.locator('main').getByRole('alert')).toContainText('No titles.');
  isBroken = false;
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByTestId('cluster-title')).toHaveCount(3);
});

test('the director tells of itself, also one of another version', async ({ page, serve }) => {
  const server = await serve();
  await directorAs(page);
  let json: unknown = null;
  await answer(page, '/status', (route) => (json === null ? route.fallback() : route.fulfill({ json })));
  await page.goto(`${server.origin}/console/`);
  const about = page.getByTestId('about');
  for (const fact of ['1.2.3', 'films', '1 h 23 min', 'http://10.0.0.1:2379', '1 s ago', '1,234']) {
    await expect(about).toContainText(fact);
  }
  json = { version: '9-future', nodes: [{ name: 'n1' }, 7, null], counters: { new: {} }, etcd: 'x' };
  await expect(about).toContainText('9-future');
  await expect(rows(page)).toHaveCount(1);
  await expect(rows(page).first()).toContainText(/no\s*0 s\s*–\s*–\s*–/);
});

test('hostile names of nodes, racks, addresses and titles are nothing but text', async ({ page, serve }) => {
  const server = await serve();
  const name = `\u202e<script>alert(1)</script>'"\u200f${'ü'.repeat(100)}`;
  const nodes = [
    node(name, { rack: HOSTILE, address: 'javascript:alert(1)', answers: false }),
    node('n2', { address: 'http://n2.example"><img src=x>' }),
    node('n3', { address: '//evil.example' }),
    node('n3', { address: 'https://same.example:1' }),
  ];
  const titles = [title(HOSTILE, [name]), title(name, [], [HOSTILE]), title('', ['n2']), title('', [])];
  const counters = { refused: { [name]: 3, __proto__: 1, full: 'many' } };
  const directed = await directorAs(page, { nodes, titles, counters });
  await page.goto(`${server.origin}/console/`);
  await expect(rows(page)).toHaveCount(4);
  await expect(rows(page).filter({ hasText: 'javascript:alert(1)' })).toContainText('<script>');
  await expect(trouble(page, 'nodes')).toContainText('<script>alert(1)</script>');
  await expect(page.getByTestId('cluster-title')).toHaveCount(4);
  await expect(page.getByTestId('cluster-title').filter({ hasText: '<img src=x' }).first()).toBeVisible();
  const links = page.getByTestId('nodes').getByRole('link');
  await expect(links).toHaveCount(1);
  await expect(links).toHaveAttribute('href', 'https://same.example:1/console/');
  await expect(page.locator('img[src=x]')).toHaveCount(0);
  directed.uptime += 5;
  directed.counters = { refused: { [name]: 4 } };
  await expect(summary(page)).toContainText('1 \u2068\u202e<script>');
  expect(await width(page)).toBe(1280);
});

test('500 nodes scroll, and only what is seen is in the page', async ({ page, serve }) => {
  const server = await serve();
  const names = Array.from({ length: 500 }, (_, index) => `n${index + 1}`);
  const nodes = names.map((name, index) => node(name, { rack: `r${index % 20}`, answers: index % 50 !== 0 }));
  await directorAs(page, { nodes });
  await page.goto(`${server.origin}/console/`);
  await expect(summary(page)).toContainText('490 of 500 nodes answer');
  await expect(trouble(page, 'nodes')).toContainText('and 5 more do not answer.');
  expect(await rows(page).count()).toBeLessThan(100);
  await page.getByTestId('nodes').focus();
  await page.keyboard.press('End');
  await expect(page.locator('tr[data-node="n500"]')).toBeInViewport();
  await expect(page.locator('tr[data-node="n500"]')).toHaveAttribute('aria-rowindex', '501');
});

test('a page that nobody sees asks less often, and at once when it is seen again', async ({ page, serve }) => {
  const server = await serve();
  await page.clock.install();
  const directed = await directorAs(page);
  await page.goto(`${server.origin}/console/`);
  await expect(rows(page)).toHaveCount(4);
  const asked = () => directed.asked.filter((path) => path === '/status').length;
  const hide = (isHidden: boolean) =>
    page.evaluate((hidden) => {
      Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, isHidden);
  await hide(true);
  // The next request was planned before.
  await page.clock.runFor(1_500);
  await expect.poll(asked).toBeGreaterThan(2);
  const before = asked();
  await page.clock.runFor(8_000);
  expect(asked()).toBe(before);
  await hide(false);
  await expect.poll(asked).toBe(before + 1);
});

for (const colorScheme of ['light', 'dark'] as const) {
  test(`axe finds nothing on the page Cluster, ${colorScheme}`, async ({ page, serve }) => {
    await page.emulateMedia({ colorScheme });
    const server = await serve();
    const directed = await directorAs(page, { etcd: { age: 95, error: 'refused', unusable_records: 1 } });
    await page.goto(`${server.origin}/console/`);
    await expect(rows(page)).toHaveCount(4);
    directed.uptime += 10;
    directed.counters = { refused: { full: 30, 'no-copy': 9, unreachable: 2 } };
    await expect(page.locator('.u-legend')).toHaveCount(2);
    await expect(page.getByTestId('cluster-title')).toHaveCount(3);
    expect(await violations(page)).toEqual([]);
    directed.instead = 'lost';
    await expect(page.getByTestId('link-notice')).toBeVisible();
    expect(await violations(page)).toEqual([]);
    directed.instead = null;
    directed.nodes = directed.titles = [];
    await expect(summary(page)).toContainText('No node is registered');
    expect(await violations(page)).toEqual([]);
  });
}

test('a narrow screen does not scroll the page Cluster sideways', async ({ page, serve }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  const server = await serve();
  const error = `etcd cannot be used: ${'x'.repeat(200)}`;
  const directed = await directorAs(page, { etcd: { age: 95, error, endpoint: `http://${'e'.repeat(90)}:1` } });
  await page.goto(`${server.origin}/console/`);
  await expect(page.getByTestId('cluster-title')).toHaveCount(3);
  directed.uptime += 10;
  directed.counters = { refused: { full: 30, 'no-copy': 9, unreachable: 2 } };
  await expect(page.locator('.u-legend')).toHaveCount(2);
  expect(await width(page)).toBe(360);
});
