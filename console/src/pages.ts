// The pages of the console. Another page is a form of `Route`, a row here, and a branch in the frame.

import type { Route } from './route.svelte';
import { text } from './text';

/** The pages that the navigation names. */
export const navigation: readonly { readonly route: Route; readonly label: string }[] = [
  { route: { page: 'now' }, label: text.app.now },
  { route: { page: 'library' }, label: text.app.titles },
  { route: { page: 'what-if', query: '' }, label: text.app.whatIf },
];

/** The page that the navigation marks as the present one. */
export function sectionOf(route: Route): Route['page'] {
  return route.page === 'title' ? 'library' : route.page;
}

export function headingOf(route: Route): string {
  if (route.page === 'title') return route.title;
  if (route.page === 'what-if') return text.whatIf.heading;
  return route.page === 'library' ? text.app.titles : text.app.now;
}
