// The disks with their stores, and the recordings on them.

import { Fields } from './fields';
import { request } from './request';

export interface Recording {
  readonly title: string;
  /** Unix seconds of the server. */
  readonly since: number;
  readonly bytes: number;
}

export interface Disk {
  readonly uuid: string;
  readonly store: string;
  readonly label: string;
  readonly lost: boolean;
  readonly draining: boolean;
  readonly size: number;
  readonly chunk: number;
  readonly dataBytes: number;
  readonly freeBytes: number;
  /** The number of titles; `null` where the server does not say. */
  readonly titles: number | null;
  readonly recordings: readonly Recording[];
}

/** Work that writes titles to a disk, beside recordings. */
export interface RunningWrite {
  /** `ingest`, `copy` or `repair`. */
  readonly kind: string;
  /** `null` of a whole store. */
  readonly title: string | null;
  /** Where the file that it is made of waits in a mount for its name or its bytes. */
  readonly waitsAt: string | null;
}

/** How far the drain of a disk is. */
export interface Drain {
  readonly sessions: number;
  readonly recordings: readonly Recording[];
  readonly ingests: readonly RunningWrite[];
  /** The number of titles without a copy on another disk. */
  readonly onlyHere: number;
}

export async function loadDrain(uuid: string, signal: AbortSignal): Promise<Drain> {
  const drain = Fields.of(await request(`${addressOf(uuid)}/drain`, { signal }));
  return {
    sessions: drain.number('sessions'),
    recordings: drain.list('recordings', recordingOf),
    ingests: drain.list('ingests', (ingest) => ({
      kind: ingest.text('kind'),
      title: ingest.textOrNull('title'),
      waitsAt: ingest.textOrNull('waits_at'),
    })),
    onlyHere: drain.number('titles_only_here'),
  };
}

/** Ends a recording, as its user would: what had arrived becomes a title. */
export async function endRecording(uuid: string, title: string): Promise<void> {
  const address = `${addressOf(uuid)}/recordings/${encodeURIComponent(title)}`;
  await request(address, { method: 'DELETE' });
}

const addressOf = (uuid: string) => `/api/v1/disks/${encodeURIComponent(uuid)}`;

const recordingOf = (recording: Fields): Recording => ({
  title: recording.text('title'),
  since: recording.number('since'),
  bytes: recording.number('bytes'),
});

export async function loadDisks(signal: AbortSignal): Promise<Disk[]> {
  const list = Fields.of(await request('/api/v1/disks', { signal }));
  return list.neededList('disks', (disk) => ({
    uuid: disk.text('uuid'),
    store: disk.text('store'),
    label: disk.text('label'),
    lost: disk.flag('lost'),
    draining: disk.flag('draining'),
    size: disk.number('size'),
    chunk: disk.number('chunk'),
    dataBytes: disk.number('data_bytes'),
    freeBytes: disk.number('free_bytes'),
    titles: disk.numberOrNull('titles'),
    recordings: disk.list('recordings', recordingOf),
  }));
}
