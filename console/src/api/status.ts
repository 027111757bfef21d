// The server's status, as `/status` and the event stream have it.

import { Fields } from './fields';
import { request } from './request';

export interface SlotUse {
  readonly slot: number;
  readonly reads: number;
  readonly minRead: number;
  /** Of these reads those due by the slot's end, and those due later. */
  readonly due: number;
  readonly ahead: number;
  /** Pieces of best-effort work. */
  readonly bestEffort: number;
  /** Writes of recordings. */
  readonly writes: number;
}

export interface DiskStatus {
  readonly store: string;
  readonly uuid: string;
  readonly readMethod: string;
  readonly readSize: number;
  readonly minRead: number;
  /** Bits per second; `null` of a server that does not say it. */
  readonly bookedRate: number | null;
  readonly provisional: boolean;
  readonly reads: number;
  readonly bytes: number;
  readonly failures: number;
  readonly sessions: number;
  readonly lost: boolean;
  readonly draining: boolean;
  readonly recordings: number;
  readonly recordingShare: number;
  readonly slowdown: number;
  readonly slackReads: number | null;
  readonly guaranteedSlack: number | null;
  readonly observedSlotReads: number | null;
  /** Oldest first. An event has only those since the event before. */
  readonly slots: readonly SlotUse[];
}

/** A store that could not be opened at the start. */
export interface MissingStore {
  readonly store: string;
  readonly reason: string;
}

export interface ServerStatus {
  readonly version: string;
  readonly uptime: number;
  readonly stopping: boolean;
  readonly policy: string;
  readonly slot: number;
  readonly sessions: number;
  readonly active: number;
  readonly admitted: number;
  readonly refused: { readonly disk: number; readonly memory: number; readonly network: number };
  readonly deadlinesMet: number;
  readonly deadlineMisses: number;
  readonly buffersUsed: number;
  readonly buffersLimit: number;
  readonly buffersTarget: number | null;
  readonly intervals: number;
  readonly sharedReads: number;
  readonly connections: number;
  readonly sentBytes: number;
  readonly disks: readonly DiskStatus[];
  readonly missingStores: readonly MissingStore[];
  readonly playing: ReadonlyMap<string, number>;
}

export async function loadStatus(signal: AbortSignal): Promise<ServerStatus> {
  return decodeStatus(await request('/status', { signal }));
}

export function decodeStatus(value: unknown): ServerStatus {
  const status = Fields.of(value);
  const refused = status.object('refused');
  return {
    version: status.text('version'),
    uptime: status.number('uptime'),
    stopping: status.flag('stopping'),
    policy: status.text('policy'),
    slot: status.number('slot', 0.5),
    sessions: status.number('sessions'),
    active: status.number('active'),
    admitted: status.number('admitted'),
    refused: {
      disk: refused.number('disk'),
      memory: refused.number('memory'),
      network: refused.number('network'),
    },
    deadlinesMet: status.number('deadlines_met'),
    deadlineMisses: status.number('deadline_misses'),
    buffersUsed: status.number('buffers_used'),
    buffersLimit: status.number('buffers_limit'),
    buffersTarget: status.numberOrNull('buffers_target'),
    intervals: status.number('intervals'),
    sharedReads: status.number('shared_reads'),
    connections: status.number('connections'),
    sentBytes: status.number('sent_bytes'),
    disks: status.neededList('disks', decodeDisk),
    missingStores: status.list('missing_stores', (missing) => ({
      store: missing.text('store'),
      reason: missing.text('reason'),
    })),
    playing: new Map(
      status.list('playing', (title) => [title.text('title'), title.number('sessions')]),
    ),
  };
}

function decodeDisk(disk: Fields): DiskStatus {
  return {
    store: disk.text('store'),
    uuid: disk.text('uuid'),
    readMethod: disk.text('read_method'),
    readSize: disk.number('read_size'),
    minRead: disk.number('min_read'),
    bookedRate: disk.numberOrNull('booked_rate'),
    provisional: disk.flag('provisional'),
    reads: disk.number('reads'),
    bytes: disk.number('bytes'),
    failures: disk.number('failures'),
    sessions: disk.number('sessions'),
    lost: disk.flag('lost'),
    draining: disk.flag('draining'),
    recordings: disk.number('recordings'),
    recordingShare: disk.number('recording_share'),
    slowdown: disk.number('slowdown'),
    slackReads: disk.numberOrNull('slack_reads'),
    guaranteedSlack: disk.numberOrNull('guaranteed_slack'),
    observedSlotReads: disk.numberOrNull('observed_slot_reads'),
    slots: disk.list('slots', decodeSlot),
  };
}

function decodeSlot(slot: Fields): SlotUse {
  const reads = slot.number('reads');
  return {
    slot: slot.number('slot'),
    reads,
    minRead: slot.number('min_read'),
    // A server that does not tell them apart reads what is due.
    due: slot.number('due', reads),
    ahead: slot.number('ahead'),
    bestEffort: slot.number('best_effort'),
    writes: slot.number('writes'),
  };
}
