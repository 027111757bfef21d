// What a director has: its status with the nodes of its cluster, and the cluster's titles.

import { Fields } from './fields';
import { request } from './request';

/** A director answers at once from its memory: one that takes longer is shown as silent. */
const TIMEOUT_MS = 6_000;

/** A resource of a node: bits per second of disks and networks, bytes of memory. */
export interface Share {
  readonly free: number;
  readonly guaranteed: number;
}

export interface ClusterNode {
  readonly name: string;
  readonly address: string;
  readonly rack: string;
  /** Whether viewers are sent there. */
  readonly answers: boolean;
  /** Seconds. */
  readonly lease: number;
  readonly disks: readonly Share[];
  readonly network: Share;
  readonly memory: Share;
  /** Bytes of each disk. */
  readonly space: readonly Share[];
  /** Whether the node gives its copies to others. */
  readonly isDrained: boolean;
  /** Copies that the node should still write. */
  readonly toFill: number;
}

/** A node that belongs to the cluster and is not registered. */
export interface AwayNode {
  readonly name: string;
  /** Titles of which it had copies. */
  readonly titles: number;
}

/** What a director has counted since its start. */
export interface Counters {
  readonly admitted: number;
  /** By cause. */
  readonly refused: ReadonlyMap<string, number>;
  readonly questions: number;
  readonly nodeRefusals: number;
  readonly nodeSilent: number;
  readonly contentMisses: number;
  readonly healthMisses: number;
}

export interface EtcdStatus {
  readonly endpoint: string;
  readonly error: string | null;
  /** Seconds since its last answer; `null` before the first. */
  readonly age: number | null;
  readonly lists: number;
  readonly unusableRecords: number;
}

export interface DirectorStatus {
  readonly version: string;
  readonly cluster: string;
  readonly uptime: number;
  readonly connections: number;
  readonly etcd: EtcdStatus;
  readonly revision: number;
  readonly nodes: readonly ClusterNode[];
  /** Nodes that belong to the cluster and are not registered. */
  readonly away: readonly AwayNode[];
  readonly titles: number;
  readonly placement: Placement;
  readonly counters: Counters;
}

/** Which copies of titles nodes should have, and who says so. */
export interface Placement {
  /** The address of the director that plans; `null`: none does. */
  readonly planner: string | null;
  /** Whether the director that is asked would plan, if no other did. */
  readonly isPossibleHere: boolean;
  /** Why the titles of record are not known; `null` where they are, or another director plans. */
  readonly error: string | null;
}

export interface ClusterTitle {
  readonly name: string;
  readonly bitRate: number | null;
  readonly bytes: number | null;
  /** Names of the nodes with a copy. */
  readonly ready: readonly string[];
  readonly filling: readonly string[];
  /** Whether the bucket from which nodes are filled does not have it, as far as that is known. */
  readonly isMissingInBucket: boolean;
  /** Nodes with the content that was replaced in the bucket. */
  readonly outdated: readonly string[];
  /** Nodes with a content that the bucket never had under this name. */
  readonly own: readonly string[];
}

/** Whether a response to `/status` is a director's: a server has disks in place of the nodes. */
export function isDirectorStatus(value: unknown): boolean {
  const status = Fields.of(value);
  return status.hasList('nodes') && status.objectOrNull('counters') !== null && !status.hasList('disks');
}

export async function loadDirectorStatus(signal: AbortSignal): Promise<DirectorStatus> {
  return decodeDirectorStatus(await request('/status', { signal, timeoutMs: TIMEOUT_MS }));
}

export async function loadClusterTitles(signal: AbortSignal): Promise<ClusterTitle[]> {
  return Fields.of(await request('/titles', { signal })).neededList('titles', (title) => ({
    name: title.text('name'),
    bitRate: title.numberOrNull('bit_rate'),
    bytes: title.numberOrNull('bytes'),
    ready: title.texts('ready'),
    filling: title.texts('filling'),
    isMissingInBucket: title.isFalse('in_bucket'),
    outdated: title.texts('outdated'),
    own: title.texts('own'),
  }));
}

export function decodeDirectorStatus(value: unknown): DirectorStatus {
  const status = Fields.of(value);
  const [etcd, counters] = [status.object('etcd'), status.object('counters')];
  const planning = status.object('planning');
  const here = planning.objectOrNull('here');
  return {
    version: status.text('version'),
    cluster: status.text('cluster'),
    uptime: status.number('uptime'),
    connections: status.number('connections'),
    etcd: {
      endpoint: etcd.text('endpoint'),
      error: etcd.textOrNull('error'),
      age: etcd.numberOrNull('age'),
      lists: etcd.number('lists'),
      unusableRecords: etcd.number('unusable_records'),
    },
    revision: status.number('revision'),
    nodes: status.neededList('nodes', (node) => ({
      name: node.text('name'),
      address: node.text('address'),
      rack: node.text('rack'),
      answers: node.flag('answers'),
      lease: node.number('lease'),
      disks: node.list('disks', decodeShare),
      network: decodeShare(node.object('network')),
      memory: decodeShare(node.object('memory')),
      space: node.list('space', decodeShare),
      isDrained: node.flag('drained'),
      toFill: node.number('fills_ordered'),
    })),
    away: status.list('away', (node) => ({
      name: node.text('name'),
      titles: node.number('titles'),
    })),
    titles: status.number('titles'),
    placement: {
      planner: planning.textOrNull('planner'),
      isPossibleHere: here !== null,
      error: here?.textOrNull('error') ?? null,
    },
    counters: {
      admitted: counters.number('admitted'),
      refused: new Map(counters.object('refused').numbersByName()),
      questions: counters.number('questions'),
      nodeRefusals: counters.number('node_refusals'),
      nodeSilent: counters.number('node_silent'),
      contentMisses: counters.number('content_misses'),
      healthMisses: counters.number('health_misses'),
    },
  };
}

function decodeShare(share: Fields): Share {
  return { free: share.number('free'), guaranteed: share.number('guaranteed') };
}
