//! The edit lists of MP4 and QuickTime files, as far as FFmpeg's remux loses them.
//!
//! ```text
//!  moov ─ mvhd                      ticks per second of edit durations
//!       ├ trak ┬ mdia ┬ mdhd        ticks per second of places in the media
//!       │      │      └ hdlr        pictures, sound, or something else
//!       │      └ edts ─ elst        (duration, place in the media or -1 for a wait) ...
//! ```
//!
//! FFmpeg copies what lies between two edits, so that a film would show what its author cut out. A
//! wait at the beginning and edits that continue each other are kept.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Whether a track with pictures or sound leaves out a part in the middle, or repeats one.
pub(super) fn cuts_the_middle(file: &Path) -> io::Result<bool> {
    let mut file = File::open(file)?;
    let end = file.metadata()?.len();
    let mut movie = Movie::default();
    movie.read(&mut file, 0, end, &mut { MAX_BOXES })?;
    Ok(movie.tracks.iter().any(|track| track.is_cut(movie.scale)))
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
                b"moov" | b"mdia" | b"edts" => self.read(file, content, next, left)?,
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
            b"hdlr" => {
                let head: [u8; 12] = read(file, at, length.min(12))?;
                // The handler of a data reference comes later, and names no media.
                self.plays |= [b"vide", b"soun"].iter().any(|it| head.ends_with(*it));
            }
            b"elst" => {
                file.seek(SeekFrom::Start(at))?;
                let mut list = Vec::new();
                file.take(length.min(MAX_LIST)).read_to_end(&mut list)?;
                self.edits = entries(&list);
            }
            _ => {}
        }
        Ok(())
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

/// The longest list that is read, in bytes.
const MAX_LIST: u64 = 1 << 20;

/// The difference in seconds between edits that continue each other: some writers round durations
/// to a sixteenth of a second or less.
const ROUNDING: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(edits: &[(u64, i64)]) -> bool {
        Track { plays: true, scale: 48_000, edits: edits.to_vec() }.is_cut(1000)
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
        let text = Track { plays: false, scale: 1, edits: vec![(1000, 0), (1000, 9)] };
        assert!(!text.is_cut(1000));
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
