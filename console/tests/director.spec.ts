// The page Cluster with a real director, real nodes and a real etcd.

import { Cluster, freePort, withoutEtcd } from './cluster';
import { expect, test } from './console';

test('a director shows its nodes, what happens to them, and itself', async ({ page, serve }) => {
  const why = withoutEtcd();
  test.skip(why !== '', why);
  const cluster = new Cluster();
  try {
    await cluster.start();
    await page.goto(`${cluster.origin}/console/`);
    const summary = page.getByTestId('summary');
    await expect(summary).toContainText('No node is registered');

    const start = async (name: string) => {
      const port = await freePort();
      return serve({ port, hasTokens: false, options: cluster.nodeOptions(name, port) });
    };
    const [first, second] = [await start('n1'), await start('n2')];
    await expect(summary).toContainText('2 of 2 nodes answer; 100% of their disks’ rate is free');
    const rows = page.getByTestId('nodes').locator('tr[data-node]');
    await expect(rows).toHaveText([/n1\s*rack of n1.*yes.*100% free.*unlimited/s, /n2\s*rack of n2.*yes/s]);
    const titles = page.getByTestId('cluster-title');
    await expect(titles).toHaveText([/^<img src=x.*2: .*n1.*n2/s, /film\s*2: .*n1.*n2/s]);
    await expect(page.getByTestId('about')).toContainText('http://127.0.0.1:');
    await expect(page.locator('[data-trouble]')).toHaveCount(0);

    const sent = await cluster.view('film');
    expect(sent.status).toBe(302);
    expect([first.origin, second.origin].some((origin) => sent.location.startsWith(origin))).toBe(true);
    expect((await cluster.view('nothing')).status).toBe(404);
    await expect(summary).toContainText('1 viewer sent, 1 refused (1 no such title)');

    await second.kill();
    // The director leaves it out at first when it asks it in vain, and then when its lease has ended.
    await expect(summary).toContainText('1 of 1 node answers');
    await expect(titles).toHaveText([/^<img src=x.*1 copy.*n1/s, /film\s*1 copy.*n1/s]);

    await cluster.killDirector();
    await expect(page.getByTestId('link-notice')).toContainText('No connection to the director');
    await cluster.startDirector();
    await expect(page.getByTestId('link-state')).toHaveText('Live');
    await expect(summary).toContainText('1 of 1 node answers');
    await expect(summary).toContainText('0 viewers sent, 0 refused.');

    await cluster.killEtcd();
    await expect(page.locator('[data-trouble="unread"]')).toContainText('etcd');
    await page.getByRole('link', { name: 'Console of n1' }).click();
    await expect(page.getByTestId('disk')).toBeVisible();
    expect(new URL(page.url()).origin).toBe(first.origin);
  } finally {
    await cluster.end();
  }
});
