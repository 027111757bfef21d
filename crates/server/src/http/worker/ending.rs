//! The server ends: the admin API's operations that run are cancelled, and their answers are sent
//! before the thread closes all connections.
//!
//! ```text
//!   Quit ─┬─ nobody waits for the API ─────────────────────────────────────▶ end
//!         └─ cancelled ──▶ Answered ──▶ sent ──▶ the client has taken it ──▶ end
//!                              at the latest after ANSWERED_WITHIN ────────▶ end
//! ```
//! The core has ended by then: nothing else is answered.

use super::Worker;
use crate::http::connection::{ConnectionState, PendingAnswer};
use device::sockets::ConnectionId;
use std::time::{Duration, Instant};

/// Whose answers a thread sends before it ends.
#[derive(Debug)]
pub(super) struct Ending {
    awaited: Vec<ConnectionId>,
    until: Instant,
}

impl Worker {
    /// Cancels what the API does. Before a restart in place nothing runs that must not be cut.
    pub(super) fn begin_to_end(&mut self) {
        self.api.cancel();
        let awaits = |state: &ConnectionState| {
            matches!(
                state,
                ConnectionState::ReceivingBody(..)
                    | ConnectionState::Waiting(.., PendingAnswer::Api)
            )
        };
        let awaited = self.connections.iter().filter(|(_, open)| awaits(&open.state));
        let awaited = match self.leaving {
            None => awaited.map(|(id, _)| *id).collect(),
            Some(_) => Vec::new(),
        };
        self.sockets.stop_accepting();
        self.ending = Some(Ending { awaited, until: Instant::now() + ANSWERED_WITHIN });
    }

    /// Whether the thread is to end now.
    pub(super) fn has_ended(&self) -> bool {
        self.ending.as_ref().is_some_and(|Ending { awaited, until }| {
            // A connection that goes on has had its answer.
            let is_open = |id: &ConnectionId| {
                let open = self.connections.get(id);
                open.is_some_and(|open| !matches!(open.state, ConnectionState::Reading))
            };
            Instant::now() >= *until || !awaited.iter().any(is_open)
        })
    }
}

/// Time for answers, the end of what is cancelled included. A client that sends a file has to stop
/// and to read.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
