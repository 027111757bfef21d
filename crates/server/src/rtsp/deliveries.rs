//! The engine's messages about the bytes of playbacks: the same for players' connections and for
//! channels.
//!
//! ```text
//!   core ──Accepted──▶ playback ─▶ start_if_accepted
//!        ──Deliver───▶ playback ─▶ Sent (buffers), Request (next bytes), start, send_due
//!        ──RequestFailed────────▶ failed
//! ```

use super::playback::Playback;
use super::track_bytes::Taken;
use crate::messages::{Caller, CoreHandle, Event, RequestError, WorkerMessage, next_request_id};
use device::sockets::ConnectionId;

/// A thread that sends playbacks, each named by a connection.
pub(super) trait PlaybackThread {
    fn core(&self) -> &CoreHandle;

    /// Names a connection of this thread to the core.
    fn caller(&self, id: ConnectionId) -> Caller;

    /// The playback of a connection, from its admission to its end.
    fn playback(&mut self, id: ConnectionId) -> Option<&mut Playback>;

    /// Starts the playback when the engine has accepted the first request of each track.
    fn start_if_accepted(&mut self, id: ConnectionId);

    /// Sends what is due, and notes when something is due next.
    fn send_due(&mut self, id: ConnectionId);

    /// A request for bytes is not served.
    fn failed(&mut self, id: ConnectionId, why: RequestError);

    /// Handles a message about bytes. Any other is returned.
    fn handle_delivery(&mut self, message: WorkerMessage) -> Option<WorkerMessage> {
        match message {
            WorkerMessage::Accepted { connection, request } => {
                if let Some(playback) = self.playback(connection) {
                    playback.accepted(request);
                    self.start_if_accepted(connection);
                }
            }
            WorkerMessage::Deliver { connection, request, read, buffer, range } => {
                // The bytes of a cancelled request may have been on their way.
                let playback = self.playback(connection).filter(|it| it.has_request(request));
                let taken = playback?.deliver(request, read, buffer, range);
                self.give_back(taken);
                self.request_bytes(connection);
                self.start_if_accepted(connection);
                self.send_due(connection);
            }
            WorkerMessage::RequestFailed { connection, request, why } => {
                if self.playback(connection).is_some_and(|it| it.has_request(request)) {
                    self.failed(connection, why);
                }
            }
            other => return Some(other),
        }
        None
    }

    /// Tells the engine which buffers it has back.
    fn give_back(&self, taken: Vec<Taken>) {
        for (request, read) in taken {
            self.core().send(Event::Sent { request, read });
        }
    }

    /// Requests the bytes that a playback needs next.
    fn request_bytes(&mut self, id: ConnectionId) {
        let caller = self.caller(id);
        let requests = self.playback(id).map(|it| it.requests(next_request_id));
        for request in requests.into_iter().flatten() {
            self.core().send(Event::Request { caller, place: <_>::default(), request });
        }
    }
}
