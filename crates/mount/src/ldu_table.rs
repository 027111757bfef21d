//! The places of a title's LDUs in its file, as a table for programs that seek by unit.

use media::{Body, Slice, TitleIndex};
use std::fmt::Write as _;
use units::MediaTime;

/// The table as CSV, a line for each LDU in the order of the file: track and number from 0, decode
/// and presentation time in seconds, offset and length in the file in bytes, and whether decoding
/// may start there.
pub(crate) fn ldu_table(index: &TitleIndex, file: &Body) -> String {
    let mut text = "track,number,decode,presentation,offset,bytes,sync\n".to_owned();
    let mut next = vec![0; index.tracks.len()];
    let mut place = 0;
    for slice in file.slices() {
        if let Slice::Stored { track, bytes } = slice
            && let Some(stored) = index.tracks.get(usize::from(*track))
        {
            let next = &mut next[usize::from(*track)];
            while *next < stored.ldus.len() {
                let ldu = stored.ldus.get(*next);
                if ldu.offset >= bytes.end {
                    break;
                }
                let scale = stored.description.timescale;
                let seconds = |ticks: i64| MediaTime::from_ticks(ticks, scale).as_secs_f64();
                let decode = i64::try_from(ldu.decode_time).unwrap_or(i64::MAX);
                let shown = decode.saturating_add(i64::from(ldu.composition_offset));
                let (at, sync) = (place + (ldu.offset - bytes.start), u8::from(ldu.sync));
                let (decode, shown) = (seconds(decode), seconds(shown));
                writeln!(text, "{track},{next},{decode:.6},{shown:.6},{at},{},{sync}", ldu.size)
                    .expect("into memory");
                *next += 1;
            }
        }
        place += slice.len();
    }
    text
}
