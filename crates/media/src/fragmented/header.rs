//! The `moov` of a fragmented stream: the descriptions of tracks, and the defaults of their
//! fragments.
//!
//! ```text
//! moov ─ mvhd                     movie timescale, for edits
//!      ─ trak ─ tkhd              number, enabled, matrix, size
//!             ─ edts ─ elst       edit list
//!             ─ udta ─ name       title
//!             ─ mdia ─ mdhd       timescale, language
//!                    ─ hdlr       pictures, sound, other
//!                    ─ minf ─ stbl ─ stsd   sample entry, verbatim
//!      ─ mvex ─ trex              defaults of fragments
//! ```
//! `mdhd`, `hdlr` and `stsd` are parsed here, not by `mp4-atom`: QuickTime has its own languages
//! and names in them, and the sample entry must be kept byte for byte.

use super::error::{BadStream, malformed};
use super::fragment::{Defaults, TrackState};
use crate::boxes::{be_u16, be_u32, boxes, find};
use crate::codec::{SampleEntry, is_one_box};
use crate::{Edit, SoundPurposes, TrackDescription, TrackKind, dolby_vision, language};
use mp4_atom::{Decode, Elst, FourCC, Mvhd, Tkhd, Trex};
use units::{MediaTime, Timescale};

/// Parses the payload of a `moov`. `latm`: the numbers of the kept tracks in LATM framing.
pub(super) fn read(moov: &[u8], latm: &[usize]) -> Result<Vec<TrackState>, BadStream> {
    let mvhd = find(moov, b"mvhd").ok_or(BadStream::Malformed("moov"))?;
    let movie_header = Mvhd::decode(&mut &*mvhd.whole).map_err(malformed("mvhd"))?;
    let movie_scale = timescale(movie_header.timescale, "mvhd")?;
    let mut tracks: Vec<TrackState> = Vec::new();
    for found in boxes(moov) {
        let found = found.map_err(malformed("moov"))?;
        if found.kind != FourCC::new(b"trak") {
            continue;
        }
        if tracks.len() == MAX_TRACKS {
            return Err(BadStream::TooManyTracks { limit: MAX_TRACKS });
        }
        let kept = tracks.iter().filter(|track| track.kept.is_some()).count();
        let track = read_track(found.payload, movie_scale, kept, latm.contains(&kept))?;
        // Fragments name their track by this number.
        if tracks.iter().any(|other| other.id == track.id) {
            return Err(BadStream::Malformed("tkhd"));
        }
        tracks.push(track);
    }
    if tracks.iter().all(|track| track.kept.is_none()) {
        return Err(BadStream::NoTracks);
    }
    read_defaults(moov, &mut tracks)?;
    Ok(tracks)
}

fn read_defaults(moov: &[u8], tracks: &mut [TrackState]) -> Result<(), BadStream> {
    // Without `mvex` no fragments follow: all samples are described in the `moov`.
    let mvex = find(moov, b"mvex").ok_or(BadStream::SamplesInHeader)?;
    for found in boxes(mvex.payload) {
        let found = found.map_err(malformed("mvex"))?;
        if found.kind != FourCC::new(b"trex") {
            continue;
        }
        let trex = Trex::decode(&mut &*found.whole).map_err(malformed("trex"))?;
        if let Some(track) = tracks.iter_mut().find(|track| track.id == trex.track_id) {
            track.defaults = Defaults {
                duration: trex.default_sample_duration,
                size: trex.default_sample_size,
                flags: trex.default_sample_flags,
            };
        }
    }
    Ok(())
}

/// Parses a track. `number` is its number among the kept ones, `latm` whether it has LATM framing.
fn read_track(
    trak: &[u8],
    movie: Timescale,
    number: usize,
    latm: bool,
) -> Result<TrackState, BadStream> {
    let bad = || BadStream::Malformed("trak");
    let tkhd = find(trak, b"tkhd").ok_or_else(bad)?;
    let header = Tkhd::decode(&mut &*tkhd.whole).map_err(malformed("tkhd"))?;
    let mdia = find(trak, b"mdia").ok_or_else(bad)?.payload;
    let handler = find(mdia, b"hdlr").ok_or_else(bad)?.payload;
    let kind = match handler.get(8..12) {
        Some(b"vide") => TrackKind::Video,
        Some(b"soun") => TrackKind::Audio,
        // The track is skipped, but fragments with its number are still valid.
        _ => return Ok(TrackState::passed_over(header.track_id)),
    };
    let stbl = find(mdia, b"minf").and_then(|minf| find(minf.payload, b"stbl"));
    let tables = stbl.ok_or_else(bad)?.payload;
    let entry = read_sample_entry(tables, header.track_id)?;
    if !latm && !entry.has_name() {
        return Err(BadStream::NoCodec { track: header.track_id });
    }
    let (scale, language) = read_media_header(mdia)?;
    let edits = match find(trak, b"edts").and_then(|edts| find(edts.payload, b"elst")) {
        Some(list) => read_edits(list.whole, movie)?,
        None => Vec::new(),
    };
    let sound = kind == TrackKind::Audio;
    let matrix = &header.matrix;
    // A player of HEVC would show some pictures of Dolby Vision in wrong colours.
    let sample_entry = dolby_vision::named(entry);
    let description = TrackDescription {
        kind,
        timescale: scale,
        codec: SampleEntry(&sample_entry).codec(),
        sample_entry,
        language,
        title: read_title(trak),
        width: if sound { 0 } else { u32::from(header.width.integer()) },
        height: if sound { 0 } else { u32::from(header.height.integer()) },
        matrix: [
            matrix.a, matrix.b, matrix.u, matrix.c, matrix.d, matrix.v, matrix.x, matrix.y,
            matrix.w,
        ],
        // FFmpeg gives audio a timescale of its sampling rate, so that it replaces a missing one.
        sample_rate: if sound { entry.sample_rate().unwrap_or(scale.0) } else { 0 },
        channels: if sound { entry.channels().unwrap_or(1) } else { 0 },
        edits,
        default: header.enabled,
        // The header has none; `ingest` asks the container of the source.
        purposes: SoundPurposes::default(),
        // Known when the pictures have come.
        gradual_refresh: false,
    };
    Ok(TrackState::new(header.track_id, number, description, latm))
}

/// The title of a track, as FFmpeg writes it: text in `name`, without version and length. Control
/// characters are left out.
fn read_title(trak: &[u8]) -> String {
    let name = find(trak, b"udta").and_then(|udta| find(udta.payload, b"name"));
    let text = name.map(|name| String::from_utf8_lossy(name.payload)).unwrap_or_default();
    let shown = text.chars().filter(|c| !c.is_control()).take(MAX_TITLE);
    shown.collect::<String>().trim().to_owned()
}

/// The only entry of `stsd`; refuses a `stbl` with samples.
fn read_sample_entry(tables: &[u8], track: u32) -> Result<SampleEntry<'_>, BadStream> {
    let bad = || BadStream::Malformed("stsd");
    let samples = find(tables, b"stsz").and_then(|stsz| be_u32(stsz.payload, 8));
    if samples.is_some_and(|count| count > 0) {
        return Err(BadStream::SamplesInHeader);
    }
    let stsd = find(tables, b"stsd").ok_or_else(bad)?.payload;
    let count = be_u32(stsd, 4).ok_or_else(bad)?;
    // Several entries would change the configuration midway, but players get one `init`.
    if count != 1 {
        return Err(BadStream::SampleEntries { track, count });
    }
    let bytes = stsd.get(8..).filter(|bytes| is_one_box(bytes)).ok_or_else(bad)?;
    let entry = SampleEntry(bytes);
    if entry.is_encrypted() {
        return Err(BadStream::Encrypted { track });
    }
    Ok(entry)
}

fn read_media_header(mdia: &[u8]) -> Result<(Timescale, String), BadStream> {
    let bad = || BadStream::Malformed("mdhd");
    let mdhd = find(mdia, b"mdhd").ok_or_else(bad)?.payload;
    // Creation and modification times precede; they and the duration are twice as long in version
    // 1.
    let (scale_at, language_at) = if mdhd.first() == Some(&1) { (20, 32) } else { (12, 20) };
    let scale = be_u32(mdhd, scale_at).ok_or_else(bad)?;
    let code = be_u16(mdhd, language_at).ok_or_else(bad)?;
    Ok((timescale(scale, "mdhd")?, language::unpack(code)))
}

fn read_edits(list: &[u8], movie: Timescale) -> Result<Vec<Edit>, BadStream> {
    let list = Elst::decode(&mut &*list).map_err(malformed("elst"))?;
    if list.entries.len() > MAX_EDITS {
        return Err(BadStream::Malformed("elst"));
    }
    let edit = |entry: &mp4_atom::ElstEntry| {
        let ticks = i64::try_from(entry.segment_duration).map_err(malformed("elst"))?;
        let time = MediaTime::from_ticks(ticks, movie);
        let media_time = entry.media_time.map(i64::try_from).transpose();
        Ok(Edit {
            // In a fragmented file zero means the rest of the track.
            duration: Some(time).filter(|time| time.0 > 0),
            media_time: media_time.map_err(malformed("elst"))?,
        })
    };
    // An empty edit without a length has no effect.
    let says = |edit: &Edit| edit.media_time.is_some() || edit.duration.is_some();
    let edits = list.entries.iter().map(edit).collect::<Result<Vec<_>, _>>()?;
    Ok(edits.into_iter().filter(says).collect())
}

fn timescale(ticks: u32, place: &'static str) -> Result<Timescale, BadStream> {
    if ticks == 0 { Err(BadStream::Malformed(place)) } else { Ok(Timescale(ticks)) }
}

/// The largest number of tracks: more than any programme has; tracks are numbered in 16 bits
/// elsewhere.
const MAX_TRACKS: usize = 256;
/// The largest number of characters of a track's title: more than a menu shows.
const MAX_TITLE: usize = 200;
/// The largest number of edits; FFmpeg writes at most two.
const MAX_EDITS: usize = 64;
