//! How far another machine's clock is off, as the network time protocol finds it (RFC 5905, section
//! 8), by the exchange that took the shortest time.
//!
//! ```text
//!   here    sent ───────────────────────────── back         offset = theirs - (sent + back) / 2
//!                  ╲                          ╱             wrong by (back - sent) / 2 at most
//!   there           ───────── theirs ────────
//! ```

use serde::Serialize;

/// The offset of another clock from this one, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Offset {
    /// Theirs less ours.
    pub offset_ns: i64,
    /// It is wrong by this at most.
    pub wrong_by_at_most_ns: u64,
}

/// An exchange: when it was sent, what they said, when it was back.
pub(super) type Exchange = (u64, u64, u64);

/// By the shortest of some.
pub(super) fn offset(exchanges: &[Exchange]) -> Option<Offset> {
    let (sent, theirs, back) = exchanges.iter().min_by_key(|(sent, _, back)| back - sent)?;
    let middle = sent + (back - sent) / 2;
    let offset = i128::from(*theirs) - i128::from(middle);
    Some(Offset {
        offset_ns: i64::try_from(offset).ok()?,
        wrong_by_at_most_ns: (back - sent).div_ceil(2),
    })
}

impl Offset {
    /// A moment of ours on their clock.
    pub(super) fn theirs(self, ours: u64) -> u64 {
        ours.saturating_add_signed(self.offset_ns)
    }
}
