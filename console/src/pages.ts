// The pages of the console. Another page is a form of `Route`, a row here, and a branch in what shows
// the pages of a server (ServerPages.svelte); a director and a meter have one page.

import type { Route } from './route.svelte';
import { text } from './text';

/** What the page comes from: a server of titles, the director of a cluster, or a meter. */
export type Host = 'server' | 'director' | 'meter';

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
const ofMeter: readonly Entry[] = [{ route: { page: 'measure' }, label: text.app.measure }];
const navigations = { server: ofServer, director: ofDirector, meter: ofMeter };

/** The pages that the navigation names; none before it is known what the page comes from. */
export function navigation(host: Host | null): readonly Entry[] {
  return host === null ? [] : navigations[host];
}

/** The page that is shown for an address: a server and others have different ones. */
export function routeOn(host: Host | null, route: Route): Route {
  if (host === 'director') return { page: 'cluster' };
  if (host === 'meter') return { page: 'measure' };
  return route.page === 'cluster' || route.page === 'measure' ? { page: 'now' } : route;
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
    case 'measure':
      return text.app.measure;
    case 'now':
      return text.app.now;
  }
}
