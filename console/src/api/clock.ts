// The server's clock. It may differ from the browser's by hours, so no time of the server is ever
// compared with the browser's: the `Date` of each response says what time it is there.

/** By how much two readings of the server's clock may differ before the older one is dropped. */
const STEP = 2;

class ServerClock {
  // The server's Unix time less the browser's monotonic time, in seconds.
  private offset: number | null = null;

  /** Notes the `Date` of a response that has just arrived. */
  note(headers: Headers): void {
    const date = Date.parse(headers.get('Date') ?? '');
    if (Number.isNaN(date)) return;
    const offset = date / 1000 - monotonic();
    // A date is cut to the second below, so the largest offset seen is the closest to the truth;
    // unless the clock was set.
    const isStep = this.offset === null || Math.abs(offset - this.offset) > STEP;
    this.offset = isStep ? offset : Math.max(offset, this.offset ?? offset);
  }

  /** The server's Unix time in seconds; `null` before its first response. */
  now(): number | null {
    return this.offset === null ? null : monotonic() + this.offset;
  }
}

function monotonic(): number {
  return performance.now() / 1000;
}

export const serverClock = new ServerClock();
