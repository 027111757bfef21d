// Subtitles as text tracks of the video element, filled with the cues that the player has parsed.

export class SubtitleCues {
  private readonly tracks = new Map<number, TextTrack>();
  private shown: number | null = null;

  constructor(private readonly video: HTMLVideoElement) {}

  /** Adds cues to a text track. A cue that is in several segments is added once. */
  add(number: number, cues: unknown): void {
    const track = this.track(number);
    for (const cue of Array.isArray(cues) ? cues : []) {
      if (cue instanceof VTTCue && !has(track, cue)) track.addCue(cue);
    }
  }

  /** Shows one text track, or none. */
  show(number: number | null): void {
    this.shown = number;
    if (number !== null) this.track(number);
    for (const [other, track] of this.tracks) track.mode = this.modeOf(other);
  }

  private track(number: number): TextTrack {
    let track = this.tracks.get(number);
    if (!track) {
      track = this.video.addTextTrack('subtitles');
      track.mode = this.modeOf(number);
      this.tracks.set(number, track);
    }
    return track;
  }

  /** A hidden track keeps its cues; a disabled one has none to look at. */
  private modeOf(number: number): TextTrackMode {
    return number === this.shown ? 'showing' : 'hidden';
  }
}

function has(track: TextTrack, cue: VTTCue): boolean {
  return [...(track.cues ?? [])].some(
    (known) =>
      known instanceof VTTCue &&
      known.startTime === cue.startTime &&
      known.endTime === cue.endTime &&
      known.text === cue.text,
  );
}
