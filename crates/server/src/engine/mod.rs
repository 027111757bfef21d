//! The engine: events in, actions out. It knows every session, what each track owes and when, what
//! is in memory and what each disk guarantees; it decides admission, the order of reads and which
//! buffer to let go.
//!
//! Sans-IO: it never touches a clock, a device, a socket or a thread. The server's shell and the
//! simulator drive the very same code.
//!
//! ```text
//!   admit, want, sent, cancel, close        Answer (at once)
//!   read_done, tick                ┌────────┐
//!   ──────────────────────────────▶│ Engine │──▶ Action: Read, Deliver, Forget, Refused, Failed,
//!                                  └────────┘            Ended, Granted
//! ```
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod api;

use std::sync::Arc;
use units::{ByteCount, Moment};

pub use api::*;

/// The engine. One owner drives it: call a method, then carry out [`Engine::take_actions`], and
/// call [`Engine::tick`] no later than [`Engine::next_wakeup`].
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    actions: Vec<Action>,
}

impl Engine {
    /// An engine without sessions.
    pub fn new(config: EngineConfig) -> Self {
        Self { config, actions: Vec::new() }
    }

    /// A viewer is at the door; the answer holds from now on.
    pub fn admit(&mut self, _now: Moment, _request: AdmitRequest) -> Answer {
        Answer::Refused(Refusal {
            resource: Resource::Disk,
            retry_after: self.config.slot,
            detail: String::new(),
        })
    }

    /// A player asks for bytes. What becomes of it comes as actions that name the request.
    pub fn want(&mut self, _now: Moment, want: Want) {
        self.actions.push(Action::Failed { request: want.request, outcome: ReadOutcome::Failed });
    }

    /// The socket has taken everything that was delivered to `request` out of buffer `read`
    /// by the oldest [`Action::Deliver`] not yet answered.
    pub fn sent(&mut self, _now: Moment, _request: RequestId, _read: ReadId) {}

    /// The player has hung up on `request`, or its connection failed: nothing of it is in use.
    pub fn cancel(&mut self, _now: Moment, _request: RequestId) {}

    /// The viewer has left; its requests are cancelled with it.
    pub fn close(&mut self, _now: Moment, _session: SessionId) {}

    /// A read has ended. Every [`Action::Read`] is answered once.
    pub fn read_done(&mut self, _now: Moment, _read: ReadId, _outcome: ReadOutcome) {}

    /// The title is to go: no new sessions. Says whether it is still in use; if so,
    /// [`Action::TitleIdle`] follows when it no longer is.
    pub fn withdraw_title(&mut self, _now: Moment, _title: TitleKey) -> bool {
        false
    }

    /// Asks to do `bytes` (at most a read) of work that has no deadline on `disk`;
    /// [`Action::Granted`] follows.
    pub fn ask_best_effort(&mut self, _now: Moment, _disk: DiskNumber, _bytes: ByteCount) -> Ticket {
        Ticket(0)
    }

    /// The work is done, or given up (before or after it was granted).
    pub fn best_effort_done(&mut self, _now: Moment, _ticket: Ticket) {}

    /// A new calibration.
    pub fn set_guarantee(&mut self, _now: Moment, _disk: DiskNumber, _guarantee: DiskGuarantee) {}

    /// From now on nobody is let in; running sessions go on.
    pub fn stop_admitting(&mut self) {}

    /// Time has passed. Harmless when called early or often.
    pub fn tick(&mut self, _now: Moment) {}

    /// When [`Engine::tick`] must be called next, at the latest.
    pub fn next_wakeup(&self) -> Moment {
        Moment::MAX
    }

    /// What is to be done now, in this order; taken once.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Like [`Engine::take_actions`], appended to the caller's own list.
    pub fn drain_actions(&mut self, into: &mut Vec<Action>) {
        into.append(&mut self.actions);
    }

    /// The books at this moment.
    pub fn status(&self, _now: Moment) -> Status {
        Status::default()
    }

    /// The layout that a session plays; `None` for a session that has ended or never was.
    pub fn session_layout(&self, _session: SessionId) -> Option<&Arc<Layout>> {
        None
    }

    /// The tracks that a session holds or last held a reservation for.
    pub fn session_tracks(&self, _session: SessionId) -> Option<&[TrackNumber]> {
        None
    }

    /// Sessions of a title that have not ended.
    pub fn title_sessions(&self, _title: TitleKey) -> usize {
        0
    }
}
