// Server-sent events out of a response body. `EventSource` would hide the status and the reason of
// a refused request, and when the last byte arrived.

export interface ServerEvent {
  readonly name: string;
  readonly data: string;
}

/** The longest piece of a line that is kept; a server that sends a longer one is not understood. */
const LONGEST = 16 * 1024 * 1024;

/**
 * Takes text as it arrives, and returns the events that are complete with it.
 * Fields other than `event` and `data`, and comments, are passed over.
 */
export class EventParser {
  private rest = '';
  private name = '';
  private data: string[] = [];

  push(text: string): ServerEvent[] {
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? '';
    if (this.rest.length > LONGEST) throw new RangeError('an event without an end');
    return lines.flatMap((line) => this.line(line));
  }

  private line(line: string): ServerEvent[] {
    if (line === '') return this.complete();
    const [, field, value] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? [];
    if (field === 'event') this.name = value ?? '';
    if (field === 'data') this.data.push(value ?? '');
    return [];
  }

  private complete(): ServerEvent[] {
    const event = { name: this.name || 'message', data: this.data.join('\n') };
    const isEvent = this.data.length > 0;
    this.name = '';
    this.data = [];
    return isEvent ? [event] : [];
  }
}
