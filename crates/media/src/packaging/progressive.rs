//! Tracks as one MP4 or QuickTime file with the header in front, for players that fetch byte ranges
//! and for export.
//!
//! ```text
//! ftyp | moov | mdat header | second 0: track a, track b | second 1: track a, track b | ...
//! ```
//! A part of a title ([`Clip`]) is a file, too: with the LDUs that it is decoded from, and edit
//! lists that hide what is before its start and behind its stop.
//!
//! The LDUs of a track in one second of the title are contiguous (a chunk in ISO's terms), so that
//! a player needs little buffer and each stored slice is long. Within a second, the track comes
//! first whose LDUs begin first.

use super::body::{Body, Slice};
use super::clip::Clip;
use super::media_segment::write_mdat_header;
use super::timeline::{Timeline, nearest, ticks};
use super::track_boxes::{self, MOVIE_SCALE, TrackHeader};
use crate::boxes::{write_atom, write_box};
use crate::codec::SampleEntry;
use crate::{Edit, Ldu, TitleIndex, TrackIndex, TrackKind};
use mp4_atom::{
    Co64, Ctts, CttsEntry, ElstEntry, Stco, Stsc, StscEntry, Stss, Stsz, StszSamples, Stts,
    SttsEntry,
};
use std::ops::Range;
use units::{MediaTime, Timescale};

/// Contiguous LDUs of a track in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The second of the title that they belong to.
    second: u64,
    /// The time of the title at which the first of them is decoded; zero for priming.
    begins: MediaTime,
    /// Byte range of the LDUs in the track's data.
    pub(super) bytes: Range<u64>,
    ldus: Range<usize>,
}

/// The file with these tracks, in this order; of a part of the title, with those that it has.
pub(super) fn file(
    index: &TitleIndex,
    lines: &[Timeline],
    tracks: &[u16],
    clip: Option<&Clip>,
) -> Body {
    let parts: Vec<MovieTrack<'_>> =
        tracks.iter().filter_map(|&number| MovieTrack::new(index, lines, number, clip)).collect();
    let order = interleave(&parts);
    let chunks = parts.iter().flat_map(|part| &part.chunks);
    let payload: u64 = chunks.map(|chunk| chunk.bytes.end - chunk.bytes.start).sum();
    // The width of offsets depends on the end of the file, which depends on the header's length
    // with them: the wide form is the longer one.
    let longest = header(&parts, &order, payload, true, 0).len() as u64;
    let wide = u32::try_from(longest + payload).is_err();
    let start = if wide { longest } else { header(&parts, &order, payload, false, 0).len() as u64 };
    let head = header(&parts, &order, payload, wide, start);
    debug_assert_eq!(head.len() as u64, start);
    let mut body = Body::default();
    body.push_generated(head);
    for &(part, chunk) in &order {
        let bytes = parts[part].chunks[chunk].bytes.clone();
        body.push(Slice::Stored { track: parts[part].number, bytes });
    }
    body
}

/// The chunks of these LDUs of a track in order.
pub(super) fn chunks(track: &TrackIndex, line: &Timeline, ldus: Range<usize>) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for (i, ldu) in ldus.clone().zip(track.ldus.range(ldus)) {
        // LDUs before time zero (priming) are stored with second 0.
        let at = line.place(ticks(ldu.decode_time)).max(0);
        let second = u64::try_from(at).unwrap_or(0) / u64::from(line.scale.0);
        let end = ldu.offset + u64::from(ldu.size);
        match chunks.last_mut().filter(|chunk| chunk.second == second) {
            Some(chunk) => {
                chunk.ldus.end = i + 1;
                chunk.bytes.end = end;
            }
            None => {
                let (begins, bytes) = (line.time(at), ldu.offset..end);
                chunks.push(Chunk { second, begins, bytes, ldus: i..i + 1 });
            }
        }
    }
    chunks
}

/// One track of the file.
struct MovieTrack<'a> {
    number: u16,
    track: &'a TrackIndex,
    line: &'a Timeline,
    ldus: Range<usize>,
    /// The edit list; an edit without a duration lasts until the end of the track.
    edits: Vec<Edit>,
    chunks: Vec<Chunk>,
    pcm: Option<Pcm>,
}

/// The format of PCM, in which QuickTime counts every instant as a sample.
#[derive(Clone, Copy)]
struct Pcm {
    /// Bytes of an instant, all channels together.
    bytes: u32,
    instants: u32,
}

impl<'a> MovieTrack<'a> {
    /// `None`: nothing of the track is in the part of the title.
    fn new(
        index: &'a TitleIndex,
        lines: &'a [Timeline],
        number: u16,
        clip: Option<&Clip>,
    ) -> Option<Self> {
        let (track, line) = (&index.tracks[usize::from(number)], &lines[usize::from(number)]);
        let (ldus, edits) = match clip {
            None => (0..track.ldus.len(), track.description.edits.clone()),
            Some(clip) => {
                let ldus = clip.ldus(track, line);
                let edits = clip.edits(track, line, &ldus);
                if edits.is_empty() {
                    return None;
                }
                (ldus, edits)
            }
        };
        let chunks = chunks(track, line, ldus.clone());
        Some(Self { number, track, line, pcm: Pcm::of(track, ldus.clone()), ldus, edits, chunks })
    }

    fn ldus(&self) -> impl Iterator<Item = Ldu> + '_ {
        self.track.ldus.range(self.ldus.clone())
    }

    /// The duration of the media in ticks.
    fn media_duration(&self) -> u64 {
        self.ldus().map(|ldu| u64::from(ldu.duration)).sum()
    }

    /// The duration in `moov`: presentation in movie ticks.
    fn duration(&self) -> u64 {
        let all: u64 = self.edit_entries().iter().map(|edit| edit.segment_duration).sum();
        if all > 0 { all } else { movie_ticks(self.line.end, self.line.scale) }
    }

    /// The edit list with all durations made explicit.
    fn edit_entries(&self) -> Vec<ElstEntry> {
        let shown = self.line.end.saturating_sub(self.line.wait);
        let entry = |edit: &Edit| ElstEntry {
            segment_duration: match edit.duration {
                Some(time) => u64::try_from(nearest(time, Timescale(MOVIE_SCALE))).unwrap_or(0),
                None => movie_ticks(shown, self.line.scale),
            },
            media_time: edit.media_time.and_then(|time| u64::try_from(time).ok()),
            media_rate: 1.into(),
        };
        self.edits.iter().map(entry).collect()
    }
}

impl Pcm {
    fn of(track: &TrackIndex, ldus: Range<usize>) -> Option<Self> {
        // QuickTime's code for PCM of 8 bits, `raw `, is that of uncompressed pictures, too.
        let is_sound = track.description.kind == TrackKind::Audio;
        let is_pcm = is_sound && SampleEntry(&track.description.sample_entry).is_pcm();
        if !is_pcm || ldus.is_empty() {
            return None;
        }
        let first = track.ldus.get(ldus.start);
        let bytes = first.size.checked_div(first.duration).filter(|&bytes| bytes > 0)?;
        // Samples can be counted by the instant only if each LDU has whole instants of one size.
        let whole = |ldu: Ldu| ldu.duration.checked_mul(bytes) == Some(ldu.size);
        let all = || track.ldus.range(ldus.clone());
        let instants = u32::try_from(all().map(|ldu| u64::from(ldu.duration)).sum::<u64>()).ok()?;
        all().all(whole).then_some(Self { bytes, instants })
    }
}

/// The chunks as (part, chunk) in the order of the file: by time, then by part. A track that begins
/// late follows the others within its first second, too: players that read the file from its
/// beginning take the first LDU for the start of the clock, and drop what they find later and is
/// earlier.
fn interleave(parts: &[MovieTrack<'_>]) -> Vec<(usize, usize)> {
    let mut order: Vec<_> = parts
        .iter()
        .enumerate()
        .flat_map(|(p, part)| (0..part.chunks.len()).map(move |chunk| (p, chunk)))
        .collect();
    order.sort_by_key(|&(part, chunk)| (parts[part].chunks[chunk].begins, part));
    order
}

/// The bytes of the file before the payload, which starts at `start`.
fn header(
    parts: &[MovieTrack<'_>],
    order: &[(usize, usize)],
    payload: u64,
    wide: bool,
    start: u64,
) -> Vec<u8> {
    let mut places: Vec<Vec<u64>> = vec![Vec::new(); parts.len()];
    let mut at = start;
    for &(part, chunk) in order {
        let bytes = &parts[part].chunks[chunk].bytes;
        places[part].push(at);
        at += bytes.end - bytes.start;
    }
    let quicktime = track_boxes::is_quicktime(parts.iter().map(|part| &part.track.description));
    let mut out = Vec::new();
    track_boxes::write_file_type(&mut out, quicktime, &[b"isom", b"iso4", b"mp41", b"mp42"]);
    write_box(&mut out, b"moov", |out| {
        let duration = parts.iter().map(MovieTrack::duration).max().unwrap_or(0);
        let next_track_id = u32::try_from(parts.len() + 1).expect("tracks are numbered in 16 bits");
        track_boxes::write_movie_header(out, duration, next_track_id);
        for (id, (part, places)) in (1..).zip(parts.iter().zip(&places)) {
            let track_header = TrackHeader {
                id,
                handler: part.track.description.kind.into(),
                // One enabled track of each kind: players play all enabled ones at once.
                enabled: part.number == default_of(parts, part.track.description.kind),
                duration: part.duration(),
                media_duration: part.media_duration(),
                edits: &part.edit_entries(),
                noted_priming: None,
                quicktime,
            };
            let description = &part.track.description;
            let entry = &description.sample_entry;
            track_boxes::write_track(out, description, entry, &track_header, |out| {
                write_tables(out, part, places, wide);
            });
        }
    });
    write_mdat_header(&mut out, payload);
    out
}

/// The number of the track of this kind that players select: the first default one, else the first.
fn default_of(parts: &[MovieTrack<'_>], kind: TrackKind) -> u16 {
    let of_kind = || parts.iter().filter(|part| part.track.description.kind == kind);
    let default = of_kind().find(|part| part.track.description.default).or(of_kind().next());
    default.expect("called for the kind of a part").number
}

/// Writes the sample tables; `places` are the offsets of the part's chunks in the file.
fn write_tables(out: &mut Vec<u8>, part: &MovieTrack<'_>, places: &[u64], wide: bool) {
    if let Some(pcm) = part.pcm {
        return write_pcm_tables(out, part, pcm, places, wide);
    }
    write_atom(out, &Stts { entries: decode_times(part.ldus()) });
    if part.ldus().any(|ldu| ldu.composition_offset != 0) {
        write_atom(out, &Ctts { entries: composition_offsets(part.ldus()) });
    }
    // Without `stss` every sample is a sync sample (ISO/IEC 14496-12, 8.6.2).
    if part.ldus().any(|ldu| !ldu.sync) {
        let numbers = (1..).zip(part.ldus()).filter(|(_, ldu)| ldu.sync);
        write_atom(out, &Stss { entries: numbers.map(|(number, _)| number).collect() });
    }
    let sizes = part.ldus().map(|ldu| ldu.size).collect();
    write_atom(out, &Stsz { samples: StszSamples::Different { sizes } });
    let lengths = part.chunks.iter().map(|chunk| count(chunk.ldus.len()));
    write_chunks(out, lengths, places.to_vec(), wide);
}

/// Writes the tables of PCM. Every LDU is a chunk, so that players that read PCM by chunk get the
/// LDUs as stored.
fn write_pcm_tables(
    out: &mut Vec<u8>,
    part: &MovieTrack<'_>,
    pcm: Pcm,
    places: &[u64],
    wide: bool,
) {
    let Pcm { bytes: size, instants } = pcm;
    let even = SttsEntry { sample_count: instants, sample_delta: 1 };
    write_atom(out, &Stts { entries: vec![even] });
    write_atom(out, &Stsz { samples: StszSamples::Identical { count: instants, size } });
    let mut ldu_places = Vec::with_capacity(part.ldus.len());
    for (chunk, &place) in part.chunks.iter().zip(places) {
        let ldus = part.track.ldus.range(chunk.ldus.clone());
        ldu_places.extend(ldus.map(|ldu| place + ldu.offset - chunk.bytes.start));
    }
    write_chunks(out, part.ldus().map(|ldu| ldu.duration), ldu_places, wide);
}

/// Writes the chunk tables. `lengths` are the samples of each chunk.
fn write_chunks(
    out: &mut Vec<u8>,
    lengths: impl Iterator<Item = u32>,
    places: Vec<u64>,
    wide: bool,
) {
    let mut entries: Vec<StscEntry> = Vec::new();
    for (first_chunk, samples_per_chunk) in (1..).zip(lengths) {
        // An entry holds until the next one, so that only changes are written.
        if entries.last().is_none_or(|last| last.samples_per_chunk != samples_per_chunk) {
            let sample_description_index = 1;
            entries.push(StscEntry { first_chunk, samples_per_chunk, sample_description_index });
        }
    }
    write_atom(out, &Stsc { entries });
    if wide {
        write_atom(out, &Co64 { entries: places });
    } else {
        let narrow = |place: u64| u32::try_from(place).expect("wide places past 4 GiB");
        write_atom(out, &Stco { entries: places.into_iter().map(narrow).collect() });
    }
}

fn decode_times(ldus: impl Iterator<Item = Ldu>) -> Vec<SttsEntry> {
    let mut entries: Vec<SttsEntry> = Vec::new();
    for ldu in ldus {
        match entries.last_mut().filter(|last| last.sample_delta == ldu.duration) {
            Some(last) => last.sample_count += 1,
            None => entries.push(SttsEntry { sample_count: 1, sample_delta: ldu.duration }),
        }
    }
    entries
}

fn composition_offsets(ldus: impl Iterator<Item = Ldu>) -> Vec<CttsEntry> {
    let mut entries: Vec<CttsEntry> = Vec::new();
    for ldu in ldus {
        let sample_offset = i64::from(ldu.composition_offset);
        match entries.last_mut().filter(|last| last.sample_offset == sample_offset) {
            Some(last) => last.sample_count += 1,
            None => entries.push(CttsEntry { sample_count: 1, sample_offset }),
        }
    }
    entries
}

/// Converts ticks to movie ticks, rounded up: an edit must not end before its last LDU.
fn movie_ticks(ticks: i64, scale: Timescale) -> u64 {
    let ticks = u128::try_from(ticks).unwrap_or(0) * u128::from(MOVIE_SCALE);
    u64::try_from(ticks.div_ceil(u128::from(scale.0))).unwrap_or(u64::MAX)
}

fn count(ldus: usize) -> u32 {
    u32::try_from(ldus).expect("an index has fewer LDUs")
}

/// The due time of a chunk: the beginning of its second.
pub(super) fn due(chunk: &Chunk) -> MediaTime {
    MediaTime(i64::try_from(chunk.second).unwrap_or(i64::MAX).saturating_mul(1_000_000_000))
}
