// The titles of all disks as one library.

import { type Disk, loadDisks } from '../api/disks';
import { loadTitlesOn, type Title } from '../api/titles';

/** A title and the disks that have a copy of it. */
export interface LibraryTitle {
  readonly title: Title;
  /** At least one. */
  readonly disks: readonly [Disk, ...Disk[]];
}

export interface Catalogue {
  readonly disks: readonly Disk[];
  readonly titles: readonly LibraryTitle[];
  /** Disks that did not list their titles. */
  readonly failed: number;
}

export async function loadCatalogue(signal: AbortSignal): Promise<Catalogue> {
  const disks = await loadDisks(signal);
  const lists = await Promise.allSettled(disks.map((disk) => loadTitlesOn(disk.uuid, signal)));
  const found = new Map<string, { title: Title; disks: [Disk, ...Disk[]] }>();
  lists.forEach((list, index) => {
    const disk = disks[index];
    if (list.status === 'rejected' || !disk) return;
    for (const title of list.value) {
      const key = `${title.content} ${title.name}`;
      const known = found.get(key);
      if (known) known.disks.push(disk);
      else found.set(key, { title, disks: [disk] });
    }
  });
  const failures = lists.filter((list) => list.status === 'rejected');
  // Where no disk answers there is no library to show, only the reason.
  if (disks.length > 0 && failures.length === disks.length) throw failures[0]?.reason;
  return { disks, titles: [...found.values()], failed: failures.length };
}

/** Copies of a title under the same name, and titles of other content under it. */
export function sameName(catalogue: Catalogue, name: string): readonly LibraryTitle[] {
  return catalogue.titles.filter(({ title }) => title.name === name);
}
