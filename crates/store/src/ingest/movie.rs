//! What FFmpeg's remux loses of MP4 and QuickTime files: cuts by edit lists, parameter sets of
//! further sample entries, and clean apertures.
//!
//! ```text
//!  moov ─ mvhd                      ticks per second of edit durations
//!       ├ trak ┬ tkhd               number
//!       │      ├ mdia ┬ mdhd        ticks per second of places in the media
//!       │      │      ├ hdlr        pictures, sound, or something else
//!       │      │      └ minf ─ stbl ┬ stsd   sample entries: avcC, hvcC, clap ..
//!       │      │                    └ stsc   which of them are used
//!       │      └ edts ─ elst        (duration, place in the media or -1 for a wait) ...
//! ```
//!
//! FFmpeg copies what lies between two edits, so that a film would show what its author cut out. A
//! wait at the beginning and edits that continue each other are kept.
//!
//! Of several sample entries it writes the first, so that what belongs to another one cannot be
//! decoded.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// What is known of a file.
#[derive(Debug, Default)]
pub(super) struct MovieFacts {
    /// Whether a track with pictures or sound leaves out a part in the middle, or repeats one.
    pub(super) cuts_the_middle: bool,
    /// The tracks whose parameter sets are those of several sample entries, by their numbers.
    pub(super) several_entries: BTreeSet<u32>,
    /// The tracks with a clean aperture, and what the box has of it.
    pub(super) apertures: Vec<(u32, [u8; 32])>,
}

impl MovieFacts {
    /// Reads the boxes of a file.
    pub(super) fn of(file: &Path) -> io::Result<Self> {
        let mut file = File::open(file)?;
        let end = file.metadata()?.len();
        let mut movie = Movie::default();
        movie.read(&mut file, 0, end, &mut { MAX_BOXES })?;
        let several = movie.tracks.iter().filter(|track| track.uses_several_records());
        Ok(Self {
            cuts_the_middle: movie.tracks.iter().any(|track| track.is_cut(movie.scale)),
            several_entries: several.map(|track| track.number).collect(),
            apertures: movie.tracks.iter().filter_map(Track::aperture).collect(),
        })
    }
}

#[derive(Debug, Default)]
struct Movie {
    /// Ticks per second of the durations of edits.
    scale: u32,
    tracks: Vec<Track>,
}

#[derive(Debug, Default)]
struct Track {
    /// Whether it has pictures or sound.
    plays: bool,
    /// Ticks per second of its media.
    scale: u32,
    edits: Vec<(u64, i64)>,
    number: u32,
    entries: Vec<PictureEntry>,
    /// The places of the entries that are used, from 1; empty: not known.
    used: BTreeSet<u32>,
}

/// What is kept of a sample entry of pictures.
#[derive(Debug, Default, PartialEq, Eq)]
struct PictureEntry {
    /// The record with parameter sets, if it has one.
    record: Vec<u8>,
    aperture: Option<[u8; 32]>,
}

impl Movie {
    /// Reads the boxes from `at` to `end`; `left` is the number that may still be read.
    fn read(&mut self, file: &mut File, mut at: u64, end: u64, left: &mut u32) -> io::Result<()> {
        while at + 8 <= end && *left > 0 {
            *left -= 1;
            let header: [u8; 16] = read(file, at, 16.min(end - at))?;
            let short = u32::from_be_bytes(*header.first_chunk().expect("16 bytes"));
            let long = u64::from_be_bytes(*header[8..].first_chunk().expect("16 bytes"));
            let (head, size) = match short {
                0 => (8, end - at),
                1 => (16, long),
                short => (8, u64::from(short)),
            };
            let next = at.saturating_add(size).min(end);
            if size < head {
                return Ok(());
            }
            let content = at + head;
            let length = next.saturating_sub(content);
            match &header[4..8] {
                b"trak" => {
                    self.tracks.push(Track::default());
                    self.read(file, content, next, left)?;
                }
                b"moov" | b"mdia" | b"edts" | b"minf" | b"stbl" => {
                    self.read(file, content, next, left)?;
                }
                b"mvhd" => self.scale = timescale(read(file, content, length.min(32))?),
                kind => {
                    if let Some(track) = self.tracks.last_mut() {
                        track.take(kind, file, content, length)?;
                    }
                }
            }
            at = next;
        }
        Ok(())
    }
}

impl Track {
    fn take(&mut self, kind: &[u8], file: &mut File, at: u64, length: u64) -> io::Result<()> {
        match kind {
            b"mdhd" => self.scale = timescale(read(file, at, length.min(32))?),
            b"tkhd" => {
                let header: [u8; 32] = read(file, at, length.min(32))?;
                let at = if header[0] == 1 { 20 } else { 12 };
                self.number = u32::from_be_bytes(*header[at..].first_chunk().expect("32 bytes"));
            }
            b"stsd" => self.entries = picture_entries(&read_list(file, at, length)?),
            b"stsc" => {
                let list = read_list(file, at, length)?;
                let runs = list.get(8..).unwrap_or_default().chunks_exact(12);
                let entry = |run: &[u8]| u32::from_be_bytes(*run[8..].first_chunk().expect("12"));
                self.used = runs.map(entry).collect();
            }
            b"hdlr" => {
                let head: [u8; 12] = read(file, at, length.min(12))?;
                // The handler of a data reference comes later, and names no media.
                self.plays |= [b"vide", b"soun"].iter().any(|it| head.ends_with(*it));
            }
            b"elst" => self.edits = entries(&read_list(file, at, length)?),
            _ => {}
        }
        Ok(())
    }

    /// The sample entries that are used.
    fn used_entries(&self) -> impl Iterator<Item = &PictureEntry> {
        let numbered = (1..).zip(&self.entries);
        let is_used = |number| self.used.is_empty() || self.used.contains(&number);
        numbered.filter(move |(number, _)| is_used(*number)).map(|(_, entry)| entry)
    }

    /// Whether its pictures need the parameter sets of several sample entries.
    fn uses_several_records(&self) -> bool {
        let mut records = self.used_entries().map(|entry| &entry.record);
        let first = records.next();
        self.plays && records.any(|record| Some(record) != first)
    }

    /// The number and the clean aperture of a track, if it has one.
    fn aperture(&self) -> Option<(u32, [u8; 32])> {
        self.used_entries().next()?.aperture.map(|aperture| (self.number, aperture))
    }

    /// Whether the media between two edits is left out or shown again.
    fn is_cut(&self, movie: u32) -> bool {
        let shown = self.edits.iter().filter(|(length, place)| *length > 0 && *place >= 0);
        let shown: Vec<_> = shown.collect();
        let seconds = |ticks: f64, scale: u32| ticks / f64::from(scale.max(1));
        #[expect(clippy::cast_precision_loss, reason = "to tell a cut from rounding")]
        let ends = |(length, place): (u64, i64)| {
            seconds(place as f64, self.scale) + seconds(length as f64, movie)
        };
        #[expect(clippy::cast_precision_loss, reason = "to tell a cut from rounding")]
        let begins = |(_, place): (u64, i64)| seconds(place as f64, self.scale);
        self.plays
            && shown.windows(2).any(|pair| (begins(*pair[1]) - ends(*pair[0])).abs() > ROUNDING)
    }
}

/// The bytes of a list, as far as lists are read.
fn read_list(file: &mut File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut list = Vec::new();
    file.take(length.min(MAX_LIST)).read_to_end(&mut list)?;
    Ok(list)
}

/// The sample entries of a description of pictures; nothing is found in those of other tracks.
fn picture_entries(list: &[u8]) -> Vec<PictureEntry> {
    let entry = |(_, content): ([u8; 4], &[u8])| {
        let mut found = PictureEntry::default();
        for (kind, content) in children(content.get(PICTURE_FIELDS..).unwrap_or_default()) {
            match &kind {
                b"avcC" | b"hvcC" => found.record = content.to_vec(),
                b"clap" => found.aperture = content.first_chunk().copied(),
                _ => {}
            }
        }
        found
    };
    children(list.get(8..).unwrap_or_default()).map(entry).collect()
}

/// The boxes in these bytes, each with its kind and content, up to the first that is none.
fn children(mut bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    std::iter::from_fn(move || {
        let size = usize::try_from(u32::from_be_bytes(*bytes.first_chunk()?)).ok()?;
        let kind = *bytes.get(4..)?.first_chunk()?;
        let content = bytes.get(8..size)?;
        bytes = &bytes[size..];
        Some((kind, content))
    })
}

/// The bytes at a place, zero where the file ends earlier.
fn read<const N: usize>(file: &mut File, at: u64, length: u64) -> io::Result<[u8; N]> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::with_capacity(N);
    file.take(length.min(N as u64)).read_to_end(&mut bytes)?;
    bytes.resize(N, 0);
    Ok(*bytes.first_chunk().expect("made so long"))
}

/// The ticks per second in the header of a movie or of media.
fn timescale(header: [u8; 32]) -> u32 {
    // Behind version, flags and two times of 32 or of 64 bits.
    let at = if header[0] == 1 { 20 } else { 12 };
    u32::from_be_bytes(*header[at..].first_chunk().expect("32 bytes"))
}

/// Durations and places of an edit list.
fn entries(list: &[u8]) -> Vec<(u64, i64)> {
    let long = list.first() == Some(&1);
    let entries = list.get(8..).unwrap_or_default().chunks_exact(if long { 20 } else { 12 });
    let read = |entry: &[u8]| match long {
        true => (
            u64::from_be_bytes(*entry.first_chunk().expect("20 bytes")),
            i64::from_be_bytes(*entry[8..].first_chunk().expect("20 bytes")),
        ),
        false => (
            u64::from(u32::from_be_bytes(*entry.first_chunk().expect("12 bytes"))),
            i64::from(i32::from_be_bytes(*entry[4..].first_chunk().expect("12 bytes"))),
        ),
    };
    entries.map(read).collect()
}

/// The most boxes of a file that are read: thousands of tracks.
const MAX_BOXES: u32 = 100_000;

/// The bytes of a sample entry of pictures, behind its header, in front of its boxes.
const PICTURE_FIELDS: usize = 78;

/// The longest list that is read, in bytes.
const MAX_LIST: u64 = 1 << 20;

/// The difference in seconds between edits that continue each other: some writers round durations
/// to a sixteenth of a second or less.
const ROUNDING: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(edits: &[(u64, i64)]) -> bool {
        let track = Track { plays: true, scale: 48_000, edits: edits.to_vec(), ..Track::default() };
        track.is_cut(1000)
    }

    #[test]
    fn waits_and_edits_that_continue_each_other_cut_nothing() {
        let second = 48_000;
        assert!(!cut(&[]));
        assert!(!cut(&[(3000, 1024)]));
        assert!(!cut(&[(500, -1), (3000, 1024)]), "a wait");
        assert!(!cut(&[(1000, 0), (2000, second)]), "one continues the other");
        assert!(!cut(&[(1000, 0), (0, 9), (2000, second + 600)]), "by rounded times");
        assert!(cut(&[(1000, 0), (1000, 2 * second)]), "the second second is left out");
        assert!(cut(&[(1000, 0), (1000, 0)]), "shown twice");
        let edits = vec![(1000, 0), (1000, 9)];
        let text = Track { plays: false, scale: 1, edits, ..Track::default() };
        assert!(!text.is_cut(1000));
    }

    #[test]
    fn parameter_sets_of_several_entries_count_where_these_are_used() {
        let entry = |record: &[u8]| PictureEntry { record: record.to_vec(), aperture: None };
        let several = |entries: &[&[u8]], used: &[u32]| {
            let entries = entries.iter().map(|record| entry(record)).collect();
            let used = used.iter().copied().collect();
            Track { plays: true, entries, used, ..Track::default() }.uses_several_records()
        };
        assert!(!several(&[], &[]));
        assert!(!several(&[b"a"], &[1]));
        assert!(several(&[b"a", b"b"], &[1, 2]));
        assert!(several(&[b"a", b"b"], &[]), "fragments say it elsewhere");
        assert!(!several(&[b"a", b"b"], &[2]));
        assert!(!several(&[b"a", b"a"], &[1, 2]));
    }

    #[test]
    fn sample_entries_of_pictures_tell_their_sets_and_aperture() {
        let boxed = |kind: &[u8; 4], content: &[u8]| {
            let size = u32::try_from(content.len() + 8).unwrap();
            [&size.to_be_bytes(), &kind[..], content].concat()
        };
        let clap = boxed(b"clap", &[7; 32]);
        let fields = [0; PICTURE_FIELDS];
        let first = boxed(b"avc1", &[&fields[..], &boxed(b"avcC", b"sets"), &clap].concat());
        let second = boxed(b"apcn", &[&fields[..], &[0; 4]].concat());
        let list = [&[0, 0, 0, 0, 0, 0, 0, 2][..], &first, &second].concat();
        let found = picture_entries(&list);
        let wanted = PictureEntry { record: b"sets".to_vec(), aperture: Some([7; 32]) };
        assert_eq!(found, [wanted, PictureEntry::default()]);
        for length in 0..list.len() {
            assert!(picture_entries(&list[..length]).len() < 2, "{length}");
        }
    }

    #[test]
    fn lists_have_times_of_32_or_64_bits() {
        let short =
            [&[0, 0, 0, 0, 0, 0, 0, 1][..], &[0, 0, 3, 232, 255, 255, 255, 255, 0, 1, 0, 0]];
        assert_eq!(entries(&short.concat()), [(1000, -1)]);
        let long = [&[1, 0, 0, 0, 0, 0, 0, 1][..], &[0, 0, 0, 0, 0, 0, 3, 232], &[255; 8], &[0; 4]];
        assert_eq!(entries(&long.concat()), [(1000, -1)]);
        assert_eq!(entries(&[0; 3]), []);
    }
}
