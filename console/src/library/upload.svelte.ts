// One file on its way into the library: from this machine, or from an address that the server
// downloads.

import { storedTitleAddress, withToken } from '../api/address';
import { loadIngests } from '../api/ingests';
import { asFailure, Failure } from '../api/failure';
import { Fields } from '../api/fields';
import { failureOf, request } from '../api/request';
import { text } from '../text';

export type UploadState =
  | { readonly state: 'ready' }
  /** `all`: bytes of the file, where that is known. */
  | { readonly state: 'sending'; readonly sent: number; readonly all: number | null }
  /** All is there; the server makes a title of it. */
  | { readonly state: 'ingesting' }
  | { readonly state: 'done'; readonly notes: readonly string[]; readonly leftOut: readonly string[] }
  | { readonly state: 'failed'; readonly failure: Failure }
  | { readonly state: 'cancelled' };

export interface UploadOptions {
  readonly disk: string;
  readonly asFile: boolean;
  readonly thumbnails: boolean;
}

const LOOK_MS = 500;
/** The server's word for a request that it would take if it had a body. */
const NO_BODY = 'empty';

export class Upload {
  name: string = $state('');
  current = $state.raw<UploadState>({ state: 'ready' });
  private sending: XMLHttpRequest | null = null;
  private downloading: Download | null = null;

  constructor(readonly source: File | URL) {
    const name = source instanceof File ? source.name : lastName(source);
    this.name = name.replace(/\.[^.]+$/, '') || name;
  }

  /** Where the file comes from, as it is shown. */
  get from(): string {
    return this.source instanceof File ? this.source.name : this.source.host + this.source.pathname;
  }

  /** Bytes of a file of this machine. */
  get size(): number | null {
    return this.source instanceof File ? this.source.size : null;
  }

  get isUnderWay(): boolean {
    return this.current.state === 'sending' || this.current.state === 'ingesting';
  }

  /** Whether it can be begun, for the first time or again. */
  get isStartable(): boolean {
    return !this.isUnderWay && this.current.state !== 'done';
  }

  async start(options: UploadOptions): Promise<void> {
    this.current = { state: 'sending', sent: 0, all: this.size };
    try {
      const address = this.address(options);
      const { source } = this;
      const uploaded = Fields.of(
        source instanceof File
          ? await this.send(address, source)
          : await this.download(address, source, options.disk),
      );
      const [notes, leftOut] = [uploaded.texts('notes'), uploaded.texts('left_out')];
      this.current = { state: 'done', notes, leftOut };
    } catch (thrown) {
      if (this.isUnderWay) this.current = { state: 'failed', failure: asFailure(thrown) };
    }
  }

  cancel(): void {
    this.current = { state: 'cancelled' };
    this.sending?.abort();
    // It would go on without this page.
    if (this.downloading) void this.downloading.cancel();
  }

  private address({ disk, asFile, thumbnails }: UploadOptions): string {
    const parameters = [asFile ? 'as=file' : '', thumbnails && !asFile ? 'thumbnails=10' : ''];
    const query = parameters.filter(Boolean).join('&');
    return storedTitleAddress(disk, this.name.trim()) + (query && `?${query}`);
  }

  private async download(address: string, url: URL, disk: string): Promise<unknown> {
    const own = new Download(disk, this.name.trim());
    this.downloading = own;
    const options = { method: 'POST', json: { url: url.href }, timeoutMs: null } as const;
    const answer = request(address, options);
    const looking = setInterval(async () => {
      const found = await own.look();
      if (!found || !this.isUnderWay) return;
      const { stage, done, total } = found;
      const isComing = stage === 'receiving';
      this.current = isComing ? { state: 'sending', sent: done, all: total } : { state: 'ingesting' };
    }, LOOK_MS);
    try {
      return await answer;
    } finally {
      clearInterval(looking);
      this.downloading = null;
    }
  }

  private async send(address: string, file: File): Promise<unknown> {
    await askFirst(address);
    return JSON.parse(await this.transfer(address, file)) as unknown;
  }

  private transfer(address: string, file: File): Promise<string> {
    // `fetch` reports no progress of what it sends.
    const sending = new XMLHttpRequest();
    this.sending = sending;
    return new Promise((resolve, reject) => {
      sending.upload.onprogress = (event) => {
        if (this.isUnderWay) this.current = { state: 'sending', sent: event.loaded, all: file.size };
      };
      sending.upload.onload = () => {
        if (this.isUnderWay) this.current = { state: 'ingesting' };
      };
      sending.onload = () => {
        const { status, responseText: body } = sending;
        if (status >= 200 && status < 300) resolve(body);
        else reject(failureOf(status, body, sending.getResponseHeader('Retry-After')));
      };
      const broken = () => reject(new Failure('refused', text.upload.broken));
      sending.onerror = broken;
      sending.onabort = broken;
      sending.open('PUT', withToken(address));
      sending.send(file);
    });
  }
}

/** A download that the server makes, in its list of ingests. */
class Download {
  constructor(
    private readonly disk: string,
    private readonly title: string,
  ) {}

  /** How far it is; `null` where that is not known. */
  async look() {
    // Whether it succeeds is in the answer to the request for it.
    const all = await loadIngests().catch(() => []);
    const isOwn = ({ disk, title, address }: (typeof all)[number]) =>
      disk === this.disk && title === this.title && address !== null;
    return all.find(isOwn) ?? null;
  }

  async cancel(): Promise<void> {
    const found = await this.look();
    if (found) await request(`/api/v1/ingests/${found.number}`, { method: 'DELETE' }).catch(() => {});
  }
}

/** The last name of an address's path, or its host. */
function lastName({ pathname, host }: URL): string {
  const name = pathname.split('/').filter(Boolean).at(-1);
  try {
    return decodeURIComponent(name ?? host);
  } catch {
    return name ?? host;
  }
}

/**
 * Fails where the server would refuse the file whatever is in it. Without this a refusal comes only
 * after the whole file was sent, or as a broken connection.
 */
async function askFirst(address: string): Promise<void> {
  try {
    await request(address, { method: 'PUT' });
  } catch (thrown) {
    const failure = asFailure(thrown);
    if (failure.word !== NO_BODY) throw failure;
  }
}
