// The titles of all disks as one library, of which only the beginning is loaded.

import { type Disk, loadDisks } from '../api/disks';
import { loadTitlesOn, type Title, type TitlePage, type TitlesAsked } from '../api/titles';
import { isBehind, justBefore } from './names';

/** A title and the disks that have a copy of it. */
export interface LibraryTitle {
  readonly title: Title;
  /** At least one. */
  readonly disks: readonly [Disk, ...Disk[]];
}

export interface Catalogue {
  readonly disks: readonly Disk[];
  /** The first titles, in the order of the server. */
  readonly titles: readonly LibraryTitle[];
  /** Whether there are more. */
  readonly hasMore: boolean;
  /** How many titles there are at most: those on several disks count more than once. */
  readonly most: number;
  /** Disks that did not list their titles. */
  readonly failed: number;
}

/** Titles that are asked for at once: the list of a disk may be long, and viewers go first. */
const LARGEST_PAGE = 10_000;
/** Pages of one disk: of a search each may have looked at 10,000 names in vain. */
const MOST_PAGES = 10;
/** Titles that are looked through for one name: none is expected before it. */
const BEFORE_NAME = 16;

/**
 * The first titles of the library whose names have this part, at least `wanted` where there are so
 * many among the names that are looked at: `pages` times as many as at first.
 */
export async function loadCatalogue(
  search: string,
  wanted: number,
  pages: number,
  signal: AbortSignal,
): Promise<Catalogue> {
  return loadFrom({ search }, wanted, pages, signal);
}

/** Copies of a title under one name, and titles of other content under it, with all disks. */
export async function loadNamesakes(name: string, signal: AbortSignal): Promise<Catalogue> {
  const found = await loadFrom({ after: justBefore(name) }, BEFORE_NAME, 1, signal);
  return { ...found, titles: found.titles.filter(({ title }) => title.name === name) };
}

/** Which titles: behind a name, or with a part in their names. */
type Selected = Pick<TitlesAsked, 'after' | 'search'>;

async function loadFrom(
  selected: Selected,
  wanted: number,
  pages: number,
  signal: AbortSignal,
): Promise<Catalogue> {
  const disks = await loadDisks(signal);
  const loading = disks.map((disk) => firstTitles(disk.uuid, selected, wanted, pages, signal));
  const lists = await Promise.allSettled(loading);
  const listed = lists.filter((list) => list.status === 'fulfilled').map(({ value }) => value);
  // Up to this name each disk has listed its titles.
  const until = listed
    .flatMap(({ next }) => next ?? [])
    .reduce<string | null>((least, next) => (least === null || isBehind(least, next) ? next : least), null);
  const found = new Map<string, { title: Title; disks: [Disk, ...Disk[]] }>();
  lists.forEach((list, index) => {
    const disk = disks[index];
    if (list.status === 'rejected' || !disk) return;
    for (const title of list.value.titles) {
      if (until !== null && isBehind(title.name, until)) break;
      const key = `${title.content} ${title.name}`;
      const known = found.get(key);
      if (known) known.disks.push(disk);
      else found.set(key, { title, disks: [disk] });
    }
  });
  const failures = lists.filter((list) => list.status === 'rejected');
  // Where no disk answers there is no library to show, only the reason.
  if (disks.length > 0 && failures.length === disks.length) throw failures[0]?.reason;
  const titles = [...found.values()];
  if (disks.length > 1) {
    titles.sort((a, b) => Number(isBehind(a.title.name, b.title.name)) - Number(isBehind(b.title.name, a.title.name)));
  }
  const most = disks.reduce((sum, disk) => sum + (disk.titles ?? 0), 0);
  return { disks, titles, hasMore: until !== null, most, failed: failures.length };
}

/** The titles of a selection on a disk, page by page until there are `wanted`. */
async function firstTitles(
  disk: string,
  { after = null, search = '' }: Selected,
  wanted: number,
  pages: number,
  signal: AbortSignal,
): Promise<TitlePage> {
  const titles: Title[] = [];
  let next = after;
  let loaded = 0;
  do {
    const limit = Math.min(LARGEST_PAGE, wanted - titles.length);
    const page = await loadTitlesOn(disk, { after: next, search, limit }, signal);
    titles.push(...page.titles);
    next = page.next;
    loaded += 1;
  } while (next !== null && titles.length < wanted && loaded < MOST_PAGES * pages);
  return { titles, next };
}
