//! The time at which each byte of a progressive MP4 file is needed, from its sample tables.
//!
//! ```text
//!   file   ftyp | moov (front or end) | mdat: interleaved samples of all tracks
//!                  │ per sample: decode time, place, size
//!                  ▼
//!   pieces  [ bytes needed for 0..2 s | for 2..4 s | ... ]   one range request each
//! ```
//!
//! Only the boxes named here are parsed, and only as far as necessary, so that unknown codecs and
//! boxes are no obstacle. Edit lists are not applied: they shift by less than a piece. A fragmented
//! file has no sample tables: a constant rate is assumed over its duration.

use super::boxes::{box_header, boxes, find, ticks, u32_at, u64_at};
use super::source::{Piece, TrackSource};
use super::url::Url;
use player::TrackTimeline;
use std::ops::Range;
use std::time::Duration;
use units::grown;

/// Searches for the `moov` box and requests the bytes that it needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct MoovFinder {
    /// The position of the next top-level box.
    at: u64,
    /// The position at which the fetching of pieces begins, behind the bytes read from the front.
    front: u64,
    hops: u32,
}

/// The next step of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MoovSearch {
    /// These bytes have to be fetched and passed to `look`.
    Need(Range<u64>),
    /// The content of `moov`.
    Moov(Vec<u8>),
}

impl MoovFinder {
    /// The first bytes to be fetched.
    pub(crate) fn start() -> Range<u64> {
        0..FRONT
    }

    /// Looks at `bytes`, which begin at `offset` of a file of `total` bytes.
    pub(crate) fn look(
        &mut self,
        offset: u64,
        bytes: &[u8],
        total: u64,
    ) -> Result<MoovSearch, &'static str> {
        let end = offset + bytes.len() as u64;
        if offset <= self.front {
            // Without a gap these bytes continue what is already here and need no second request.
            self.front = self.front.max(end);
        }
        loop {
            if self.at.saturating_add(8) > total {
                return Err("it has no moov box");
            }
            // A damaged file could make this loop endless.
            self.hops += 1;
            if self.hops > MAX_HOPS {
                return Err("its boxes are too many or make no sense");
            }
            let here = usize::try_from(self.at.saturating_sub(offset)).ok();
            let rest = here.filter(|_| self.at >= offset).and_then(|at| bytes.get(at..));
            let Some((kind, header, size)) =
                rest.and_then(|rest| box_header(rest, total - self.at))
            else {
                // The whole header is here and is invalid; otherwise more bytes are needed.
                if self.at >= offset && self.at + 16 <= end {
                    return Err("a box makes no sense");
                }
                return Ok(MoovSearch::Need(self.at..(self.at + FRONT).min(total)));
            };
            if kind == *b"moov" {
                if size > MAX_MOOV {
                    return Err("its moov box is larger than a player would accept");
                }
                let wanted = header..usize::try_from(size).unwrap_or(usize::MAX);
                return Ok(match rest.and_then(|rest| rest.get(wanted)) {
                    Some(moov) => MoovSearch::Moov(moov.to_vec()),
                    None => MoovSearch::Need(self.at..(self.at + size).min(total)),
                });
            }
            self.at = self.at.saturating_add(size);
        }
    }

    /// The pieces of the file whose `moov` was found.
    pub(crate) fn pieces(
        &self,
        url: &Url,
        moov: &[u8],
        total: u64,
    ) -> Result<TrackSource, &'static str> {
        let (needs, duration) = needs(moov, total)?;
        let mut pieces = Vec::with_capacity(needs.len());
        let mut from = self.front.min(total);
        for (number, need) in needs.iter().enumerate() {
            let last = number + 1 == needs.len();
            // The last piece takes the rest of the file, whatever the tables say.
            let to = if last { total } else { (*need).clamp(from, total) };
            pieces.push(Piece { reference: None, range: Some(from..to) });
            from = to;
        }
        let count = pieces.len();
        let durations = (0..count).map(|number| {
            if number + 1 < count { PIECE } else { duration.saturating_sub(PIECE * last(count)) }
        });
        let timeline = TrackTimeline::from_durations(durations);
        Ok(TrackSource { base: url.clone(), inits: Vec::new(), pieces, timeline })
    }
}

fn last(count: usize) -> u32 {
    u32::try_from(count - 1).unwrap_or(u32::MAX)
}

/// The end of the bytes needed for each [`PIECE`] of play-out, and the duration.
fn needs(moov: &[u8], total: u64) -> Result<(Vec<u64>, Duration), &'static str> {
    let mut needs: Vec<u64> = Vec::new();
    let mut duration = Duration::ZERO;
    for (_, trak, _) in boxes(moov).filter(|(kind, ..)| kind == b"trak") {
        duration = duration.max(track_needs(trak, &mut needs)?);
    }
    // Without sample tables, bytes are assumed to be spread evenly over the duration.
    if needs.is_empty() {
        duration = movie_duration(moov).ok_or("it has neither samples nor a duration")?;
        let count = count_of_pieces(duration)? as u64;
        needs = (1..=count)
            .map(|i| {
                u64::try_from(u128::from(total) * u128::from(i) / u128::from(count))
                    .unwrap_or(total)
            })
            .collect();
    }
    // A piece also needs all bytes before it, because the file is read in order.
    let mut most = 0;
    for need in &mut needs {
        most = most.max(*need);
        *need = most;
    }
    Ok((needs, duration))
}

fn count_of_pieces(duration: Duration) -> Result<usize, &'static str> {
    let count = duration.as_nanos().div_ceil(PIECE.as_nanos());
    usize::try_from(count).ok().filter(|count| *count <= MAX_PIECES).ok_or("it is too long")
}

/// Adds the needs of one track; returns its duration.
fn track_needs(trak: &[u8], needs: &mut Vec<u64>) -> Result<Duration, &'static str> {
    const CUT: &str = "a sample table is cut short";
    let inside = |path: &[&[u8; 4]]| find(trak, path);
    let stbl = |kind| inside(&[b"mdia", b"minf", b"stbl", kind]);
    let timescale =
        inside(&[b"mdia", b"mdhd"]).and_then(timescale).ok_or("a track has no clock")?;
    // A track without sample tables needs no bytes.
    let (Some(stts), Some(stsz), Some(stsc)) = (stbl(b"stts"), stbl(b"stsz"), stbl(b"stsc")) else {
        return Ok(Duration::ZERO);
    };
    let (chunks, wide) = match (stbl(b"stco"), stbl(b"co64")) {
        (Some(stco), _) => (stco, false),
        (_, Some(co64)) => (co64, true),
        _ => return Ok(Duration::ZERO),
    };
    let samples = u32_at(stsz, 8).ok_or(CUT)?;
    let same_size = u32_at(stsz, 4).ok_or(CUT)?;
    let (mut times, mut in_chunk) = (runs(stts), samples_of_chunks(stsc));
    let (mut chunk, mut left_in_chunk, mut at, mut decoded) = (0, 0, 0u64, 0u64);
    for sample in 0..samples as usize {
        if left_in_chunk == 0 {
            let offset = if wide {
                u64_at(chunks, 8 + 8 * chunk)
            } else {
                u32_at(chunks, 8 + 4 * chunk).map(u64::from)
            };
            at = offset.ok_or(CUT)?;
            left_in_chunk = in_chunk.next().filter(|count| *count > 0).ok_or(CUT)?;
            chunk += 1;
        }
        left_in_chunk -= 1;
        let size =
            if same_size > 0 { same_size } else { u32_at(stsz, 12 + 4 * sample).ok_or(CUT)? };
        at = at.saturating_add(u64::from(size));
        // A sample that begins exactly on a boundary belongs to the piece after it.
        let piece = count_of_pieces(ticks(decoded, timescale) + Duration::from_nanos(1))? - 1;
        let need = grown(needs, piece);
        *need = at.max(*need);
        decoded += u64::from(times.next().ok_or(CUT)?);
    }
    Ok(ticks(decoded, timescale))
}

/// The values of a run-length table (`stts`): pairs of count and value.
fn runs(table: &[u8]) -> impl Iterator<Item = u32> {
    let pair = |at| u32_at(table, at).zip(u32_at(table, at + 4));
    let pairs = (8..).step_by(8).map_while(pair);
    pairs.flat_map(|(count, value)| std::iter::repeat_n(value, count as usize))
}

/// The number of samples of each chunk in order (`stsc`): from certain chunks on it is another.
fn samples_of_chunks(table: &[u8]) -> impl Iterator<Item = u32> {
    let first = |row: usize| u32_at(table, 8 + 12 * row);
    let row = move |row| Some((first(row)?, u32_at(table, 12 + 12 * row)?, first(row + 1)));
    (0..).map_while(row).flat_map(|(first, samples, next)| {
        // The last row holds for all chunks to the end of the file.
        let chunks = next.map_or(u32::MAX, |next| next.saturating_sub(first));
        std::iter::repeat_n(samples, chunks as usize)
    })
}

/// The duration from `mvex/mehd`, else from `mvhd`.
fn movie_duration(moov: &[u8]) -> Option<Duration> {
    let mvhd = find(moov, &[b"mvhd"])?;
    let timescale = timescale(mvhd)?;
    let long = |table: &[u8], at_32, at_64| match table.first() {
        Some(1) => u64_at(table, at_64),
        _ => u32_at(table, at_32).map(u64::from),
    };
    let fragments = find(moov, &[b"mvex", b"mehd"]).and_then(|mehd| long(mehd, 4, 4));
    let length = fragments.filter(|length| *length > 0).or_else(|| long(mvhd, 16, 24))?;
    (length > 0).then(|| ticks(length, timescale))
}

/// The timescale in `mvhd` or `mdhd`: after version, flags and two times.
fn timescale(header: &[u8]) -> Option<u64> {
    let at = if header.first() == Some(&1) { 20 } else { 12 };
    u32_at(header, at).filter(|timescale| *timescale > 0).map(u64::from)
}

/// Play-out time of one range request: about as much as browsers request at a time.
const PIECE: Duration = Duration::from_secs(2);

/// Bytes of the first request: enough for the `moov` of a few minutes, so that most files need at
/// most one more request.
const FRONT: u64 = 64 * 1024;

/// The largest `moov`: the sample tables of half a day of video and audio are about this large.
const MAX_MOOV: u64 = 64 << 20;

/// The largest number of top-level boxes before `moov`: `ftyp`, `free`, `uuid`, `mdat` are seldom
/// more than five.
const MAX_HOPS: u32 = 64;

/// The largest number of pieces: four days of two seconds each.
const MAX_PIECES: usize = 172_800;

#[cfg(test)]
mod tests {
    use super::*;

    fn mp4_box(kind: &str, content: &[u8]) -> Vec<u8> {
        let size = u32::try_from(8 + content.len()).unwrap();
        [&size.to_be_bytes()[..], kind.as_bytes(), content].concat()
    }

    fn table(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// A track of samples of 100 bytes, one second each, `per_chunk` in each chunk.
    fn trak(chunks: &[u32], per_chunk: u32) -> Vec<u8> {
        let count = u32::try_from(chunks.len()).unwrap();
        let samples = count * per_chunk;
        let stco = [&[0, count], chunks].concat();
        let stbl = [
            mp4_box("stsd", b"a codec nobody knows"),
            mp4_box("stts", &table(&[0, 1, samples, 1000])),
            mp4_box("stsz", &table(&[0, 100, samples])),
            mp4_box("stsc", &table(&[0, 1, 1, per_chunk, 1])),
            mp4_box("stco", &table(&stco)),
        ]
        .concat();
        let mdhd = mp4_box("mdhd", &table(&[0, 0, 0, 1000, samples * 1000, 0]));
        let minf = mp4_box("minf", &mp4_box("stbl", &stbl));
        mp4_box("trak", &mp4_box("mdia", &[mdhd, minf].concat()))
    }

    #[test]
    fn each_piece_contains_the_bytes_of_its_two_seconds() {
        // Video in chunks of two samples, audio in one long chunk behind the first of them.
        let moov = [trak(&[70_000, 70_500, 70_900], 2), trak(&[70_200], 3)].concat();
        let finder = MoovFinder { front: 65_536, ..MoovFinder::default() };
        let url = Url::parse("http://h/a.mp4").unwrap();
        let track = finder.pieces(&url, &moov, 71_200).unwrap();
        let ranges: Vec<_> = track.pieces.into_iter().map(|piece| piece.range.unwrap()).collect();
        assert_eq!(ranges, [65_536..70_400, 70_400..70_700, 70_700..71_200]);
        assert_eq!(track.timeline.duration(), Duration::from_secs(6));
    }

    #[test]
    fn without_sample_tables_the_rate_is_assumed_constant() {
        let mvhd = mp4_box("mvhd", &table(&[0, 0, 0, 1000, 5000]));
        let finder = MoovFinder::default();
        let url = Url::parse("http://h/a.mp4").unwrap();
        let track = finder.pieces(&url, &mvhd, 3000).unwrap();
        let ranges: Vec<_> = track.pieces.into_iter().map(|piece| piece.range.unwrap()).collect();
        assert_eq!(ranges, [0..1000, 1000..2000, 2000..3000]);
        assert_eq!(track.timeline.duration(), Duration::from_secs(5));
    }

    /// Runs a finder over a whole file in memory; returns its requests and the result.
    fn find_in(file: &[u8]) -> (Vec<Range<u64>>, Result<Vec<u8>, &'static str>) {
        let total = file.len() as u64;
        let mut finder = MoovFinder::default();
        let mut range = MoovFinder::start();
        let mut asked = Vec::new();
        loop {
            range.end = range.end.min(total);
            asked.push(range.clone());
            let bytes = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
            match finder.look(range.start, &file[bytes], total) {
                Ok(MoovSearch::Need(next)) => range = next,
                Ok(MoovSearch::Moov(moov)) => return (asked, Ok(moov)),
                Err(error) => return (asked, Err(error)),
            }
        }
    }

    #[test]
    fn the_moov_box_is_found_at_any_position() {
        let ftyp = mp4_box("ftyp", b"isom");
        let mdat = mp4_box("mdat", &vec![7; 300_000]);
        let small = mp4_box("moov", b"tables");
        let large = mp4_box("moov", &vec![1; 100_000]);
        let cases = [
            ([&ftyp[..], &small, &mdat].concat(), 1, 6),
            ([&ftyp[..], &large, &mdat].concat(), 2, 100_000),
            ([&ftyp[..], &mdat, &small].concat(), 2, 6),
            ([&ftyp[..], &mdat, &large].concat(), 3, 100_000),
        ];
        for (file, requests, len) in cases {
            let (asked, moov) = find_in(&file);
            assert_eq!((asked.len(), moov.unwrap().len()), (requests, len), "{asked:?}");
        }
    }

    #[test]
    fn a_file_without_moov_is_refused_with_the_reason() {
        let mdat = mp4_box("mdat", &[7; 30]);
        for file in [&mdat[..], b"<html>no such thing</html>", b"", &[0; 100], &mdat[..20]] {
            assert!(find_in(file).1.is_err());
        }
        let cut = trak(&[1, 2], 2);
        let damaged = String::from_utf8_lossy(&cut).replace("stsz", "free").into_bytes();
        let finder = MoovFinder::default();
        let url = Url::parse("http://h/a.mp4").unwrap();
        assert!(finder.pieces(&url, &damaged, 100).is_err());
    }
}
