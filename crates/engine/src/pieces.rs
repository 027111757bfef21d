//! A track's pieces: where they lie, what they are called in memory, what they take of their disk,
//! and whether a layout can be served at all. Knows no stream.

use super::buffers::{Location, PieceKey};
use super::{Layout, PieceTimes, TrackLayout, TrackNumber};
use disk::Costs;
use scheduler::TrackPieces;
use std::fmt;
use units::align_up;

/// A track as the scheduler sees it. The tail is read, and held, up to a whole block.
pub(super) fn curve(track: &TrackLayout) -> TrackPieces<'_> {
    let times = track.times.get();
    TrackPieces {
        due: &track.due,
        piece: track.piece,
        bytes: align_up(track.bytes, BLOCK),
        lead: track.lead,
        transfer: times.map_or(&[], |times| &times.transfer),
        followed: times.map_or(&[], |times| &times.followed),
    }
}

/// What a sound track's pieces take of a disk that costs so much.
pub(super) fn times(track: &TrackLayout, costs: &Costs) -> PieceTimes {
    let pieces = curve(track).pieces();
    let mut times = PieceTimes::default();
    let shortest = costs.shortest_following();
    let long = |transfer: u32| shortest.is_some_and(|shortest| u64::from(transfer) >= shortest);
    let behind_lead = curve(track).piece_at(track.lead.end);
    let mut before: Option<(u64, u32)> = None;
    for (piece, (offset, len)) in (0..pieces).map(|piece| (piece, place_of(track, piece))) {
        let takes = costs.transfer(offset, u64::from(len));
        let takes = u32::try_from(takes).unwrap_or(u32::MAX);
        if let Some((end, transfer)) = before {
            // A short part may begin a visit, or end one, but is never in the middle.
            let begins = !times.followed.last().copied().unwrap_or(false);
            let ends_lead = track.lead.end > 0 && piece + 1 == behind_lead;
            let begins_lead =
                track.lead.end > 0 && begins && (ends_lead || piece == behind_lead + 1);
            let is_one_visit = (long(transfer) || begins_lead) && (long(takes) || ends_lead);
            times.followed.push(end == offset && shortest.is_some() && is_one_visit);
        }
        times.transfer.push(takes);
        before = Some((offset + u64::from(len), takes));
    }
    times
}

/// Where a piece lies: no piece crosses the end of a run.
pub(super) fn place(layout: &Layout, track: TrackNumber, piece: u32) -> Location {
    let (offset, len) = place_of(&layout.tracks[usize::from(track)], piece);
    Location { disk: layout.disk, offset, len }
}

/// What a piece of a title is called in memory.
pub(super) fn key(layout: &Layout, number: TrackNumber, piece: u32) -> PieceKey {
    let track = &layout.tracks[usize::from(number)];
    let (start, len) = (stored_at(track, piece), curve(track).len(piece));
    PieceKey { title: layout.title, track: number, start, len, disk: layout.disk }
}

// At which byte of what is stored of a track a piece begins.
fn stored_at(track: &TrackLayout, piece: u32) -> u64 {
    let i = usize::try_from(piece).unwrap_or(usize::MAX);
    match track.stored.get(i) {
        Some(stored) => u64::from(*stored) * u64::from(track.piece),
        None => curve(track).start(piece),
    }
}

/// Offset and length of a piece on the track's disk.
pub(super) fn place_of(track: &TrackLayout, piece: u32) -> (u64, u32) {
    let mut at = stored_at(track, piece);
    for run in &track.runs {
        let run_len = run.end - run.start;
        if at < run_len {
            return (run.start + at, curve(track).len(piece));
        }
        at -= run_len;
    }
    unreachable!("a sound layout has a place for each of its pieces")
}

/// Why a track cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LayoutError {
    PartialBlocks,
    PiecesTooLarge,
    TooManyPieces,
    DueTimesDecrease,
    PieceListLength,
    MissingPlace,
    SplitPieces,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PartialBlocks => "its pieces are not whole blocks",
            Self::PiecesTooLarge => {
                "its pieces are larger than the reads that the disk was calibrated for"
            }
            Self::TooManyPieces => "it has more pieces than can be counted",
            Self::DueTimesDecrease => "its due times go back",
            Self::PieceListLength => "its list of pieces is not as long as it",
            Self::MissingPlace => "part of it has no place on the disk",
            Self::SplitPieces => "its extents do not hold whole pieces",
        })
    }
}

/// Checks that a track can be served from a disk that was calibrated for reads of `read_size`
/// bytes. Every other function of this file takes a track that passed this check.
pub(super) fn validate(track: &TrackLayout, read_size: u64) -> Result<(), LayoutError> {
    // Bounded before it is rounded up, so that a corrupt length does not overflow.
    let padded = align_up(track.bytes.min(u64::MAX - BLOCK), BLOCK);
    let piece = u64::from(track.piece);
    let cuts = [track.lead.middle, track.lead.end];
    if piece == 0 || piece % BLOCK != 0 || cuts.iter().any(|cut| cut % BLOCK != 0) {
        return Err(LayoutError::PartialBlocks);
    }
    if piece > read_size {
        return Err(LayoutError::PiecesTooLarge);
    }
    let pieces = padded.div_ceil(piece) + 1;
    // The number after the last piece must fit too: it is where a stream's cursor ends.
    if pieces >= u64::from(u32::MAX) {
        return Err(LayoutError::TooManyPieces);
    }
    if !curve(track).is_valid() {
        return Err(LayoutError::DueTimesDecrease);
    }
    let listed = track.stored.len() as u64;
    // Parts of what is stored are cut at multiples of a piece only.
    if listed > 0 && (listed + 1 != pieces || track.lead.end > 0) {
        return Err(LayoutError::PieceListLength);
    }
    let runs = track.runs.iter().map(|run| run.end.saturating_sub(run.start));
    let needed = match listed {
        0 => padded,
        _ => {
            let ends = track
                .stored
                .iter()
                .zip(0..)
                .map(|(_, i)| stored_at(track, i) + u64::from(curve(track).len(i)));
            ends.max().unwrap_or(0)
        }
    };
    if runs.clone().fold(0u64, u64::saturating_add) < needed {
        return Err(LayoutError::MissingPlace);
    }
    // Only the last run may end within a piece: it holds the track's tail.
    let all_but_last = track.runs.len().saturating_sub(1);
    // The second piece of a lead may go on over the end of the first whole piece.
    let goes_over = track.lead.end > 0 && track.lead.middle < piece;
    let split = runs.take(all_but_last).any(|run| run % piece != 0 || (run == piece && goes_over));
    if split || track.runs.iter().any(|run| run.start % BLOCK != 0) {
        return Err(LayoutError::SplitPieces);
    }
    Ok(())
}

/// Direct reads are whole blocks of this many bytes.
const BLOCK: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DiskNumber, Lead, TitleKey};
    use std::ops::Range;
    use std::sync::OnceLock;
    use std::time::Duration;

    #[test]
    fn pieces_of_one_extent_are_one_visit_if_they_are_long() {
        const MIB: u64 = 1 << 20;
        let track = |runs: Vec<Range<u64>>, stored: Vec<u32>, piece: u32| TrackLayout {
            bytes: 5 * MIB,
            piece,
            lead: Lead::default(),
            runs,
            due: vec![0; 5],
            stored,
            key_frames_of: None,
            times: OnceLock::new(),
        };
        // Two that lie side by side are as good as one.
        let whole = || vec![8 * MIB..10 * MIB, 10 * MIB..13 * MIB];
        let slow = disk::DiskModel::preset("st39183w").unwrap();
        let quick = disk::DiskModel::preset("ssd-nvme").unwrap();
        let followed = |model: &disk::DiskModel, track: &TrackLayout| {
            let costs = Costs::of_model(model, units::ByteCount(MIB), 4);
            let times = times(track, &costs);
            let pieces = usize::try_from(curve(track).pieces()).unwrap();
            assert_eq!((times.transfer.len(), times.followed.len()), (pieces, pieces - 1));
            times.followed
        };
        let mib = 1 << 20;
        assert_eq!(followed(&slow, &track(whole(), vec![], mib)), [true; 4]);
        let broken = vec![8 * MIB..11 * MIB, 20 * MIB..22 * MIB];
        assert_eq!(followed(&slow, &track(broken, vec![], mib)), [true, true, false, true]);
        let skipping = track(whole(), vec![0, 1, 4, 3, 2], mib);
        assert_eq!(followed(&slow, &skipping), [true, false, false, false]);
        // A quarter of a mebibyte is read in less time than the arm takes to come.
        assert_eq!(followed(&slow, &track(whole(), vec![], mib / 4)), [false; 19]);
        assert_eq!(followed(&quick, &track(whole(), vec![], mib)), [false; 4], "no arm");
    }

    #[test]
    fn a_lead_ends_a_visit_and_the_read_behind_it_begins_one() {
        const MIB: u64 = 1 << 20;
        let track = |lead: Lead, piece: u64| TrackLayout {
            bytes: 5 * piece,
            piece: u32::try_from(piece).unwrap(),
            lead,
            runs: std::iter::once(0..5 * piece).collect(),
            due: vec![0; 6],
            stored: Vec::new(),
            key_frames_of: None,
            times: OnceLock::new(),
        };
        let of = |disk: &str, track: &TrackLayout| {
            let model = disk::DiskModel::preset(disk).unwrap();
            times(track, &Costs::of_model(&model, units::ByteCount(4 * MIB), 4))
        };
        let end = 4 * MIB + 64 * 1024;
        let cut = track(Lead { middle: 4 * MIB, end }, 4 * MIB);
        assert_eq!(validate(&cut, 4 * MIB), Ok(()));
        let times = of("hdd-20tb", &cut);
        assert_eq!(times.transfer.len(), 6);
        // A read of 4 MiB at the outermost cylinders takes less than a visit, one of 64 KiB, too.
        assert_eq!(times.followed, [true, false, false, false, false]);
        // In the middle of the disk whole reads are long.
        let half = 10 << 40;
        let inner = TrackLayout { runs: std::iter::once(half..half + 20 * MIB).collect(), ..cut };
        assert_eq!(of("hdd-20tb", &inner).followed, [true, false, true, true, true]);
        assert_eq!(of("ssd-sata", &inner).followed, [false; 5], "no arm");
        let places: Vec<_> = (0..3).map(|n| place_of(&inner, n)).collect();
        let (mib, kib64) = (1 << 20, 1 << 16);
        let second = half + 4 * MIB;
        let expected =
            [(half, 4 * mib), (second, kib64), (second + u64::from(kib64), 4 * mib - kib64)];
        assert_eq!(places, expected);

        // Where the first read ends with a segment, too, the next is as long as it may be.
        let middle = 2 * MIB;
        let divided = TrackLayout { lead: Lead { middle, end: 6 * MIB }, ..inner };
        let divided = TrackLayout { times: OnceLock::new(), ..divided };
        assert_eq!(validate(&divided, 4 * MIB), Ok(()));
        assert_eq!(of("hdd-20tb", &divided).followed, [true, false, true, true, true]);
        let lens: Vec<_> = (0..3).map(|n| place_of(&divided, n).1).collect();
        assert_eq!(lens, [2 * mib, 4 * mib, 2 * mib]);
        let split = vec![half..half + 4 * MIB, half + 8 * MIB..half + 24 * MIB];
        let split = TrackLayout { runs: split, ..divided };
        assert_eq!(validate(&split, 4 * MIB), Err(LayoutError::SplitPieces));
        let whole = Lead { middle: 4 * MIB, end: 6 * MIB };
        assert_eq!(validate(&TrackLayout { lead: whole, ..split }, 4 * MIB), Ok(()));
    }

    #[test]
    fn a_piece_is_found_in_its_run() {
        let layout = Layout {
            title: TitleKey(1),
            disk: DiskNumber(0),
            duration: Duration::from_secs(9),
            tracks: vec![TrackLayout {
                bytes: 3 * 8192 + 100,
                piece: 8192,
                lead: Lead::default(),
                runs: vec![40_960..57_344, 8192..24_576],
                due: vec![0; 4],
                stored: Vec::new(),
                key_frames_of: None,
                times: OnceLock::new(),
            }],
        };
        let places: Vec<_> =
            (0..4).map(|n| place(&layout, 0, n)).map(|p| (p.offset, p.len)).collect();
        assert_eq!(places, [(40_960, 8192), (49_152, 8192), (8192, 8192), (16_384, 4096)]);
        assert_eq!(validate(&layout.tracks[0], 8192), Ok(()));
        assert_eq!(validate(&layout.tracks[0], 4096), Err(LayoutError::PiecesTooLarge));
    }
}
