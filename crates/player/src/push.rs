//! A push player: the server sets the pace, and the player delays play-out by a fixed buffer.
//!
//! ```text
//!   first LDU arrives ──start──▶ play-out begins          due(t) = begin + t + stalls so far
//!                                   │
//!   LDU of time t: arrives after due(t) ──▶ a stall of that length; play-out goes on from it
//!   end of the stream ──▶ Ended, once the last LDU is played
//! ```
//!
//! Pure, as [`Player`](crate::Player) is: its driver passes LDUs and the time, and carries out what
//! the viewer does. Play-out begins anew, with its buffer, after each pause and seek.

use crate::behaviour::{Behaviour, TimedAction, ViewerAction};
use crate::machine::PlayerOptions;
use crate::report::{PlaybackState, PlayerReport, Stalls};
use std::collections::VecDeque;
use std::time::Duration;
use units::Moment;

/// What the driver must do, or an event for its information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushAction {
    /// Stop the stream for a while.
    Pause,
    /// Let the stream go on.
    Resume,
    /// Let the stream go on from this media time.
    Seek(Duration),
    /// Let the stream go on from here at this speed, as [`ViewerAction::Speed`] has it.
    Speed(i32),
    /// Play-out has finished or was stopped.
    Ended,
}

/// A player of a stream that a server paces.
#[derive(Clone, Debug)]
pub struct PushPlayer {
    started: Moment,
    options: PlayerOptions,
    steps: VecDeque<TimedAction>,
    state: PushState,
    /// Since when the viewer waits for a picture: from the start, a seek or a resumption.
    waits_since: Moment,
    /// Whether this wait is for the picture after a seek.
    seeking: bool,
    actions: VecDeque<PushAction>,
    figures: PlayerReport,
    /// Media time of the present stream that was shown when play-out last stopped.
    shown: Duration,
    /// The play-out and the measurements before another stream was asked for.
    before: Option<Box<(PushState, PlayerReport)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PushState {
    /// No LDU has arrived since the start, the seek or the resumption.
    Waiting,
    Playing(Playout),
    Paused,
    Finished,
    Stopped,
}

/// Play-out from one start on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Playout {
    /// The moment of media time zero.
    begin: Moment,
    /// Stalls since then.
    stalled: Duration,
    /// The latest media time that has arrived, and the time until the one that follows.
    until: Duration,
    step: Duration,
    /// Whether nothing follows.
    complete: bool,
}

impl Playout {
    fn due(&self, time: Duration) -> Moment {
        self.begin + time + self.stalled
    }
    /// When the media that has arrived is played.
    fn end(&self) -> Moment {
        self.due(self.until + self.step)
    }
}

impl PushPlayer {
    /// A player of which the stream was requested at `now`. Of the options the start and the
    /// dead-band matter.
    pub fn new(now: Moment, options: PlayerOptions, behaviour: &Behaviour) -> Self {
        Self {
            started: now,
            options,
            steps: behaviour.steps().iter().copied().collect(),
            state: PushState::Waiting,
            waits_since: now,
            seeking: false,
            actions: VecDeque::new(),
            figures: PlayerReport::default(),
            shown: Duration::ZERO,
            before: None,
        }
    }

    /// The whole LDU of media time `time`, counted from the first LDU since the start, the seek or
    /// the resumption, has arrived. Returns how late it is on a clock that does not stop for
    /// stalls; `None` if play-out does not wait for it.
    pub fn arrived(&mut self, now: Moment, time: Duration) -> Option<Duration> {
        if self.state == PushState::Waiting {
            let begin = now + self.options.start;
            let waited = begin.since(self.waits_since);
            if self.figures.startup.is_none() {
                self.figures.startup = Some(waited);
            } else if std::mem::take(&mut self.seeking) {
                self.figures.seeks.push(waited);
            }
            let stalled = Duration::ZERO;
            let step = Duration::ZERO;
            let playout = Playout { begin, stalled, until: time, step, complete: false };
            self.state = PushState::Playing(playout);
        }
        let PushState::Playing(playout) = &mut self.state else { return None };
        self.figures.pieces += 1;
        let late = now.since(playout.due(time));
        let margin = i64::try_from(playout.due(time).since(now).as_nanos()).unwrap_or(i64::MAX)
            - i64::try_from(late.as_nanos()).unwrap_or(i64::MAX);
        let least = &mut self.figures.least_margin;
        *least = Some(least.map_or(margin, |least| least.min(margin)));
        let drift = now.since(playout.begin + time);
        if late > self.options.dead_band {
            self.figures.stalls.add(late, self.options.dead_band);
            playout.stalled += late;
        }
        // In a coding with B-frames some LDUs are shown before others that came earlier.
        if time > playout.until {
            (playout.step, playout.until) = (time - playout.until, time);
        }
        Some(drift)
    }

    /// The server sends the stream that was asked for: there is no way back to the one before.
    pub fn stream_changed(&mut self) {
        (self.before, self.shown) = (None, Duration::ZERO);
    }

    /// Carries out an action of the viewer now, besides those of its behaviour.
    pub fn act(&mut self, now: Moment, action: ViewerAction) {
        self.perform(now, action);
    }

    /// Media time of the present stream that has been shown.
    pub fn shown(&self, now: Moment) -> Duration {
        match self.state {
            PushState::Playing(playout) => played(&playout, now),
            _ => self.shown,
        }
    }

    /// The moment at which the LDU of media time `time` is shown on a clock that does not stop for
    /// stalls; `None` while play-out does not run.
    pub fn ideal_moment(&self, time: Duration) -> Option<Moment> {
        match self.state {
            PushState::Playing(playout) => Some(playout.begin + time),
            _ => None,
        }
    }

    /// The server refuses what was asked for since it last changed the stream, and sends the stream
    /// as before: play-out goes on as if nothing had been asked for.
    pub fn keep_stream(&mut self) {
        if let Some(before) = self.before.take().filter(|_| self.state == PushState::Waiting) {
            (self.state, self.figures) = *before;
            self.seeking = false;
        }
    }

    /// The stream is complete: play-out ends after the last LDU that has arrived.
    pub fn complete(&mut self, now: Moment) {
        match &mut self.state {
            PushState::Playing(playout) => playout.complete = true,
            PushState::Waiting => self.end(now, PushState::Finished),
            PushState::Paused | PushState::Finished | PushState::Stopped => {}
        }
    }

    /// The next action; `None` when there is none at this time.
    pub fn poll(&mut self, now: Moment) -> Option<PushAction> {
        while let Some(step) = self.steps.front().copied().filter(|step| self.at(*step) <= now) {
            self.steps.pop_front();
            self.perform(now, step.action);
        }
        if let PushState::Playing(playout) = self.state
            && playout.complete
            && playout.end() <= now
        {
            self.end(now, PushState::Finished);
        }
        self.actions.pop_front()
    }

    /// When to call [`PushPlayer::poll`] next if nothing arrives before.
    pub fn wake_at(&self) -> Option<Moment> {
        if self.is_over() {
            return None;
        }
        let ends = match self.state {
            PushState::Playing(playout) => playout.complete.then(|| playout.end()),
            _ => None,
        };
        self.steps.front().map(|step| self.at(*step)).into_iter().chain(ends).min()
    }

    /// Whether play-out has finished or was stopped.
    pub fn is_over(&self) -> bool {
        matches!(self.state, PushState::Finished | PushState::Stopped)
    }

    /// The state of play-out at `now`.
    pub fn state(&self, now: Moment) -> PlaybackState {
        match self.state {
            PushState::Waiting => PlaybackState::Waiting,
            PushState::Playing(playout) if now < playout.begin => PlaybackState::Waiting,
            PushState::Playing(playout) if self.stands(&playout, now).is_some() => {
                PlaybackState::Stalled
            }
            PushState::Playing(_) => PlaybackState::Playing,
            PushState::Paused => PlaybackState::Paused,
            PushState::Finished => PlaybackState::Finished,
            PushState::Stopped => PlaybackState::Stopped,
        }
    }

    /// The stalls that have ended.
    pub fn stalls(&self) -> &Stalls {
        &self.figures.stalls
    }

    /// The measurements up to `now`. Their drift has no units: see [`PushPlayer::arrived`].
    pub fn report(&self, now: Moment) -> PlayerReport {
        let mut report = PlayerReport { state: self.state(now), ..self.figures.clone() };
        if let PushState::Playing(playout) = self.state {
            report.played += played(&playout, now);
            if let Some(stall) = self.stands(&playout, now) {
                report.stalls.add(stall, self.options.dead_band);
            }
        }
        report
    }

    // How long play-out has stood still for lack of media.
    fn stands(&self, playout: &Playout, now: Moment) -> Option<Duration> {
        let stall = now.since(playout.end());
        (!playout.complete && stall > self.options.dead_band).then_some(stall)
    }

    fn at(&self, step: TimedAction) -> Moment {
        self.started + step.at
    }

    fn perform(&mut self, now: Moment, action: ViewerAction) {
        let paused = self.state == PushState::Paused;
        match action {
            _ if self.is_over() => {}
            ViewerAction::Stop => self.end(now, PushState::Stopped),
            ViewerAction::Pause if paused => {}
            ViewerAction::Pause => {
                self.before = None;
                self.leave(now, PushState::Paused);
                self.actions.push_back(PushAction::Pause);
            }
            ViewerAction::Resume if paused => {
                self.leave(now, PushState::Waiting);
                self.actions.push_back(PushAction::Resume);
            }
            ViewerAction::Resume => {}
            ViewerAction::Seek(to) => self.go_elsewhere(now, PushAction::Seek(to)),
            ViewerAction::Speed(milli) => self.go_elsewhere(now, PushAction::Speed(milli)),
        }
    }

    // Lets another stream come, for which the viewer waits.
    fn go_elsewhere(&mut self, now: Moment, action: PushAction) {
        // While one change is under way, the stream is still the one before it.
        if !(self.seeking && self.state == PushState::Waiting) {
            self.before = Some(Box::new((self.state, self.figures.clone())));
        }
        self.seeking = true;
        self.leave(now, PushState::Waiting);
        self.actions.push_back(action);
    }

    fn end(&mut self, now: Moment, state: PushState) {
        self.leave(now, state);
        self.actions.push_back(PushAction::Ended);
    }

    // Changes the state, and records the time of the present one.
    fn leave(&mut self, now: Moment, next: PushState) {
        if let PushState::Playing(playout) = self.state {
            self.shown = played(&playout, now);
            self.figures.played += self.shown;
            if let Some(stall) = self.stands(&playout, now) {
                self.figures.stalls.add(stall, self.options.dead_band);
            }
        }
        self.state = next;
        self.waits_since = now;
    }
}

// Media time that has been shown, which ends with what has arrived.
fn played(playout: &Playout, now: Moment) -> Duration {
    let clock = now.since(playout.begin).saturating_sub(playout.stalled);
    clock.min(playout.until + playout.step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Moment {
        Moment::ZERO + MS(ms)
    }

    /// A player with a buffer of 200 ms, requested at moment zero.
    fn player(behaviour: &str) -> PushPlayer {
        let options =
            PlayerOptions { start: MS(200), dead_band: MS(1), ..PlayerOptions::default() };
        PushPlayer::new(Moment::ZERO, options, &behaviour.parse().unwrap())
    }

    #[test]
    fn an_ldu_later_than_the_buffer_is_a_stall_and_later_ones_follow_it() {
        let mut player = player("");
        // Frames of 40 ms, of which the fourth is 300 ms late; the buffer covers 200 of them.
        let late: Vec<_> = [(100, 0), (140, 40), (190, 80), (520, 120), (560, 160)]
            .map(|(now, time)| player.arrived(at(now), MS(time)).unwrap())
            .into();
        assert_eq!(late, [0, 0, 0, 100, 100].map(MS));
        let report = player.report(at(560));
        assert_eq!(report.startup, Some(MS(300)));
        assert_eq!((report.stalls.count, report.stalls.total), (1, MS(100)));
        assert_eq!((report.played, report.state), (MS(160), PlaybackState::Playing));
        // The last frame is due at 560 ms and lasts for 40 ms.
        assert_eq!(player.state(at(600)), PlaybackState::Playing);
        assert_eq!(player.state(at(602)), PlaybackState::Stalled);
        player.complete(at(590));
        assert_eq!((player.wake_at(), player.poll(at(599))), (Some(at(600)), None));
        assert_eq!(player.poll(at(600)), Some(PushAction::Ended));
        assert_eq!(player.report(at(700)).played, MS(200));
        assert_eq!(player.report(at(700)).stalls.count, 1);
    }

    #[test]
    fn play_out_begins_anew_after_a_pause_and_a_seek() {
        let mut player = player("1s pause; 2s resume; 3s seek 10s; 3500ms speed 2; 4s stop");
        player.arrived(at(500), MS(0));
        player.arrived(at(900), MS(400));
        assert_eq!(player.poll(at(999)), None);
        assert_eq!(player.poll(at(1000)), Some(PushAction::Pause));
        assert_eq!(player.arrived(at(1100), MS(600)), None, "what is under way is dropped");
        assert_eq!(player.report(at(1500)).played, MS(300));
        assert_eq!(player.poll(at(2000)), Some(PushAction::Resume));
        player.arrived(at(2100), MS(0));
        player.arrived(at(2700), MS(600));
        assert_eq!(player.poll(at(3000)), Some(PushAction::Seek(MS(10_000))));
        player.arrived(at(3150), MS(0));
        let report = player.report(at(3350));
        assert_eq!((report.seeks, report.stalls.count), (vec![MS(350)], 0));
        assert_eq!(player.poll(at(3500)), Some(PushAction::Speed(2000)));
        player.arrived(at(3600), MS(0));
        assert_eq!(player.report(at(3800)).seeks, [MS(350), MS(300)]);
        assert_eq!(player.poll(at(4000)), Some(PushAction::Ended));
        assert_eq!(player.state(at(4000)), PlaybackState::Stopped);
        assert_eq!(player.wake_at(), None);
    }

    #[test]
    fn a_refused_speed_leaves_play_out_as_it_was() {
        let mut player = player("1s speed 4; 2s seek 5s");
        player.arrived(at(0), MS(0));
        player.arrived(at(900), MS(900));
        assert_eq!(player.poll(at(1000)), Some(PushAction::Speed(4000)));
        assert_eq!(player.state(at(1050)), PlaybackState::Waiting);
        player.keep_stream();
        assert_eq!(player.state(at(1050)), PlaybackState::Playing);
        // What came meanwhile was not counted, and is not late.
        assert_eq!(player.arrived(at(1200), MS(1200)), Some(MS(0)));
        let report = player.report(at(1300));
        assert_eq!((report.played, report.seeks.len(), report.stalls.count), (MS(1100), 0, 0));
        assert_eq!(player.poll(at(2000)), Some(PushAction::Seek(MS(5000))));
        player.arrived(at(2100), MS(0));
        player.keep_stream();
        assert_eq!(player.report(at(2300)).seeks, [MS(300)], "an answer that came before is over");
    }

    #[test]
    fn of_several_changes_the_refused_ones_leave_the_stream_that_the_server_sends() {
        // Two changes before an answer; then the answers, and whether the first stream goes on.
        let rows = [(true, true, false), (true, false, false), (false, false, true)];
        for (first, second, goes_on) in rows {
            let mut player = player("1s seek 5s; 1s speed 2");
            player.arrived(at(0), MS(0));
            player.arrived(at(900), MS(900));
            assert_eq!(player.poll(at(1000)), Some(PushAction::Seek(MS(5000))));
            assert_eq!(player.poll(at(1000)), Some(PushAction::Speed(2000)));
            for accepted in [first, second] {
                if accepted { player.stream_changed() } else { player.keep_stream() }
            }
            let state = if goes_on { PlaybackState::Playing } else { PlaybackState::Waiting };
            assert_eq!(player.state(at(1050)), state, "{first} {second}");
        }
    }

    #[test]
    fn ldus_in_decoding_order_are_not_late() {
        let mut player = player("");
        for (now, time) in [(0, 0), (40, 120), (80, 40), (120, 80), (160, 240), (200, 160)] {
            assert_eq!(player.arrived(at(now), MS(time)), Some(MS(0)));
        }
        assert_eq!(player.report(at(200)).stalls.count, 0);
        assert_eq!(player.report(at(200)).least_margin, Some(160_000_000));
    }
}
