//! The pieces that requests wait for, whether they are being read yet or not.

use crate::buffers::PieceKey;
use crate::{DiskNumber, RequestId};
use std::collections::{BTreeMap, BTreeSet};

/// Requests by the piece that each waits for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Awaited {
    piece_of: BTreeMap<RequestId, PieceKey>,
    /// The pairs of `piece_of`, by piece.
    by_piece: BTreeSet<(PieceKey, RequestId)>,
}

impl Awaited {
    /// The request waits for this piece, and for no other.
    pub(crate) fn wait(&mut self, request: RequestId, piece: PieceKey) {
        self.stop(request);
        self.piece_of.insert(request, piece);
        self.by_piece.insert((piece, request));
    }

    /// The request waits for nothing.
    pub(crate) fn stop(&mut self, request: RequestId) {
        if let Some(piece) = self.piece_of.remove(&request) {
            self.by_piece.remove(&(piece, request));
        }
    }

    /// The requests that wait for a piece, whichever copy it is read from.
    pub(crate) fn of(&self, key: PieceKey) -> Vec<RequestId> {
        let first = PieceKey { disk: DiskNumber(0), ..key };
        let last = PieceKey { disk: DiskNumber(u16::MAX), ..key };
        let all = (first, RequestId(0))..=(last, RequestId(u64::MAX));
        self.by_piece.range(all).map(|(_, request)| *request).collect()
    }

    /// All requests that wait.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &RequestId> {
        self.piece_of.keys()
    }
}
