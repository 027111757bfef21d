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
    recordings: disk.list('recordings', (recording) => ({
      title: recording.text('title'),
      since: recording.number('since'),
      bytes: recording.number('bytes'),
    })),
  }));
}
