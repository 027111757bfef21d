//! The arrows of the machine's picture: what a viewer does, an empty buffer and a full one, each
//! booked with what the state before had lasted.
//!
//! Knows no order of events: who calls has let time pass up to each.

use super::{Action, Player, State, ViewerAction};
use std::time::Duration;

impl Player {
    pub(super) fn act(&mut self, act: ViewerAction) {
        match (act, self.state) {
            (_, State::Finished | State::Stopped) | (ViewerAction::Pause, State::Paused { .. }) => {
            }
            (ViewerAction::Stop, _) => {
                self.set_state(State::Stopped);
                self.news.push_back(Action::Over);
            }
            (ViewerAction::Pause, state) => {
                let waiting = matches!(state, State::Waiting { .. });
                self.set_state(State::Paused { waiting });
            }
            (ViewerAction::Seek(to), _) => self.seek(to),
            (ViewerAction::Resume, State::Paused { waiting: true }) => {
                self.set_state(State::Waiting { since: self.now });
                self.go_on_if_buffered();
            }
            // Paused at the very end, there is nothing to wait for either.
            (ViewerAction::Resume, State::Paused { waiting: false })
                if self.limit() > self.position || self.limit() == self.timeline.duration() =>
            {
                self.play();
            }
            (ViewerAction::Resume, State::Paused { waiting: false }) => {
                self.set_state(State::Stalled { since: self.now });
                self.news.push_back(Action::Stalled);
            }
            (ViewerAction::Resume, _) => {}
        }
    }

    fn seek(&mut self, to: Duration) {
        let paused = matches!(self.state, State::Paused { .. });
        let since = self.now;
        let waiting = State::Waiting { since };
        self.set_state(if paused { State::Paused { waiting: true } } else { waiting });
        self.position = to.min(self.timeline.duration());
        self.behind = Duration::ZERO;
        for (buffer, track) in self.buffers.iter_mut().zip(&self.timeline.tracks) {
            let piece = track.piece_at(self.position);
            let kept = (buffer.rendered.saturating_sub(1)..buffer.arrived).contains(&piece);
            buffer.rendered = piece;
            if !kept {
                buffer.arrived = piece;
                if let Some(flight) = &mut buffer.in_flight {
                    flight.stale = flight.stale || flight.piece != piece;
                }
            }
        }
        self.go_on_if_buffered();
    }

    /// Goes over to `next` and books what the present state has lasted.
    fn set_state(&mut self, next: State) {
        self.position = self.position_now();
        match self.state {
            State::Playing { anchor, .. } => {
                self.render();
                self.played += self.now.since(anchor);
            }
            State::Stalled { since } => {
                let stall = self.now.since(since);
                self.behind += stall;
                self.stalls.add(stall, self.options.dead_band);
            }
            _ => {}
        }
        self.state = next;
    }

    /// The buffer is empty: the end of the title, or a stall.
    pub(super) fn run_out(&mut self) {
        if self.position_now() >= self.timeline.duration() {
            self.set_state(State::Finished);
            self.news.push_back(Action::Over);
        } else {
            self.set_state(State::Stalled { since: self.now });
            self.news.push_back(Action::Stalled);
        }
    }

    /// Starts the clock if it waits and enough is there.
    pub(super) fn go_on_if_buffered(&mut self) {
        let wanted = match self.state {
            State::Waiting { .. } => self.options.start,
            State::Stalled { .. } => self.options.resume,
            _ => return,
        };
        let limit = self.limit();
        let complete = limit == self.timeline.duration();
        if complete || (limit > self.position && limit - self.position >= wanted) {
            self.play();
        }
    }

    fn play(&mut self) {
        match self.state {
            State::Waiting { since } if self.startup.is_none() => {
                self.startup = Some(self.now.since(since));
                self.news.push_back(Action::Started);
            }
            State::Waiting { since } => self.seeks.push(self.now.since(since)),
            State::Stalled { .. } => self.news.push_back(Action::Resumed),
            _ => {}
        }
        self.set_state(State::Playing { anchor: self.now, media: self.position });
        self.render();
    }
}
