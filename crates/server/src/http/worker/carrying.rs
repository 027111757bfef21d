//! Connections that speak HTTP/2: each request has a lane, which is answered as a connection is.
//!
//! ```text
//!   Reading ──Carries──▶ Carrying(lanes) ──Over──▶ Lingering ─▶ closed
//!                          │ Lane                  (its lanes are abandoned)
//!                          ▼
//!                        a connection of one request, until it is closed
//! ```
//! A carrier whose peer has gone stays as long as a lane hands a body to its operation that has
//! come whole: as over HTTP/1.1, an upload counts of which all bytes have come.
//!
//! Sessions are those of the carrier: a player that ends one request goes on with the next one.

use super::{LINGER, Worker};
use crate::http::connection::{Connection, ConnectionState};
use device::sockets::ConnectionId;
use std::time::Instant;

impl Worker {
    /// A connection speaks HTTP/2. The time limit for its first request stays that of a head.
    pub(super) fn begin_to_carry(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id)
            && matches!(connection.state, ConnectionState::Reading)
        {
            connection.state = ConnectionState::Carrying { lanes: Vec::new(), is_retired: false };
            if self.leaving.is_some() {
                self.retire(id);
            }
        } else {
            // It is ending already.
            self.abandon(id, "the client speaks HTTP/2");
        }
    }

    /// A request begins.
    pub(super) fn lane_opened(&mut self, carrier: ConnectionId, lane: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&carrier) else { return };
        let ConnectionState::Carrying { lanes, is_retired } = &mut connection.state else {
            return self.sockets.close(lane);
        };
        lanes.push(lane);
        let peer = connection.peer;
        let is_refused = connection.above.is_some() && !*is_retired;
        self.accepted_over(lane, peer, Some(carrier));
        if is_refused {
            self.retire(carrier);
        }
    }

    /// A lane has ended.
    pub(super) fn lane_closed(&mut self, carrier: ConnectionId, lane: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&carrier) else { return };
        let ConnectionState::Carrying { lanes, .. } = &mut connection.state else { return };
        lanes.retain(|open| *open != lane);
        if lanes.is_empty() {
            connection.deadline = Instant::now() + self.limits.idle_timeout;
        }
    }

    /// Closes a carrier whose peer has gone, and whose last lane is closed.
    pub(super) fn close_unused(&mut self, carrier: ConnectionId) {
        let is_unused = |open: &Connection| match &open.state {
            ConnectionState::Carrying { lanes, .. } => open.ended && lanes.is_empty(),
            _ => false,
        };
        if self.connections.get(&carrier).is_some_and(is_unused) {
            self.close(carrier);
        }
    }

    /// Whether a connection whose peer has gone is a carrier with operations that go on, because
    /// all of their bodies have come. Its other lanes end. `may_listen`: the peer may have ended
    /// its sending direction alone, and take the answers of operations.
    pub(super) fn goes_on_without_peer(&mut self, id: ConnectionId, may_listen: bool) -> bool {
        let Some(connection) = self.connections.get(&id) else { return false };
        let ConnectionState::Carrying { lanes, .. } = &connection.state else { return false };
        let goes_on = |lane: &&ConnectionId| {
            let open = self.connections.get(lane);
            open.is_some_and(|it| it.has_whole_body() || may_listen && it.is_operating())
        };
        let (going_on, others): (Vec<_>, Vec<_>) = lanes.iter().partition(goes_on);
        let others: Vec<ConnectionId> = others.into_iter().copied().collect();
        if going_on.is_empty() {
            return false;
        }
        others.into_iter().for_each(|lane| self.abandon(lane, CARRIER_ENDED));
        true
    }

    /// No more is sent over a carrier.
    pub(super) fn carrier_over(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if !matches!(connection.state, ConnectionState::Carrying { .. }) {
            return;
        }
        let state = std::mem::replace(&mut connection.state, ConnectionState::Lingering);
        connection.deadline = Instant::now() + LINGER;
        self.abandon_lanes(&state);
    }

    /// Ends the lanes of a carrier that is of no more use.
    pub(super) fn abandon_lanes(&mut self, state: &ConnectionState) {
        if let ConnectionState::Carrying { lanes, .. } = state {
            lanes.iter().for_each(|lane| self.abandon(*lane, CARRIER_ENDED));
        }
    }

    /// Tells the peer of a carrier to begin no further request, and gives it a moment to hear so.
    /// The second time the carrier ends.
    pub(super) fn retire(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let ConnectionState::Carrying { is_retired, .. } = &mut connection.state else { return };
        let is_second = std::mem::replace(is_retired, true);
        connection.deadline = Instant::now() + LINGER;
        self.sockets.retire(id);
        if is_second {
            self.carrier_over(id);
        }
    }

    /// Retires each carrier of which this is true: whether it was retired before, and its lanes.
    pub(super) fn retire_all(&mut self, is_due: impl Fn(bool, &[ConnectionId]) -> bool) {
        let is_due = |open: &Connection| match &open.state {
            ConnectionState::Carrying { lanes, is_retired } => is_due(*is_retired, lanes),
            _ => false,
        };
        let due = self.connections.iter().filter(|(_, open)| is_due(open));
        let due: Vec<ConnectionId> = due.map(|(id, _)| *id).collect();
        due.into_iter().for_each(|id| self.retire(id));
    }

    /// Whether a request is being answered over a connection.
    pub(super) fn is_answering(&self, connection: &Connection) -> bool {
        match &connection.state {
            ConnectionState::Carrying { lanes, .. } => {
                let mut open = lanes.iter().filter_map(|lane| self.connections.get(lane));
                open.any(Connection::is_answering)
            }
            _ => connection.is_answering(),
        }
    }
}

/// The log's reason for a response that ended with its connection.
const CARRIER_ENDED: &str = "the HTTP/2 connection has ended";
