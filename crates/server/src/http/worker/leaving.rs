//! Another server takes this one's place: connections end when their requests are answered, and
//! those that come wait in the kernel for the other one.
//!
//! ```text
//!   a request is being answered          its response is the last, and is sent whole
//!   a request may be on its way          closed after FRESH
//!     (a new connection, half a head)
//!   waits for the next request           closed now: its player connects again
//!   watches                              closed now: its client connects again
//!   carries requests of HTTP/2           its peer is told to begin no further one; ends with the
//!                                        last one, and without one after FRESH
//! ```

use super::Worker;
use crate::http::connection::{Connection, ConnectionState};
use crate::messages::Event;
use device::sockets::ConnectionId;
use std::time::{Duration, Instant};

/// Since when a thread closes its connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    since: Instant,
    /// Whether the core was told that all requests are answered.
    told: bool,
}

impl Worker {
    pub(super) fn begin_to_leave(&mut self) {
        self.sockets.stop_accepting();
        self.leaving = Some(Leaving { since: Instant::now(), told: false });
        self.retire_all(|is_retired, _| !is_retired);
    }

    /// Closes what has no request to be answered, and tells the core when nothing else is left.
    pub(super) fn leave(&mut self) {
        let Some(Leaving { since, told }) = self.leaving else { return };
        let waited = since.elapsed();
        let idle = |connection: &Connection| match connection.state {
            ConnectionState::Reading => {
                let may_come = connection.next_number == 0 || !connection.input.is_empty();
                !may_come || waited >= FRESH
            }
            ConnectionState::Watching(..) => true,
            _ => false,
        };
        let idle: Vec<ConnectionId> =
            self.connections.iter().filter(|(_, open)| idle(open)).map(|(id, _)| *id).collect();
        idle.into_iter().for_each(|id| self.end_watch(id));
        if waited >= FRESH {
            self.retire_all(|_, lanes| lanes.is_empty());
        }
        let lingers = |open: &Connection| matches!(open.state, ConnectionState::Lingering);
        if !told && waited >= SETTLED && self.connections.values().all(lingers) {
            self.leaving = Some(Leaving { since, told: true });
            self.core.send(Event::Answered);
        }
    }
}

/// Time between two looks at the connections.
pub(super) const LOOK: Duration = Duration::from_millis(10);
/// Time after which the kernel reports no further connection as accepted.
const SETTLED: Duration = Duration::from_millis(50);
/// Time for a request that may be on its way. Clients send it with the connection.
const FRESH: Duration = Duration::from_millis(500);
