// The titles of a cluster, those first whose copies are too few.

import type { ClusterTitle } from '../api/cluster';
import { compareTexts } from '../format';

/** A title with fewer ready copies is lost to viewers when one node is. */
export const ENOUGH_COPIES = 2;

export const isShort = ({ ready }: ClusterTitle) => ready.length < ENOUGH_COPIES;

/** In the order of the page: few copies first, then by name. */
export function byNeed(titles: readonly ClusterTitle[]): ClusterTitle[] {
  const need = (title: ClusterTitle) => Math.min(title.ready.length, ENOUGH_COPIES);
  return [...titles].sort((a, b) => need(a) - need(b) || compareTexts(a.name, b.name));
}
