//! Translates offsets in a track's data (or an index region) to offsets on the device.
//!
//! ```text
//!   data    │0          a│a     b│b        end│
//!            extent 0     extent 1  extent 2        a run: an extent as a byte range of the device
//! ```

use std::ops::Range;
use units::Extent;

/// The extents as byte ranges of the device, in order.
pub(crate) fn runs(extents: &[Extent], chunk: u64) -> Vec<Range<u64>> {
    extents.iter().map(|e| e.start.0 * chunk..e.end().0 * chunk).collect()
}

/// The device ranges of `length` bytes from `offset`, in order: the offset on the device, and the
/// range of the bytes. Panics if the runs do not hold them.
pub(crate) fn pieces(runs: &[Range<u64>], offset: u64, length: usize) -> Vec<(u64, Range<usize>)> {
    let mut pieces = Vec::new();
    let (mut skip, mut done) = (offset, 0);
    for run in runs {
        let bytes = run.end - run.start;
        if skip >= bytes {
            skip -= bytes;
            continue;
        }
        if done == length {
            break;
        }
        let here = usize::try_from(bytes - skip).unwrap_or(usize::MAX).min(length - done);
        pieces.push((run.start + skip, done..done + here));
        done += here;
        skip = 0;
    }
    assert_eq!(done, length, "{length} bytes at {offset} are not in {runs:?}");
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_across_runs() {
        let runs = [100..110, 200..205, 300..400];
        assert_eq!(pieces(&runs, 0, 3), [(100, 0..3)]);
        assert_eq!(pieces(&runs, 8, 10), [(108, 0..2), (200, 2..7), (300, 7..10)]);
        assert_eq!(pieces(&runs, 10, 5), [(200, 0..5)]);
        assert_eq!(pieces(&runs, 15, 0), []);
    }
}
