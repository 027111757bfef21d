// Thumbnails: where in which image each is.

import { playerAddress, withToken } from '../api/address';
import { send } from '../api/request';
import { thumbnailImage, type Thumbnails } from '../api/titles';

/** A rectangle of an image, for a part of the title's time. */
export interface Thumbnail {
  readonly start: number;
  readonly end: number;
  readonly image: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** An image has five rows of five thumbnails. */
const COLUMNS = 5;
const PER_IMAGE = COLUMNS * COLUMNS;
/** A title's first picture is often black. */
const POSTER_PART = 0.2;

/** The thumbnail that stands for the whole title; `null` where it has none. */
export function posterOf(title: string, thumbnails: Thumbnails): Thumbnail | null {
  const { count, interval, width, height } = thumbnails;
  if (count < 1 || width < 1 || height < 1) return null;
  const number = Math.floor((count - 1) * POSTER_PART);
  const place = number % PER_IMAGE;
  return {
    start: number * interval,
    end: (number + 1) * interval,
    image: withToken(thumbnailImage(title, Math.floor(number / PER_IMAGE))),
    x: (place % COLUMNS) * width,
    y: Math.floor(place / COLUMNS) * height,
    width,
    height,
  };
}

export async function loadThumbnails(title: string, signal: AbortSignal): Promise<Thumbnail[]> {
  const address = playerAddress(title, 'thumbnails.vtt');
  const response = await send(address, { signal });
  return parseThumbnails(await response.text(), new URL(address, location.href));
}

/** The cues of a WebVTT file that name images and rectangles; other cues are passed over. */
export function parseThumbnails(vtt: string, base: URL): Thumbnail[] {
  return vtt.split(/\r?\n\r?\n/).flatMap((block) => {
    const [timing, payload] = block.split(/\r?\n/).slice(-2);
    const [start, end] = (timing ?? '').split('-->').map(seconds);
    const [, path, rectangle] = /^(.+)#xywh=([\d,]+)$/.exec(payload?.trim() ?? '') ?? [];
    const [x, y, width, height] = (rectangle ?? '').split(',').map(Number);
    if (start === undefined || end === undefined || !path) return [];
    if (x === undefined || y === undefined || !width || !height) return [];
    const image = new URL(path, base);
    return [{ start, end, image: image.href, x, y, width, height }];
  });
}

export function thumbnailAt(thumbnails: readonly Thumbnail[], position: number): Thumbnail | null {
  return thumbnails.find(({ start, end }) => start <= position && position < end) ?? null;
}

/** `1:02:03.456` in seconds. */
function seconds(time: string): number {
  return time
    .trim()
    .split(/\s/, 1)[0]!
    .split(':')
    .reduce((sum, part) => sum * 60 + Number.parseFloat(part), 0);
}
