// Why a request has no result.

export type FailureKind =
  /** No response: the server is not there, or too slow. */
  | 'silent'
  /** 401 or 403 for lack of a token: the page has to be opened with another one. */
  | 'denied'
  /** 404 or 405: nothing of this name, or a server without this operation. */
  | 'absent'
  /** Another error of the server, with its reason. */
  | 'refused'
  /** A response that is not what this page understands. */
  | 'unreadable';

/** A request without a result. The texts are the server's own, where it gave any. */
export class Failure extends Error {
  constructor(
    readonly kind: FailureKind,
    message: string,
    readonly status = 0,
    readonly hint = '',
    /** Seconds after which the same request would succeed, if the server names them. */
    readonly retryAfter: number | null = null,
    /** The server's stable word for it. */
    readonly word = '',
  ) {
    super(message);
    this.name = 'Failure';
  }
}

/** What was thrown, as a failure. */
export function asFailure(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown;
  return new Failure('unreadable', thrown instanceof Error ? thrown.message : String(thrown));
}
