// The columns of the table of nodes: what each shows, and how it sorts and filters.

import type { ClusterNode, Share } from '../api/cluster';
import { clusterText } from '../cluster_text';
import * as show from '../format';

/** A resource of a node as it is shown. */
export interface Resource extends Share {
  readonly isUnlimited: boolean;
  /** Free and guaranteed, in words. */
  readonly exact: string;
}

export interface Column {
  readonly id: keyof typeof clusterText.nodes.columns;
  readonly isNumber: boolean;
  /** In rem. Widths are fixed: rows that come into sight do not move the columns. */
  readonly width: number;
  /** What the rows are sorted by. */
  readonly value: (node: ClusterNode) => number | string;
  /** What is shown as a bar. */
  readonly resource?: (node: ClusterNode) => Resource;
}

export interface Order {
  readonly column: Column;
  readonly isDescending: boolean;
}

/** The network rate of a node without a limit. */
const UNLIMITED = 2 ** 50;

export const columns: readonly [Column, ...Column[]] = [
  { id: 'name', isNumber: false, width: 9, value: (node) => node.name },
  { id: 'rack', isNumber: false, width: 6, value: (node) => node.rack },
  { id: 'address', isNumber: false, width: 14, value: (node) => node.address },
  { id: 'answers', isNumber: false, width: 6.5, value: (node) => Number(node.answers) },
  { id: 'lease', isNumber: true, width: 6, value: (node) => node.lease },
  ofResource('disks', diskRate),
  ofResource('network', (node) => resource(node.network, show.bitRate, UNLIMITED)),
  ofResource('memory', (node) => resource(node.memory, show.bytes)),
  ofResource('space', diskSpace),
  { id: 'toFill', isNumber: true, width: 5, value: (node) => node.toFill },
];

/** The free part; `null` without a limit, and where nothing is guaranteed. */
export function freeOf({ free, guaranteed, isUnlimited }: Resource): number | null {
  if (isUnlimited || guaranteed <= 0) return null;
  return Math.min(1, Math.max(0, free / guaranteed));
}

/** The nodes that contain the words, in the order of a column, and then of their names. */
export function arrange(
  nodes: readonly ClusterNode[],
  filter: string,
  { column, isDescending }: Order,
): ClusterNode[] {
  const words = filter.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const found = nodes.filter(({ name, rack, address }) => {
    const all = `${name} ${rack} ${address}`.toLocaleLowerCase();
    return words.every((word) => all.includes(word));
  });
  const direction = isDescending ? -1 : 1;
  return found.sort(
    (a, b) =>
      direction * compare(column.value(a), column.value(b)) || show.compareTexts(a.name, b.name),
  );
}

/**
 * The address of a node's own console; `null` if the node's address is none that a browser opens. A
 * node says its address itself, and a link must not run what it says.
 */
export function consoleOf(address: string): string | null {
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address)) return null;
  return `${address.replace(/\/+$/, '')}/console/`;
}

function compare(a: number | string, b: number | string): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return show.compareTexts(String(a), String(b));
}

function ofResource(id: Column['id'], of: (node: ClusterNode) => Resource): Column {
  // What has no limit has more room than anything else.
  const value = (node: ClusterNode) => freeOf(of(node)) ?? (of(node).isUnlimited ? 2 : -1);
  return { id, isNumber: false, width: 10.5, value, resource: of };
}

function diskRate({ disks }: ClusterNode): Resource {
  const all = resource(sumOf(disks), show.bitRate);
  return { ...all, exact: clusterText.nodes.ofDisks(all.exact, disks.length) };
}

function diskSpace({ space }: ClusterNode): Resource {
  return resource(sumOf(space), show.bytes);
}

function sumOf(shares: readonly Share[]): Share {
  const sum = (of: (share: Share) => number) => shares.reduce((all, share) => all + of(share), 0);
  return { free: sum(({ free }) => free), guaranteed: sum(({ guaranteed }) => guaranteed) };
}

function resource(share: Share, form: (value: number) => string, unlimited = Infinity): Resource {
  return {
    ...share,
    isUnlimited: share.guaranteed >= unlimited,
    exact: clusterText.nodes.exact(form(share.free), form(share.guaranteed)),
  };
}
