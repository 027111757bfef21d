// Titles: those that the server offers, those on each disk, and one with its tracks.

import { storedTitleAddress, playerAddress } from './address';
import { Fields } from './fields';
import { request } from './request';

export interface Title {
  readonly name: string;
  /** Whether it can be played; otherwise it is a file. */
  readonly isMedia: boolean;
  readonly duration: number;
  readonly bytes: number;
  readonly bitRate: number;
  readonly tracks: number;
  /** Unix seconds of the server. */
  readonly created: number;
  /** Titles of the same name and content are copies. */
  readonly content: string;
}

export interface Extent {
  readonly start: number;
  readonly chunks: number;
}

export interface Track {
  readonly number: number;
  readonly kind: string;
  readonly codec: string;
  readonly language: string;
  readonly width: number;
  readonly height: number;
  readonly sampleRate: number;
  readonly channels: number;
  readonly units: number;
  readonly bytes: number;
  readonly bitRate: number;
  readonly extents: readonly Extent[];
}

export interface TextTrack {
  readonly number: number;
  readonly language: string;
  readonly title: string;
  readonly isDefault: boolean;
  readonly forced: boolean;
  readonly hearingImpaired: boolean;
  readonly cues: number;
}

export interface Thumbnails {
  readonly count: number;
  readonly interval: number;
  readonly width: number;
  readonly height: number;
}

export interface TitleDetail extends Title {
  readonly trackList: readonly Track[];
  readonly textList: readonly TextTrack[];
  readonly thumbnails: Thumbnails | null;
}

/** The bit rate of a title over time, as the scheduler sees it. */
export interface Demand {
  /** Seconds of each value. */
  readonly interval: number;
  readonly bitRates: readonly number[];
}

/** A page of titles, in the order of the server: by the bytes of their names. */
export interface TitlePage {
  readonly titles: readonly Title[];
  /**
   * The name behind which the next page begins; `null`: this is the last one. A page of a search may
   * have fewer titles than were asked for, and a next one.
   */
  readonly next: string | null;
}

/** What a page of titles has. */
export interface TitlesAsked {
  /** Titles behind this name. */
  readonly after?: string | null;
  /** A part of their names; empty: all. */
  readonly search?: string;
  /** At most so many. */
  readonly limit: number;
}

/** The titles that the server offers, by name. */
export async function loadTitles(asked: TitlesAsked, signal: AbortSignal): Promise<TitlePage> {
  return loadPage('/titles', asked, signal);
}

/** The titles on a disk. */
export async function loadTitlesOn(
  disk: string,
  asked: TitlesAsked,
  signal: AbortSignal,
): Promise<TitlePage> {
  return loadPage(`/api/v1/disks/${encodeURIComponent(disk)}/titles`, asked, signal);
}

async function loadPage(address: string, asked: TitlesAsked, signal: AbortSignal): Promise<TitlePage> {
  const query = new URLSearchParams({ limit: String(asked.limit) });
  if (asked.after) query.set('after', asked.after);
  if (asked.search) query.set('search', asked.search);
  const page = Fields.of(await request(`${address}?${query}`, { signal }));
  return { titles: page.neededList('titles', decodeTitle), next: page.textOrNull('next') };
}

export async function loadTitle(
  disk: string,
  name: string,
  signal: AbortSignal,
): Promise<TitleDetail> {
  const title = Fields.of(await request(storedTitleAddress(disk, name), { signal }));
  const thumbnails = title.objectOrNull('thumbnails');
  return {
    ...decodeTitle(title),
    trackList: title.list('track_list', decodeTrack),
    textList: title.list('text_list', decodeTextTrack),
    thumbnails: thumbnails && {
      count: thumbnails.number('count'),
      interval: thumbnails.number('interval'),
      width: thumbnails.number('width'),
      height: thumbnails.number('height'),
    },
  };
}

export async function loadDemand(
  disk: string,
  name: string,
  signal: AbortSignal,
): Promise<Demand> {
  const demand = Fields.of(await request(`${storedTitleAddress(disk, name)}/demand`, { signal }));
  return { interval: demand.number('interval', 1), bitRates: demand.numbers('bit_rates') };
}

/** Renames a title, and its copies on other disks. */
export async function renameTitle(disk: string, name: string, newName: string): Promise<void> {
  await request(storedTitleAddress(disk, name), { method: 'PATCH', json: { name: newName } });
}

/** Removes a title. Returns whether sessions still play it, which go on to their end. */
export async function removeTitle(disk: string, name: string): Promise<boolean> {
  const removed = await request(storedTitleAddress(disk, name), { method: 'DELETE' });
  return removed !== null && Fields.of(removed).flag('in_use');
}

/** The address of one of the images that hold a title's thumbnails. */
export function thumbnailImage(title: string, image: number): string {
  return playerAddress(title, `thumbnails/${image}.jpg`);
}

export function decodeTitle(title: Fields): Title {
  return {
    name: title.text('name'),
    isMedia: title.text('kind', 'media') === 'media',
    duration: title.number('duration'),
    bytes: title.number('bytes'),
    bitRate: title.number('bit_rate'),
    tracks: title.number('tracks'),
    created: title.number('created'),
    content: title.text('content'),
  };
}

function decodeTrack(track: Fields): Track {
  return {
    number: track.number('number'),
    kind: track.text('kind'),
    codec: track.text('codec'),
    language: track.text('language'),
    width: track.number('width'),
    height: track.number('height'),
    sampleRate: track.number('sample_rate'),
    channels: track.number('channels'),
    units: track.number('ldus'),
    bytes: track.number('bytes'),
    bitRate: track.number('bit_rate'),
    extents: track.list('extents', (extent) => ({
      start: extent.number('start'),
      chunks: extent.number('chunks'),
    })),
  };
}

function decodeTextTrack(text: Fields): TextTrack {
  return {
    number: text.number('number'),
    language: text.text('language'),
    title: text.text('title'),
    isDefault: text.flag('default'),
    forced: text.flag('forced'),
    hearingImpaired: text.flag('hearing_impaired'),
    cues: text.number('cues'),
  };
}
