// The library that the tests serve, made once for all of them: a film with sounds
// in two languages, subtitles and thumbnails, and titles with hostile names.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tenuto } from './program';

/** Seconds of the film. */
export const FILM_SECONDS = 8;
/** Seconds of a longer one, a file of the library that is not in its store. */
export const LONG_SECONDS = 90;
export const LONG = 'long.mkv';
/** A name that would break a page that took it for anything but text. */
export const HOSTILE = '<img src=x onerror=alert(1)> "a"/../b?c#d& עברית';

/** A file of the library, not in its store, whose codec no browser has. */
export const UNDECODABLE = 'prores.mov';

const SUBTITLES = `1
00:00:00,500 --> 00:00:03,000
The first line

2
00:00:03,500 --> 00:00:07,500
The second line
`;

/** Makes the folder with `a.store`, `keys.json` and films, named in the environment. */
export default function makeLibrary(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'tenuto-console-'));
  process.env['TEST_LIBRARY'] = folder;
  writeFileSync(join(folder, 'film.srt'), SUBTITLES);
  const texts = ['-i', 'film.srt', '-map', '3', '-c:s', 'srt', '-metadata:s:s:0', 'language=eng'];
  const sounds = ['-map', '1', '-metadata:s:a:0', 'language=eng', '-map', '2', '-metadata:s:a:1', 'language=deu'];
  encode(folder, 'film.mkv', 640, [...texts, '-map', '0', ...sounds]);
  encode(folder, 'small.mkv', 320, ['-map', '0', '-map', '1']);
  encode(folder, LONG, 160, ['-map', '0', '-map', '1'], { seconds: LONG_SECONDS, rate: 5 });
  const odd = ['-f', 'lavfi', '-i', 'testsrc2=size=64x64:rate=25:duration=1', '-c:v', 'prores_ks'];
  execFileSync('ffmpeg', ['-nostdin', '-v', 'error', ...odd, UNDECODABLE], { cwd: folder });
  tenuto(folder, 'format', 'a.store', '--size', '128MiB');
  tenuto(folder, 'ingest', 'a.store', 'film.mkv', '--thumbnails=1s');
  tenuto(folder, 'ingest', 'a.store', 'small.mkv', '--title', HOSTILE);
  tenuto(folder, 'calibrate', 'a.store', '--time', '2s');
  tenuto(folder, 'token', 'keys.json', '--new');
  return () => rmSync(folder, { recursive: true, force: true });
}

/** Encodes a film with a key frame in each second. */
function encode(
  folder: string,
  name: string,
  width: number,
  options: readonly string[],
  { seconds = FILM_SECONDS, rate = 25 } = {},
): void {
  const duration = `duration=${seconds}`;
  const inputs = [
    `testsrc2=size=${width}x${(width * 9) / 16}:rate=${rate}:${duration}`,
    `sine=440:${duration}`,
    `sine=880:${duration}`,
  ].flatMap((source) => ['-f', 'lavfi', '-i', source]);
  const codecs = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', `${rate}`, '-pix_fmt', 'yuv420p', '-c:a', 'aac'];
  const args = ['-nostdin', '-v', 'error', ...inputs, ...options, ...codecs, name];
  execFileSync('ffmpeg', args, { cwd: folder });
}
