// The live state of the server, shared by all pages; of a director, whether it answers.

import type { Decision } from './api/decisions';
import type { Failure } from './api/failure';
import { type FeedListener, runFeed } from './api/feed';
import type { ServerStatus } from './api/status';
import type { SentAt } from './now/rates';
import { withNewSlots } from './now/slot_history';
import type { Host } from './pages';

/** Whether live data arrives. */
export type Link =
  | { readonly state: 'connecting' }
  | { readonly state: 'live' }
  /** `since`: the browser's monotonic time in milliseconds; compared with nothing else. */
  | { readonly state: 'lost'; readonly failure: Failure; readonly since: number }
  | { readonly state: 'denied'; readonly failure: Failure };

/** The server lists as many of its decisions. */
const MOST_DECISIONS = 256;
/** Two samples a second, for five minutes. */
const MOST_SENT = 600;

class Live implements FeedListener {
  /** `null` until the first response. */
  host = $state.raw<Host | null>(null);
  link = $state.raw<Link>({ state: 'connecting' });
  latest = $state.raw<ServerStatus | null>(null);
  latestDecisions = $state.raw<readonly Decision[]>([]);
  sent = $state.raw<readonly SentAt[]>([]);

  /**
   * Finds out what the page comes from, and follows a server while the page is visible. Returns what
   * ends that.
   */
  start(): () => void {
    let running: AbortController | null = null;
    const update = () => {
      if (document.hidden) {
        running?.abort();
        running = null;
      } else if (!running && (this.host === null || this.host === 'server')) {
        running = new AbortController();
        void runFeed(this, this.host === 'server', running.signal);
      }
    };
    update();
    document.addEventListener('visibilitychange', update);
    return () => {
      document.removeEventListener('visibilitychange', update);
      running?.abort();
    };
  }

  found(host: 'director' | 'meter'): void {
    this.host = host;
    this.answered();
  }

  /** Live data arrives. */
  answered(): void {
    this.link = { state: 'live' };
  }

  status(status: ServerStatus): void {
    this.host = 'server';
    // A server that was started again counts from zero.
    const isNew = this.latest !== null && status.uptime < this.latest.uptime;
    const sample = { uptime: status.uptime, bytes: status.sentBytes };
    this.sent = isNew ? [sample] : [...this.sent.slice(1 - MOST_SENT), sample];
    const known = new Map(isNew ? [] : this.latest?.disks.map(({ uuid, slots }) => [uuid, slots]));
    const disks = status.disks.map((disk) => ({
      ...disk,
      slots: withNewSlots(known.get(disk.uuid) ?? [], disk.slots),
    }));
    this.latest = { ...status, disks };
    this.answered();
  }

  decisions(latest: Decision[]): void {
    this.latestDecisions = latest;
  }

  decision(decision: Decision): void {
    // One that was taken while the list was loaded is in both.
    const isKnown = this.latestDecisions.some((known) => isSame(known, decision));
    if (isKnown) return;
    this.latestDecisions = [decision, ...this.latestDecisions].slice(0, MOST_DECISIONS);
  }

  failed(failure: Failure): void {
    const since = this.link.state === 'lost' ? this.link.since : performance.now();
    this.link =
      failure.kind === 'denied' ? { state: 'denied', failure } : { state: 'lost', failure, since };
  }
}

function isSame(a: Decision, b: Decision): boolean {
  return a.at === b.at && a.session === b.session && a.verdict === b.verdict && a.client === b.client;
}

export const live = new Live();
