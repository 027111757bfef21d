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

/** The picture that a session has reserved. */
export interface Rendition {
  readonly track: number;
  readonly width: number;
  readonly height: number;
  readonly bitRate: number;
}

export interface Session {
  readonly session: number;
  readonly title: string;
  readonly store: string;
  readonly priority: string;
  /** Whose access token began it, and the own name of that token. */
  readonly subject: string | null;
  readonly tokenId: string | null;
  readonly age: number;
  readonly startsIn: number | null;
  /** Seconds into what it plays; `null` while it holds no reservation. */
  readonly position: number | null;
  /** Seconds of what it plays that were delivered. */
  readonly deliveredUntil: number | null;
  readonly duration: number;
  readonly rendition: Rendition | null;
  readonly buffered: number;
  readonly delivered: number;
  readonly guaranteedSlack: number | null;
  readonly observedSlack: number | null;
  readonly deadlineMisses: number;
  /** The longest time in seconds by which a piece was late. */
  readonly drift: number;
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
  const rendition = session.objectOrNull('rendition');
  return {
    session: session.number('session'),
    title: session.text('title'),
    store: session.text('store'),
    priority: session.text('priority'),
    subject: session.textOrNull('subject'),
    tokenId: session.textOrNull('token_id'),
    age: session.number('age'),
    startsIn: session.numberOrNull('starts_in'),
    position: session.numberOrNull('position'),
    deliveredUntil: session.numberOrNull('delivered_until'),
    duration: session.number('duration'),
    rendition: rendition && {
      track: rendition.number('track'),
      width: rendition.number('width'),
      height: rendition.number('height'),
      bitRate: rendition.number('bit_rate'),
    },
    buffered: session.number('buffered'),
    delivered: session.number('delivered'),
    guaranteedSlack: session.numberOrNull('guaranteed_slack'),
    observedSlack: session.numberOrNull('observed_slack'),
    deadlineMisses: session.number('deadline_misses'),
    drift: session.number('drift'),
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

/** Seconds of media that the player has and has not played: as it reports itself, or as the server
 * knows from what it delivered; `null` where neither is known. */
export function ahead(session: Session): number | null {
  const reported = session.player?.buffer ?? null;
  if (reported !== null || session.position === null || session.deliveredUntil === null) {
    return reported;
  }
  return session.deliveredUntil - session.position;
}
