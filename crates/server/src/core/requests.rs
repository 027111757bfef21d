//! A request for bytes, from the HTTP thread to the engine and back.
//!
//! ```text
//!   Event::Request ──▶ Engine::request ──▶ Accepted                        │ messages to
//!                        ├─ Action::Deliver ──▶ Deliver (slice of a buffer)  │ the HTTP
//!                        └─ Refused, Declined, Failed ──▶ RequestFailed      │ thread
//! ```

use super::Core;
use crate::messages::{Caller, RequestError, WorkerMessage};
use crate::sessions::PlayerSession;
use engine::{MediaRequest, ReadId, RequestId, ResponsePlace, SessionId};
use std::ops::Range;
use std::time::SystemTime;
use units::Moment;

/// A request for bytes that has not been answered completely.
pub(super) struct PendingRequest {
    caller: Caller,
    session: SessionId,
    /// When the session has sought with it, until bytes from there are delivered; where a collector
    /// is told.
    pub(super) sought: Option<SystemTime>,
}

impl Core {
    /// Passes a request to the engine and tells the HTTP thread whether it was accepted.
    pub(super) fn request_media(
        &mut self,
        now: Moment,
        caller: Caller,
        place: ResponsePlace,
        media: MediaRequest,
    ) {
        let request = media.request;
        let Some(open) = self.sessions.get_mut(&media.session) else {
            return self.send_request_error(caller, request, RequestError::SessionEnded);
        };
        // Before the engine decides: its refusal is sent to the caller that is registered here.
        open.requests.insert(request);
        self.requests
            .insert(request, PendingRequest { caller, session: media.session, sought: None });
        self.engine.request_for(now, place, media);
        // A refusal is among the engine's actions. It must reach the HTTP thread instead of
        // `Accepted`, not after it: the response head is sent on acceptance.
        self.execute_actions();
        if self.requests.contains_key(&request) {
            let connection = caller.connection;
            self.send(caller.worker, WorkerMessage::Accepted { connection, request });
        }
    }

    /// Sends `bytes` of a read's buffer to the request's HTTP thread. The buffer is shared, not
    /// copied.
    pub(super) fn deliver(&mut self, request: RequestId, read: ReadId, bytes: Range<u32>) {
        let Some(pending) = self.requests.get_mut(&request) else {
            // The request has ended in this burst of events, and the engine needs its answer.
            return self.engine.cancel(self.clock.now(), request);
        };
        let buffer = self.buffers.get(&read).expect("delivered from memory").clone();
        let (Caller { worker, connection }, session) = (pending.caller, pending.session);
        let sought = pending.sought.take();
        let range = bytes.start as usize..bytes.end as usize;
        if let Some(open) = self.sessions.get(&session)
            && open.session.is_first_delivery()
            && !open.session.is_fill()
        {
            self.unplayed.remove(open.session.client);
            self.shared.startup.observe(open.session.admitted.elapsed().as_secs_f64());
            self.trace_startup(&open.session);
        }
        if let Some((sought, open)) = sought.zip(self.sessions.get(&session)) {
            self.trace_seek(&open.session, sought);
        }
        self.send(worker, WorkerMessage::Deliver { connection, request, read, buffer, range });
    }

    pub(super) fn request_failed(&mut self, request: RequestId, why: RequestError) {
        if let Some(pending) = self.remove_request(request) {
            self.send_request_error(pending.caller, request, why);
        }
    }

    /// The session of a request that is not answered yet.
    pub(super) fn session_of(&self, request: RequestId) -> Option<&PlayerSession> {
        let pending = self.requests.get(&request)?;
        Some(&self.sessions.get(&pending.session)?.session)
    }

    /// Forgets a request that was answered, refused or cancelled.
    pub(super) fn remove_request(&mut self, request: RequestId) -> Option<PendingRequest> {
        let pending = self.requests.remove(&request)?;
        if let Some(open) = self.sessions.get_mut(&pending.session) {
            open.requests.remove(&request);
        }
        Some(pending)
    }

    fn send_request_error(&self, caller: Caller, request: RequestId, why: RequestError) {
        let Caller { worker, connection } = caller;
        self.send(worker, WorkerMessage::RequestFailed { connection, request, why });
    }
}
