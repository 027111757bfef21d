//! Large reads split into pieces by the operating system, as the paper suspects.
//!
//! ```text
//!   requested at once   A ──────────── B ──────────── C ────────────
//!   seen by the disk    A1 B1 C1 A2 B2 C2 A3 B3 C3 ...
//! ```
//!
//! One piece of each read is in flight at a time (as a kernel's loop over a raw transfer does for
//! each of many callers), so that parallel reads are interleaved and each piece costs a seek.

use crate::target::{IoCompletion, IoRequest, Port};
use device::DeviceError;
use std::collections::BTreeMap;
use std::time::Duration;
use units::{ByteCount, Moment};

/// A disk port that splits large reads into pieces, as an operating system may.
#[derive(Debug)]
pub struct Cut<P> {
    inner: P,
    piece: u64,
    /// The range of bytes not yet requested, by read in flight.
    rest: BTreeMap<u64, (u64, u64)>,
    fresh: Vec<IoCompletion>,
}

impl<P: Port> Cut<P> {
    /// Splits every read from `inner` into pieces of this size, which is not zero.
    pub fn new(inner: P, piece: ByteCount) -> Self {
        assert!(piece.0 > 0, "a piece has at least one byte");
        Self { inner, piece: piece.0, rest: BTreeMap::new(), fresh: Vec::new() }
    }

    fn next_piece(&mut self, tag: u64, from: u64, end: u64) -> Result<(), DeviceError> {
        let len = self.piece.min(end - from);
        self.rest.insert(tag, (from + len, end));
        self.inner.begin(IoRequest::read(tag, from, len))
    }
}

impl<P: Port> Port for Cut<P> {
    fn now(&self) -> Moment {
        self.inner.now()
    }

    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError> {
        self.next_piece(request.tag, request.offset, request.offset + request.len)
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError> {
        let mut fresh = std::mem::take(&mut self.fresh);
        self.inner.wait(until, &mut fresh)?;
        for arrived in fresh.drain(..) {
            match self.rest.remove(&arrived.tag) {
                Some((from, end)) if from < end && arrived.result.is_ok() => {
                    self.next_piece(arrived.tag, from, end)?;
                }
                _ => done.push(arrived),
            }
        }
        self.fresh = fresh;
        Ok(())
    }

    fn held_until(&self) -> Moment {
        self.inner.held_until()
    }

    fn heartbeat(&self) -> Duration {
        self.inner.heartbeat()
    }

    fn method(&self) -> String {
        format!("{}, in pieces of {}", self.inner.method(), ByteCount(self.piece))
    }
}
