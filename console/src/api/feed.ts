// The live data of the server: the stream of events, or where the server has none its status each
// second. A feed reconnects for as long as it runs. A director and a meter have no such data: there
// a feed ends.

import { isDirectorStatus } from './cluster';
import { type Decision, decodeDecision, loadDecisions } from './decisions';
import { EventParser, type ServerEvent } from './event_stream';
import { asFailure, Failure } from './failure';
import { isMeterStatus } from './meter';
import { request, send } from './request';
import { decodeStatus, loadStatus, type ServerStatus } from './status';

export interface FeedListener {
  /** The page comes from a director, or from the console of a meter. The feed has ended. */
  found(host: 'director' | 'meter'): void;
  status(status: ServerStatus): void;
  /** The latest decisions, the newest first, after each connection. */
  decisions(latest: Decision[]): void;
  decision(decision: Decision): void;
  /** Live data stopped. The feed tries again by itself. */
  failed(failure: Failure): void;
}

/** Two statuses a second are sent, so a connection without any byte for this long is dead. */
const SILENCE_MS = 6_000;
const BUSY = 'busy';
const POLL_MS = 1_000;
/** A server that starts again is there within seconds; one that is denied may stay so for long. */
const RETRY_MS = { first: 500, most: 5_000, denied: 15_000 };

/**
 * Runs a feed until the signal is aborted. If it is not yet known that there is a server, it begins
 * with the status, which tells what answers: nothing else may be asked of others.
 */
export async function runFeed(
  listener: FeedListener,
  isServer: boolean,
  stop: AbortSignal,
): Promise<void> {
  let isKnown = isServer;
  let delay = RETRY_MS.first;
  let hasEvents = true;
  const onData = () => {
    delay = RETRY_MS.first;
  };
  while (!stop.aborted) {
    try {
      if (!isKnown) {
        const status = await request('/status', { signal: stop });
        if (stop.aborted) return;
        if (isDirectorStatus(status)) return listener.found('director');
        if (isMeterStatus(status)) return listener.found('meter');
        listener.status(decodeStatus(status));
        isKnown = true;
      }
      if (hasEvents) await follow(listener, onData, stop);
      else await poll(listener, onData, stop);
    } catch (thrown) {
      if (stop.aborted) return;
      const failure = asFailure(thrown);
      // An older server has no events, and a busy one no room for another watcher.
      if ((failure.kind === 'absent' || failure.word === BUSY) && hasEvents) {
        hasEvents = false;
        continue;
      }
      // A server that was replaced meanwhile may have events.
      hasEvents = true;
      const wait = failure.kind === 'denied' ? RETRY_MS.denied : delay;
      listener.failed(failure);
      await pause(wait, stop);
      delay = Math.min(delay * 2, RETRY_MS.most);
    }
  }
}

async function follow(
  listener: FeedListener,
  onData: () => void,
  stop: AbortSignal,
): Promise<never> {
  const connection = new AbortController();
  const signal = AbortSignal.any([stop, connection.signal]);
  let watchdog: ReturnType<typeof setTimeout> | undefined;
  const isAlive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => connection.abort(), SILENCE_MS);
  };
  try {
    isAlive();
    const response = await send('/api/v1/events', { signal, timeoutMs: null });
    const kind = response.headers.get('Content-Type') ?? '';
    if (!kind.startsWith('text/event-stream') || !response.body) {
      throw new Failure('absent', 'the server has no events');
    }
    await sendLatest(listener, stop);
    const parser = new EventParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (done) throw new Failure('silent', 'the connection ended');
      isAlive();
      for (const event of parser.push(value ?? '')) {
        deliver(event, listener);
        onData();
      }
    }
  } finally {
    clearTimeout(watchdog);
    connection.abort();
  }
}

function deliver(event: ServerEvent, listener: FeedListener): void {
  const data = (): unknown => {
    try {
      return JSON.parse(event.data) as unknown;
    } catch {
      throw new Failure('unreadable', 'an event is not JSON');
    }
  };
  if (event.name === 'status') listener.status(decodeStatus(data()));
  if (event.name === 'decision') listener.decision(decodeDecision(data()));
}

async function poll(listener: FeedListener, onData: () => void, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const [status] = await Promise.all([loadStatus(stop), sendLatest(listener, stop)]);
    listener.status(status);
    onData();
    await pause(POLL_MS, stop);
  }
}

/** A server without a list of decisions, or with a broken one, still has a status. */
async function sendLatest(listener: FeedListener, stop: AbortSignal): Promise<void> {
  try {
    listener.decisions(await loadDecisions(stop));
  } catch (thrown) {
    const { kind } = asFailure(thrown);
    if (kind === 'denied' || kind === 'silent') throw thrown;
  }
}

function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      stop.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    stop.addEventListener('abort', end);
  });
}
