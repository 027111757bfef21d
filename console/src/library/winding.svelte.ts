// Winding: the key frames of a title, one after the other, in place of its playback. The server books
// them in place of the pictures, so the player asks for nothing else meanwhile.

import type Hls from 'hls.js';
import type { ErrorData, HlsIFramesOnly } from 'hls.js';

/** Seconds of the title in a second, by how often the button was pressed. */
const SPEEDS = [4, 8, 16, 32] as const;
const STEP_MS = 250;
/** A picture that has not come by then is not waited for. */
const MOST_STEPS_WAITED = 8;

export class Winding {
  /** Times the normal speed, below zero backwards; 0 where the title is not wound. */
  speed = $state(0);
  /** Position in the title, in seconds. */
  at = $state(0);

  /** Why the server does not wind it; until it is tried again. */
  refusal = $state('');

  private player: HlsIFramesOnly | null = null;
  private stepping: ReturnType<typeof setInterval> | undefined;
  private waited = 0;
  private isLoading = false;

  constructor(
    private readonly hls: Hls,
    private readonly events: typeof import('hls.js').Events,
    private readonly video: HTMLVideoElement,
    /** Shows the key frames. */
    private readonly picture: HTMLVideoElement,
    private readonly failed: (data: ErrorData) => void,
  ) {}

  /** Winds in a direction, or faster in the direction in which it winds. */
  press(direction: 1 | -1): void {
    this.refusal = '';
    const isOther = Math.sign(this.speed) !== direction;
    const next = isOther ? 0 : SPEEDS.findIndex((speed) => speed === Math.abs(this.speed)) + 1;
    const speed = (SPEEDS[next] ?? SPEEDS[0]) * direction;
    if (this.speed === 0 && !this.begin()) return;
    this.speed = speed;
  }

  /** Plays from where it was wound to, or from another position. */
  end(at = this.at): void {
    if (this.speed === 0) return;
    this.close();
    this.video.currentTime = at;
    this.hls.resumeBuffering();
    void this.video.play().catch(() => {
      // The viewer presses Play.
    });
  }

  /** Ends winding without playing on. */
  close(): void {
    clearInterval(this.stepping);
    this.speed = 0;
    this.player?.destroy();
    this.player = null;
  }

  private begin(): boolean {
    const player = this.hls.createIFramePlayer();
    if (!player) return false;
    this.player = player;
    this.video.pause();
    // What is under way arrives: hls.js can lose a segment whose loading is stopped, and stands still.
    this.hls.pauseBuffering();
    player.attachMedia(this.picture);
    player.on(this.events.FRAG_BUFFERED, () => (this.isLoading = false));
    player.on(this.events.ERROR, (_event, data) => this.failed(data));
    this.at = this.video.currentTime;
    this.isLoading = false;
    this.stepping = setInterval(() => this.step(), STEP_MS);
    return true;
  }

  private step(): void {
    // A slow disk makes winding slow; a key frame that is known already is not loaded again.
    this.waited = this.isLoading ? this.waited + 1 : 0;
    if (this.isLoading && this.waited < MOST_STEPS_WAITED) return;
    const { seekable } = this.video;
    const last = seekable.length > 0 ? seekable.end(seekable.length - 1) : 0;
    this.at = Math.min(last, Math.max(0, this.at + (this.speed * STEP_MS) / 1000));
    if (this.at === 0 || this.at === last) {
      this.end();
      return;
    }
    this.isLoading = !isBuffered(this.picture, this.at);
    this.waited = 0;
    this.player?.loadMediaAt(this.at);
  }
}

function isBuffered({ buffered }: HTMLVideoElement, at: number): boolean {
  for (let range = 0; range < buffered.length; range += 1) {
    if (buffered.start(range) <= at && at < buffered.end(range)) return true;
  }
  return false;
}
