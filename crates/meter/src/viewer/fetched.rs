//! What came when, and how late the meter was itself with noticing it.

use crate::streams::Times;
use std::time::Duration;
use units::Moment;

/// A piece that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetched {
    /// As in [`player::Fetch`].
    pub(crate) track: usize,
    /// As in [`player::Fetch`].
    pub(crate) piece: usize,
    /// The rendition of the first track, as an index into those on offer.
    pub(crate) rendition: usize,
    /// When the player wanted it; before it was put off, if it was.
    pub(crate) asked: Moment,
    /// When the request for it was sent: it may have had to wait for a connection to open.
    pub(crate) sent: Moment,
    /// When the first byte of the body came.
    pub(crate) first: Option<Moment>,
    /// When all of it was there.
    pub(crate) end: Moment,
    pub(crate) bytes: u64,
}

/// The meter's own lateness: one thread plays all viewers, and is busy with one of them at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own {
    /// The delays of timed actions.
    pub(crate) waking: Times,
    /// The longest of each second from the start.
    seconds: Vec<Duration>,
}

impl Own {
    /// Woke at `now`, so much later than it was to.
    pub(crate) fn woke(&mut self, now: Moment, late: Duration) {
        self.waking.record(late);
        self.busy(now, late);
    }

    /// Until `now` it looked at nothing new for so long.
    pub(crate) fn busy(&mut self, now: Moment, length: Duration) {
        let second = second(now);
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, Duration::ZERO);
        }
        self.seconds[second] = self.seconds[second].max(length);
    }

    /// The longest in the seconds from one to the other.
    pub(crate) fn longest(&self, from: Moment, to: Moment) -> Duration {
        let last = self.seconds.len().min(second(to) + 1);
        let seconds = self.seconds.get(second(from)..last).unwrap_or_default();
        seconds.iter().copied().max().unwrap_or_default()
    }
}

/// The second of the run that a moment is in.
pub(crate) fn second(at: Moment) -> usize {
    usize::try_from(at.since(Moment::ZERO).as_secs()).expect("runs end")
}
