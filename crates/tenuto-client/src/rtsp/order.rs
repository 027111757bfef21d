//! RTP packets in the order of sending (RFC 3550, 5.1), behind a network that may change it.
//!
//! ```text
//!   arrived:   7  8  10  9  9  12 ...           next = 9
//!                    │   │  │   └─ waits for 11: passed on after WINDOW_TIME, or when more than
//!                    │   │  │      WINDOW_PACKETS wait; 11 counts as lost then
//!                    │   │  └─ dropped: it was passed on
//!                    │   └─ passed on, and 10 behind it
//!                    └─ waits for 9
//! ```
//!
//! A connection keeps the order of its packets: there nothing waits, and a gap is a loss at once.
//! A lost packet is not asked for again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;
use units::Moment;

/// The order of the packets of one track.
#[derive(Clone, Debug)]
pub(super) struct PacketOrder {
    /// Whether packets wait for those before them.
    is_waiting: bool,
    /// Whether the sender has sent everything.
    is_over: bool,
    /// The number of the first packet, as the server names it, until one has arrived.
    first: Option<u16>,
    /// The number of the next packet to pass on, with the rounds of 65,536 before it.
    next: Option<u64>,
    /// The highest number that has arrived.
    highest: u64,
    /// Packets behind a gap.
    waiting: BTreeMap<u64, WaitingPacket>,
    /// Packets that were passed on, and those that were not, although others behind them were.
    passed: u64,
    lost: u64,
}

#[derive(Clone, Debug)]
struct WaitingPacket {
    arrived: Moment,
    bytes: Vec<u8>,
}

/// A packet whose turn it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OrderedPacket<'a> {
    /// Whether packets in front of it are lost.
    pub(super) is_behind_loss: bool,
    pub(super) bytes: Cow<'a, [u8]>,
}

impl PacketOrder {
    /// With or without a window in which packets are put in order.
    pub(super) fn new(is_waiting: bool) -> Self {
        Self {
            is_waiting,
            is_over: false,
            first: None,
            next: None,
            highest: 0,
            waiting: BTreeMap::new(),
            passed: 0,
            lost: 0,
        }
    }

    /// Another stream begins, with this number if the server names one. Packets of it may have
    /// arrived already.
    pub(super) fn restart(&mut self, number: Option<u16>) {
        let next = self.next.filter(|next| {
            number.is_some_and(|number| *next <= beside(*next, number) + WINDOW_PACKETS as u64)
        });
        if next.is_none() {
            (self.first, self.next) = (number, None);
            self.waiting.clear();
        }
    }

    /// Takes the packet of this number, and passes it on if it is its turn. Packets that have
    /// waited for it come out of [`Self::pop`].
    pub(super) fn push<'a>(
        &mut self,
        number: u16,
        bytes: &'a [u8],
        now: Moment,
    ) -> Option<OrderedPacket<'a>> {
        self.is_over = false;
        let mut next = match self.next {
            None => self.begin(number),
            Some(next) => next,
        };
        let mut own = beside(self.highest, number);
        if own.abs_diff(self.highest) > FARTHEST {
            if !self.waiting.is_empty() {
                return None;
            }
            // The source counts anew: what is missing between is not known.
            own = above(self.highest, number);
            next = own;
        }
        if own < next {
            return None;
        }
        self.highest = self.highest.max(own);
        if self.waiting.is_empty() && (own == next || !self.is_waiting) {
            let is_behind_loss = self.pass(next, own);
            return Some(OrderedPacket { is_behind_loss, bytes: bytes.into() });
        }
        let packet = || WaitingPacket { arrived: now, bytes: bytes.to_vec() };
        self.waiting.entry(own).or_insert_with(packet);
        None
    }

    /// The next of the packets that wait: the one that follows, or one behind a gap that is not
    /// waited for any more.
    pub(super) fn pop(&mut self, now: Moment) -> Option<OrderedPacket<'static>> {
        let (&own, _) = self.waiting.first_key_value()?;
        let next = self.next?;
        if own > next && self.is_waited_for(now) {
            return None;
        }
        let (_, packet) = self.waiting.pop_first()?;
        let is_behind_loss = self.pass(next, own);
        Some(OrderedPacket { is_behind_loss, bytes: packet.bytes.into() })
    }

    /// Nothing is waited for any more: all that waits comes out of [`Self::pop`].
    pub(super) fn give_up(&mut self) {
        self.is_over = true;
    }

    /// The moment at which a packet that waits is passed on in any case.
    pub(super) fn wake_at(&self) -> Option<Moment> {
        self.waiting.values().map(|packet| packet.arrived + WINDOW_TIME).min()
    }

    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    // The first packet to arrive need not be the first that was sent.
    fn begin(&mut self, number: u16) -> u64 {
        let named = self.first.take().filter(|first| {
            usize::from(number.wrapping_sub(*first)) <= WINDOW_PACKETS && self.is_waiting
        });
        // A packet in front of the first must not wrap around.
        let before = if self.highest == 0 { 65_536 } else { self.highest };
        let next = above(before, named.unwrap_or(number));
        (self.next, self.highest) = (Some(next), next);
        next
    }

    // Packet `own` is passed on where `next` was to be; returns whether others are lost between.
    fn pass(&mut self, next: u64, own: u64) -> bool {
        self.lost += own - next;
        self.passed += 1;
        self.next = Some(own + 1);
        own > next
    }

    fn is_waited_for(&self, now: Moment) -> bool {
        !self.is_over
            && self.waiting.len() <= WINDOW_PACKETS
            && self.wake_at().is_some_and(|at| at > now)
    }
}

/// The number that is nearest to `near` and ends with these bits.
fn beside(near: u64, number: u16) -> u64 {
    let ahead = number.wrapping_sub(low(near)).cast_signed();
    near.saturating_add_signed(i64::from(ahead))
}

/// The first number from `from` on that ends with these bits.
fn above(from: u64, number: u16) -> u64 {
    from + u64::from(number.wrapping_sub(low(from)))
}

#[expect(clippy::cast_possible_truncation, reason = "the number in a packet is this part")]
fn low(number: u64) -> u16 {
    number as u16
}

/// Packets that wait at most: 64 of 1,400 bytes are what a stream of 8 Mbit/s has in 90 ms.
const WINDOW_PACKETS: usize = 64;

/// The longest wait for a packet, which is shorter than the buffer of players.
const WINDOW_TIME: Duration = Duration::from_millis(100);

/// A number farther from the highest one is of a source that counts anew (RFC 3550, A.1:
/// `MAX_DROPOUT`).
const FARTHEST: u64 = 3000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::ZERO + Duration::from_millis(ms)
    }

    /// What comes out: the byte of each packet, in front of it `!` where packets are lost.
    fn popped(order: &mut PacketOrder, now: Moment) -> String {
        std::iter::from_fn(|| order.pop(now)).map(written).collect()
    }

    fn pushed(order: &mut PacketOrder, number: u16, byte: u8, now: Moment) -> String {
        let first = order.push(number, &[byte], now).map(written).unwrap_or_default();
        first + &popped(order, now)
    }

    fn written(packet: OrderedPacket<'_>) -> String {
        let lost = if packet.is_behind_loss { "!" } else { "" };
        format!("{lost}{}", char::from(packet.bytes[0]))
    }

    /// Arrivals: milliseconds, number, name. What comes out after each, and packets passed on and
    /// lost.
    type Row<'a> = (&'a str, bool, &'a [(u64, u16, u8)], &'a [&'a str], (u64, u64));

    #[test]
    fn packets_come_out_in_the_order_of_sending() {
        let rows: &[Row<'_>] = &[
            ("in order", true, &[(0, 7, b'a'), (1, 8, b'b')], &["a", "b"], (2, 0)),
            (
                "swapped",
                true,
                &[(0, 7, b'a'), (1, 9, b'c'), (2, 8, b'b')],
                &["a", "", "bc"],
                (3, 0),
            ),
            ("twice", true, &[(0, 7, b'a'), (1, 7, b'a'), (2, 8, b'b')], &["a", "", "b"], (2, 0)),
            (
                "twice while it waits",
                true,
                &[(0, 7, b'a'), (1, 9, b'c'), (1, 9, b'c'), (2, 8, b'b')],
                &["a", "", "", "bc"],
                (3, 0),
            ),
            (
                "around",
                true,
                &[(0, 65_534, b'a'), (1, 0, b'c'), (2, 65_535, b'b'), (3, 1, b'd')],
                &["a", "", "bc", "d"],
                (4, 0),
            ),
            (
                "too late",
                true,
                &[(0, 7, b'a'), (1, 9, b'c'), (101, 10, b'd'), (102, 8, b'b')],
                &["a", "", "!cd", ""],
                (3, 1),
            ),
            (
                "each gap has its own time",
                true,
                &[(0, 7, b'a'), (1, 9, b'c'), (50, 11, b'e'), (101, 12, b'f'), (150, 13, b'g')],
                &["a", "", "", "!c", "!efg"],
                (5, 2),
            ),
            (
                "a connection has no window",
                false,
                &[(0, 7, b'a'), (1, 9, b'c'), (2, 8, b'b')],
                &["a", "!c", ""],
                (2, 1),
            ),
            (
                "in front of the first",
                true,
                &[(0, 7, b'b'), (1, 6, b'a'), (2, 8, b'c')],
                &["b", "", "c"],
                (2, 0),
            ),
            (
                "a source that counts anew",
                true,
                &[(0, 7, b'a'), (1, 30_000, b'b'), (2, 30_001, b'c'), (3, 5, b'd')],
                &["a", "b", "c", "d"],
                (4, 0),
            ),
        ];
        for (name, is_waiting, arrivals, wanted, (passed, lost)) in rows {
            let mut order = PacketOrder::new(*is_waiting);
            let found: Vec<_> = arrivals
                .iter()
                .map(|(ms, number, byte)| pushed(&mut order, *number, *byte, at(*ms)))
                .collect();
            assert_eq!(found, *wanted, "{name}");
            assert_eq!((order.passed(), order.lost()), (*passed, *lost), "{name}");
        }
    }

    #[test]
    fn the_server_names_the_first_packet_of_a_stream() {
        for (named, wanted) in [(6, ["", "ab"]), (7, ["b", ""]), (5000, ["b", ""])] {
            let mut order = PacketOrder::new(true);
            order.restart(Some(named));
            let found = [(7, b'b'), (6, b'a')]
                .map(|(number, byte)| pushed(&mut order, number, byte, at(0)));
            assert_eq!(found, wanted, "{named}");
        }
        // Number 100 was passed on, and 102 waits; the next stream is named so, and 101 and 20
        // arrive.
        for (named, wanted) in [
            (Some(101), ["bc", ""]),
            (Some(103), ["bc", ""]),
            (Some(99), ["bc", ""]),
            (Some(20), ["b", ""]),
            (None, ["b", ""]),
        ] {
            let mut order = PacketOrder::new(true);
            order.push(100, b"a", at(0));
            order.push(102, b"c", at(0));
            order.restart(named);
            let found = [(101, b'b'), (20, b'd')]
                .map(|(number, byte)| pushed(&mut order, number, byte, at(0)));
            assert_eq!(found, wanted, "{named:?}");
        }
    }

    #[test]
    fn the_window_is_bounded_by_packets_and_by_time() {
        let mut order = PacketOrder::new(true);
        assert_eq!(pushed(&mut order, 0, b'a', at(0)), "a");
        assert_eq!(order.wake_at(), None);
        for number in 2..=65 {
            assert_eq!(pushed(&mut order, number, b'x', at(1)), "", "{number}");
        }
        assert_eq!((order.wake_at(), order.lost()), (Some(at(101)), 0));
        assert_eq!(pushed(&mut order, 66, b'y', at(1)), format!("!{}y", "x".repeat(64)));
        assert_eq!(pushed(&mut order, 68, b'z', at(2)), "");
        assert_eq!([popped(&mut order, at(101)), popped(&mut order, at(102))], ["", "!z"]);
        assert_eq!(pushed(&mut order, 70, b'z', at(103)), "");
        order.give_up();
        assert_eq!((popped(&mut order, at(103)), order.lost()), ("!z".to_owned(), 3));
    }
}
