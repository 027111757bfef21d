// The columns of the table of sessions: what each shows, and how it sorts and filters.

import { ahead, type Session } from '../api/sessions';
import * as show from '../format';
import { text } from '../text';

type Cell = number | string | null;

export interface Column {
  readonly id: keyof typeof text.sessions.columns;
  readonly isNumber: boolean;
  /** In rem. Widths are fixed: rows that come into sight do not move the columns. */
  readonly width: number;
  /** What the rows are sorted by; `null` where it is not known. */
  readonly value: (session: Session) => Cell;
  readonly show: (session: Session) => string;
}

const optional = <T>(value: T | null, form: (value: T) => string) =>
  value === null ? text.app.unknown : form(value);

export const columns: readonly Column[] = [
  {
    id: 'session',
    isNumber: true,
    width: 6,
    value: (s) => s.session,
    show: (s) => show.count(s.session),
  },
  { id: 'title', isNumber: false, width: 16, value: (s) => s.title, show: titleWithKind },
  {
    id: 'position',
    isNumber: true,
    width: 9.5,
    value: (s) => s.position,
    show: (s) => {
      if (s.startsIn !== null) return text.sessions.startsIn(s.startsIn);
      return optional(s.position, (at) => text.sessions.position(at, s.duration));
    },
  },
  {
    id: 'rendition',
    isNumber: true,
    width: 7.5,
    value: (s) => s.rendition && s.rendition.height,
    show: (s) => (s.rendition ? `${s.rendition.width}×${s.rendition.height}` : text.app.unknown),
  },
  {
    id: 'ahead',
    isNumber: true,
    width: 7,
    value: ahead,
    show: (s) => optional(ahead(s), show.seconds),
  },
  {
    id: 'slack',
    isNumber: true,
    width: 7.5,
    value: (s) => s.observedSlack,
    show: (s) => optional(s.observedSlack, show.seconds),
  },
  {
    id: 'drift',
    isNumber: true,
    width: 6.5,
    value: (s) => s.drift,
    show: (s) => (s.drift === 0 ? show.count(0) : show.response(s.drift)),
  },
  {
    id: 'late',
    isNumber: true,
    width: 7.5,
    value: (s) => s.deadlineMisses,
    show: (s) => show.count(s.deadlineMisses),
  },
  {
    id: 'age',
    isNumber: true,
    width: 6.5,
    value: (s) => s.age,
    show: (s) => show.span(s.age),
  },
  {
    id: 'buffered',
    isNumber: true,
    width: 7,
    value: (s) => s.buffered,
    show: (s) => show.bytes(s.buffered),
  },
  {
    id: 'delivered',
    isNumber: true,
    width: 7,
    value: (s) => s.delivered,
    show: (s) => show.bytes(s.delivered),
  },
  {
    id: 'playerRate',
    isNumber: true,
    width: 8,
    value: (s) => s.player?.bitRate ?? null,
    show: (s) => optional(s.player?.bitRate ?? null, show.bitRate),
  },
  {
    id: 'priority',
    isNumber: false,
    width: 6.5,
    value: (s) => priorityRank(s.priority),
    show: (s) => text.sessions.priority(s.priority),
  },
  {
    id: 'subject',
    isNumber: false,
    width: 9,
    value: (s) => s.subject,
    show: (s) => optional(s.subject, String),
  },
  {
    id: 'tokenId',
    isNumber: false,
    width: 9,
    value: (s) => s.tokenId,
    show: (s) => optional(s.tokenId, String),
  },
  { id: 'store', isNumber: false, width: 14, value: (s) => s.store, show: (s) => s.store },
];

export interface Order {
  readonly column: Column;
  readonly isDescending: boolean;
}

/** The sessions that contain the words, in the order of a column. What is not known comes last. */
export function arrange(
  sessions: readonly Session[],
  filter: string,
  { column, isDescending }: Order,
): Session[] {
  const words = filter.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const found = sessions.filter((session) => {
    if (words.length === 0) return true;
    const { title, store, priority, subject, tokenId, session: number } = session;
    const parts = [title, store, priority, number, subject ?? '', tokenId ?? ''];
    const all = parts.join(' ').toLocaleLowerCase();
    return words.every((word) => all.includes(word));
  });
  const direction = isDescending ? -1 : 1;
  return found.sort((a, b) => {
    const [one, other] = [column.value(a), column.value(b)];
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    return direction * compare(one, other) || a.session - b.session;
  });
}

function compare(a: Cell, b: Cell): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return show.compareTexts(String(a), String(b));
}

function priorityRank(priority: string): number {
  return ['low', 'normal', 'high'].indexOf(priority);
}

function titleWithKind(session: Session): string {
  if (session.sentTo !== null) return `${session.title} (${text.sessions.sentTo(session.sentTo)})`;
  if (session.fill) return `${session.title} (${text.sessions.fill})`;
  return session.mount ? `${session.title} (${text.sessions.mount})` : session.title;
}
