//! Which sessions have a connection: the core is told when a connection carries a session's first
//! request, and when it ends. What its end says of the viewer is decided here.
//!
//! ```text
//!   the peer closes it during a response                              the viewer has left
//!   the peer closes it after several requests of the session          the viewer has left
//!   the peer closes it after one request                              unclear: some players use
//!                                                                     a connection for each
//!   the server closes it, or the request said `Connection: close`     unclear
//!   it carries requests of several living sessions                    unclear: a proxy's
//!   the peer ends a request of HTTP/2                                 nothing: it has the connection
//! ```

use super::Worker;
use crate::http::connection::{Connection, SessionUse};
use crate::messages::Event;
use crate::sessions::PlayerSession;
use device::sockets::ConnectionId;
use engine::Disconnection;
use std::sync::Arc;

impl Worker {
    /// A connection has carried a request of a session, or the one that began it.
    pub(super) fn note_session(&mut self, id: ConnectionId, session: &Arc<PlayerSession>) {
        let carrier = self.connections.get(&id).and_then(|connection| connection.carrier);
        let Some(connection) = self.connections.get_mut(&carrier.unwrap_or(id)) else { return };
        let known = connection.sessions.iter_mut().find(|used| used.session.id == session.id);
        if let Some(used) = known {
            used.requests += 1;
            return;
        }
        connection.sessions.retain(|used| self.shared.sessions.is_live(&used.session));
        // More belong to no single player, and the end of the connection says nothing of them.
        if connection.sessions.len() < SESSIONS_NOTED {
            connection.sessions.push(SessionUse { session: Arc::clone(session), requests: 1 });
            self.core.send(Event::Connected { session: session.id });
        }
    }

    /// A connection is of no more use to its sessions.
    pub(super) fn forget_sessions(&self, connection: &mut Connection) {
        let is_live = |used: &SessionUse| self.shared.sessions.is_live(&used.session);
        let shared = connection.sessions.iter().filter(|used| is_live(used)).count() > 1;
        for SessionUse { session, requests } in connection.sessions.drain(..) {
            let kept = connection.hung_up || requests > 1;
            let how = match connection.ended && kept && !shared {
                true => Disconnection::Left,
                false => Disconnection::Unclear,
            };
            self.core.send(Event::Disconnected { session: session.id, how });
        }
    }
}

/// Sessions of one connection that are told apart. A player that plays one title after another over
/// one connection has one living session, or two.
const SESSIONS_NOTED: usize = 8;
