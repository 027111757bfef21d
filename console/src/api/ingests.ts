// Uploads and downloads that are under way.

import { Fields } from './fields';
import { request } from './request';

export interface RunningIngest {
  readonly number: number;
  readonly disk: string;
  readonly title: string;
  /** Where the server downloads the file from; `null` for an upload. */
  readonly address: string | null;
  readonly stage: string;
  readonly done: number;
  readonly total: number | null;
}

export async function loadIngests(): Promise<readonly RunningIngest[]> {
  const answer = Fields.of(await request('/api/v1/ingests'));
  return answer.neededList('ingests', (ingest) => ({
    number: ingest.number('ingest'),
    disk: ingest.text('disk'),
    title: ingest.text('title'),
    address: ingest.textOrNull('address'),
    stage: ingest.text('stage'),
    done: ingest.number('done'),
    total: ingest.numberOrNull('total'),
  }));
}
