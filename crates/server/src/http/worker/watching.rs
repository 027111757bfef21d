//! Clients that watch the server: their response is sent in pieces and has no end.

use super::Worker;
use crate::admin::Problem;
use crate::http::connection::{ConnectionState, Exchange};
use crate::http::request::Method;
use crate::http::response::{Head, Response};
use crate::http::watch::Watch;
use device::sockets::ConnectionId;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Worker {
    /// Begins to send events.
    pub(super) fn begin_watch(&mut self, id: ConnectionId, mut exchange: Exchange) {
        let is_watch = |state: &ConnectionState| matches!(state, ConnectionState::Watching(..));
        let watches = self.connections.values().filter(|open| is_watch(&open.state)).count();
        let head = Head::of_same_origin(200)
            .field("Content-Type", "text/event-stream")
            .field("Cache-Control", "no-store");
        if exchange.method == Method::Head {
            return self.send_response(id, exchange, Response::only_head(head, 0));
        }
        if watches >= MOST_WATCHES || self.leaving.is_some() {
            let message = "as many clients watch this server as can at a time";
            let response = Problem::busy(message).into_response();
            return self.send_response(id, exchange, response);
        }
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let bytes = head.finish_unbounded();
        (exchange.status, exchange.keep_alive) = (200, false);
        exchange.bytes = bytes.len() as u64;
        self.shared.http.sent_bytes.fetch_add(exchange.bytes, Ordering::Relaxed);
        let number = connection.next_number;
        connection.next_number += 1;
        connection.progress_at = Instant::now();
        connection.state =
            ConnectionState::Watching(exchange, Box::new(Watch::new(&self.shared, number)));
        self.sockets.send(id, vec![bytes.into()], number);
    }

    /// Sends what is due to those that watch, and forgets those that have gone.
    pub(super) fn send_events(&mut self) {
        let now = Instant::now();
        let mut gone = Vec::new();
        for (id, connection) in &mut self.connections {
            let ConnectionState::Watching(exchange, watch) = &mut connection.state else {
                continue;
            };
            if connection.ended {
                gone.push(*id);
                continue;
            }
            let Some(events) = watch.due(&self.shared, now) else { continue };
            let number = connection.next_number;
            connection.next_number += 1;
            connection.progress_at = now;
            watch.sending = Some(number);
            exchange.bytes += events.len() as u64;
            self.shared.http.sent_bytes.fetch_add(events.len() as u64, Ordering::Relaxed);
            self.sockets.send(*id, vec![events.into()], number);
        }
        gone.into_iter().for_each(|id| self.end_watch(id));
    }

    /// Ends a watch: its client has gone, or the server leaves.
    pub(super) fn end_watch(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get(&id)
            && let ConnectionState::Watching(exchange, _) = &connection.state
        {
            self.log_exchange(connection.peer, exchange, None);
        }
        self.close(id);
    }
}

/// The most clients that watch through one HTTP thread.
const MOST_WATCHES: usize = 32;
