//! The player itself: one state machine, driven from outside.
//!
//! ```text
//!            enough buffered            next piece missing
//!  Waiting ─────────────────▶ Playing ─────────────────────▶ Stalled
//!     ▲                        │  ▲  ▲                         │
//!     │ seek                   │  │  └── it (and `resume`) came┘
//!     │                  pause ▼  │ resume
//!   (any)                     Paused          end ─▶ Finished     viewer leaves ─▶ Stopped
//! ```
//!
//! The run loop of a driver:
//!
//! 1. `poll(now)` until it says `None`; for each `Action::Fetch` send a request.
//! 2. Wait for bytes, or until `wake_at()`.
//! 3. For each piece that is complete call `arrived(now, fetch)`. Go to 1.
//!
//! The play-out clock is computed, not sampled: a driver that comes late sees a stall begin at the
//! exact moment at which it began.

mod transitions;

use crate::behaviour::{Behaviour, TimedAction, ViewerAction};
use crate::drift::Drift;
use crate::report::{PlaybackState, PlayerReport, Stalls};
use crate::timeline::Timeline;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// How a player buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerOptions {
    /// Media time to be buffered in every track before the first picture (and after a seek).
    pub start: Duration,
    /// Media time to be buffered before play-out goes on after a stall. Zero: as soon as there is
    /// anything to render.
    pub resume: Duration,
    /// A track's next piece is asked for only when it starts at most this far ahead of play-out.
    pub buffer: Duration,
    /// Stalls and drifts up to this are none.
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

/// What the driver must do, or may like to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask for this piece and say `arrived` when all of it is there. A track has at most one
    /// request under way.
    Fetch(Fetch),
    /// The first picture.
    Started,
    /// Play-out stopped for want of a piece.
    Stalled,
    /// Play-out goes on after a stall.
    Resumed,
    /// Finished or stopped; nothing will be fetched any more.
    Over,
}

/// A pull player as a state machine: buffering, play-out clock, stalls and seeks. The driver tells
/// it the time and what arrived, and carries out its [`Action`]s.
#[derive(Clone, Debug)]
pub struct Player {
    timeline: Arc<Timeline>,
    options: PlayerOptions,
    /// Acts to come.
    steps: VecDeque<TimedAction>,
    started: Moment,
    /// The latest time heard of; time never goes back.
    now: Moment,
    state: State,
    /// Where play-out stands while the clock does not run.
    position: Duration,
    buffers: Vec<Buffer>,
    news: VecDeque<Action>,
    startup: Option<Duration>,
    seeks: Vec<Duration>,
    stalls: Stalls,
    played: Duration,
    pieces: u64,
    drift: Drift,
    /// Time stalled since the ideal clock was set: the drift of what is rendered now.
    behind: Duration,
    least_margin: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// For the first picture, or for the one after a seek.
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
    /// `waiting`: the first picture, or the one after a seek, was still to come.
    Paused {
        waiting: bool,
    },
    Finished,
    Stopped,
}

/// One track's buffer: the pieces `rendered..arrived`, without a hole.
#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    /// The next piece whose rendering begins.
    rendered: usize,
    /// One past the last piece that is here; also the next to ask for.
    arrived: usize,
    in_flight: Option<Flight>,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    piece: usize,
    /// A seek made it useless; it is thrown away when it comes.
    stale: bool,
}

impl Player {
    /// A player whose viewer presses play at `now`.
    pub fn new(
        now: Moment,
        timeline: Arc<Timeline>,
        options: PlayerOptions,
        behaviour: &Behaviour,
    ) -> Self {
        // More than the buffer can hold would be waited for in vain.
        let (start, resume) =
            (options.start.min(options.buffer), options.resume.min(options.buffer));
        Self {
            buffers: vec![Buffer::default(); timeline.tracks.len()],
            timeline,
            options: PlayerOptions { start, resume, ..options },
            steps: behaviour.steps().iter().copied().collect(),
            started: now,
            now,
            state: State::Waiting { since: now },
            position: Duration::ZERO,
            news: VecDeque::new(),
            startup: None,
            seeks: Vec::new(),
            stalls: Stalls::default(),
            played: Duration::ZERO,
            pieces: 0,
            drift: Drift::new(options.dead_band),
            behind: Duration::ZERO,
            least_margin: None,
        }
    }

    /// All of the piece is here.
    pub fn arrived(&mut self, now: Moment, fetch: Fetch) {
        self.advance(now);
        let flight = self.buffers[fetch.track].in_flight.take();
        let flight = flight.expect("a piece comes only when asked for");
        assert_eq!(flight.piece, fetch.piece, "a track has one request under way");
        if flight.stale || self.is_over() {
            return;
        }
        self.buffers[fetch.track].arrived += 1;
        self.pieces += 1;
        self.note_margin(fetch);
        self.go_on_if_buffered();
    }

    /// The piece will not come (connection lost, refused for now): it is asked for again.
    pub fn failed(&mut self, now: Moment, fetch: Fetch) {
        self.advance(now);
        self.buffers[fetch.track].in_flight = None;
    }

    /// The viewer leaves now.
    pub fn stop(&mut self, now: Moment) {
        self.advance(now);
        self.act(ViewerAction::Stop);
    }

    /// What to do now; `None` when there is nothing (more).
    pub fn poll(&mut self, now: Moment) -> Option<Action> {
        self.advance(now);
        if let Some(news) = self.news.pop_front() {
            return Some(news);
        }
        if self.is_over() {
            return None;
        }
        let horizon = self.position_now().saturating_add(self.options.buffer);
        for (number, (buffer, track)) in
            self.buffers.iter_mut().zip(&self.timeline.tracks).enumerate()
        {
            let piece = buffer.arrived;
            let wanted = piece < track.len() && track.start(piece) <= horizon;
            if wanted && buffer.in_flight.is_none() {
                buffer.in_flight = Some(Flight { piece, stale: false });
                return Some(Action::Fetch(Fetch { track: number, piece }));
            }
        }
        None
    }

    /// When to `poll` next if nothing arrives until then. `None`: only an arrival can change
    /// anything.
    pub fn wake_at(&self) -> Option<Moment> {
        if !self.news.is_empty() {
            return Some(self.now);
        }
        if self.is_over() {
            return None;
        }
        let step = self.steps.front().map(|step| self.started + step.at);
        // A piece that comes at the very moment it is due is on time, so a stall is seen just
        // after.
        let runs_out = self.runs_out().map(|at| at + Duration::from_nanos(1));
        [step, runs_out, self.room_at()].into_iter().flatten().min()
    }

    /// Media of a track that is here and not yet rendered, as of the last call that told the time.
    pub fn ahead(&self, track: usize) -> Duration {
        let here = self.timeline.tracks[track].start(self.buffers[track].arrived);
        here.saturating_sub(self.position_now())
    }

    /// Whether play-out has ended for good.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Finished | State::Stopped)
    }

    /// Where the player is, as of the last call that told the time.
    pub fn stage(&self) -> PlaybackState {
        match self.state {
            State::Waiting { .. } => PlaybackState::Waiting,
            State::Playing { .. } => PlaybackState::Playing,
            State::Stalled { .. } => PlaybackState::Stalled,
            State::Paused { .. } => PlaybackState::Paused,
            State::Finished => PlaybackState::Finished,
            State::Stopped => PlaybackState::Stopped,
        }
    }

    /// The account up to `now`.
    pub fn report(&mut self, now: Moment) -> PlayerReport {
        self.advance(now);
        let mut stalls = self.stalls;
        let mut played = self.played;
        match self.state {
            State::Stalled { since } => {
                stalls.add(self.now.since(since), self.options.dead_band);
            }
            State::Playing { anchor, .. } => played += self.now.since(anchor),
            _ => {}
        }
        PlayerReport {
            stage: self.stage(),
            startup: self.startup,
            seeks: self.seeks.clone(),
            stalls,
            played,
            pieces: self.pieces,
            drift: self.drift.clone(),
            least_margin: self.least_margin,
        }
    }

    /// Lets time pass up to `now`, event by event in the order in which they happen.
    fn advance(&mut self, now: Moment) {
        let now = now.max(self.now);
        while !self.is_over() {
            let step = self.steps.front().map(|step| (self.started + step.at).max(self.now));
            let runs_out = self.runs_out().filter(|at| *at < now || self.at_end(*at, now));
            match (step.filter(|at| *at <= now), runs_out) {
                (Some(step), runs_out) if runs_out.is_none_or(|at| step <= at) => {
                    self.now = step;
                    let act = self.steps.pop_front().map(|step| step.act);
                    self.act(act.expect("there was one a moment ago"));
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

    /// Whether `at` is the end of the title and has come.
    fn at_end(&self, at: Moment, now: Moment) -> bool {
        at <= now && self.limit() == self.timeline.duration()
    }

    /// Notes the drift of pieces whose rendering has begun.
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
                if number == 0 {
                    self.drift.push(i64::try_from(self.behind.as_nanos()).unwrap_or(i64::MAX));
                }
            }
        }
    }

    /// How long before its due time the piece came.
    fn note_margin(&mut self, fetch: Fetch) {
        let start = self.timeline.tracks[fetch.track].start(fetch.piece);
        let margin = match self.state {
            State::Playing { anchor, media } => {
                let due = anchor + start.saturating_sub(media);
                signed(due.since(self.now))
            }
            State::Stalled { since } if start <= self.position => -signed(self.now.since(since)),
            _ => return,
        };
        self.least_margin = Some(self.least_margin.map_or(margin, |least| least.min(margin)));
    }

    /// Media time on the screen now.
    fn position_now(&self) -> Duration {
        match self.state {
            State::Playing { anchor, media } => {
                (media + self.now.since(anchor)).min(self.limit().max(media))
            }
            _ => self.position,
        }
    }

    /// Media time up to which every track is buffered (a track that is all here does not limit).
    fn limit(&self) -> Duration {
        let open = self.buffers.iter().zip(&self.timeline.tracks);
        open.filter(|(buffer, track)| buffer.arrived < track.len())
            .map(|(buffer, track)| track.start(buffer.arrived))
            .min()
            .unwrap_or_else(|| self.timeline.duration())
    }

    /// When play-out reaches the end of what is buffered.
    fn runs_out(&self) -> Option<Moment> {
        match self.state {
            State::Playing { anchor, media } => Some(anchor + self.limit().saturating_sub(media)),
            _ => None,
        }
    }

    /// When the next piece of some track, not asked for as yet, comes within the buffer.
    fn room_at(&self) -> Option<Moment> {
        let State::Playing { anchor, media } = self.state else { return None };
        let idle = self.buffers.iter().zip(&self.timeline.tracks);
        idle.filter(|(buffer, track)| buffer.in_flight.is_none() && buffer.arrived < track.len())
            .map(|(buffer, track)| {
                let horizon = track.start(buffer.arrived).saturating_sub(self.options.buffer);
                anchor + horizon.saturating_sub(media)
            })
            .min()
    }
}

fn signed(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Two seconds: what players commonly wait for; with segments of that length or more it means one
/// whole segment of each track.
const START: Duration = Duration::from_secs(2);

/// hls.js keeps 30 s ahead by default, dash.js 20 s to 30 s.
const BUFFER: Duration = Duration::from_secs(30);

/// A stall that no eye sees, and about what a timer is worth.
const DEAD_BAND: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
