//! Time limits: connections that are idle, slow to send a request or slow to take a response are
//! closed.

use super::Worker;
use crate::admin::Problem;
use crate::http::connection::{BodyTarget, ConnectionState, Exchange};
use crate::http::response::Response;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Worker {
    /// Closes all connections that have exceeded a time limit.
    pub(super) fn check_timeouts(&mut self) {
        let now = Instant::now();
        let mut exceeded = Vec::new();
        for (id, connection) in &mut self.connections {
            if connection.is_sending() {
                // A slow line is no reason to end a session that the engine can still serve, but a
                // byte from time to time is no line: it only holds the connection.
                let taken = self.sockets.taken(*id);
                if taken - connection.taken >= LEAST_PROGRESS {
                    (connection.taken, connection.progress_at) = (taken, now);
                } else if now.duration_since(connection.progress_at) > self.limits.send_timeout {
                    exceeded.push((*id, Limit::Send));
                }
            } else if let ConnectionState::ReceivingBody(_, _, body) = &mut connection.state {
                let taking = matches!(body.target, BodyTarget::Pieces { taking: true, .. });
                if taking || body.marked - body.left >= LEAST_PROGRESS {
                    (body.marked, connection.progress_at) = (body.left, now);
                } else if now.duration_since(connection.progress_at) > self.limits.send_timeout {
                    exceeded.push((*id, Limit::Body));
                }
            } else if now > connection.deadline {
                match connection.state {
                    ConnectionState::Reading if !connection.input.is_empty() => {
                        exceeded.push((*id, Limit::Head));
                    }
                    ConnectionState::Reading | ConnectionState::Lingering => {
                        exceeded.push((*id, Limit::Idle));
                    }
                    ConnectionState::Carrying { ref lanes, .. } if lanes.is_empty() => {
                        exceeded.push((*id, Limit::IdleCarrier));
                    }
                    _ => {}
                }
            }
        }
        for (id, limit) in exceeded {
            match limit {
                Limit::Idle => self.close(id),
                Limit::IdleCarrier => self.retire(id),
                Limit::Head => {
                    let message = "the request head was not complete in time; send it faster";
                    let response = Response::error(408, "request-timeout", message);
                    self.send_response(id, Exchange::unparsed(), response);
                }
                Limit::Body => {
                    self.tell_slow(id);
                    self.admin_answered(id, Problem::too_slow().into_response());
                }
                Limit::Send => {
                    self.shared.http.send_timeouts.fetch_add(1, Ordering::Relaxed);
                    self.abandon(id, "the client took too few bytes in the send timeout");
                }
            }
        }
    }
}

/// Bytes that a peer takes at least in each send timeout of 20 s: less than a tenth of what the
/// slowest modem carries.
const LEAST_PROGRESS: u64 = 16 * 1024;

enum Limit {
    Idle,
    IdleCarrier,
    Head,
    Body,
    Send,
}
