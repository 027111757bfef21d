//! One connection that speaks HTTP/2: bytes that come in, lanes, and chunks of frames for the
//! sockets.
//!
//! Sans-IO: methods take bytes and return what to send and to report. After each of them
//! [`Carrier::advance`] is due.

use super::heads::request_head;
use super::lane::{Lane, Payload};
use super::pipe::Pipe;
use super::resets::ResetBudget;
use super::{
    BODY_WINDOW, HttpEvent, MOST_ENDED_EARLY, MOST_ERRORS, MOST_HEADER_BYTES, MOST_LANES,
    MOST_UNSEEN_RESETS,
};
use crate::tls::{PLAIN_BYTES, SealedBuffers};
use device::sockets::{ConnectionId, SendSlice, SocketEvent};
use h2::server::{Builder, Connection, Handshake};
use h2::{Reason, RecvStream, server};
use http::{Method, Request};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// A connection that speaks HTTP/2.
pub(super) struct Carrier {
    id: ConnectionId,
    pub(super) pipe: Pipe,
    talk: Talk,
    lanes: BTreeMap<ConnectionId, Lane>,
    /// Lanes that are closed, and whose slices may still be in frames.
    closing: Vec<(ConnectionId, Rc<Cell<u64>>)>,
    /// Frames that the sockets have, oldest first, and the bytes that the kernel has taken.
    chunks: VecDeque<FrameChunk>,
    taken: u64,
    resets: ResetBudget,
    is_retired: bool,
    /// Whether the sockets hold a receive buffer of this connection.
    pub(super) is_receiving: bool,
    /// The event with which the connection has ended, until it is reported.
    end: Option<SocketEvent>,
    /// Whether nothing more can be sent over it: frames are dropped.
    pub(super) is_broken: bool,
    /// Whether bytes may still come. The peer may have sent more before a send failed.
    may_receive: bool,
}

enum Talk {
    Greeting(Box<Handshake<Pipe, Payload>>),
    Open(Box<Connection<Pipe, Payload>>),
    /// All that was to be said is in chunks.
    Over,
}

/// Frames that were given to the sockets, and the bytes of bodies in them.
struct FrameChunk {
    memory: Arc<[u8]>,
    bytes: u64,
    parts: Vec<(ConnectionId, u64)>,
}

/// A request that has come, and what answers it.
type LaneRequest = (Request<RecvStream>, server::SendResponse<Payload>);

impl Carrier {
    pub(super) fn new(id: ConnectionId, now: Instant) -> Self {
        let pipe = Pipe::default();
        let handshake = Builder::new()
            .max_concurrent_streams(MOST_LANES)
            .max_header_list_size(MOST_HEADER_BYTES)
            .initial_window_size(BODY_WINDOW)
            .initial_connection_window_size(BODY_WINDOW)
            .max_concurrent_reset_streams(MOST_ENDED_EARLY)
            .max_pending_accept_reset_streams(MOST_UNSEEN_RESETS)
            .max_local_error_reset_streams(Some(MOST_ERRORS))
            .handshake(pipe.clone());
        Self {
            id,
            pipe,
            talk: Talk::Greeting(Box::new(handshake)),
            lanes: BTreeMap::new(),
            closing: Vec::new(),
            chunks: VecDeque::new(),
            taken: 0,
            resets: ResetBudget::new(now),
            is_retired: false,
            is_receiving: false,
            end: None,
            is_broken: false,
            may_receive: true,
        }
    }

    /// Reads, writes and reports what is possible now. `name` makes identifiers of lanes.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        mut name: impl FnMut() -> ConnectionId,
        out: &mut Vec<HttpEvent>,
    ) {
        let context = &mut Context::from_waker(Waker::noop());
        let mut events = Vec::new();
        loop {
            self.accept(context, &mut name, out);
            let (mut again, mut too_many) = (false, false);
            for lane in self.lanes.values_mut() {
                again |= lane.advance(context, &mut events);
                let is_lost = lane.just_lost(context, &mut events);
                too_many |= is_lost && !lane.is_done() && self.resets.spend(now);
            }
            out.extend(events.drain(..).map(HttpEvent::Socket));
            if let Talk::Open(connection) = &mut self.talk
                && too_many
            {
                connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                again = true;
            }
            if !again || matches!(self.talk, Talk::Over) {
                break;
            }
        }
        self.report_closed(out);
    }

    /// Lets the connection read and write, and opens a lane for each request that has come.
    fn accept(
        &mut self,
        context: &mut Context<'_>,
        name: &mut impl FnMut() -> ConnectionId,
        out: &mut Vec<HttpEvent>,
    ) {
        if let Talk::Greeting(handshake) = &mut self.talk {
            match Pin::new(handshake).poll(context) {
                Poll::Pending => return,
                Poll::Ready(Ok(connection)) => {
                    self.talk = Talk::Open(Box::new(connection));
                    if std::mem::take(&mut self.is_retired) {
                        self.retire();
                    }
                }
                Poll::Ready(Err(_)) => return self.end(out),
            }
        }
        while let Talk::Open(connection) = &mut self.talk {
            match connection.poll_accept(context) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(incoming))) => self.open(name(), incoming, out),
                Poll::Ready(None | Some(Err(_))) => self.end(out),
            }
        }
    }

    fn open(&mut self, lane: ConnectionId, incoming: LaneRequest, out: &mut Vec<HttpEvent>) {
        let (request, respond) = incoming;
        let (head, is_head) = (request_head(&request), *request.method() == Method::HEAD);
        let opened = Lane::new(lane, head, is_head, request.into_body(), respond);
        self.lanes.insert(lane, opened);
        out.push(HttpEvent::Lane { carrier: self.id, lane });
    }

    fn end(&mut self, out: &mut Vec<HttpEvent>) {
        self.talk = Talk::Over;
        out.push(HttpEvent::Over { carrier: self.id });
    }

    /// Reports the closed lanes of which no slice is held any more.
    fn report_closed(&mut self, out: &mut Vec<HttpEvent>) {
        self.closing.retain(|(connection, slices)| {
            let is_held = Rc::strong_count(slices) > 1;
            if !is_held {
                out.push(HttpEvent::Socket(SocketEvent::Closed { connection: *connection }));
            }
            is_held
        });
    }

    /// No stream is begun any more: the client is told so, and the connection ends with its last
    /// one; the second time at once.
    pub(super) fn retire(&mut self) {
        let is_second = std::mem::replace(&mut self.is_retired, true);
        match &mut self.talk {
            Talk::Open(connection) if is_second => connection.abrupt_shutdown(Reason::NO_ERROR),
            Talk::Open(connection) => connection.graceful_shutdown(),
            Talk::Greeting(_) | Talk::Over => {}
        }
    }

    /// The connection has ended, wholly or in one direction, with this event.
    pub(super) fn ended(&mut self, event: SocketEvent) {
        self.is_broken |= !matches!(event, SocketEvent::Received { outcome: Ok(_), .. });
        self.may_receive = matches!(event, SocketEvent::SendFailed { .. }) && self.is_receiving;
        // The first one says why.
        if self.end.is_none() {
            self.end = Some(event);
        }
    }

    /// The end of the connection, if it is time to report it: not before all bodies that have come
    /// whole are delivered, as those are that wait in a socket.
    pub(super) fn take_end(&mut self) -> Option<SocketEvent> {
        let is_awaited =
            |lane: &Lane| lane.holds_whole_body() || self.may_receive && lane.awaits_body();
        let is_early = self.end.is_some() && self.lanes.values().any(is_awaited);
        self.end.take_if(|_| !is_early)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.talk, Talk::Over)
    }

    pub(super) fn lane(&mut self, id: ConnectionId) -> Option<&mut Lane> {
        self.lanes.get_mut(&id)
    }

    pub(super) fn close_lane(&mut self, id: ConnectionId) {
        if let Some(lane) = self.lanes.remove(&id) {
            self.closing.push((id, lane.close()));
        }
    }

    /// Ends everything. Returns the lanes that were not closed.
    pub(super) fn close(mut self, out: &mut Vec<HttpEvent>) -> Vec<ConnectionId> {
        let lanes: Vec<ConnectionId> = self.lanes.keys().copied().collect();
        lanes.iter().for_each(|lane| self.close_lane(*lane));
        self.talk = Talk::Over;
        self.report_closed(out);
        lanes
    }

    /// Lets frames be written, if the kernel is not too far behind.
    pub(super) fn give_room(&mut self, buffers: &mut SealedBuffers) {
        if self.chunks.len() < CHUNKS_AHEAD {
            self.pipe.give_room(buffers.take(), PLAIN_BYTES);
        }
    }

    /// The frames that have been written, for the sockets, and whether there may be more.
    pub(super) fn chunk(&mut self, buffers: &mut SealedBuffers) -> Option<(SendSlice, bool)> {
        let (memory, slice) = self.pipe.take_room()?;
        if slice.is_empty() {
            drop(slice);
            buffers.give_back(memory);
            return None;
        }
        let written = self.lanes.iter_mut().map(|(id, lane)| (*id, lane.take_written()));
        let parts = written.filter(|(_, bytes)| *bytes > 0).collect();
        let is_full = slice.len() == PLAIN_BYTES;
        self.chunks.push_back(FrameChunk { memory, bytes: slice.len() as u64, parts });
        Some((slice, is_full && self.chunks.len() < CHUNKS_AHEAD))
    }

    /// The kernel has taken the oldest chunk.
    pub(super) fn chunk_taken(&mut self, buffers: &mut SealedBuffers) {
        let Some(chunk) = self.chunks.pop_front() else { return };
        self.taken += chunk.bytes;
        buffers.give_back(chunk.memory);
        for (id, bytes) in chunk.parts {
            if let Some(lane) = self.lanes.get_mut(&id) {
                lane.confirm(bytes);
            }
        }
    }

    /// Bytes of a lane's bodies that the kernel has taken when it has taken so many bytes of
    /// chunks: never more than were written, and never fewer than before.
    pub(super) fn taken(&self, id: ConnectionId, of_kernel: u64) -> u64 {
        let Some(lane) = self.lanes.get(&id) else { return 0 };
        let (mut rest, mut taken) = (of_kernel.saturating_sub(self.taken), lane.confirmed());
        for chunk in &self.chunks {
            let own = chunk.parts.iter().find(|(lane, _)| *lane == id).map_or(0, |(_, own)| *own);
            taken += if rest < chunk.bytes { rest.min(own) } else { own };
            rest = rest.saturating_sub(chunk.bytes);
        }
        taken
    }
}

/// Chunks with the sockets at a time: the second is encrypted while the kernel takes the first.
const CHUNKS_AHEAD: usize = 2;
