//! The offset of another machine's clock, as the network time protocol determines it (RFC 5905,
//! section 8), from the exchange that took the shortest time.
//!
//! ```text
//!   here    sent ───────────────────────────── back         offset = theirs - (sent + back) / 2
//!                  ╲                          ╱             wrong by (back - sent) / 2 at most
//!   there           ───────── theirs ────────
//! ```

use serde::Serialize;

/// The offset of another clock from this one, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Offset {
    /// The agent's clock minus the controller's.
    pub offset_ns: i64,
    /// The largest possible error.
    pub wrong_by_at_most_ns: u64,
}

/// An exchange: our time of sending, their time, our time of receiving.
pub(super) type Exchange = (u64, u64, u64);

/// The offset by the shortest of `exchanges`.
pub(super) fn offset(exchanges: &[Exchange]) -> Option<Offset> {
    let (sent, theirs, back) = exchanges.iter().min_by_key(|(sent, _, back)| back - sent)?;
    let middle = sent + (back - sent) / 2;
    // The clocks have different zeros, so the difference may be negative.
    let offset = i128::from(*theirs) - i128::from(middle);
    Some(Offset {
        offset_ns: i64::try_from(offset).ok()?,
        wrong_by_at_most_ns: (back - sent).div_ceil(2),
    })
}

impl Offset {
    /// Converts a moment of our clock to theirs.
    pub(super) fn theirs(self, ours: u64) -> u64 {
        ours.saturating_add_signed(self.offset_ns)
    }
}
