//! The times of fetched pieces, and the client's own lateness in noticing them.

use std::time::Duration;
use units::{Moment, Times, grown};

/// A piece that was fetched.
#[derive(Clone, Copy, Debug)]
pub struct Fetched {
    /// The track, as in [`player::Fetch`].
    pub track: usize,
    /// The number of the piece, as in [`player::Fetch`].
    pub piece: usize,
    /// The rendition of the first track, as an index into those on offer.
    pub rendition: usize,
    /// The moment at which the player wanted it, before any 503 response to it.
    pub asked: Moment,
    /// The moment at which the request was sent, after waiting for a connection.
    pub sent: Moment,
    /// The arrival of the first byte of the body.
    pub first: Option<Moment>,
    /// The arrival of the last byte.
    pub end: Moment,
    /// Bytes of its body.
    pub bytes: u64,
}

/// The client's own lateness: one thread plays all viewers and handles one of them at a time.
#[derive(Clone, Debug, Default)]
pub struct OwnLateness {
    /// The delays of timed actions.
    pub waking: Times,
    /// The longest lateness of each second from the start.
    seconds: Vec<Duration>,
}

impl OwnLateness {
    /// Notes that the thread woke at `now`, later than intended by `late`.
    pub fn woke(&mut self, now: Moment, late: Duration) {
        self.waking.record(late);
        self.busy(now, late);
    }

    /// Notes that the thread was busy for `length` until `now`, and noticed nothing new.
    pub fn busy(&mut self, now: Moment, length: Duration) {
        let longest = grown(&mut self.seconds, second(now));
        *longest = length.max(*longest);
    }

    /// The longest lateness in the seconds between two moments.
    pub fn longest(&self, from: Moment, to: Moment) -> Duration {
        let last = self.seconds.len().min(second(to) + 1);
        let seconds = self.seconds.get(second(from)..last).unwrap_or_default();
        seconds.iter().copied().max().unwrap_or_default()
    }
}

/// The second of the run that contains a moment.
pub fn second(at: Moment) -> usize {
    usize::try_from(at.since(Moment::ZERO).as_secs()).expect("runs end")
}
