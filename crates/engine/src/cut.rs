//! How a title's tracks are cut: the size of their pieces, and what is read at once at the start.
//! Knows rates, extents and segments as numbers; a layout with pieces of these sizes is made by the
//! engine's owner.

use scheduler::Lead;
use std::ops::Range;
use std::time::Duration;
use units::{BitRate, ByteCount, align_up};

/// The lead of a track whose segments end at these bytes, in order. Its first piece ends with a
/// segment, too, if `is_one_run` (the track goes on without a gap behind the first whole piece) and
/// one more piece has the rest. The first has as few segments as that allows: what is due at the
/// start is in it.
pub fn lead_of(ends: impl Iterator<Item = u64>, piece: u32, is_one_run: bool) -> Lead {
    let size = u64::from(piece);
    let mut within = Vec::new();
    for end in ends.map(|end| align_up(end, SMALLEST_PIECE)) {
        if end <= size {
            within.push(end);
            continue;
        }
        // A longer beginning is no beginning: of a title with one long segment nothing is cut.
        if end > LONGEST_LEAD * size || within.last() == Some(&size) {
            break;
        }
        let middle = within.into_iter().find(|middle| is_one_run && end - middle <= size);
        return Lead { middle: middle.unwrap_or(size), end };
    }
    Lead::default()
}

/// Size of a track's pieces in bytes: the largest power of two that is at most one read, holds at
/// most eight seconds of media or is at most an eighth of a read, and does not let a piece cross
/// the end of an extent. `runs` are the track's extents on the device.
pub fn piece_size(rate: BitRate, runs: &[Range<u64>], read_size: ByteCount) -> u32 {
    let read = read_size.0.max(SMALLEST_PIECE);
    let held = rate.bytes_in(PIECE_TIME).0.max(read / LOW_RATE_PIECES).max(SMALLEST_PIECE);
    let mut piece = floor_power(held.min(read)).min(LARGEST_PIECE);
    // The last extent may end within a piece, because the track's tail is shorter.
    let inner = &runs[..runs.len().saturating_sub(1)];
    while piece > SMALLEST_PIECE && inner.iter().any(|r| !(r.end - r.start).is_multiple_of(piece)) {
        piece /= 2;
    }
    u32::try_from(piece).expect("at most LARGEST_PIECE")
}

/// The largest power of two that is at most `n` (1 for 0).
pub fn floor_power(n: u64) -> u64 {
    1 << n.max(1).ilog2()
}

/// The most media in one piece, where that is more than an eighth of a read; rounding down to a
/// power of two gives 4 to 8 s. With longer pieces a video track would hold more memory than it
/// saves positionings.
const PIECE_TIME: Duration = Duration::from_secs(8);
/// Pieces of a track of low rate in one read. A read of sound costs a positioning as one of video
/// does. Tracks need the least memory for so many positionings a second if their pieces are in the
/// ratio of the square roots of their rates: for sound of 128 kb/s beside video of 5 Mb/s, a sixth.
/// In reads of 4 MiB on `hdd-20tb`, 228 viewers without sound become 210 with it; with 8 s in a
/// piece of sound they were 151 (`cargo test -p studies --lib sound`).
const LOW_RATE_PIECES: u64 = 8;
/// Pieces of the longest lead: with 1 MiB of 5 Mb/s, a segment of 4 s is two and a half.
const LONGEST_LEAD: u64 = 4;
/// The span of one checksum: a piece is verified as a whole, so it is not smaller. Also the
/// smallest chunk size.
pub const SMALLEST_PIECE: u64 = 64 << 10;
/// Reads of 16 MiB reach nearly the sequential rate on every disk.
pub const LARGEST_PIECE: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_is_two_reads_that_end_with_segments() {
        const KIB: u64 = 1 << 10;
        // Ends of segments in KiB; the lead's middle and end.
        let of = |ends: &[u64], is_one_run| {
            let ends = ends.iter().map(|end| end * KIB);
            let Lead { middle, end } = lead_of(ends, 4 << 20, is_one_run);
            (middle / KIB, end / KIB)
        };
        let even: Vec<u64> = (1..9).map(|segment| segment * 2500).collect();
        assert_eq!(of(&even, true), (2560, 5056), "whole spans of checksums");
        assert_eq!(of(&even, false), (4096, 5056), "an extent ends with the first piece");
        let short: Vec<u64> = (1..30).map(|segment| segment * 600).collect();
        assert_eq!(of(&short, true), (640, 4224));
        assert_eq!(of(&[100, 4000, 4224], true), (128, 4224), "the fewest that leave one read");
        assert_eq!(of(&[100, 4000, 4300], true), (4032, 4352));
        assert_eq!(of(&[100, 8000], true), (4096, 8000), "none leaves one read");
        assert_eq!(of(&[5000, 9000], true), (4096, 5056), "the first segment is longer");
        assert_eq!(of(&[2000, 10_000], true), (4096, 10_048), "more than two pieces");
        for none in [&[][..], &[2000], &[4096, 6000], &[2000, 16_400], &[20_000]] {
            assert_eq!(of(none, true), (0, 0), "{none:?}");
        }
    }

    #[test]
    fn pieces_are_bounded_by_time_by_the_read_and_by_extents() {
        const MIB: u64 = 1 << 20;
        let size = |rate, runs: &[Range<u64>], read| {
            piece_size(BitRate(rate), runs, ByteCount(read)) / 1024
        };
        let one = std::slice::from_ref(&(0..100 * MIB));
        assert_eq!(size(128_000, one, 4 * MIB), 512, "an eighth of a read; 8 s are 125 KiB");
        assert_eq!(size(128_000, one, 256 * 1024), 64, "8 s are 125 KiB, an eighth 32 KiB");
        assert_eq!(size(1_000_000, one, 4 * MIB), 512, "8 s are 977 KiB");
        assert_eq!(size(1_000_000, one, 16 * MIB), 2048, "an eighth of a read");
        assert_eq!(size(8_000_000, one, 4 * MIB), 4096);
        assert_eq!(size(8_000_000, one, MIB), 1024);
        assert_eq!(size(8_000_000, one, 3 * MIB), 2048, "a power of two");
        assert_eq!(size(0, one, MIB), 128);
        assert_eq!(size(500_000_000, one, 1 << 40), 16 * 1024);
        let three = [0..6 * MIB, 10 * MIB..14 * MIB, 50 * MIB..51 * MIB];
        assert_eq!(size(80_000_000, &three, 16 * MIB), 2048, "divides all runs but the last");
    }
}
