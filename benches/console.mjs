#!/usr/bin/env node
// What an open console costs a server, and how soon it is painted.
//
//     benches/console.mjs [--program target/release/tenuto] [--viewers 1000] [--seconds 20]
//                         [--rounds 3] [--loads 20]
//
// Serves one title of about 100 kb/s to --viewers of `tenuto play` on loopback, and measures the
// processor time of the server: --rounds times for --seconds without the console, and for as long
// with the page Now open in Chromium. Prints both in percent of a core, and the difference; the
// browser is another process and not counted. Then opens the page --loads times, each with an empty
// cache, and prints when it was first painted and when its first sentence was there.
//
// Needs ffmpeg, Chromium, and `npm ci` in console/. Nothing outside a temporary directory is
// changed, and all started programs are stopped.

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium } from '../console/node_modules/@playwright/test/index.mjs';

const { values } = parseArgs({
  options: {
    program: { type: 'string', default: 'target/release/tenuto' },
    viewers: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '3' },
    loads: { type: 'string', default: '20' },
  },
});
const program = resolve(values.program);
const [viewers, seconds, rounds, loads] = ['viewers', 'seconds', 'rounds', 'loads'].map((name) =>
  Number(values[name]),
);
const folder = mkdtempSync(join(tmpdir(), 'tenuto-console-'));
const started = [];

function run(command, ...args) {
  execFileSync(command, args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
}

function start(...args) {
  const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });
  started.push(child);
  return child;
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** User and system time of a process so far, in seconds: `proc_pid_stat(5)`, 100 ticks a second. */
function used(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Processor time of the server, in percent of a core, over the time of a measurement. */
async function share(pid) {
  const [from, start] = [used(pid), performance.now()];
  await sleep(seconds * 1000);
  return ((used(pid) - from) / ((performance.now() - start) / 1000)) * 100;
}

const sorted = (list) => [...list].sort((a, b) => a - b);
const median = (list) => sorted(list)[Math.floor(list.length / 2)];
const shown = (list, digits) => sorted(list).map((value) => value.toFixed(digits)).join(' ');

async function main() {
  const picture = ['-f', 'lavfi', '-i', 'color=gray:size=320x180:rate=25:duration=600'];
  const codec = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '50', '-pix_fmt', 'yuv420p'];
  run('ffmpeg', '-nostdin', '-v', 'error', ...picture, ...codec, '-b:v', '100k', 'film.mkv');
  run(program, 'format', 'a.store', '--size', '256MiB');
  run(program, 'ingest', 'a.store', 'film.mkv');
  const server = start('serve', 'a.store', '--listen', '127.0.0.1:0', '--json');
  const origin = await new Promise((done, fail) => {
    let printed = '';
    server.stdout.on('data', (piece) => {
      printed += piece;
      const [, address] = /"address":\s*"([^"]+)"/.exec(printed) ?? [];
      if (address) done(`http://${address}`);
    });
    server.on('exit', () => fail(new Error(`the server has ended: ${printed}`)));
  });
  const from = `${origin}/t/film/master.m3u8`;
  start('play', from, '--viewers', String(viewers), '--arrivals', 'every:5ms', '--json');
  const sessions = async () => (await (await fetch(`${origin}/status`)).json()).sessions;
  for (let wait = 0; (await sessions()) < viewers; wait += 1) {
    if (wait === 120) throw new Error(`only ${await sessions()} viewers have a session`);
    await sleep(500);
  }
  await sleep(5_000);

  const options = { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] };
  const browser = await chromium.launch(options);
  const [without, withConsole] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    without.push(await share(server.pid));
    const page = await browser.newPage();
    await page.goto(`${origin}/console/`);
    await page.getByTestId('sentence').waitFor();
    withConsole.push(await share(server.pid));
    await page.close();
  }
  console.log(`${await sessions()} sessions; percent of a core, ${rounds} times ${seconds} s:`);
  console.log(`  without a console  ${shown(without, 2)}`);
  console.log(`  one console open   ${shown(withConsole, 2)}`);
  console.log(`  difference of the medians ${(median(withConsole) - median(without)).toFixed(2)}`);

  const [painted, said] = [[], []];
  for (let load = 0; load < loads; load += 1) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${origin}/console/`);
    await page.getByTestId('sentence').waitFor();
    const [paint, now] = await page.evaluate(() => [
      performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
      performance.now(),
    ]);
    painted.push(paint);
    said.push(now);
    await context.close();
  }
  console.log(`${loads} loads with an empty cache, ms: median, longest`);
  console.log(`  first paint        ${median(painted).toFixed(0)} ${Math.max(...painted).toFixed(0)}`);
  console.log(`  the first sentence ${median(said).toFixed(0)} ${Math.max(...said).toFixed(0)}`);
  await browser.close();
}

try {
  await main();
} finally {
  for (const child of started) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}
