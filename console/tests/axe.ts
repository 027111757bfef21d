// What axe finds on a page.

import type { Page } from '@playwright/test';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const results = await page.evaluate<AxeResults>('axe.run()');
  return results.violations.map(({ id, help, nodes }) => {
    const where = nodes.map(({ html }) => html.slice(0, 150)).join(' | ');
    return `${id}: ${help}: ${where}`;
  });
}
