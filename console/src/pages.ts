// The pages of the console. Another page is a form of `Route`, a row here, and a branch in what shows
// the pages of a server (ServerPages.svelte); a director has one page.

import type { Route } from './route.svelte';
import { text } from './text';

/** What the page comes from: a server of titles, or the director of a cluster. */
export type Host = 'server' | 'director';

interface Entry {
  readonly route: Route;
  readonly label: string;
}

const ofServer: readonly Entry[] = [
  { route: { page: 'now' }, label: text.app.now },
  { route: { page: 'library' }, label: text.app.titles },
  { route: { page: 'what-if', query: '' }, label: text.app.whatIf },
];
const ofDirector: readonly Entry[] = [{ route: { page: 'cluster' }, label: text.app.cluster }];

/** The pages that the navigation names; none before it is known what the page comes from. */
export function navigation(host: Host | null): readonly Entry[] {
  if (host === null) return [];
  return host === 'director' ? ofDirector : ofServer;
}

/** The page that is shown for an address: a server and a director have different ones. */
export function routeOn(host: Host | null, route: Route): Route {
  if (host === 'director') return { page: 'cluster' };
  return route.page === 'cluster' ? { page: 'now' } : route;
}

/** The page that the navigation marks as the present one. */
export function sectionOf(route: Route): Route['page'] {
  return route.page === 'title' ? 'library' : route.page;
}

export function headingOf(route: Route): string {
  switch (route.page) {
    case 'title':
      return route.title;
    case 'what-if':
      return text.whatIf.heading;
    case 'library':
      return text.app.titles;
    case 'cluster':
      return text.app.cluster;
    case 'now':
      return text.app.now;
  }
}
