import { defineConfig } from '@playwright/test';

const makesPictures = process.env['SCREENSHOTS'] === '1';

export default defineConfig({
  testDir: 'tests',
  globalSetup: './tests/library.ts',
  // A test has a server of its own and a browser window; two at a time fit two cores.
  workers: 2,
  fullyParallel: true,
  forbidOnly: true,
  // Bounds for what never comes, not for what is slow: the machine runs other tests beside.
  timeout: 120_000,
  expect: { timeout: 30_000 },
  reporter: [['list']],
  projects: [
    { name: 'console', testIgnore: /frames|screenshots/ },
    ...(makesPictures ? [{ name: 'screenshots', testMatch: /screenshots/ }] : []),
    { name: 'frames', testMatch: /frames/, dependencies: ['console'] },
  ],
  use: {
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    viewport: { width: 1280, height: 900 },
    launchOptions: {
      executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--autoplay-policy=no-user-gesture-required'],
    },
  },
});
