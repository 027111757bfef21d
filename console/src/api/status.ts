// The server's status, as `/status` and the event stream have it.

import { Fields } from './fields';
import { request } from './request';

export interface SlotUse {
  readonly slot: number;
  readonly reads: number;
  readonly minRead: number;
  /** Reads by kind; all `null` where the server does not tell them apart. */
  readonly byKind: { readonly due: number; readonly ahead: number; readonly bestEffort: number } | null;
  /** Bytes that recordings and ingest wrote. */
  readonly written: number;
  /** The part of the slot, 0 to 1, in which the disk had something to do. */
  readonly busy: number | null;
}

export interface DiskStatus {
  readonly store: string;
  readonly uuid: string;
  readonly readMethod: string;
  readonly readSize: number;
  readonly minRead: number;
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
  readonly slots: readonly SlotUse[];
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
  const due = slot.numberOrNull('due');
  return {
    slot: slot.number('slot'),
    reads: slot.number('reads'),
    minRead: slot.number('min_read'),
    byKind:
      due === null
        ? null
        : { due, ahead: slot.number('ahead'), bestEffort: slot.number('best_effort') },
    written: slot.number('written'),
    busy: slot.numberOrNull('busy'),
  };
}
