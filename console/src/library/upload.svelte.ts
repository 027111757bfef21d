// One file on its way into the library.

import { storedTitleAddress, withToken } from '../api/address';
import { asFailure, Failure } from '../api/failure';
import { Fields } from '../api/fields';
import { failureOf, request } from '../api/request';
import { text } from '../text';

export type UploadState =
  | { readonly state: 'ready' }
  | { readonly state: 'sending'; readonly sent: number }
  /** All is sent; the server makes a title of it. */
  | { readonly state: 'ingesting' }
  | { readonly state: 'done'; readonly notes: readonly string[]; readonly leftOut: readonly string[] }
  | { readonly state: 'failed'; readonly failure: Failure }
  | { readonly state: 'cancelled' };

export interface UploadOptions {
  readonly disk: string;
  readonly asFile: boolean;
  readonly thumbnails: boolean;
}

/** The server's word for a request that it would take if it had a body. */
const NO_BODY = 'length-required';

export class Upload {
  name: string = $state('');
  current = $state.raw<UploadState>({ state: 'ready' });
  private sending: XMLHttpRequest | null = null;

  constructor(readonly file: File) {
    this.name = file.name.replace(/\.[^.]+$/, '') || file.name;
  }

  get isUnderWay(): boolean {
    return this.current.state === 'sending' || this.current.state === 'ingesting';
  }

  /** Whether it can be begun, for the first time or again. */
  get isStartable(): boolean {
    return !this.isUnderWay && this.current.state !== 'done';
  }

  async start(options: UploadOptions): Promise<void> {
    this.current = { state: 'sending', sent: 0 };
    try {
      const address = this.address(options);
      await askFirst(address);
      const body = await this.send(address);
      const uploaded = Fields.of(JSON.parse(body));
      const [notes, leftOut] = [uploaded.texts('notes'), uploaded.texts('left_out')];
      this.current = { state: 'done', notes, leftOut };
    } catch (thrown) {
      if (this.isUnderWay) this.current = { state: 'failed', failure: asFailure(thrown) };
    }
  }

  cancel(): void {
    this.current = { state: 'cancelled' };
    this.sending?.abort();
  }

  private address({ disk, asFile, thumbnails }: UploadOptions): string {
    const parameters = [asFile ? 'as=file' : '', thumbnails && !asFile ? 'thumbnails=10' : ''];
    const query = parameters.filter(Boolean).join('&');
    return storedTitleAddress(disk, this.name.trim()) + (query && `?${query}`);
  }

  private send(address: string): Promise<string> {
    // `fetch` reports no progress of what it sends.
    const sending = new XMLHttpRequest();
    this.sending = sending;
    return new Promise((resolve, reject) => {
      sending.upload.onprogress = (event) => {
        if (this.isUnderWay) this.current = { state: 'sending', sent: event.loaded };
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
      sending.send(this.file);
    });
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
