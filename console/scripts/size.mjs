// Prints what a browser loads before it shows the first page, and fails above the bar. What is
// loaded later (the player) is printed without a bar.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const BAR = 150 * 1024;
const dist = new URL('../dist/', import.meta.url).pathname;
const page = readFileSync(join(dist, 'index.html'), 'utf8');
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;

let first = gzipSync(page).length;
for (const name of readdirSync(join(dist, 'assets')).sort()) {
  if (!/\.(js|css)$/.test(name)) continue;
  const size = gzipSync(readFileSync(join(dist, 'assets', name))).length;
  const isFirst = page.includes(name);
  if (isFirst) first += size;
  console.log(`${kib(size).padStart(10)} ${isFirst ? 'first' : 'later'} ${name}`);
}
console.log(`${kib(first).padStart(10)} in all before the first page, gzip; at most ${kib(BAR)}`);
if (first > BAR) process.exitCode = 1;
