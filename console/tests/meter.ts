// A meter's console with a folder of its own, and measurements in it.

import type { Page } from '@playwright/test';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test as base } from './console';
import { end, portOf, spawnTenuto, tenuto } from './program';

export { expect };

export interface MeterConsole {
  readonly folder: string;
  /** The folder with the reports. */
  readonly reports: string;
  readonly origin: string;
  readonly child: ChildProcess;
}

export const test = base.extend<{ meter: MeterConsole }>({
  meter: async ({}, use) => {
    const folder = mkdtempSync(join(tmpdir(), 'tenuto-measure-'));
    mkdirSync(join(folder, 'films'));
    const options = ['--allow', 'films', '--listen', '127.0.0.1:0', '--json'];
    const child = spawnTenuto(folder, 'meter', 'console', 'reports', ...options);
    const origin = `http://127.0.0.1:${await portOf(child)}`;
    await use({ folder, reports: join(folder, 'reports'), origin, child });
    await end(child);
    rmSync(folder, { recursive: true, force: true });
  },
});

/** A run of a simulated disk, as by hand. */
export function measured(meter: MeterConsole, name: string, model: string, streams: number): void {
  const what = ['--profile', 'xdcam422', '--streams', String(streams), '--target', `sim:${model}`];
  const out = ['--duration', '1min', '--out', join('reports', name)];
  try {
    tenuto(meter.folder, 'meter', 'run', ...what, ...out);
  } catch {
    // A run that is not held has another exit code.
  }
  expect(existsSync(join(meter.reports, name, 'report.html'))).toBe(true);
}

/** Opens the page Measure. */
export async function open(page: Page, { origin }: MeterConsole): Promise<void> {
  await page.goto(`${origin}/console/`);
  await expect(page.getByRole('heading', { name: 'New measurement' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Start' })).toBeEnabled();
}
