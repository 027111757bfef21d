// What is wrong with a cluster, as far as its director sees it.

import type { DirectorStatus } from '../api/cluster';
import { clusterText } from '../cluster_text';

export interface Trouble {
  readonly id: 'unlisted' | 'silent' | 'unread' | 'nodes' | 'away' | 'placement' | 'records';
  /** Whether viewers are refused by it, or soon will be. */
  readonly isGrave: boolean;
  /** What is wrong. It is announced, so it does not change each second. */
  readonly head: string;
  /** Since when, in seconds. */
  readonly seconds: number | null;
  /** What that means, and what to do. */
  readonly meaning: string;
  readonly remedy: string;
  /** The director's own words for it. */
  readonly detail: string | null;
}

/** Seconds without an answer of etcd after which a director does not call itself healthy. */
const TOO_OLD = 30;

export function troublesOf({ etcd, nodes, away, placement }: DirectorStatus): Trouble[] {
  const { endpoint, error: detail, age: seconds } = etcd;
  const words = clusterText.trouble;
  const troubles: Trouble[] = [];
  const remedy = words.etcdRemedy(endpoint);
  if (etcd.lists === 0 || seconds === null) {
    const { head, meaning } = words.unlisted;
    troubles.push({ id: 'unlisted', isGrave: true, head, seconds: null, meaning, remedy, detail });
  } else if (seconds > TOO_OLD) {
    const { head, meaning } = words.silent;
    troubles.push({ id: 'silent', isGrave: true, head, seconds, meaning, remedy, detail });
  } else if (detail !== null) {
    const { head, meaning } = words.unread;
    troubles.push({ id: 'unread', isGrave: false, head, seconds, meaning, remedy, detail });
  }
  const silent = nodes.filter(({ answers }) => !answers).map(({ name }) => name);
  if (silent.length > 0) {
    troubles.push({
      id: 'nodes',
      isGrave: silent.length === nodes.length,
      head: words.nodes.head(silent),
      seconds: null,
      meaning: words.nodes.meaning,
      remedy: words.nodes.remedy,
      detail: null,
    });
  }
  if (away.length > 0) {
    troubles.push({
      id: 'away',
      isGrave: false,
      head: words.away.head(away.map(({ name }) => name)),
      seconds: null,
      meaning: words.away.meaning,
      remedy: words.away.remedy,
      detail: words.away.titles(away),
    });
  }
  if (placement.error !== null) {
    const { head, meaning, remedy: toDo } = words.placement;
    const said = placement.error;
    troubles.push({
      id: 'placement',
      isGrave: false,
      head,
      seconds: null,
      meaning,
      remedy: toDo,
      detail: said,
    });
  }
  if (etcd.unusableRecords > 0) {
    troubles.push({
      id: 'records',
      isGrave: false,
      head: words.records.head,
      seconds: null,
      meaning: words.records.meaning(etcd.unusableRecords),
      remedy: words.records.remedy,
      detail: null,
    });
  }
  return troubles;
}

/** The part of the rate of all disks that is free, of the nodes that answer; `null` without any. */
export function freePart({ nodes }: DirectorStatus): number | null {
  const disks = nodes.filter(({ answers }) => answers).flatMap((node) => node.disks);
  const guaranteed = disks.reduce((sum, disk) => sum + disk.guaranteed, 0);
  if (guaranteed === 0) return null;
  return disks.reduce((sum, disk) => sum + disk.free, 0) / guaranteed;
}
