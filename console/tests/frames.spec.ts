// How smoothly long lists scroll. These tests run alone: other work would delay their frames.

import { answer, sessions } from './answers';
import { expect, test } from './console';

test('10,000 sessions scroll smoothly', async ({ page, serve }) => {
  const server = await serve();
  await answer(page, '/api/v1/sessions', (route) => route.fulfill({ json: sessions(10_000) }));
  await page.goto(server.page('#/now'));
  const table = page.getByTestId('sessions');
  await expect(page.getByTestId('sessions-shown')).toContainText('10,000 sessions');
  // Only what is seen is in the page.
  expect(await table.locator('tr[data-session]').count()).toBeLessThan(80);

  // Time of the page's thread on the processor: what a frame takes on a machine without other work.
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
  const busy = async () => {
    const { metrics } = await devtools.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN;
  };

  const FRAMES = 120;
  const before = await busy();
  const empty = await table.evaluate(async (element, frames) => {
    // A wheel that is turned fast: half of the rows in sight are new in each frame.
    const STEP = 300;
    const frame = () => new Promise<number>((resolve) => requestAnimationFrame(resolve));
    const isEmpty = () => {
      const { left, top, height } = element.getBoundingClientRect();
      const middle = document.elementFromPoint(left + 100, top + height / 2);
      return !middle?.closest('tr[data-session]');
    };
    element.scrollIntoView({ block: 'center' });
    let emptyFrames = 0;
    for (let number = 0; number < frames; number += 1) {
      element.scrollTop += STEP;
      await frame();
      if (isEmpty()) emptyFrames += 1;
    }
    return emptyFrames;
  }, FRAMES);
  const each = (((await busy()) - before) / FRAMES) * 1000;
  expect(empty, 'frames without rows').toBe(0);
  expect(each, 'milliseconds of work for a frame').toBeLessThan(1000 / 30);
  await table.evaluate((element) => (element.scrollTop = element.scrollHeight));
  await expect(table.locator('tr[data-session="10000"]')).toBeVisible();

  await page.getByRole('searchbox').fill('9999');
  await expect(page.getByTestId('sessions-shown')).toHaveText(/^1 of 10,000 sessions/);
});
