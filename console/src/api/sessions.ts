// The server's sessions.

import { Fields } from './fields';
import { request } from './request';

/** What the player of a session reports of itself. */
export interface PlayerReport {
  readonly sid: string | null;
  readonly starvations: number;
  /** Seconds of media in its buffer. */
  readonly buffer: number | null;
  readonly bitRate: number | null;
}

export interface Session {
  readonly session: number;
  readonly title: string;
  readonly store: string;
  readonly priority: string;
  readonly age: number;
  readonly startsIn: number | null;
  readonly buffered: number;
  readonly delivered: number;
  readonly guaranteedSlack: number | null;
  readonly observedSlack: number | null;
  readonly deadlineMisses: number;
  readonly fill: boolean;
  readonly mount: boolean;
  readonly sentTo: string | null;
  readonly player: PlayerReport | null;
}

export interface SessionList {
  readonly total: number;
  readonly sessions: readonly Session[];
}

export async function loadSessions(signal: AbortSignal): Promise<SessionList> {
  const list = Fields.of(await request('/api/v1/sessions', { signal }));
  const sessions = list.neededList('sessions', decodeSession);
  return { total: list.number('total', sessions.length), sessions };
}

export async function loadSession(number: number, signal: AbortSignal): Promise<Session> {
  return decodeSession(Fields.of(await request(`/api/v1/sessions/${number}`, { signal })));
}

export async function endSession(number: number): Promise<void> {
  await request(`/api/v1/sessions/${number}`, { method: 'DELETE' });
}

function decodeSession(session: Fields): Session {
  const report = session.objectOrNull('cmcd');
  return {
    session: session.number('session'),
    title: session.text('title'),
    store: session.text('store'),
    priority: session.text('priority'),
    age: session.number('age'),
    startsIn: session.numberOrNull('starts_in'),
    buffered: session.number('buffered'),
    delivered: session.number('delivered'),
    guaranteedSlack: session.numberOrNull('guaranteed_slack'),
    observedSlack: session.numberOrNull('observed_slack'),
    deadlineMisses: session.number('deadline_misses'),
    fill: session.flag('fill'),
    mount: session.flag('mount'),
    sentTo: session.textOrNull('sent_to'),
    player: report && {
      sid: report.textOrNull('sid'),
      starvations: report.number('starvations'),
      buffer: report.numberOrNull('buffer'),
      bitRate: report.numberOrNull('bit_rate'),
    },
  };
}
