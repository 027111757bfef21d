//! Memory: how the buffers are shared out.
//!
//! ```text
//!   buffers ──┬── share of disk 0 ──┬── sockets' reserve: SEND_WINDOW pieces per track in play
//!             ├── share of disk 1   └── schedule: read, not yet let go (what admission simulates)
//!             └── ...
//! ```
//!
//! Each disk admits against its own share, so that read-ahead from one can never take the buffer
//! that an urgent read of another waits for. What streams do not hold is a cache for all.

/// Shares of `total`, in proportion to `weights` (bytes per slot that each disk is sure to
/// read). A disk of no weight has no share; rounding is given to nobody.
pub fn shares(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let share = |weight: &u64| {
        let part = u128::from(total) * u128::from(*weight) / sum.max(1);
        u64::try_from(part).expect("not above the total")
    };
    weights.iter().map(share).collect()
}

/// Bytes that the sockets of one session may hold of tracks with pieces of these sizes, beyond
/// what the schedule accounts for: a viewer that takes its bytes slowly pins them.
pub fn sending_reserve(pieces: impl IntoIterator<Item = u32>) -> u64 {
    pieces.into_iter().map(|piece| u64::from(piece) * SEND_WINDOW).sum()
}

/// Pieces handed to a socket and not yet taken by it: one being sent, one ready behind it.
pub const SEND_WINDOW: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_never_exceed_the_whole() {
        assert_eq!(shares(100, &[1, 1, 1]), [33, 33, 33]);
        assert_eq!(shares(100, &[3, 1, 0]), [75, 25, 0]);
        assert_eq!(shares(100, &[]), [0; 0]);
        assert_eq!(shares(100, &[0]), [0]);
        assert_eq!(shares(u64::MAX, &[u64::MAX]), [u64::MAX]);
        assert_eq!(sending_reserve([1 << 20, 1 << 16]), (2 << 20) + (2 << 16));
    }
}
