// One playback of a title in the page, with hls.js. A playback is one session of the server, from
// the request for the master playlist until it is left: a place that is not given back is missing
// for the next viewer.

import type Hls from 'hls.js';
import type { ErrorData, HlsConfig } from 'hls.js';
import { playerAddress, withToken } from '../api/address';
import { Failure } from '../api/failure';
import { failureOf } from '../api/request';
import { text } from '../text';
import { SubtitleCues } from './subtitle_cues';
import { Winding } from './winding.svelte';

export type Phase =
  | { readonly phase: 'requesting' }
  | { readonly phase: 'playing' }
  | { readonly phase: 'ended' }
  /** Admission refused it. `at`: when the refusal came, in the browser's monotonic milliseconds. */
  | { readonly phase: 'refused'; readonly failure: Failure; readonly at: number }
  | { readonly phase: 'failed'; readonly message: string };

/** A row of a menu: its number for the player, and its name. */
export interface Choice {
  readonly number: number;
  readonly name: string;
}

/** The server may hold a request for up to 30 s until there is room. */
const ADMISSION_MS = 60_000;
/** The menu's number for the player's own choice, and for no subtitles. */
export const NONE = -1;

const GONE = 410;
const UNAVAILABLE = 503;

export class Playback {
  current = $state.raw<Phase>({ phase: 'requesting' });
  /** Something that the viewer should know while it plays; empty otherwise. */
  notice = $state('');
  renditions = $state.raw<readonly Choice[]>([]);
  rendition = $state(NONE);
  shownRendition = $state.raw<string | null>(null);
  sounds = $state.raw<readonly Choice[]>([]);
  sound = $state(NONE);
  subtitles = $state.raw<readonly Choice[]>([]);
  subtitle = $state(NONE);
  stalls = $state(0);
  /** `null` for a title without key frames that can be shown alone. */
  winding = $state.raw<Winding | null>(null);
  /** Seconds of media that the player has ahead. */
  ahead = $state(0);
  /** The player's name for the playback, by which the server's list of sessions names it. */
  readonly sid = randomName();

  private hls: Hls | null = null;
  private readonly cues: SubtitleCues;
  private leaving: string | null = null;
  private isStopped = false;
  private readonly listeners = new AbortController();

  constructor(
    private readonly title: string,
    private readonly video: HTMLVideoElement,
    /** Shows key frames while the title is wound. */
    private readonly picture: HTMLVideoElement,
  ) {
    this.cues = new SubtitleCues(video);
  }

  async start(): Promise<void> {
    let library: typeof import('hls.js');
    try {
      library = await import('hls.js');
    } catch {
      this.fail(text.player.notLoaded);
      return;
    }
    // The page may have been left meanwhile.
    if (this.isStopped) return;
    if (!library.default.isSupported()) {
      this.fail(text.player.noMediaSource);
      return;
    }
    const hls = new library.default(this.config());
    this.hls = hls;
    this.listen(hls, library);
    hls.loadSource(withToken(playerAddress(this.title, 'master.m3u8')));
    hls.attachMedia(this.video);
  }

  /** Ends the playback and gives its place back. */
  stop(): void {
    this.isStopped = true;
    this.cues.show(null);
    this.listeners.abort();
    this.winding?.close();
    this.leave();
    this.hls?.destroy();
    this.hls = null;
  }

  chooseRendition(number: number): void {
    if (this.hls) this.hls.nextLevel = number;
    this.rendition = number;
  }

  chooseSound(number: number): void {
    if (this.hls) this.hls.audioTrack = number;
    this.sound = number;
  }

  chooseSubtitle(number: number): void {
    if (this.hls) this.hls.subtitleTrack = number;
    this.showSubtitle(number);
  }

  private showSubtitle(number: number): void {
    this.subtitle = number;
    this.cues.show(number === NONE ? null : number);
  }

  private config(): Partial<HlsConfig> {
    return {
      // A worker of its own would need another file; fragmented MP4 is hardly touched anyway.
      enableWorker: false,
      // The player's own text tracks have a `data:` address, which the policy of the page forbids.
      renderTextTracksNatively: false,
      cmcd: { sessionId: this.sid },
      // A refusal is an answer, and is shown at once.
      manifestLoadPolicy: {
        default: {
          maxTimeToFirstByteMs: ADMISSION_MS,
          maxLoadTimeMs: ADMISSION_MS,
          timeoutRetry: null,
          errorRetry: null,
        },
      },
    };
  }

  private listen(hls: Hls, { Events }: typeof import('hls.js')): void {
    // Before the player leaves out what it cannot decode: that session is given back, too.
    hls.on(Events.MANIFEST_LOADED, (_event, { levels }) => {
      this.leaving = leavingAddress(levels[0]?.url);
    });
    hls.on(Events.MANIFEST_PARSED, () => {
      this.renditions = hls.levels.map(({ height, bitrate }, number) => ({
        number,
        name: text.player.level(height, bitrate),
      }));
      if (hls.iframeVariants.length > 0) {
        const failed = (data: ErrorData) => this.windingFailed(data);
        this.winding = new Winding(hls, Events, this.video, this.picture, failed);
      }
      this.current = { phase: 'playing' };
      this.video.play().catch((error: unknown) => {
        const isNotAllowed = error instanceof DOMException && error.name === 'NotAllowedError';
        if (isNotAllowed) this.notice = text.player.pressPlay;
      });
    });
    hls.on(Events.LEVEL_SWITCHED, (_event, { level }) => {
      this.shownRendition = this.renditions[level]?.name ?? null;
    });
    hls.on(Events.AUDIO_TRACKS_UPDATED, (_event, { audioTracks }) => {
      this.sounds = audioTracks.map(({ name }, number) => ({ number, name }));
      this.sound = hls.audioTrack;
    });
    hls.on(Events.AUDIO_TRACK_SWITCHED, () => {
      this.sound = hls.audioTrack;
    });
    hls.on(Events.SUBTITLE_TRACKS_UPDATED, (_event, { subtitleTracks }) => {
      this.subtitles = subtitleTracks.map(({ name }, number) => ({ number, name }));
    });
    hls.on(Events.SUBTITLE_TRACK_SWITCH, () => this.showSubtitle(hls.subtitleTrack));
    hls.on(Events.CUES_PARSED, (_event, { cues, track }) => {
      // Named by hls.js: `subtitles0` is its first text track.
      const number = Number(/^subtitles(\d+)$/.exec(track)?.[1] ?? hls.subtitleTrack);
      this.cues.add(number, cues as unknown);
    });
    hls.on(Events.FRAG_BUFFERED, () => {
      this.notice = '';
    });
    hls.on(Events.ERROR, (_event, data) => this.failed(data));
    this.watchVideo();
  }

  private watchVideo(): void {
    const { video } = this;
    const { signal } = this.listeners;
    const on = (name: keyof HTMLVideoElementEventMap, act: () => void) =>
      video.addEventListener(name, act, { signal });
    on('ended', () => {
      // The last picture stays.
      this.current = { phase: 'ended' };
      this.hls?.stopLoad();
      this.leave();
    });
    on('waiting', () => {
      const hasStarted = video.currentTime > 0 && !video.seeking && !video.ended;
      if (hasStarted) this.stalls += 1;
    });
    const measure = () => {
      this.ahead = bufferedAhead(video);
    };
    on('timeupdate', measure);
    on('progress', measure);
    // A page that is closed gives its place to the next viewer at once.
    addEventListener('pagehide', () => this.stop(), { signal });
  }

  private failed({ fatal, details, response, networkDetails, error }: ErrorData): void {
    const status = response?.code ?? 0;
    const body = bodyOf(networkDetails);
    if (status === GONE) {
      this.fail(text.player.gone);
    } else if (!fatal) {
      if (status === UNAVAILABLE) {
        this.notice = text.player.seekRefused(failureOf(status, body, null).message);
      }
    } else if (details.startsWith('manifestLoad') && status >= 400) {
      const failure = failureOf(status, body, headerOf(networkDetails, 'Retry-After'));
      this.current = { phase: 'refused', failure, at: performance.now() };
      this.stop();
    } else if (details === 'manifestIncompatibleCodecsError' || details === 'bufferAddCodecError') {
      this.fail(text.player.noDecoder(this.title));
    } else {
      this.fail(text.player.failed(status > 0 ? `status ${status}` : error.message));
    }
  }

  private windingFailed({ fatal, response, networkDetails }: ErrorData): void {
    const status = response?.code ?? 0;
    if (status === GONE) {
      this.fail(text.player.gone);
    } else if (this.winding && (fatal || status === UNAVAILABLE)) {
      const reason = status > 0 ? failureOf(status, bodyOf(networkDetails), null).message : '';
      this.winding.end();
      this.winding.refusal = text.player.windRefused(reason);
    }
  }

  private fail(message: string): void {
    this.current = { phase: 'failed', message };
    this.stop();
  }

  private leave(): void {
    if (this.leaving !== null) navigator.sendBeacon(this.leaving);
    this.leaving = null;
  }
}

/** Where a session ends, by the address of one of its playlists: it has the session's token. */
function leavingAddress(playlist: string | undefined): string | null {
  if (playlist === undefined) return null;
  const address = new URL(playlist, location.href);
  const token = address.searchParams.get('s');
  return token && new URL(`session?s=${encodeURIComponent(token)}`, address).href;
}

function bufferedAhead(video: HTMLVideoElement): number {
  const { buffered, currentTime } = video;
  for (let range = 0; range < buffered.length; range += 1) {
    const isHere = buffered.start(range) <= currentTime && currentTime <= buffered.end(range);
    if (isHere) return buffered.end(range) - currentTime;
  }
  return 0;
}

/** The text of a response. A request for media has it as bytes. */
function bodyOf(request: unknown): string {
  if (!(request instanceof XMLHttpRequest)) return '';
  if (request.responseType === 'arraybuffer') {
    const body: unknown = request.response;
    return body instanceof ArrayBuffer ? new TextDecoder().decode(body) : '';
  }
  return request.responseText;
}

function headerOf(request: unknown, name: string): string | null {
  return request instanceof XMLHttpRequest ? request.getResponseHeader(name) : null;
}

/** `crypto.randomUUID` is missing where the page comes in the clear from another machine. */
function randomName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
