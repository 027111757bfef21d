//! One response body on its way: which stored bytes to ask for next, what may be sent now, and
//! what the socket has taken.
//!
//! ```text
//!   body:  [gen][stored........................][gen][stored.....]...
//!            │   └─ window 0 ─┘└─ window 1 ─┘└── not asked for yet ──
//!            │        │ deliver (in order within a window)
//!            ▼        ▼
//!          sends:  head+gen+piece │ piece │ piece ...     each with a number, taken in order
//! ```
//!
//! No socket and no channel: methods say what happened and return what is to be done. A window is
//! asked for when all of the one before has been delivered: were two open at once, pieces of the
//! later one could fill what the engine allows this viewer while the earlier one, which the socket
//! needs first, waits for its disk. The head goes out only when the engine has taken the first
//! window, because until then the answer may still be a refusal.

use crate::engine::{Part, ReadId, RequestId, SessionId, Want};
use crate::showing::{self, Spans};
use device::SharedBuffer;
use device::sockets::SendSlice;
use media::{Body, Slice};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// A body being sent.
#[derive(Debug)]
pub(crate) struct Transfer {
    session: SessionId,
    // Where the engine counts this session's bytes from.
    spans: Arc<Spans>,
    // Sent in front of everything else.
    head: Option<Vec<u8>>,
    body: Arc<Body>,
    // What of the body is not yet in a window.
    rest: Range<u64>,
    windows: VecDeque<Window>,
    // Handed to the socket and not yet taken, oldest first.
    sending: VecDeque<Sending>,
    next_number: u64,
    // Nothing more is sent.
    stopped: bool,
    // Held by every body that is being sent, so that they can be counted.
    _under_way: Arc<()>,
}

/// A part of the body: stored bytes asked for with one request, and the generated ones between.
#[derive(Debug)]
struct Window {
    // `None`: nothing stored in it.
    request: Option<RequestId>,
    slices: VecDeque<Slice>,
    ready: VecDeque<Piece>,
    // Stored bytes that have not been delivered yet.
    coming: u64,
    accepted: bool,
}

#[derive(Debug)]
struct Piece {
    read: ReadId,
    buffer: SharedBuffer,
    range: Range<usize>,
}

#[derive(Debug)]
struct Sending {
    number: u64,
    // The head's, too.
    bytes: u64,
    piece: Option<(RequestId, ReadId)>,
}

/// Something for the socket: slices, and the number under which it is to be reported.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) slices: Vec<SendSlice>,
    pub(crate) number: u64,
}

/// The engine delivered what was not asked for, or not in this order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutOfOrder;

impl Transfer {
    /// `range` of `body` behind `head`. `first_number` and those after it are the connection's
    /// alone; `under_way` is held until the transfer is over.
    pub(crate) fn new(
        (session, spans): (SessionId, Arc<Spans>),
        head: Vec<u8>,
        body: Arc<Body>,
        range: Range<u64>,
        first_number: u64,
        under_way: Arc<()>,
    ) -> Self {
        Self {
            session,
            spans,
            head: Some(head),
            body,
            rest: range,
            windows: VecDeque::new(),
            sending: VecDeque::new(),
            next_number: first_number,
            stopped: false,
            _under_way: under_way,
        }
    }

    /// Whether anything of the response is on its way to the viewer already.
    pub(crate) fn begun(&self) -> bool {
        self.head.is_none()
    }

    /// What the socket has is the last of it: the rest cannot be had.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether it was stopped, and the socket has taken what it had.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.stopped && self.sending.is_empty()
    }

    /// The number that the next send will have.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Whether something waits for the viewer to take it.
    pub(crate) fn is_sending(&self) -> bool {
        !self.sending.is_empty()
    }

    /// Whether the viewer has everything.
    pub(crate) fn is_done(&self) -> bool {
        self.begun()
            && !self.stopped
            && self.rest.is_empty()
            && self.windows.is_empty()
            && self.sending.is_empty()
    }

    /// The next bytes to ask for, if it is time; call until `None`.
    pub(crate) fn next_want(&mut self, mut name: impl FnMut() -> RequestId) -> Option<Want> {
        while !self.stopped && self.asks_no_more() && !self.rest.is_empty() {
            let cut = self.cut();
            self.rest.start += cut.len();
            let parts: Vec<Part> = cut.slices().iter().filter_map(part).collect();
            let request = (!parts.is_empty()).then(&mut name);
            self.windows.push_back(Window {
                request,
                coming: parts.iter().map(|part| part.bytes.end - part.bytes.start).sum(),
                slices: cut.slices().iter().cloned().collect(),
                ready: VecDeque::new(),
                accepted: request.is_none(),
            });
            if let Some(request) = request {
                let placed = |part: Part| Part {
                    bytes: showing::place(&self.spans, part.track, part.bytes),
                    track: part.track,
                };
                let parts = parts.into_iter().map(placed).collect();
                return Some(Want { request, session: self.session, parts });
            }
        }
        None
    }

    /// Whether everything asked for has been delivered, and the socket is not far behind.
    fn asks_no_more(&self) -> bool {
        self.windows.iter().all(|window| window.coming == 0) && self.sending.len() <= SENDS_AHEAD
    }

    /// The next window of what is left.
    fn cut(&self) -> Body {
        let start = self.rest.start;
        let cut = self.body.range(start..self.rest.end.min(start + WINDOW_BYTES));
        let stored = cut.slices().iter().filter(|slice| part(slice).is_some()).count();
        if stored <= WINDOW_PARTS {
            return cut;
        }
        let fewer = cut.slices()[..WINDOW_PARTS].iter().map(Slice::len).sum::<u64>();
        self.body.range(start..start + fewer)
    }

    /// The engine has taken a request on.
    pub(crate) fn accepted(&mut self, request: RequestId) {
        if let Some(window) = self.windows.iter_mut().find(|window| window.request == Some(request))
        {
            window.accepted = true;
        }
    }

    /// The engine delivers `range` of a buffer.
    pub(crate) fn deliver(
        &mut self,
        request: RequestId,
        read: ReadId,
        buffer: SharedBuffer,
        range: Range<usize>,
    ) {
        if let Some(window) = self.windows.iter_mut().find(|window| window.request == Some(request))
        {
            // What was in memory whole is delivered, and its request over, before anybody says that
            // it was accepted.
            window.accepted = true;
            window.coming = window.coming.saturating_sub(range.len() as u64);
            window.ready.push_back(Piece { read, buffer, range });
        }
    }

    /// What may be sent now, in order.
    pub(crate) fn outgoing(&mut self) -> Result<Vec<Outgoing>, OutOfOrder> {
        let mut all = Vec::new();
        let refusable = match self.windows.front() {
            Some(window) => !window.accepted,
            None => !self.rest.is_empty(),
        };
        if self.stopped || self.head.is_some() && refusable {
            return Ok(all);
        }
        let mut slices: Vec<SendSlice> =
            self.head.take().map(SendSlice::from).into_iter().collect();
        while let Some(window) = self.windows.front_mut() {
            let request = window.request;
            let read = window.emit(&mut slices)?;
            let (emptied, piece) = (window.slices.is_empty(), request.zip(read));
            if piece.is_some() {
                self.send(&mut all, &mut slices, piece);
            } else if emptied {
                self.windows.pop_front();
            } else {
                break;
            }
        }
        if !slices.is_empty() {
            self.send(&mut all, &mut slices, None);
        }
        Ok(all)
    }

    /// The socket has taken the oldest send: how many bytes that was, and which delivery of the
    /// engine it answers, if one.
    pub(crate) fn sent(&mut self, number: u64) -> (u64, Option<(RequestId, ReadId)>) {
        let oldest = self.sending.pop_front().expect("only what was sent is taken");
        assert_eq!(oldest.number, number, "sends are taken in order");
        (oldest.bytes, oldest.piece)
    }

    /// Requests that the engine still works on, to be cancelled.
    pub(crate) fn open_requests(&self) -> Vec<RequestId> {
        let mut open: Vec<RequestId> =
            self.windows.iter().filter_map(|window| window.request).collect();
        open.extend(self.sending.iter().filter_map(|sending| Some(sending.piece?.0)));
        open.sort_unstable();
        open.dedup();
        open
    }

    fn send(
        &mut self,
        all: &mut Vec<Outgoing>,
        slices: &mut Vec<SendSlice>,
        piece: Option<(RequestId, ReadId)>,
    ) {
        let number = self.next_number;
        self.next_number += 1;
        let bytes = slices.iter().map(|slice| slice.len() as u64).sum();
        self.sending.push_back(Sending { number, bytes, piece });
        all.push(Outgoing { slices: std::mem::take(slices), number });
    }
}

impl Window {
    /// Moves generated bytes, then one whole delivered piece, into `slices`. `None`: the next
    /// bytes are not there yet, or the window is empty now.
    fn emit(&mut self, slices: &mut Vec<SendSlice>) -> Result<Option<ReadId>, OutOfOrder> {
        while let Some(first) = self.slices.front_mut() {
            let Slice::Stored { bytes, .. } = first else {
                slices.extend(self.slices.pop_front().and_then(generated));
                continue;
            };
            let Some(piece) = self.ready.pop_front() else { return Ok(None) };
            let length = piece.range.len() as u64;
            if length == 0 || length > bytes.end - bytes.start {
                return Err(OutOfOrder);
            }
            bytes.start += length;
            if bytes.start == bytes.end {
                self.slices.pop_front();
            }
            slices.push(SendSlice::Buffer { buffer: piece.buffer, range: piece.range });
            return Ok(Some(piece.read));
        }
        Ok(None)
    }
}

fn part(slice: &Slice) -> Option<Part> {
    match slice {
        Slice::Stored { track, bytes } => Some(Part { track: *track, bytes: bytes.clone() }),
        Slice::Generated { .. } => None,
    }
}

fn generated(slice: Slice) -> Option<SendSlice> {
    match slice {
        Slice::Generated { bytes, range } => Some(SendSlice::Bytes { bytes, range }),
        Slice::Stored { .. } => None,
    }
}

/// Bytes of a window: what one request asks the engine for. Large enough that asking anew costs
/// nothing beside it; the engine hands over at most two pieces of it ahead of the socket.
const WINDOW_BYTES: u64 = 4 * 1024 * 1024;
/// Stored parts of a window: interleaved tracks of low rate are many small parts.
const WINDOW_PARTS: usize = 256;
/// Sends handed to the socket before the next window is asked for. The engine bounds what it
/// delivers by itself; this bounds what is generated between.
const SENDS_AHEAD: usize = 8;

#[cfg(test)]
mod tests;
