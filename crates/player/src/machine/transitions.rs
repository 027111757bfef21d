//! The transitions of the state machine: actions of the viewer, an empty buffer and a full one.
//! Each adds the duration of the previous state to the measurements.
//!
//! The order of events is decided by the caller, which has advanced the time to each event.

use super::{Action, Player, State, ViewerAction};
use std::time::Duration;

impl Player {
    pub(super) fn perform(&mut self, action: ViewerAction) {
        match (action, self.state) {
            (_, State::Finished | State::Stopped) | (ViewerAction::Pause, State::Paused { .. }) => {
            }
            (ViewerAction::Stop, _) => {
                self.set_state(State::Stopped);
                self.events.push_back(Action::Ended);
            }
            (ViewerAction::Pause, state) => {
                let waiting = matches!(state, State::Waiting { .. });
                self.set_state(State::Paused { waiting });
            }
            (ViewerAction::Seek(to), _) => self.seek(to),
            (ViewerAction::Speed(milli), _) => {
                self.wait_again();
                self.changing = true;
                self.events.push_back(Action::Speed(milli));
            }
            (ViewerAction::Resume, State::Paused { waiting: true }) => {
                self.set_state(State::Waiting { since: self.now });
                self.resume_if_buffered();
            }
            // A pause at the end of the title has nothing to wait for either.
            (ViewerAction::Resume, State::Paused { waiting: false })
                if self.limit() > self.position || self.limit() == self.timeline.duration() =>
            {
                self.play();
            }
            (ViewerAction::Resume, State::Paused { waiting: false }) => {
                self.set_state(State::Stalled { since: self.now });
                self.events.push_back(Action::Stalled);
            }
            (ViewerAction::Resume, _) => {}
        }
    }

    /// The timeline is known, from which the viewer goes on.
    pub(super) fn go_on(&mut self) {
        self.changing = false;
        self.resume_if_buffered();
    }

    /// The picture stands until enough media of another position is buffered.
    fn wait_again(&mut self) {
        let paused = matches!(self.state, State::Paused { .. });
        let waiting = State::Waiting { since: self.now };
        self.set_state(if paused { State::Paused { waiting: true } } else { waiting });
        // The ideal clock restarts, and so does the drift.
        self.stalled = Duration::ZERO;
    }

    fn seek(&mut self, to: Duration) {
        // Before the position changes: the time so far belongs to the old one.
        self.wait_again();
        self.position = to.min(self.timeline.duration());
        for (buffer, track) in self.buffers.iter_mut().zip(&self.timeline.tracks) {
            let piece = track.piece_at(self.position);
            // The piece being rendered is still in memory, so a short seek back keeps the buffer.
            let kept = (buffer.rendered.saturating_sub(1)..buffer.arrived).contains(&piece);
            buffer.rendered = piece;
            if !kept {
                buffer.arrived = piece;
                if let Some(open) = &mut buffer.in_flight {
                    // The open request is still useful if the seek leads to its piece.
                    open.stale = open.stale || open.piece != piece;
                }
            }
        }
        self.resume_if_buffered();
    }

    /// Changes to state `next` and records the duration of the present one.
    fn set_state(&mut self, next: State) {
        // Computed in the old state, whose clock may run.
        self.position = self.position_now();
        match self.state {
            State::Playing { anchor, .. } => {
                self.render();
                self.figures.played += self.now.since(anchor);
            }
            State::Stalled { since } => {
                let stall = self.now.since(since);
                self.stalled += stall;
                self.figures.stalls.add(stall, self.options.dead_band);
            }
            _ => {}
        }
        self.state = next;
    }

    /// The buffer is empty: the end of the title, or a stall.
    pub(super) fn run_out(&mut self) {
        if self.position_now() >= self.timeline.duration() {
            self.set_state(State::Finished);
            self.events.push_back(Action::Ended);
        } else {
            self.set_state(State::Stalled { since: self.now });
            self.events.push_back(Action::Stalled);
        }
    }

    /// Starts the clock if it waits and enough media is buffered.
    pub(super) fn resume_if_buffered(&mut self) {
        if self.changing {
            return;
        }
        let wanted = match self.state {
            State::Waiting { .. } => self.options.start,
            State::Stalled { .. } => self.options.resume,
            _ => return,
        };
        let limit = self.limit();
        // Near the end less media than the threshold is left.
        let complete = limit == self.timeline.duration();
        // With a threshold of zero there must still be media to render.
        if complete || (limit > self.position && limit - self.position >= wanted) {
            self.play();
        }
    }

    fn play(&mut self) {
        match self.state {
            State::Waiting { since } if self.figures.startup.is_none() => {
                self.figures.startup = Some(self.now.since(since));
                self.events.push_back(Action::Started);
            }
            // The first picture is shown already, so that this wait is that of a seek.
            State::Waiting { since } => self.figures.seeks.push(self.now.since(since)),
            State::Stalled { .. } => self.events.push_back(Action::Resumed),
            _ => {}
        }
        self.set_state(State::Playing { anchor: self.now, media: self.position });
        self.render();
    }
}
