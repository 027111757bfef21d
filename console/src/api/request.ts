// One request to the server, and the reason where it has no result.

import { withToken } from './address';
import { serverClock } from './clock';
import { Failure, type FailureKind } from './failure';
import { Fields } from './fields';

/** A server that takes longer is shown as silent. Opening a title may wait for a busy disk. */
const TIMEOUT_MS = 15_000;

export interface RequestOptions {
  method?: 'GET' | 'DELETE' | 'PATCH' | 'POST' | 'PUT';
  /** Sent as JSON. */
  json?: unknown;
  signal?: AbortSignal;
  /** `null`: the response may take for ever. */
  timeoutMs?: number | null;
}

/** The JSON of a response; `null` where it has no body. Fails with a `Failure`. */
export async function request(address: string, options: RequestOptions = {}): Promise<unknown> {
  const response = await send(address, options);
  const text = await response.text().catch(() => {
    throw new Failure('silent', 'the response ended early');
  });
  if (text === '') return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new Failure('unreadable', 'the response is not JSON', response.status);
  }
}

/** A successful response, of which the body is not read yet. Fails with a `Failure`. */
export async function send(address: string, options: RequestOptions = {}): Promise<Response> {
  const { signal, timeoutMs = TIMEOUT_MS } = options;
  const timeout = timeoutMs === null ? [] : [AbortSignal.timeout(timeoutMs)];
  const method = options.method ?? 'GET';
  const headers: Record<string, string> = {};
  // A page of another origin cannot send it: the meter's console asks for it where it has no token.
  if (method !== 'GET') headers['Tenuto-Console'] = '1';
  const init: RequestInit = {
    method,
    headers,
    signal: AbortSignal.any(signal ? [signal, ...timeout] : timeout),
    cache: 'no-store',
  };
  if (options.json !== undefined) {
    init.body = JSON.stringify(options.json);
    headers['Content-Type'] = 'application/json';
  }
  const response = await fetch(withToken(address), init).catch(() => {
    throw new Failure('silent', 'no response');
  });
  serverClock.note(response.headers);
  if (response.ok) return response;
  const body = await response.text().catch(() => '');
  throw failureOf(response.status, body, response.headers.get('Retry-After'));
}

/** The failure that an error response states: problem details, or an error as players get it. */
export function failureOf(status: number, body: string, retryAfter: string | null): Failure {
  let fields: Fields | null = null;
  try {
    fields = Fields.of(JSON.parse(body));
  } catch {
    // A proxy in between, for example, answers in HTML: the status has to do.
  }
  const word = fields?.text('error') ?? '';
  const message = fields?.textOrNull('detail') ?? fields?.textOrNull('message');
  // A refusal's `detail` is for logs, and its `message` for people.
  const said = word === 'refused' ? fields?.textOrNull('message') ?? message : message;
  const exact = fields?.numberOrNull('retry_after_ms') ?? null;
  const seconds = exact === null ? Number.parseFloat(retryAfter ?? '') : exact / 1000;
  return new Failure(
    kindOf(status, word),
    said ?? `status ${status}`,
    status,
    fields?.text('hint') ?? '',
    Number.isFinite(seconds) ? seconds : null,
    word,
  );
}

function kindOf(status: number, word: string): FailureKind {
  if (status === 401 || word.startsWith('token-')) return 'denied';
  if (status === 404 || status === 405) return 'absent';
  return 'refused';
}
