// How many more viewers of a title the server would admit now.

import { Fields } from './fields';
import { request } from './request';

export interface Headroom {
  readonly title: string;
  /** Viewers who fit now. */
  readonly fits: number;
  /** Whether more than that may fit: the server stopped counting. */
  readonly atLeast: boolean;
  /** Why the next one would be refused, in a sentence of the server, and in numbers. */
  readonly message: string | null;
  readonly detail: string | null;
  /** Unix seconds of the server at which one more would fit. */
  readonly until: number | null;
}

export async function loadHeadroom(title: string, signal: AbortSignal): Promise<Headroom> {
  const address = `/api/v1/headroom?title=${encodeURIComponent(title)}`;
  const headroom = Fields.of(await request(address, { signal }));
  return {
    title,
    fits: headroom.number('fits'),
    atLeast: headroom.flag('at_least'),
    message: headroom.textOrNull('message'),
    detail: headroom.textOrNull('detail'),
    until: headroom.numberOrNull('until'),
  };
}
