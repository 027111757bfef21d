//! The player as a state machine, driven from outside.
//!
//! ```text
//!            enough buffered            next piece missing
//!  Waiting ─────────────────▶ Playing ─────────────────────▶ Stalled
//!     ▲                        │  ▲  ▲                         │
//!     │ seek                   │  │  └─── `resume` buffered ──┘
//!     │                  pause ▼  │ resume
//!   (any)                     Paused          end ─▶ Finished     viewer leaves ─▶ Stopped
//! ```
//!
//! The run loop of a driver:
//!
//! 1. `poll(now)` until it returns `None`; for each `Action::Fetch` send a request.
//! 2. Wait for bytes, or until `wake_at()`.
//! 3. For each piece that is complete call `arrived(now, fetch)`. Go to 1.
//!
//! The play-out clock is computed, not sampled: if the driver polls late, a stall is still dated at
//! the exact moment at which it began.

mod transitions;

use crate::behaviour::{Behaviour, TimedAction, ViewerAction};
use crate::drift::Drift;
use crate::report::{PlaybackState, PlayerReport};
use crate::timeline::Timeline;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// How a player buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerOptions {
    /// Media to be buffered in every track before the first picture, and after a seek.
    pub start: Duration,
    /// Media to be buffered before play-out resumes after a stall. Zero: as soon as there is media
    /// to render.
    pub resume: Duration,
    /// Longest time between play-out and the start of the next piece to be fetched.
    pub buffer: Duration,
    /// Stalls and drifts up to this are not counted.
    pub dead_band: Duration,
}

impl Default for PlayerOptions {
    fn default() -> Self {
        Self { start: START, resume: Duration::ZERO, buffer: BUFFER, dead_band: DEAD_BAND }
    }
}

/// One piece of one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fetch {
    /// Index into [`Timeline::tracks`].
    pub track: usize,
    /// Index of the piece in its track.
    pub piece: usize,
}

/// What the driver must do, or an event for its information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Request this piece, and call [`Player::arrived`] when it is complete. A track has at most
    /// one open request.
    Fetch(Fetch),
    /// The first picture is shown.
    Started,
    /// Play-out stopped because a piece is missing.
    Stalled,
    /// Play-out resumed after a stall.
    Resumed,
    /// The viewer wants this speed, as [`ViewerAction::Speed`] has it: drop all open requests, and
    /// call [`Player::change_timeline`] or [`Player::keep_timeline`]. Nothing is fetched before.
    Speed(i32),
    /// Play-out has finished or was stopped; nothing more will be fetched.
    Ended,
}

/// A pull player as a state machine: buffering, play-out clock, stalls and seeks. The driver passes
/// the time and the arrivals, and executes its [`Action`]s.
#[derive(Clone, Debug)]
pub struct Player {
    timeline: Arc<Timeline>,
    options: PlayerOptions,
    /// Actions of the viewer that are still to come.
    steps: VecDeque<TimedAction>,
    started: Moment,
    /// The latest time passed by the driver; an earlier one is ignored.
    now: Moment,
    state: State,
    /// The driver gets another timeline: nothing is fetched or played until it has come.
    changing: bool,
    /// Media time of play-out while the clock does not run.
    position: Duration,
    buffers: Vec<TrackBuffer>,
    /// Events that the driver has not polled.
    events: VecDeque<Action>,
    /// What is reported, up to the last change of state; [`Player::report`] adds that state and its
    /// time.
    figures: PlayerReport,
    /// Time stalled since the ideal clock was set: the drift of the piece rendered now.
    stalled: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Buffers before the first picture, or before the one after a seek.
    Waiting {
        since: Moment,
    },
    /// Media time `media` was rendered at moment `anchor`.
    Playing {
        anchor: Moment,
        media: Duration,
    },
    Stalled {
        since: Moment,
    },
    /// `waiting`: paused before the first picture, or before the one after a seek.
    Paused {
        waiting: bool,
    },
    Finished,
    Stopped,
}

/// The buffer of one track: the pieces `rendered..arrived`.
#[derive(Clone, Copy, Debug, Default)]
struct TrackBuffer {
    /// The next piece whose rendering begins.
    rendered: usize,
    /// One past the last buffered piece; also the next piece to fetch.
    arrived: usize,
    in_flight: Option<OpenFetch>,
}

#[derive(Clone, Copy, Debug)]
struct OpenFetch {
    piece: usize,
    /// A seek has made the piece useless; it is dropped when it arrives.
    stale: bool,
}

impl Player {
    /// A player that starts at `now`.
    pub fn new(
        now: Moment,
        timeline: Arc<Timeline>,
        options: PlayerOptions,
        behaviour: &Behaviour,
    ) -> Self {
        // The player never fetches more than the buffer, so a higher threshold is never reached.
        let (start, resume) =
            (options.start.min(options.buffer), options.resume.min(options.buffer));
        Self {
            buffers: vec![TrackBuffer::default(); timeline.tracks.len()],
            timeline,
            options: PlayerOptions { start, resume, ..options },
            steps: behaviour.steps().iter().copied().collect(),
            started: now,
            now,
            state: State::Waiting { since: now },
            changing: false,
            position: Duration::ZERO,
            events: VecDeque::new(),
            figures: PlayerReport { drift: Drift::new(options.dead_band), ..Default::default() },
            stalled: Duration::ZERO,
        }
    }

    /// The piece has arrived completely.
    pub fn arrived(&mut self, now: Moment, fetch: Fetch) {
        self.advance(now);
        let open = self.buffers[fetch.track].in_flight.take().expect("an arrival follows a fetch");
        assert_eq!(open.piece, fetch.piece, "a track has one open request");
        // The request is closed in any case, so that the track can fetch again.
        if open.stale || self.is_over() {
            return;
        }
        self.buffers[fetch.track].arrived += 1;
        self.figures.pieces += 1;
        self.note_margin(fetch);
        self.resume_if_buffered();
    }

    /// The request has failed, for example by a lost connection or a refusal; the piece will be
    /// fetched again.
    pub fn failed(&mut self, now: Moment, fetch: Fetch) {
        self.advance(now);
        self.buffers[fetch.track].in_flight = None;
    }

    /// Goes on with another timeline, from its start, after [`Action::Speed`]. The time since then
    /// counts as that of a seek.
    pub fn change_timeline(&mut self, now: Moment, timeline: Arc<Timeline>) {
        self.advance(now);
        self.buffers = vec![TrackBuffer::default(); timeline.tracks.len()];
        self.timeline = timeline;
        self.position = Duration::ZERO;
        self.go_on();
    }

    /// Goes on as before [`Action::Speed`], with what is buffered.
    pub fn keep_timeline(&mut self, now: Moment) {
        self.advance(now);
        self.buffers.iter_mut().for_each(|buffer| buffer.in_flight = None);
        self.go_on();
    }

    /// The next action; `None` when there is none at this time.
    pub fn poll(&mut self, now: Moment) -> Option<Action> {
        self.advance(now);
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if self.is_over() || self.changing {
            return None;
        }
        // By the start of a piece: the last one may reach beyond the buffer's length.
        let horizon = self.position_now().saturating_add(self.options.buffer);
        for (number, (buffer, track)) in
            self.buffers.iter_mut().zip(&self.timeline.tracks).enumerate()
        {
            let piece = buffer.arrived;
            let wanted = piece < track.len() && track.start(piece) <= horizon;
            if wanted && buffer.in_flight.is_none() {
                buffer.in_flight = Some(OpenFetch { piece, stale: false });
                return Some(Action::Fetch(Fetch { track: number, piece }));
            }
        }
        None
    }

    /// When to call [`Player::poll`] next if nothing arrives before. `None`: only an arrival can
    /// cause an action.
    pub fn wake_at(&self) -> Option<Moment> {
        if !self.events.is_empty() {
            return Some(self.now);
        }
        if self.is_over() {
            return None;
        }
        let step = self.next_step().map(|step| self.started + step.at);
        // A piece that arrives exactly when it is due is on time, so a stall begins just after.
        let runs_out = self.runs_out().map(|at| at + Duration::from_nanos(1));
        [step, runs_out, self.room_at()].into_iter().flatten().min()
    }

    /// The moment at which media time `time` is rendered on a clock that started with the first
    /// picture (or after the last seek) and does not stop for stalls. `None` while that clock does
    /// not run: before the first picture, and in a pause.
    pub fn ideal_moment(&self, time: Duration) -> Option<Moment> {
        let (at, media) = match self.state {
            State::Playing { anchor, media } => (anchor, media),
            State::Stalled { since } => (since, self.position),
            _ => return None,
        };
        Some(at + time.saturating_sub(media) - media.saturating_sub(time) - self.stalled)
    }

    /// Performs an action of the viewer now.
    pub fn act(&mut self, now: Moment, action: ViewerAction) {
        self.advance(now);
        self.perform(action);
    }

    /// Media time of play-out, at the last time passed.
    pub fn position(&self) -> Duration {
        self.position_now()
    }

    /// Media of a track that is buffered and not rendered, at the last time passed.
    pub fn ahead(&self, track: usize) -> Duration {
        let buffered = self.timeline.tracks[track].start(self.buffers[track].arrived);
        buffered.saturating_sub(self.position_now())
    }

    /// Whether play-out has finished or was stopped.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Finished | State::Stopped)
    }

    /// The state of play-out at the last time passed.
    pub fn state(&self) -> PlaybackState {
        match self.state {
            State::Waiting { .. } => PlaybackState::Waiting,
            State::Playing { .. } => PlaybackState::Playing,
            State::Stalled { .. } => PlaybackState::Stalled,
            State::Paused { .. } => PlaybackState::Paused,
            State::Finished => PlaybackState::Finished,
            State::Stopped => PlaybackState::Stopped,
        }
    }

    /// The measurements up to `now`.
    pub fn report(&mut self, now: Moment) -> PlayerReport {
        self.advance(now);
        let mut report = PlayerReport { state: self.state(), ..self.figures.clone() };
        match self.state {
            State::Stalled { since } => {
                // On a copy: the stall goes on, and is recorded when it ends.
                report.stalls.add(self.now.since(since), self.options.dead_band);
            }
            State::Playing { anchor, .. } => report.played += self.now.since(anchor),
            _ => {}
        }
        report
    }

    /// The next action of the viewer. While the timeline changes it can only leave.
    fn next_step(&self) -> Option<&TimedAction> {
        self.steps.front().filter(|step| !self.changing || step.action == ViewerAction::Stop)
    }

    /// Advances to `time`, event by event, in the order in which they happen.
    fn advance(&mut self, time: Moment) {
        let now = time.max(self.now);
        while !self.is_over() {
            // An overdue action happens now: time never runs back.
            let step = self.next_step().map(|step| (self.started + step.at).max(self.now));
            // An empty buffer exactly at `now` is no stall yet: the missing piece may arrive at
            // this moment. The end of the title needs no piece and counts at once.
            let runs_out = self.runs_out().filter(|at| *at < now || self.is_end(*at, now));
            match (step.filter(|at| *at <= now), runs_out) {
                // At one moment the viewer's action comes first: a pause prevents the stall.
                (Some(step), runs_out) if runs_out.is_none_or(|at| step <= at) => {
                    self.now = step;
                    let step = self.steps.pop_front().expect("the step that was peeked");
                    self.perform(step.action);
                }
                (_, Some(at)) => {
                    self.now = at;
                    self.run_out();
                }
                (_, None) => break,
            }
        }
        self.now = now;
        self.render();
    }

    /// Whether play-out reaches the end of the title at `at`, not after `now`.
    fn is_end(&self, at: Moment, now: Moment) -> bool {
        at <= now && self.limit() == self.timeline.duration()
    }

    /// Records the drift of pieces whose rendering has begun.
    fn render(&mut self) {
        if !matches!(self.state, State::Playing { .. }) {
            return;
        }
        let position = self.position_now();
        for (number, (buffer, track)) in
            self.buffers.iter_mut().zip(&self.timeline.tracks).enumerate()
        {
            while buffer.rendered < buffer.arrived && track.start(buffer.rendered) <= position {
                buffer.rendered += 1;
                // Drift is measured on the first track only.
                if number == 0 {
                    self.figures
                        .drift
                        .push(i64::try_from(self.stalled.as_nanos()).unwrap_or(i64::MAX));
                }
            }
        }
    }

    /// Records how long before its due time a piece has arrived.
    fn note_margin(&mut self, fetch: Fetch) {
        let start = self.timeline.tracks[fetch.track].start(fetch.piece);
        let margin = match self.state {
            State::Playing { anchor, media } => {
                // Play-out would be stalled if the piece were late, so that this margin is not
                // negative.
                let due = anchor + start.saturating_sub(media);
                signed(due.since(self.now))
            }
            // Only the piece that play-out waits for is late.
            State::Stalled { since } if start <= self.position => -signed(self.now.since(since)),
            _ => return,
        };
        let least = &mut self.figures.least_margin;
        *least = Some(least.map_or(margin, |least| least.min(margin)));
    }

    /// Media time being rendered now.
    fn position_now(&self) -> Duration {
        match self.state {
            State::Playing { anchor, media } => {
                // The clock stops at the end of the buffered media, also if the driver polls late.
                (media + self.now.since(anchor)).min(self.limit().max(media))
            }
            _ => self.position,
        }
    }

    /// Media time up to which every track is buffered. A completely buffered track sets no limit.
    fn limit(&self) -> Duration {
        let tracks = self.buffers.iter().zip(&self.timeline.tracks);
        tracks
            .filter(|(buffer, track)| buffer.arrived < track.len())
            .map(|(buffer, track)| track.start(buffer.arrived))
            .min()
            .unwrap_or_else(|| self.timeline.duration())
    }

    /// When play-out reaches the end of the buffered media.
    fn runs_out(&self) -> Option<Moment> {
        match self.state {
            State::Playing { anchor, media } => Some(anchor + self.limit().saturating_sub(media)),
            _ => None,
        }
    }

    /// When the next piece of some track, not fetched yet, comes within the buffer.
    fn room_at(&self) -> Option<Moment> {
        let State::Playing { anchor, media } = self.state else { return None };
        let tracks = self.buffers.iter().zip(&self.timeline.tracks);
        tracks
            .filter(|(buffer, track)| buffer.in_flight.is_none() && buffer.arrived < track.len())
            .map(|(buffer, track)| {
                // A piece may be fetched when play-out comes within a buffer's length of its start.
                let horizon = track.start(buffer.arrived).saturating_sub(self.options.buffer);
                anchor + horizon.saturating_sub(media)
            })
            .min()
    }
}

fn signed(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// A common threshold of players; with segments of two seconds or more it means one whole segment
/// of each track.
const START: Duration = Duration::from_secs(2);

/// hls.js keeps 30 s ahead by default, dash.js 20 s to 30 s.
const BUFFER: Duration = Duration::from_secs(30);

/// Invisible to a viewer, and about the accuracy of a timer.
const DEAD_BAND: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
