//! New connections, and requests over HTTP/2: those above a limit are told so and closed.
//!
//! ```text
//!   above a limit ─┬─ in the clear ───────────────▶ 429 or 503, at once
//!                  └─ TLS ─▶ first bytes ─┬─ 1.1 ─▶ 429 or 503, whatever is asked for
//!                                         └─ 2 ───▶ the same to each request; GOAWAY
//! ```

use super::{RETRY_AFTER, Worker};
use crate::clients::ClientAddress;
use crate::http::connection::{Connection, ExceededLimit, Exchange};
use crate::http::response::Response;
use device::sockets::ConnectionId;
use std::net::SocketAddr;
use std::time::Instant;

impl Worker {
    /// Takes a connection in, or a request over a carrier.
    pub(super) fn accepted_over(
        &mut self,
        id: ConnectionId,
        peer: SocketAddr,
        carrier: Option<ConnectionId>,
    ) {
        let client = ClientAddress::of(peer.ip());
        let settings = self.shared.settings();
        let most = settings.client_connections.of(client);
        // A connection over a limit is counted, too, because `close` counts all of them down.
        let open = self.shared.http.count(carrier.is_some());
        let held = self.shared.http.connected(client);
        let deadline = Instant::now() + self.limits.head_timeout;
        self.connections.insert(id, Connection::new(peer, carrier, deadline));
        let of_carrier = carrier.and_then(|id| self.connections.get(&id)?.above);
        let own = match () {
            () if held >= most => Some(ExceededLimit::OfClient { most }),
            () if open >= settings.max_connections => Some(ExceededLimit::OfServer),
            () => None,
        };
        if of_carrier.is_none() && held >= most.saturating_mul(2) {
            // A client that goes on after so many answers would fill the server with connections
            // that take their answer slowly.
            return self.close(id);
        }
        match of_carrier.or(own) {
            None => self.receive(id),
            // Only with its first bytes is it known which protocol the client reads.
            Some(limit) if carrier.is_none() && self.sockets.is_secure() => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.above = Some(limit);
                }
                self.receive(id);
            }
            Some(limit) => self.refuse_connection(id, limit),
        }
    }

    /// Answers a connection, or a lane of one, that is above a limit.
    pub(super) fn refuse_connection(&mut self, id: ConnectionId, limit: ExceededLimit) {
        let Some(connection) = self.connections.get(&id) else { return };
        let response = match limit {
            ExceededLimit::OfClient { most } => {
                let client = ClientAddress::of(connection.peer.ip());
                let message = format!("{client} has {most} connections, the most it may have");
                let words = (message.as_str(), "close some of them");
                Response::of_any_address(429, "too-many-client-connections", words, RETRY_AFTER)
            }
            ExceededLimit::OfServer => {
                let words = ("this server has reached its limit of connections", "try again later");
                Response::of_any_address(503, "too-many-connections", words, RETRY_AFTER)
            }
        };
        self.send_response(id, Exchange::unparsed(), response);
    }

    /// Answers a request in the clear on a port for TLS: in the clear, which is what its sender
    /// understands. The request itself is not read.
    pub(super) fn refuse_clear_text(&mut self, id: ConnectionId) {
        let message = "this port speaks HTTPS; use an address that begins with https://";
        let response = Response::error(400, "https-required", message);
        self.send_response(id, Exchange::unparsed(), response);
    }
}
