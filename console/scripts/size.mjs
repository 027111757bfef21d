// Prints what a browser loads before it shows the first page, of a server, of a director and of a
// meter, and the script of reports, and fails above the bars. What is loaded later (the player) is
// printed without a bar.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const BAR = 150 * 1024;
/** The script is in every report. */
const REPORT_BAR = 30 * 1024;
/** The component that the frame loads, by what the page comes from. */
const HOSTS = { server: 'ServerPages', director: 'Cluster', meter: 'Measure' };
const dist = new URL('../dist/', import.meta.url).pathname;
const page = readFileSync(join(dist, 'index.html'), 'utf8');
const names = readdirSync(join(dist, 'assets')).filter((name) => /\.(js|css)$/.test(name)).sort();
const content = Object.fromEntries(names.map((name) => [name, readFileSync(join(dist, 'assets', name))]));
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
const componentOf = (name) => name.replace(/-.{8}\.(js|css)$/, '');

/** The files of the first page: those of the frame, of the component, and what these import. */
function firstFiles(component) {
  const found = new Set();
  const add = (name) => {
    if (found.has(name) || !names.includes(name)) return;
    found.add(name);
    if (!name.endsWith('.js')) return;
    for (const [, other] of String(content[name]).matchAll(/(?:from|import)["'`]\.\/([^"'`]+)["'`]/g)) add(other);
    for (const other of names) if (componentOf(other) === componentOf(name)) add(other);
  };
  names.filter((name) => page.includes(name) || componentOf(name) === component).forEach(add);
  return found;
}

const size = (name) => gzipSync(content[name]).length;
const first = Object.entries(HOSTS).map(([host, component]) => [host, firstFiles(component)]);
for (const name of names) {
  const hosts = first.filter(([, files]) => files.has(name)).map(([host]) => host);
  console.log(`${kib(size(name)).padStart(10)} ${name} ${hosts.length > 0 ? `first of a ${hosts.join(' and a ')}` : 'later'}`);
}
const report = readFileSync(join(dist, 'report.js'));
console.log(`${kib(report.length).padStart(10)} in each report with plots, ${kib(gzipSync(report).length)} gzip; at most ${kib(REPORT_BAR)}`);
if (report.length > REPORT_BAR) process.exitCode = 1;
// The program writes the script between two tags.
if (/<\/script|<!--/i.test(String(report))) throw new Error('report.js contains a tag that ends a script');
for (const [host, files] of first) {
  const all = [...files].reduce((sum, name) => sum + size(name), gzipSync(page).length);
  console.log(`${kib(all).padStart(10)} in all before the first page of a ${host}, gzip; at most ${kib(BAR)}`);
  if (all > BAR) process.exitCode = 1;
}
