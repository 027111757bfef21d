//! One stream of a carrier: its request as bytes, and the slices that answer it.
//!
//! ```text
//!   queued ──────────────▶ written ────────▶ in chunks ───────▶ confirmed
//!   (held by h2 as slices)  (frames made)     (with the sockets) (the kernel has them)
//! ```
//!
//! Positions count bytes of bodies. A send is reported when the kernel has its last one.

use super::heads::response_head;
use bytes::Buf;
use device::sockets::{ConnectionId, SendSlice, SocketEvent};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll};

/// Slices of one send, as the payload of frames.
#[derive(Debug)]
pub(super) struct Payload {
    slices: VecDeque<SendSlice>,
    /// Bytes of the first slice that have been written.
    head: usize,
    left: usize,
    written: Rc<Cell<u64>>,
}

impl Payload {
    fn new(slices: impl Iterator<Item = SendSlice>, written: &Rc<Cell<u64>>) -> Self {
        let slices: VecDeque<SendSlice> = slices.filter(|slice| !slice.is_empty()).collect();
        let left = slices.iter().map(|slice| slice.len()).sum();
        Self { slices, head: 0, left, written: Rc::clone(written) }
    }
}

impl Buf for Payload {
    fn remaining(&self) -> usize {
        self.left
    }

    fn chunk(&self) -> &[u8] {
        self.slices.front().map_or(&[], |slice| &slice[self.head..])
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        let mut skip = self.head;
        let parts = self.slices.iter().map(|slice| &slice[std::mem::take(&mut skip)..]);
        into.iter_mut().zip(parts).map(|(into, part)| *into = IoSlice::new(part)).count()
    }

    fn advance(&mut self, count: usize) {
        self.left -= count;
        self.written.set(self.written.get() + count as u64);
        self.head += count;
        while let Some(first) = self.slices.front().filter(|first| first.len() <= self.head) {
            self.head -= first.len();
            self.slices.pop_front();
        }
    }
}

/// A stream with its request and its response.
pub(super) struct Lane {
    id: ConnectionId,
    body: RecvStream,
    answer: LaneAnswer,
    is_head: bool,
    /// Whether the request has a body.
    has_body: bool,
    /// Received bytes that have not been delivered: of the head, then of the body.
    input: Vec<u8>,
    /// How many of them count against the window.
    held: usize,
    /// The buffer that is to be filled, where bytes are wanted.
    pub(super) wanted: Option<Vec<u8>>,
    /// Bytes of the body that are still to be queued; `None`: it ends with the lane.
    left: Option<u64>,
    /// Whether all of the response is queued.
    is_whole: bool,
    is_finished: bool,
    /// Whether the client has ended the stream, or the connection has.
    is_lost: bool,
    /// Whether this was reported since the last response that could not be begun.
    is_loss_reported: bool,
    /// Whether a response was to be begun, and could not be.
    is_refused: bool,
    /// The tag and the end of each send, in order.
    marks: VecDeque<(u64, u64)>,
    queued: u64,
    /// Also held by each payload, so that its owners are those of the slices.
    written: Rc<Cell<u64>>,
    in_chunks: u64,
    confirmed: u64,
}

enum LaneAnswer {
    Awaited(SendResponse<Payload>),
    Begun(SendStream<Payload>),
}

impl Lane {
    pub(super) fn new(
        id: ConnectionId,
        head: Vec<u8>,
        is_head: bool,
        body: RecvStream,
        respond: SendResponse<Payload>,
    ) -> Self {
        let has_body = !body.is_end_stream();
        Self {
            id,
            body,
            has_body,
            answer: LaneAnswer::Awaited(respond),
            is_head,
            input: head,
            held: 0,
            wanted: None,
            left: None,
            is_whole: false,
            is_finished: false,
            is_lost: false,
            is_loss_reported: false,
            is_refused: false,
            marks: VecDeque::new(),
            queued: 0,
            written: Rc::default(),
            in_chunks: 0,
            confirmed: 0,
        }
    }

    /// Receives, delivers and reports what is possible now. Returns whether the connection has more
    /// to do for it.
    pub(super) fn advance(
        &mut self,
        context: &mut Context<'_>,
        out: &mut Vec<SocketEvent>,
    ) -> bool {
        let connection = self.id;
        while let Poll::Ready(Some(Ok(bytes))) = self.body.poll_data(context) {
            self.held += bytes.len();
            self.input.extend_from_slice(&bytes);
        }
        while let Some((tag, end)) = self.marks.front().copied()
            && end <= self.confirmed
        {
            self.marks.pop_front();
            out.push(SocketEvent::Sent { connection, tag });
        }
        let count = self.input.len();
        if count == 0 && !self.is_finished {
            return false;
        }
        let Some(mut buffer) = self.wanted.take() else { return false };
        buffer.append(&mut self.input);
        self.input = Vec::new();
        out.push(SocketEvent::Received { connection, buffer, outcome: Ok(count) });
        let held = std::mem::take(&mut self.held);
        held > 0 && self.body.flow_control().release_capacity(held).is_ok()
    }

    /// Whether all of a body has come that is still to be delivered, wholly or in part.
    pub(super) fn holds_whole_body(&self) -> bool {
        self.has_body && self.body.is_end_stream() && !self.input.is_empty()
    }

    /// Whether more of a body is to come.
    pub(super) fn awaits_body(&self) -> bool {
        self.has_body && !self.body.is_end_stream()
    }

    /// Whether the client has just ended the stream, or the connection has; true once. Reports it,
    /// but not before a body that has come whole is delivered: who ends the stream behind it waits
    /// for no answer, and may mean what was sent (RFC 9113, 8.1).
    pub(super) fn just_lost(
        &mut self,
        context: &mut Context<'_>,
        out: &mut Vec<SocketEvent>,
    ) -> bool {
        let polled = match &mut self.answer {
            LaneAnswer::Awaited(respond) => respond.poll_reset(context),
            LaneAnswer::Begun(send) => send.poll_reset(context),
        };
        let is_first = !self.is_lost && polled.is_ready();
        self.is_lost |= is_first;
        let is_awaited = matches!(self.answer, LaneAnswer::Awaited(_)) && !self.is_refused;
        let is_due = !(is_awaited && self.holds_whole_body());
        if self.is_lost && is_due && !std::mem::replace(&mut self.is_loss_reported, true) {
            let text = "the client ended the stream";
            let error = io::Error::new(io::ErrorKind::ConnectionReset, text);
            out.push(SocketEvent::SendFailed { connection: self.id, error });
        }
        is_first
    }

    /// Queues slices. The first ones are a head.
    pub(super) fn send(&mut self, slices: Vec<SendSlice>, tag: u64) {
        let mut slices = slices.into_iter();
        if let LaneAnswer::Awaited(respond) = &mut self.answer {
            let head = slices.next().and_then(|head| response_head(&head, self.is_head));
            // Heads are the server's own.
            let Some((response, length)) = head else { return self.reset() };
            if response.status().is_informational() {
                let _ = respond.send_informational(response);
                self.marks.push_back((tag, self.queued));
                return;
            }
            self.left = length;
            self.is_whole = length == Some(0);
            // It fails where the client has ended the stream, which is reported, perhaps again: the
            // sender waits for one event or the other.
            let Ok(send) = respond.send_response(response, self.is_whole) else {
                (self.is_refused, self.is_loss_reported) = (true, false);
                return;
            };
            self.answer = LaneAnswer::Begun(send);
        }
        let payload = Payload::new(slices, &self.written);
        let count = payload.left as u64;
        self.queued += count;
        self.marks.push_back((tag, self.queued));
        if count > 0 && !self.is_whole {
            self.left = self.left.map(|left| left.saturating_sub(count));
            self.is_whole = self.left == Some(0);
            self.send_data(payload);
        }
    }

    fn send_data(&mut self, payload: Payload) {
        if let LaneAnswer::Begun(send) = &mut self.answer {
            // It fails where the client has ended the stream, which is reported.
            let _ = send.send_data(payload, self.is_whole);
        }
    }

    /// Ends the response. One that is not whole is broken off.
    pub(super) fn finish(&mut self) {
        self.is_finished = true;
        if !self.is_whole && self.left.is_none() && matches!(self.answer, LaneAnswer::Begun(_)) {
            self.is_whole = true;
            self.send_data(Payload::new(std::iter::empty(), &self.written));
        } else if !self.is_whole {
            self.reset();
        }
    }

    fn reset(&mut self) {
        match &mut self.answer {
            LaneAnswer::Awaited(respond) => respond.send_reset(Reason::INTERNAL_ERROR),
            LaneAnswer::Begun(send) => send.send_reset(Reason::INTERNAL_ERROR),
        }
    }

    /// Whether the kernel has the whole body of the response.
    pub(super) fn is_done(&self) -> bool {
        self.is_whole && self.confirmed == self.queued
    }

    /// Ends the stream; the client is told where its response has ended too early. Returns what is
    /// held as long as any of its slices is.
    pub(super) fn close(mut self) -> Rc<Cell<u64>> {
        if !self.is_done() {
            self.reset();
        }
        Rc::clone(&self.written)
    }

    /// Bytes that have been written since the last call, and are in the next chunk.
    pub(super) fn take_written(&mut self) -> u64 {
        let count = self.written.get() - self.in_chunks;
        self.in_chunks += count;
        count
    }

    /// The kernel has taken so many bytes more.
    pub(super) fn confirm(&mut self, count: u64) {
        self.confirmed += count;
    }

    pub(super) fn confirmed(&self) -> u64 {
        self.confirmed
    }
}
