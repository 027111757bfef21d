//! The access of one viewer to the network, at a limited rate: a token bucket for the bytes that
//! all of its connections read together.
//!
//! ```text
//!   socket ──readable──▶ room? ──▶ read as much ──▶ taken
//!                          └ none: the connection waits until `wake_at`, then goes on in its turn
//! ```
//!
//! What is not read waits in the socket's buffer, as it does in the queue of a slow access, and the
//! sender slows down when that is full. The bucket is as deep as what comes in 20 ms, so that no
//! second has more than the rate and a fiftieth. Pure: the time is an argument.

use std::time::Duration;
use units::{BitRate, Moment};

/// A limited access.
#[derive(Clone, Debug)]
pub(crate) struct AccessLink {
    rate: BitRate,
    /// Bytes that may be read, counted at this moment, in billionths of a bit.
    tokens: u128,
    counted: Moment,
    /// Connections that wait for tokens, a bit for each.
    waiting: u32,
    /// The connection that is next in turn.
    turn: u32,
}

impl AccessLink {
    /// An access of this rate, which is not zero, with a full bucket.
    pub(crate) fn new(rate: BitRate, now: Moment) -> Self {
        let mut link = Self { rate, tokens: 0, counted: now, waiting: 0, turn: 0 };
        link.tokens = link.depth();
        link
    }

    /// Bytes that may be read now.
    pub(crate) fn room(&mut self, now: Moment) -> usize {
        let gained = now.since(self.counted).as_nanos() * u128::from(self.rate.0);
        self.tokens = (self.tokens + gained).min(self.depth());
        self.counted = self.counted.max(now);
        usize::try_from(self.tokens / TOKENS_OF_BYTE).unwrap_or(usize::MAX)
    }

    /// Notes that bytes were read, as far as there was room.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.tokens = self.tokens.saturating_sub(bytes as u128 * TOKENS_OF_BYTE);
    }

    /// A connection has more to read than there was room for.
    pub(crate) fn wait(&mut self, connection: usize) {
        self.waiting |= 1 << connection;
    }

    /// When the connections that wait go on; `None`: none waits.
    pub(crate) fn wake_at(&self) -> Option<Moment> {
        let missing = self.depth().div_ceil(2).saturating_sub(self.tokens);
        let nanos = missing.div_ceil(u128::from(self.rate.0));
        let wait = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        (self.waiting != 0).then(|| self.counted + wait)
    }

    /// The connections that waited, from the one in turn on; none waits any more.
    pub(crate) fn woken(&mut self) -> Vec<usize> {
        let waiting = std::mem::take(&mut self.waiting);
        let from = self.turn % u32::BITS;
        let order = (from..u32::BITS).chain(0..from).filter(|number| waiting & (1 << number) != 0);
        let order: Vec<usize> = order.map(|number| number as usize).collect();
        // The next time another one reads first.
        self.turn = order.first().map_or(0, |first| u32::try_from(first + 1).unwrap_or(0));
        order
    }

    fn depth(&self) -> u128 {
        (BUCKET.as_nanos() * u128::from(self.rate.0)).max(LEAST_BYTES * TOKENS_OF_BYTE)
    }
}

/// Tokens of a byte: eight bits, each for a second in nanoseconds.
const TOKENS_OF_BYTE: u128 = 8 * 1_000_000_000;
/// What the bucket holds, as a time of the rate; connections go on when it is half full.
const BUCKET: Duration = Duration::from_millis(20);
/// The bucket holds two packets at any rate.
const LEAST_BYTES: u128 = 3000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn bytes_come_at_the_rate_and_a_bucket_before() {
        let mut link = AccessLink::new(BitRate(8_000_000), at(0));
        let mut read = 0;
        let mut now = at(0);
        while now < at(1000) {
            let room = link.room(now);
            link.take(room);
            read += room;
            link.wait(0);
            now = link.wake_at().unwrap();
            assert_eq!(link.woken(), [0]);
        }
        // A megabyte in a second, and 20 ms of it at once.
        assert!((1_000_000..=1_020_000).contains(&read), "{read}");
        assert_eq!(link.wake_at(), None, "nobody waits");
        // A pause fills the bucket and no more.
        assert_eq!(link.room(at(9000)), 20_000);
        assert_eq!(link.room(at(8000)), 20_000, "time does not run backwards");
    }

    #[test]
    fn connections_go_on_in_turn() {
        let mut link = AccessLink::new(BitRate(1000), at(0));
        assert_eq!(link.room(at(0)), 3000, "two packets at the least");
        for wanted in [[0, 1], [1, 0], [0, 1]] {
            link.wait(0);
            link.wait(1);
            assert_eq!(link.woken(), wanted);
        }
        link.take(9999);
        assert_eq!(link.room(at(0)), 0);
        link.wait(4);
        assert_eq!(link.wake_at(), Some(at(12_000)), "half a bucket of 1000 b/s");
    }
}
