// Access: axe finds nothing, the keyboard reaches everything, and a narrow screen shows it.

import { violations } from './axe';
import { expect, test } from './console';
import { fulfilPlan, planAsServer, whatIf } from './plans';

for (const colorScheme of ['light', 'dark'] as const) {
  test(`axe finds nothing, ${colorScheme}`, async ({ page, serve }) => {
    await page.emulateMedia({ colorScheme });
    const server = await serve();
    expect(await server.view('film')).toBe(200);
    await page.goto(server.page('#/now'));
    await expect(page.getByTestId('decision')).toBeVisible();
    await expect(page.locator('.u-legend')).toBeAttached();
    expect(await violations(page)).toEqual([]);

    await page.getByRole('button', { name: /^End session/ }).click();
    await expect(page.getByRole('dialog')).toBeVisible();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('Escape');

    await page.getByRole('link', { name: 'Library' }).click();
    await expect(page.getByTestId('title').first()).toBeVisible();
    expect(await violations(page)).toEqual([]);

    await page.getByRole('link', { name: 'film' }).click();
    await page.getByRole('button', { name: 'Play' }).click();
    await expect(page.getByTestId('player-state')).toHaveAttribute('data-phase', 'playing');
    await expect(page.getByTestId('extents')).toBeVisible();
    expect(await violations(page)).toEqual([]);
  });
}

for (const colorScheme of ['light', 'dark'] as const) {
  test(`axe finds nothing on the page What if, ${colorScheme}`, async ({ page, serve }) => {
    await page.emulateMedia({ colorScheme });
    const server = await serve();
    let isBroken = false;
    await planAsServer(page, (route, query) =>
      isBroken
        ? route.fulfill({ status: 422, json: { detail: 'too many', hint: 'ask for less' } })
        : fulfilPlan(route, query),
    );
    await page.goto(server.page(whatIf()));
    await expect(page.getByTestId('answer')).toContainText('904');
    await page.getByRole('button', { name: 'Pin this row' }).click();
    await page.getByText('Table of these values').click();
    await expect(page.locator('.u-legend')).toBeAttached();
    expect(await violations(page)).toEqual([]);

    const memory = page.getByRole('textbox', { name: 'Memory' });
    await memory.fill('much');
    await page.keyboard.press('Enter');
    await expect(memory).toHaveAttribute('aria-invalid', 'true');
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByRole('combobox', { name: 'Kind of disk' }).selectOption('mssd-nvme');
    await expect(page.getByTestId('answer')).toContainText('1,024');
    expect(await violations(page)).toEqual([]);
    isBroken = true;
    await page.getByRole('combobox', { name: 'Read size' }).selectOption('64 KiB');
    await expect(page.locator('main').getByRole('alert')).toContainText('Ask for less.');
    expect(await violations(page)).toEqual([]);
  });
}

test('the keyboard alone plays a title and ends its session', async ({ page, serve }) => {
  const server = await serve();
  await page.goto(server.page('#/library'));
  await expect(page.getByTestId('title').first()).toBeVisible();
  await page.getByRole('link', { name: 'film' }).focus();
  await page.keyboard.press('Enter');
  // The focus is at the beginning of the new page.
  await expect(page.locator('main')).toBeFocused();
  await page.getByRole('button', { name: 'Play' }).focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => server.sessions()).toBe(1);

  const slider = page.getByRole('slider', { name: 'Position' });
  await slider.focus();
  await page.keyboard.press('ArrowRight');
  await expect(slider).toHaveAttribute('aria-valuetext', /of 0:08/);

  await page.getByRole('button', { name: 'Stop' }).focus();
  await page.keyboard.press('Space');
  await expect.poll(() => server.sessions()).toBe(0);
  expect(await server.view('film')).toBe(200);
  await page.getByRole('link', { name: 'Now' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: /^End session/ }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'End the session' }).focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => server.sessions()).toBe(0);
});

test('a skip link leads past the navigation', async ({ page, serve }) => {
  const server = await serve();
  await page.goto(server.page('#/now'));
  await page.keyboard.press('Tab');
  await expect(page.getByText('Skip to the content')).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.locator('main')).toBeFocused();
  await expect(page).toHaveURL(/#\/now$/);
});

test('a narrow screen does not scroll sideways', async ({ page, serve }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  const server = await serve();
  expect(await server.view('film')).toBe(200);
  const width = () => page.evaluate(() => document.documentElement.scrollWidth);
  await page.goto(server.page('#/now'));
  await expect(page.getByTestId('sessions')).toBeVisible();
  expect(await width()).toBe(360);
  await page.getByRole('link', { name: 'Library' }).click();
  await expect(page.getByTestId('title').first()).toBeVisible();
  expect(await width()).toBe(360);
  await page.getByRole('link', { name: 'film' }).click();
  await expect(page.getByTestId('extents')).toBeVisible();
  expect(await width()).toBe(360);
  await planAsServer(page);
  await page.getByRole('link', { name: 'What if' }).click();
  await expect(page.getByTestId('answer')).toContainText('904');
  await page.getByRole('button', { name: 'Pin this row' }).click();
  await page.getByText('Table of these values').click();
  await expect(page.locator('.u-legend')).toBeAttached();
  expect(await width()).toBe(360);
});

test('the choice of light or dark stays', async ({ page, serve }) => {
  await page.emulateMedia({ colorScheme: 'light' });
  const server = await serve();
  await page.goto(server.page('#/now'));
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.getByRole('button', { name: 'Colours: as the system' }).click();
  expect(await background()).toBe(light);
  await page.getByRole('button', { name: 'Colours: light' }).click();
  const dark = await background();
  expect(dark).not.toBe(light);
  await page.reload();
  expect(await background()).toBe(dark);
});
