// The server's decisions on viewers.

import { Fields } from './fields';
import { request } from './request';

export interface Decision {
  /** Unix seconds of the server. */
  readonly at: number;
  readonly subject: string;
  readonly verdict: string;
  readonly session: number | null;
  readonly title: string;
  readonly priority: string;
  readonly client: string;
  readonly offer: number | null;
  readonly resource: string | null;
  readonly reason: string | null;
  readonly detail: string | null;
  readonly until: number | null;
  readonly preempted: readonly number[];
}

/** The latest decisions, the newest first. */
export async function loadDecisions(signal: AbortSignal): Promise<Decision[]> {
  const list = Fields.of(await request('/api/v1/decisions', { signal }));
  return list.neededList('decisions', decode);
}

export function decodeDecision(value: unknown): Decision {
  return decode(Fields.of(value));
}

function decode(decision: Fields): Decision {
  return {
    at: decision.number('at'),
    subject: decision.text('subject'),
    verdict: decision.text('verdict'),
    session: decision.numberOrNull('session'),
    title: decision.text('title'),
    priority: decision.text('priority'),
    client: decision.text('client'),
    offer: decision.numberOrNull('offer'),
    resource: decision.textOrNull('resource'),
    reason: decision.textOrNull('reason'),
    detail: decision.textOrNull('detail'),
    until: decision.numberOrNull('until'),
    preempted: decision.numbers('preempted'),
  };
}
