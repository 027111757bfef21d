//! The stored bytes of one track on their way from the engine to a sender, in order.
//!
//! ```text
//!   rest          requested             delivered          partial
//!   ............. [coming ............] [piece] [piece]    the beginning of what lies in several
//! ```
//! Memory is bounded by what the engine delivers ahead (two pieces for each request) and by one LDU
//! that lies in several pieces.

use device::SharedBuffer;
use engine::{MediaRequest, Part, ReadId, RequestId, SessionId};
use std::collections::VecDeque;
use std::ops::Range;

/// The bytes of a track from a position on.
#[derive(Debug)]
pub(super) struct TrackBytes {
    track: u16,
    /// The bytes that have not been requested.
    rest: Range<u64>,
    request: Option<RequestId>,
    coming: u64,
    accepted: bool,
    pieces: VecDeque<DeliveredPiece>,
    /// The beginning of what lies in several pieces.
    partial: Vec<u8>,
}

/// Delivered bytes.
#[derive(Debug)]
struct DeliveredPiece {
    request: RequestId,
    read: ReadId,
    buffer: SharedBuffer,
    range: Range<usize>,
}

/// A buffer that the engine may have back.
pub(super) type Taken = (RequestId, ReadId);

impl TrackBytes {
    pub(super) fn new(track: u16, bytes: Range<u64>) -> Self {
        Self {
            track,
            accepted: bytes.is_empty(),
            rest: bytes,
            request: None,
            coming: 0,
            pieces: VecDeque::new(),
            partial: Vec::new(),
        }
    }

    /// The next request, if one is due; `name` makes its number.
    pub(super) fn next_request(
        &mut self,
        session: SessionId,
        name: &mut dyn FnMut() -> RequestId,
    ) -> Option<MediaRequest> {
        if self.coming > 0 || self.rest.is_empty() {
            return None;
        }
        let end = self.rest.end.min(self.rest.start + WINDOW_BYTES);
        let bytes = self.rest.start..end;
        let request = name();
        (self.rest.start, self.coming) = (end, bytes.end - bytes.start);
        self.request = Some(request);
        Some(MediaRequest { request, session, parts: vec![Part { track: self.track, bytes }] })
    }

    /// Whether a request is the last one of this track.
    pub(super) fn has_request(&self, request: RequestId) -> bool {
        self.request == Some(request)
    }

    /// The engine has accepted the request.
    pub(super) fn accept(&mut self) {
        self.accepted = true;
    }

    /// Whether the first request was accepted.
    pub(super) fn is_accepted(&self) -> bool {
        self.accepted
    }

    /// The engine delivers bytes of the request.
    pub(super) fn deliver(
        &mut self,
        request: RequestId,
        read: ReadId,
        buffer: SharedBuffer,
        range: Range<usize>,
    ) {
        // A request whose bytes are all in memory is complete before it is accepted.
        self.accepted = true;
        self.coming = self.coming.saturating_sub(range.len() as u64);
        self.pieces.push_back(DeliveredPiece { request, read, buffer, range });
    }

    /// Requests that the engine has not completed, or whose buffers are held here.
    pub(super) fn open_requests(&self) -> impl Iterator<Item = RequestId> + '_ {
        let of_pieces = self.pieces.iter().map(|piece| piece.request);
        of_pieces.chain(self.request.filter(|_| self.coming > 0))
    }

    /// Whether the next `size` bytes are here.
    pub(super) fn has(&self, size: u64) -> bool {
        let held: u64 = self.pieces.iter().map(|piece| piece.range.len() as u64).sum();
        self.partial.len() as u64 + held >= size
    }

    /// Gives back pieces that hold only a part of the next `size` bytes: the engine delivers no
    /// more while two are held.
    pub(super) fn gather(&mut self, size: u64) -> Vec<Taken> {
        if self.has(size) {
            return Vec::new();
        }
        let pieces = self.pieces.drain(..);
        let taken = pieces.map(|piece| {
            self.partial.extend_from_slice(&piece.buffer[piece.range]);
            (piece.request, piece.read)
        });
        taken.collect()
    }

    /// Takes `size` bytes that are here.
    pub(super) fn take(&mut self, size: usize, mut use_bytes: impl FnMut(&[u8])) -> Vec<Taken> {
        let mut taken = Vec::new();
        let in_one = self.pieces.front().is_some_and(|piece| piece.range.len() >= size);
        if self.partial.is_empty() && in_one {
            let piece = &mut self.pieces[0];
            let end = piece.range.start + size;
            use_bytes(&piece.buffer[piece.range.start..end]);
            piece.range.start = end;
        } else {
            while let Some(piece) = self.pieces.front_mut() {
                let wanted = (size - self.partial.len()).min(piece.range.len());
                let end = piece.range.start + wanted;
                self.partial.extend_from_slice(&piece.buffer[piece.range.start..end]);
                piece.range.start = end;
                if !piece.range.is_empty() {
                    break;
                }
                taken.extend(self.pieces.pop_front().map(|piece| (piece.request, piece.read)));
            }
            use_bytes(&self.partial);
            self.partial.clear();
        }
        if self.pieces.front().is_some_and(|piece| piece.range.is_empty()) {
            taken.extend(self.pieces.pop_front().map(|piece| (piece.request, piece.read)));
        }
        taken
    }
}

/// Bytes of one request to the engine, as of an HTTP body: its cost is small beside them.
const WINDOW_BYTES: u64 = 4 * 1024 * 1024;
