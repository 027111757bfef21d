// The page What if: its states with answers in place of the server's, and with a real server.

import type { Page, Route } from '@playwright/test';
import { answer } from './answers';
import { expect, test } from './console';
import { HOSTILE } from './library';
import { fulfilPlan, planAsServer, planFor, whatIf } from './plans';

const GIB = 2 ** 30;

const sentence = (page: Page) => page.getByTestId('answer');
const slider = (page: Page, name: string) => page.getByRole('slider', { name });
const choice = (page: Page, name: string) => page.getByRole('combobox', { name });
const field = (page: Page, name: string) => page.getByRole('textbox', { name });

test('the sentence says what the disks hold, how many suffice and what is full first', async ({
  page,
  serve,
}) => {
  const server = await serve();
  await planAsServer(page);
  await page.goto(server.page('#/now'));
  await page.getByRole('link', { name: 'What if' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('What if');
  await expect(page).toHaveTitle(/^What if/);
  await expect(sentence(page)).toHaveText(
    '4 disks of this kind hold 904 streams of 5 Mb/s; 1,000 viewers need 5 disks. ' +
      'The disks are full first.',
  );
  await expect(page.getByTestId('guarantee')).toContainText('Guaranteed');
  await expect(page.getByRole('img', { name: '904 held, 1,000 wanted' })).toBeVisible();
  const facts = page.getByTestId('facts');
  await expect(facts).toContainText('4 MiB; each holds 6.71 s of a stream');
  await expect(facts).toContainText('4.89 s at least, with a buffer of 2.9 MiB');
  await expect(facts).toContainText('5.00 Gb/s');

  await field(page, 'Viewers wanted').fill('800');
  await page.keyboard.press('Enter');
  await expect(sentence(page)).toContainText('800 viewers fit, and 104 more. The disks are full first.');
});

test('viewers of popular titles share reads, by an estimate', async ({ page, serve }) => {
  const server = await serve();
  const asked = await planAsServer(page);
  await page.goto(server.page(whatIf()));
  await expect(page.getByTestId('shared')).toHaveCount(0);
  await choice(page, 'Viewers watch').selectOption('popular titles, and share reads');
  const shared = page.getByTestId('shared');
  await expect(shared).toContainText('about 1,808 viewers of 1,000 titles');
  await expect(shared).toContainText('904 streams of the disks, and 904 who follow');
  await expect(shared).toContainText('an estimate');
  await field(page, 'Popularity').fill('1.1');
  await page.keyboard.press('Enter');
  await slider(page, 'Number of titles').press('ArrowRight');
  await expect.poll(() => asked.at(-1)?.get('zipf')).toBe('1.1');
  await expect(shared).toContainText(/of 1,[1-9]00 titles/);
  await expect(page).toHaveURL(/titles=1[1-9]00&zipf=1\.1/);
  await field(page, 'Memory').fill('unlimited');
  await page.keyboard.press('Enter');
  await expect(shared).toContainText('choose a size');
  await choice(page, 'Viewers watch').selectOption('a title each');
  await expect(shared).toHaveCount(0);
});

test('the chart has its values in a table, too', async ({ page, serve }) => {
  const server = await serve();
  await planAsServer(page);
  await page.goto(server.page(whatIf()));
  await expect(page.getByRole('img', { name: /^Streams of one disk.*226 with reads of 4 MiB/ })).toBeVisible();
  const legend = page.locator('.u-legend');
  for (const name of ['time-domain', 'any place', 'zone-exact', 'usual', 'fit in memory', 'transfer alone']) {
    await expect(legend).toContainText(name);
  }
  const box = await page.locator('.u-over').boundingBox();
  if (!box) throw new Error('there is no chart');
  await page.mouse.move(box.x + (box.width * 3) / 4, box.y + box.height / 2);
  await expect(legend).toContainText('4 MiB');
  await expect(legend).toContainText('226');

  await page.getByText('Table of these values').click();
  const rows = page.getByTestId('bounds').getByRole('row');
  await expect(rows).toHaveCount(1 + 5);
  await expect(rows.nth(4)).toHaveText(/4 MiB\s*best\s*6\.71 s\s*226\s*disk\s*174\s*164\s*226\s*265\s*512\s*346/);
  // A server does not use this size.
  await expect(rows.nth(5)).toHaveText(/8 MiB\s*13\.4 s\s*–\s*–\s*197/);

  // With one size the others stay, to compare.
  await choice(page, 'Read size').selectOption('1 MiB');
  await expect(sentence(page)).toContainText('hold 436 streams');
  await expect(rows).toHaveCount(1 + 5);
});

test('where memory is full, more memory is named instead of more disks', async ({ page, serve }) => {
  const server = await serve();
  await planAsServer(page);
  await page.goto(server.page(whatIf({ model: 'ssd-nvme', disks: 1, memory: 4 * GIB })));
  await expect(sentence(page)).toHaveText(
    '1 disk of this kind holds 256 streams of 5 Mb/s; 1,000 viewers do not fit. ' +
      'The memory is full first.',
  );
  const main = page.locator('main');
  await expect(main).toContainText('More disks do not help');
  await expect(main).toContainText('the same disks hold 2,000 and book up to 31.3 GiB');
  await field(page, 'Memory').fill('unlimited');
  await page.keyboard.press('Enter');
  await expect(sentence(page)).toContainText('1,000 viewers fit, and 1,000 more');
  await expect(field(page, 'Memory')).toHaveValue('unlimited');
});

test('a policy without a guarantee says so', async ({ page, serve }) => {
  const server = await serve();
  await planAsServer(page);
  await page.goto(server.page(whatIf()));
  await choice(page, 'Admission policy').selectOption('time-domain-by-chance');
  await expect(page.getByTestId('guarantee')).toContainText('Not guaranteed');
  await expect(page.getByTestId('guarantee')).toContainText('360 reads were late');
});

test('unknown values are dashes, and no stream at all says what to change', async ({ page, serve }) => {
  const server = await serve();
  await planAsServer(page, async (route, query) => {
    const plan = planFor(query);
    const isNone = query.get('rate') === '200000000';
    await route.fulfill({
      json: {
        ...plan,
        best: isNone ? null : { streams: 7, read_size: 65536, short_of: null, new_field: {} },
        rows: isNone ? [] : [{ read_size: 65536, admitted: null }, 'garbage'],
        ratio: null,
      },
    });
  });
  await page.goto(server.page(whatIf({ disks: 1, viewers: 7 })));
  await expect(sentence(page)).toHaveText(
    '1 disk of this kind holds 7 streams of 5 Mb/s; 7 viewers fit, and none more. ' +
      'Nothing is full: the plan ended before a viewer was refused.',
  );
  await expect(page.getByTestId('facts').getByText('–')).toHaveCount(4);
  await field(page, 'Rate of a stream').fill('200 Mbps');
  await page.keyboard.press('Enter');
  await expect(sentence(page)).toHaveText(
    'A disk of this kind holds no stream of 200 Mb/s with these settings.',
  );
  await expect(page.locator('main')).toContainText('Choose more memory');
});

test('an error is shown with the hint of the server, and tried again', async ({ page, serve }) => {
  const server = await serve();
  let isRefused = true;
  await planAsServer(page, async (route, query) => {
    if (!isRefused) return fulfilPlan(route, query);
    return route.fulfill({
      status: 422,
      json: {
        error: 'too-many-streams',
        detail: 'the disk may hold 65000 such streams',
        hint: 'run `tenuto plan` on another machine',
      },
    });
  });
  await page.goto(server.page(whatIf()));
  const alert = page.locator('main').getByRole('alert');
  await expect(alert).toContainText('The disk may hold 65000 such streams. Run `tenuto plan`');
  await expect(sentence(page)).toBeHidden();
  isRefused = false;
  await alert.getByRole('button', { name: 'Try again' }).click();
  await expect(sentence(page)).toContainText('904 streams');
});

test('a server that is busy is asked again quietly', async ({ page, serve }) => {
  const server = await serve();
  let refusals = 2;
  await planAsServer(page, async (route, query) => {
    refusals -= 1;
    if (refusals < 0) return fulfilPlan(route, query);
    return route.fulfill({ status: 503, json: { error: 'busy', detail: 'another plan is being made' } });
  });
  await page.goto(server.page(whatIf()));
  await expect(page.getByTestId('waiting')).toHaveText('Computing the new answer.');
  await expect(sentence(page)).toContainText('904 streams');
});

test('the old answer stays while the server computes, and late answers are not shown', async ({
  page,
  serve,
}) => {
  const server = await serve();
  const held: { route: Route; query: URLSearchParams }[] = [];
  let isSlow = false;
  const asked = await planAsServer(page, async (route, query) => {
    if (!isSlow) return fulfilPlan(route, query);
    held.push({ route, query });
  });
  const letGo = async () => {
    const next = held.shift();
    if (next) await fulfilPlan(next.route, next.query);
  };
  await page.goto(server.page(whatIf({ memory: 'unlimited' })));
  await expect(sentence(page)).toContainText('4 disks');
  await expect(page.getByTestId('waiting')).toBeEmpty();

  isSlow = true;
  const disks = field(page, 'Number of disks');
  await disks.fill('2');
  await disks.press('Enter');
  await expect(page.getByTestId('waiting')).toContainText('Computing');
  await expect(sentence(page)).toContainText('4 disks');
  await expect.poll(() => held.length).toBe(1);
  await disks.fill('6');
  await disks.press('Enter');
  await page.waitForTimeout(400);
  // One at a time.
  expect(held.map(({ query }) => query.get('disks'))).toEqual(['2']);
  await letGo();
  await expect.poll(() => held.map(({ query }) => query.get('disks'))).toEqual(['6']);
  await expect(sentence(page)).toContainText('4 disks');
  await letGo();
  await expect(sentence(page)).toContainText('6 disks of this kind hold 1,356 streams');
  await expect(page.getByTestId('waiting')).toBeEmpty();

  // What was asked before is known, also the answer that came late.
  const before = asked.length;
  for (const [typed, shown] of [['2', '2 disks'], ['4', '4 disks']] as const) {
    await disks.fill(typed);
    await disks.press('Enter');
    await expect(sentence(page)).toContainText(shown);
  }
  expect(asked.slice(before).map((query) => query.get('disks'))).not.toContain('2');
  expect(asked.slice(before).map((query) => query.get('disks'))).not.toContain('4');
});

test('a slider that is dragged asks when it rests', async ({ page, serve }) => {
  const server = await serve();
  const asked = await planAsServer(page);
  await page.goto(server.page(whatIf({ viewers: 1, disks: 1, memory: 'unlimited' })));
  await expect(sentence(page)).toBeVisible();
  const before = asked.length;
  await slider(page, 'Number of disks').evaluate((input: HTMLInputElement) => {
    for (let stop = 1; stop < 9; stop += 1) {
      input.value = String(stop);
      input.dispatchEvent(new Event('input', { bubbles: true }));
    }
  });
  await expect(sentence(page)).toContainText('9 disks');
  expect(asked.slice(before).map((query) => query.get('disks'))).toEqual(['9']);
});

test('sliders move by the keyboard, and wrong units are named', async ({ page, serve }) => {
  const server = await serve();
  await planAsServer(page);
  await page.goto(server.page(whatIf()));
  const rate = slider(page, 'Rate of a stream');
  await expect(rate).toHaveAttribute('aria-valuetext', '5 Mb/s');
  await rate.focus();
  await page.keyboard.press('ArrowRight');
  await expect(rate).toHaveAttribute('aria-valuetext', '5.6 Mb/s');
  await expect(field(page, 'Rate of a stream')).toHaveValue('5.6 Mb/s');
  await expect(sentence(page)).toContainText('streams of 5.6 Mb/s');
  const memory = slider(page, 'Memory');
  await memory.focus();
  await page.keyboard.press('End');
  await expect(memory).toHaveAttribute('aria-valuetext', 'unlimited');

  const typed = field(page, 'Rate of a stream');
  await typed.fill('quick');
  await page.keyboard.press('Enter');
  await expect(typed).toHaveAttribute('aria-invalid', 'true');
  await expect(typed).toHaveAccessibleDescription('Write a rate with its unit, such as 5 Mb/s.');
  await page.keyboard.press('Escape');
  await expect(typed).toHaveValue('5.6 Mb/s');
  await expect(typed).toHaveAttribute('aria-invalid', 'false');
  await typed.fill('1 MB/s');
  await page.keyboard.press('Enter');
  await expect(typed).toHaveValue('8 Mb/s');
});

test('a shared address opens the same settings', async ({ page, serve }) => {
  const server = await serve();
  await planAsServer(page);
  await page.goto(server.page('#/what-if'));
  await expect(sentence(page)).toBeVisible();
  await field(page, 'Viewers wanted').fill('2500');
  await page.keyboard.press('Enter');
  await choice(page, 'Kind of disk').selectOption('NVMe solid-state disk, 3.84 TB');
  await choice(page, 'Read size').selectOption('2 MiB');
  await choice(page, 'Admission policy').selectOption('vbrsim');
  await page.getByRole('button', { name: 'Pin this row' }).click();
  await expect(page).toHaveURL(/viewers=2500.*model=ssd-nvme.*read_size=2097152.*pin=/);
  await expect(page.getByTestId('waiting')).toBeEmpty();
  await expect(sentence(page)).toContainText('2,500 viewers');
  const shown = await sentence(page).textContent();

  const shared = page.url();
  await page.goto('about:blank');
  await page.goto(shared);
  await expect(sentence(page)).toHaveText(shown ?? '');
  await expect(field(page, 'Viewers wanted')).toHaveValue('2,500');
  await expect(choice(page, 'Kind of disk')).toHaveValue('mssd-nvme');
  await expect(choice(page, 'Read size')).toHaveValue('2097152');
  await expect(choice(page, 'Admission policy')).toHaveValue('vbrsim');
  await expect(page.getByTestId('pins').getByRole('row')).toHaveCount(1 + 1);
  // The page itself is where it began.
  await page.getByRole('link', { name: 'What if' }).click();
  await expect(field(page, 'Viewers wanted')).toHaveValue('1,000');
  await page.goBack();
  await expect(field(page, 'Viewers wanted')).toHaveValue('2,500');
});

test('pinned rows are compared, opened and removed', async ({ page, serve }) => {
  const server = await serve();
  await planAsServer(page);
  await page.goto(server.page(whatIf()));
  await expect(sentence(page)).toContainText('904');
  await expect(page.getByText('Pin settings to compare')).toBeVisible();
  const pin = page.getByRole('button', { name: 'Pin this row' });
  await pin.click();
  await pin.click();
  const rows = page.getByTestId('pins').getByRole('row');
  await expect(rows).toHaveCount(1 + 1);
  await choice(page, 'Kind of disk').selectOption('NVMe solid-state disk, 3.84 TB');
  await pin.click();
  await expect(rows.nth(1)).toContainText(/nearline.*4\s*5 Mb\/s\s*16 GiB\s*4 MiB\s*time-domain\s*904\s*1,000\s*disk/);
  await expect(rows.nth(2)).toContainText(/NVMe.*4\s*5 Mb\/s\s*16 GiB.*1,024\s*1,000\s*memory/);

  await page.getByRole('link', { name: /nearline.*row 1/ }).click();
  await expect(choice(page, 'Kind of disk')).toHaveValue('mhdd-20tb');
  await expect(sentence(page)).toContainText('904');
  await page.getByRole('button', { name: 'Remove row 1' }).click();
  await expect(rows).toHaveCount(1 + 1);
  await expect(rows.nth(1)).toContainText('NVMe');
  for (let disks = 1; disks <= 7; disks += 1) {
    await field(page, 'Number of disks').fill(String(disks));
    await page.keyboard.press('Enter');
    await pin.click();
  }
  await expect(pin).toBeDisabled();
  await expect(page.getByText('8 rows are pinned, the most.')).toBeVisible();
});

test('a pinned row that fails says why in its place', async ({ page, serve }) => {
  const server = await serve();
  await planAsServer(page, async (route, query) =>
    query.get('disk') === null
      ? fulfilPlan(route, query)
      : route.fulfill({ status: 409, json: { detail: 'the disk is not calibrated', hint: 'calibrate it first' } }),
  );
  await page.goto(server.page(`${whatIf()}&pin=${encodeURIComponent(`disk=${await server.disk()}`)}`));
  await expect(sentence(page)).toContainText('904');
  const row = page.getByTestId('pins').getByRole('row').nth(1);
  await expect(row).toContainText('a.store');
  await expect(row).toContainText('The disk is not calibrated. Calibrate it first.');
});

test('a title with a hostile name, of this server or not, is nothing but text', async ({ page, serve }) => {
  const server = await serve();
  const asked = await planAsServer(page);
  await page.goto(server.page(whatIf()));
  await choice(page, 'A stream is').selectOption(HOSTILE);
  await expect(sentence(page)).toContainText(`904 viewers of “\u2068${HOSTILE}\u2069”`);
  await expect(slider(page, 'Rate of a stream')).toBeHidden();
  await page.getByRole('button', { name: 'Pin this row' }).click();
  await expect(page.getByTestId('pins')).toContainText(HOSTILE);
  expect(asked.at(-1)?.get('title')).toBe(HOSTILE);
  await expect(page.locator('img[src=x]')).toHaveCount(0);
  await page.reload();
  await expect(choice(page, 'A stream is')).toHaveValue(`t${HOSTILE}`);

  const gone = `\u202e<script>alert(1)</script>'"${'ü'.repeat(100)}`;
  await page.goto(server.page(whatIf({ title: gone, model: '<b>disk</b>', policy: '"p"' })));
  await page.reload();
  await expect(sentence(page)).toContainText('<script>alert(1)</script>');
  await expect(choice(page, 'Kind of disk')).toContainText('<b>disk</b> (not on this server)');
  await expect(choice(page, 'Admission policy')).toContainText('"p" (not on this server)');
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(1280);
});

test('a server without plans says what does the same', async ({ page, serve }) => {
  const server = await serve();
  await answer(page, '/api/v1/planning', (route) => route.fulfill({ status: 404, body: '' }));
  await page.goto(server.page('#/what-if'));
  await expect(page.locator('main').getByRole('alert')).toContainText('tenuto plan --model');
});

test('a page that cannot be loaded is tried again', async ({ page, serve }) => {
  const server = await serve();
  await planAsServer(page);
  let isAway = true;
  await page.route('**/console/assets/WhatIf-*.js*', (route) =>
    isAway ? route.abort() : route.fallback(),
  );
  await page.goto(server.page('#/now'));
  await page.getByRole('link', { name: 'What if' }).click();
  const alert = page.locator('main').getByRole('alert');
  await expect(alert).toContainText('could not be loaded');
  isAway = false;
  await alert.getByRole('button', { name: 'Try again' }).click();
  await expect(sentence(page)).toContainText('904 streams');
});

test('a real server plans for a model, a title and its own disk', async ({ page, serve }) => {
  const server = await serve();
  await page.goto(server.page(whatIf()));
  await expect(sentence(page)).toHaveText(
    /^4 disks of this kind hold \d+ streams of 5 Mb\/s; 1,000 viewers need \d disks\. The disks are full first\.$/,
  );
  const streams = /hold (\d+)/.exec((await sentence(page).textContent()) ?? '')?.[1];
  const query = 'model=hdd-20tb&rate=5000000&disks=4&memory=17179869184&policy=time-domain';
  const plan = await server.json<{ best: { streams_in_all: number } }>(`/api/v1/plan?${query}`);
  expect(plan.best.streams_in_all).toBe(Number(streams));
  // As many disks as are said to suffice do so.
  const needed = /need (\d+)/.exec((await sentence(page).textContent()) ?? '')?.[1] ?? '';
  await field(page, 'Number of disks').fill(needed);
  await page.keyboard.press('Enter');
  await expect(sentence(page)).toContainText('1,000 viewers fit');

  await choice(page, 'A stream is').selectOption('film');
  await expect(sentence(page)).toContainText('viewers of “\u2068film\u2069”');
  await choice(page, 'A stream is').selectOption('a constant rate');
  await choice(page, 'Kind of disk').selectOption(`d${await server.disk()}`);
  const answer = page.getByTestId('facts').or(page.locator('main').getByRole('alert'));
  await expect(page.getByTestId('waiting')).toBeEmpty();
  await expect(answer).toBeVisible();

  // The server refuses what takes too long, with what to do instead.
  await choice(page, 'Kind of disk').selectOption('mssd-nvme');
  await field(page, 'Rate of a stream').fill('100 kbps');
  await page.keyboard.press('Enter');
  await expect(page.locator('main').getByRole('alert')).toContainText('tenuto plan');
});
