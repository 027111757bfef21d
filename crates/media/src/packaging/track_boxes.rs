//! The common boxes of segments and of progressive files: `ftyp`, `mvhd`, and a `trak` with the
//! sample entry as stored.
//!
//! ```text
//! trak ─ tkhd
//!      ─ edts ─ elst
//!      ─ mdia ─ mdhd
//!             ─ hdlr
//!             ─ minf ─ vmhd, smhd or sthd
//!                    ─ dinf ─ dref
//!                    ─ stbl ─ stsd ─ the sample entry, verbatim
//!                           ─ the caller's tables
//!      ─ udta ─ name      the track's title, if it has one
//!      ─ meta ─ ilst      the priming of sound in segments
//! ```
//! `mdhd` and `hdlr` are written directly, because their QuickTime forms differ.

use crate::boxes::{write_atom, write_box};
use crate::codec::SampleEntry;
use crate::{TrackDescription, TrackKind, language};
use mp4_atom::{
    Dinf, Dref, DrefEntry, Elst, ElstEntry, FourCC, Ftyp, Matrix, Mvhd, Smhd, Tkhd, Url, Vmhd,
};

/// The ticks per second of the movie's own clock, for edits and durations: fine enough that any
/// track's ticks are recovered by rounding.
pub(super) const MOVIE_SCALE: u32 = 1_000_000;

/// How players present a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handler {
    /// As pictures.
    Video,
    /// As sound.
    Sound,
    /// As text over the pictures.
    Subtitles,
}

impl From<TrackKind> for Handler {
    fn from(kind: TrackKind) -> Self {
        if kind == TrackKind::Audio { Self::Sound } else { Self::Video }
    }
}

/// The content of a `trak` besides its track's description.
pub(super) struct TrackHeader<'a> {
    /// The track number, from one.
    pub(super) id: u32,
    pub(super) handler: Handler,
    pub(super) enabled: bool,
    /// The duration in movie ticks; zero if it is given by fragments.
    pub(super) duration: u64,
    /// The duration in track ticks; zero if it is given by fragments.
    pub(super) media_duration: u64,
    pub(super) edits: &'a [ElstEntry],
    /// The samples to name as priming in a note for FFmpeg.
    pub(super) noted_priming: Option<u32>,
    /// Whether to use QuickTime's forms instead of ISO's.
    pub(super) quicktime: bool,
}

/// Whether a file with these tracks must be declared as QuickTime.
pub(super) fn is_quicktime<'a>(tracks: impl IntoIterator<Item = &'a TrackDescription>) -> bool {
    tracks.into_iter().any(|track| SampleEntry(&track.sample_entry).is_quicktime())
}

/// The brand box: QuickTime's, or `brands` of ISO, the first as the major one.
pub(super) fn write_file_type(out: &mut Vec<u8>, quicktime: bool, brands: &[&[u8; 4]]) {
    let brands = if quicktime { &[b"qt  "] } else { brands };
    let compatible_brands = brands.iter().map(|brand| FourCC::new(brand)).collect();
    let major_brand = FourCC::new(brands[0]);
    write_atom(out, &Ftyp { major_brand, minor_version: 512, compatible_brands });
}

pub(super) fn write_movie_header(out: &mut Vec<u8>, duration: u64, next_track_id: u32) {
    write_atom(
        out,
        &Mvhd {
            creation_time: 0,
            modification_time: 0,
            timescale: MOVIE_SCALE,
            duration,
            rate: 1.into(),
            volume: 1.into(),
            matrix: Matrix::default(),
            next_track_id,
        },
    );
}

/// Writes a `trak` with this sample entry; `tables` writes the boxes after `stsd` in `stbl`.
pub(super) fn write_track(
    out: &mut Vec<u8>,
    track: &TrackDescription,
    sample_entry: &[u8],
    header: &TrackHeader<'_>,
    tables: impl FnOnce(&mut Vec<u8>),
) {
    write_box(out, b"trak", |out| {
        write_track_header(out, track, header);
        if !header.edits.is_empty() {
            let list = Elst { entries: header.edits.to_vec() };
            write_box(out, b"edts", |out| write_atom(out, &list));
        }
        write_box(out, b"mdia", |out| {
            write_media_header(out, track, header.media_duration);
            write_handler(out, header.handler, header.quicktime);
            write_box(out, b"minf", |out| {
                write_media_information(out, header.handler);
                write_box(out, b"stbl", |out| {
                    write_box(out, b"stsd", |out| {
                        // Version, flags and a count of one; the stored entry follows as it is.
                        out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1]);
                        out.extend_from_slice(sample_entry);
                    });
                    tables(out);
                });
            });
        });
        if !track.title.is_empty() {
            write_box(out, b"udta", |out| {
                write_box(out, b"name", |out| out.extend_from_slice(track.title.as_bytes()));
            });
        }
        if let Some(priming) = header.noted_priming {
            write_gapless_note(out, priming);
        }
    });
}

/// Writes iTunes' note with the number of priming samples. FFmpeg applies edit lists of AAC in
/// progressive files only and needs the note in fragmented ones; players that apply the edit list
/// ignore it. The note is a property of the track, in a `meta` of the `trak`: FFmpeg reads it there
/// as in the movie's `udta`, where GStreamer logs that it does not know this tag.
fn write_gapless_note(out: &mut Vec<u8>, priming: u32) {
    let zeros = " 00000000".repeat(8);
    let value = format!(" 00000000 {priming:08X} 00000000 0000000000000000{zeros}");
    let text = |out: &mut Vec<u8>, kind, text: &str| {
        write_box(out, kind, |out| {
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(text.as_bytes());
        });
    };
    write_box(out, b"meta", |out| {
        out.extend_from_slice(&[0; 4]);
        write_box(out, b"hdlr", |out| {
            out.extend_from_slice(&[0; 8]);
            out.extend_from_slice(b"mdirappl");
            out.extend_from_slice(&[0; 9]);
        });
        write_box(out, b"ilst", |out| {
            write_box(out, b"----", |out| {
                text(out, b"mean", "com.apple.iTunes");
                text(out, b"name", "iTunSMPB");
                write_box(out, b"data", |out| {
                    // The data type (UTF-8), and any country and language.
                    out.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0]);
                    out.extend_from_slice(value.as_bytes());
                });
            });
        });
    });
}

fn write_track_header(out: &mut Vec<u8>, track: &TrackDescription, header: &TrackHeader<'_>) {
    let sound = header.handler == Handler::Sound;
    let [a, b, u, c, d, v, x, y, w] = track.matrix;
    let pixels = |size: u32| u16::try_from(size).unwrap_or(u16::MAX).into();
    write_atom(
        out,
        &Tkhd {
            creation_time: 0,
            modification_time: 0,
            track_id: header.id,
            duration: header.duration,
            layer: 0,
            // Tracks of one kind are alternatives to each other.
            alternate_group: u16::from(sound),
            enabled: header.enabled,
            in_movie: true,
            size_is_aspect_ratio: false,
            volume: u8::from(sound).into(),
            matrix: Matrix { a, b, u, c, d, v, x, y, w },
            width: pixels(track.width),
            height: pixels(track.height),
        },
    );
}

/// Writes version 1 of `mdhd`: times, then scale, duration, language.
fn write_media_header(out: &mut Vec<u8>, track: &TrackDescription, duration: u64) {
    write_box(out, b"mdhd", |out| {
        out.extend_from_slice(&[1, 0, 0, 0]);
        out.extend_from_slice(&[0; 16]);
        out.extend_from_slice(&track.timescale.0.to_be_bytes());
        out.extend_from_slice(&duration.to_be_bytes());
        out.extend_from_slice(&language::pack(&track.language).to_be_bytes());
        out.extend_from_slice(&[0, 0]);
    });
}

/// Writes `hdlr`. QuickTime has a component type and a length before the name; ISO ends the name
/// with zero.
fn write_handler(out: &mut Vec<u8>, handler: Handler, quicktime: bool) {
    let (handler, name) = match handler {
        Handler::Video => (b"vide", "VideoHandler"),
        Handler::Sound => (b"soun", "SoundHandler"),
        Handler::Subtitles => (b"subt", "SubtitleHandler"),
    };
    write_box(out, b"hdlr", |out| {
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(if quicktime { b"mhlr" } else { &[0; 4] });
        out.extend_from_slice(handler);
        out.extend_from_slice(&[0; 12]);
        if quicktime {
            out.push(u8::try_from(name.len()).expect("a short name"));
            out.extend_from_slice(name.as_bytes());
        } else {
            out.extend_from_slice(name.as_bytes());
            out.push(0);
        }
    });
}

fn write_media_information(out: &mut Vec<u8>, handler: Handler) {
    match handler {
        Handler::Video => write_atom(out, &Vmhd::default()),
        Handler::Sound => write_atom(out, &Smhd::default()),
        Handler::Subtitles => write_box(out, b"sthd", |out| out.extend_from_slice(&[0; 4])),
    }
    // The data is in this file.
    let here = DrefEntry::Url(Url::default());
    write_atom(out, &Dinf { dref: Dref { entries: vec![here] } });
}
