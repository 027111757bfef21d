// What every test of the console has: servers with a copy of the library, and a page that may not
// report any error or violation of the content-security policy.

import { test as base, expect, type Page } from '@playwright/test';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, tenuto } from './program';

export { expect };

export interface ServerOptions {
  /** Further options of `tenuto serve`. */
  readonly options?: readonly string[];
  /** Whether the server knows its operator. */
  readonly hasTokens?: boolean;
  readonly takesUploads?: boolean;
  /** Where it listens; otherwise at any free port. */
  readonly port?: number;
}

interface Fixtures {
  /** Starts a server with a library of its own. */
  serve: (options?: ServerOptions) => Promise<Server>;
}

/**
 * Options of a server that refuses after a few viewers. Those who do not play keep their places
 * for the start-up time.
 */
export const ROOM_FOR_FEW = ['--network', '20Mbps', '--startup', '25s'];

export const test = base.extend<Fixtures>({
  serve: async ({}, use) => {
    const folders: string[] = [];
    const servers: Server[] = [];
    await use(async ({ options = [], hasTokens = true, takesUploads = true, port = 0 } = {}) => {
      const folder = mkdtempSync(join(tmpdir(), 'tenuto-served-'));
      folders.push(folder);
      // A copy without the store's holes looks as if more was stored since it was calibrated, and
      // the start of its server measures the disk again.
      const store = [join(library(), 'a.store'), join(folder, 'a.store')];
      execFileSync('cp', ['--sparse=always', ...store]);
      cpSync(join(library(), 'keys.json'), join(folder, 'keys.json'));
      mkdirSync(join(folder, 'uploads'));
      // Two stores of one identity cannot be served on one machine.
      tenuto(folder, 'relabel', 'a.store', '--new-identity');
      const access = hasTokens ? ['--tokens', 'keys.json'] : [];
      const uploads = takesUploads && hasTokens ? ['--uploads', 'uploads'] : [];
      const token = hasTokens ? tenuto(folder, 'token', 'keys.json', '--operator').trim() : '';
      const server = new Server(folder, [...access, ...uploads, ...options], token, port);
      servers.push(server);
      await server.start();
      return server;
    });
    for (const server of servers) await server.kill();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  },

  page: async ({ page }, use) => {
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => {
      // The browser reports each response that is an error, which many of these tests cause.
      const isResponse = message.text().startsWith('Failed to load resource');
      if (message.type() === 'error' && !isResponse) complaints.push(message.text());
    });
    await page.addInitScript(() => {
      addEventListener('securitypolicyviolation', (event) => {
        console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
      });
    });
    await useOtherBundle(page);
    await use(page);
    const found = [...complaints];
    // What is answered in the server's place may still be under way, and fails now.
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    expect(found, 'errors of the page').toEqual([]);
  },
});

/** The folder with the library of all tests. */
export function library(): string {
  const folder = process.env['TEST_LIBRARY'];
  if (folder === undefined) throw new Error('the library of the tests was not made');
  return folder;
}

/** With CONSOLE_ORIGIN set, the page itself comes from there instead of from the program. */
async function useOtherBundle(page: Page): Promise<void> {
  const origin = process.env['CONSOLE_ORIGIN'];
  if (origin === undefined) return;
  await page.route('**/console/**', async (route) => {
    const { pathname } = new URL(route.request().url());
    const response = await route.fetch({ url: origin + pathname });
    await route.fulfill({ response });
  });
}
