//! Signs that a file is damaged or cut short: FFmpeg's messages, tracks shorter than their header
//! declares, and headers that FFmpeg does not compare with the file.
//!
//! FFmpeg ends successfully on most damaged files, so that its exit status tells nothing.

use super::plan::RemuxPlan;
use super::probe::{ProbeOutput, ProbedStream};
use super::process::TAIL;
use media::{LduIndex, TrackDescription, TrackKind};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use units::MediaTime;

/// FFmpeg's messages without those that tell nothing about the file's content; `late_start`: the
/// file begins between two key frames.
pub(super) fn serious(complaints: &str, late_start: bool) -> String {
    let harmless = |line: &str| {
        let line = line.to_lowercase();
        let known = |signs: &[&str]| signs.iter().any(|sign| line.contains(sign));
        known(HARMLESS) || (late_start && known(LATE_START))
    };
    let lines: Vec<&str> = complaints.lines().collect();
    let mut kept: Vec<&str> = Vec::new();
    let mut before_is_harmless = false;
    for line in lines {
        // A repetition refers to the message before it.
        let repeated = line.contains("Last message repeated");
        before_is_harmless = if repeated { before_is_harmless } else { harmless(line) };
        if !before_is_harmless {
            kept.push(line);
        }
    }
    kept.join("\n").trim().to_owned()
}

/// The last of FFmpeg's messages that tell of the file's content: errors, and warnings of data that
/// it has left out. It is to say each with its level.
pub(super) fn telling(stderr: impl Read) -> String {
    let (mut kept, mut is_kept) = (String::new(), false);
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let level = LEVELS.iter().find(|level| line.contains(**level));
        // A line without a level belongs to the message before.
        is_kept = level.map_or(is_kept, |level| {
            *level != WARNING || LEFT_OUT.iter().any(|sign| line.to_lowercase().contains(sign))
        });
        if is_kept {
            kept += &line.replacen(level.copied().unwrap_or_default(), "", 1);
            kept.push('\n');
            // Whole lines of it.
            while kept.len() > TAIL {
                let end = kept.find('\n').map_or(kept.len(), |at| at + 1);
                kept.drain(..end);
            }
        }
    }
    kept.trim().to_owned()
}

/// Whether FFmpeg's messages mean damage of the file, rather than something that it tolerated.
pub(super) fn is_damage(complaints: &str) -> bool {
    let is_sign = |line: &str| DAMAGE.iter().any(|sign| line.contains(sign));
    // Transport streams are made for paths that lose packets.
    complaints.to_lowercase().lines().any(|line| !line.contains(LOST_PACKETS) && is_sign(line))
}

/// What the tracks or the file lack by the file's own header, in words.
pub(super) fn missing(
    found: &ProbeOutput,
    plan: &RemuxPlan,
    tracks: &[(TrackDescription, LduIndex)],
    file: &Path,
) -> Vec<String> {
    let mut missing = Vec::new();
    for (taken, (track, ldus)) in plan.streams.iter().zip(tracks) {
        // Only the first file was probed as `found`; a rendition of another file is compared with
        // nothing.
        let stream = found.streams.iter().find(|s| taken.file == 0 && s.index == taken.index);
        let declared = stream.and_then(|stream| found.declared(stream));
        let name = match stream {
            Some(stream) => format!("its {}", stream.describe("")),
            None => format!("{} stream {} of a rendition", taken.codec, taken.index),
        };
        let there = seconds(track, ldus);
        let declares = |declared: f64| format!("the header declares {declared:.1} s");
        match declared {
            _ if ldus.is_empty() => {
                let declares = declared.map_or(String::new(), |d| format!(", {}", declares(d)));
                missing.push(format!("{name} is empty{declares}"));
            }
            Some(declared) if is_short(there, declared) => {
                missing.push(format!("{name} ends after {there:.1} s, {}", declares(declared)));
            }
            _ => {}
        }
    }
    let longest = tracks.iter().map(|(track, ldus)| seconds(track, ldus)).fold(0.0, f64::max);
    if let Some(declared) = found.declared_in_all().filter(|it| is_short(longest, *it)) {
        missing.push(format!("it ends after {longest:.1} s, the header declares {declared:.1} s"));
    }
    // The end of the file is read only where the durations say nothing, as many headers have none.
    if missing.is_empty() {
        missing.extend(cut_short(&found.format.format_name, file));
    }
    missing
}

/// A note on the track that ends first, where others last much longer. Players on Media Source
/// Extensions need data of each track to go on.
pub(super) fn early_end(tracks: &[(TrackDescription, LduIndex)]) -> Option<String> {
    let ends = tracks.iter().map(|(track, ldus)| {
        let waits = track.edits.iter().take_while(|edit| edit.media_time.is_none());
        let wait: f64 = waits.filter_map(|edit| edit.duration).map(MediaTime::as_secs_f64).sum();
        wait + seconds(track, ldus)
    });
    let last = ends.clone().fold(0.0, f64::max);
    let (number, first) = ends.enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let kind = if tracks[number].0.kind == TrackKind::Video { "video" } else { "audio" };
    (last - first > EARLY).then(|| {
        format!(
            "track {number} ({kind}) ends {:.0} s before the title: over HLS some players stop \
             there, from MP4 they play on",
            last - first
        )
    })
}

impl ProbeOutput {
    /// The duration in seconds that the container's header declares for a stream, where FFmpeg
    /// passes it on and it is reliable.
    fn declared(&self, stream: &ProbedStream) -> Option<f64> {
        let count = || stream.nb_frames.as_ref()?.parse::<f64>().ok();
        let name = self.format.format_name.as_str();
        match name {
            _ if name.starts_with("mov") => stream.seconds(),
            // The header has a number of frames, each of one unit of time: also empty ones.
            "avi" if stream.is_video() => {
                count().zip(stream.time_unit()).map(|(count, unit)| count * unit)
            }
            "aiff" | "caf" if stream.codec().starts_with("pcm_") => {
                let rate = stream.sample_rate.as_ref()?.parse::<f64>().ok()?;
                count().map(|count| count / rate).filter(|seconds| seconds.is_finite())
            }
            _ => None,
        }
    }

    /// The duration in seconds of the whole file, if its format has it in the header and FFmpeg
    /// does not itself detect a premature end.
    fn declared_in_all(&self) -> Option<f64> {
        let telling = matches!(self.format.format_name.as_str(), "flac" | "mxf" | "au" | "flv");
        self.format.duration.as_ref().filter(|_| telling)?.parse().ok()
    }

    /// Whether the chosen video begins between two key frames.
    pub(super) fn starts_late(&self, plan: &RemuxPlan) -> bool {
        let videos = plan.streams.iter().filter(|taken| taken.video && taken.file == 0);
        videos.map(|taken| taken.index).any(|index| {
            let first = self.packets.iter().find(|packet| packet.stream_index == index);
            first.is_some_and(|packet| !packet.flags.contains('K'))
        })
    }
}

fn seconds(track: &TrackDescription, ldus: &LduIndex) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "to tell hours from seconds")]
    let ticks = ldus.duration_ticks() as f64;
    ticks / f64::from(track.timescale.0)
}

/// Whether a track ends long before its declared end.
fn is_short(there: f64, declared: f64) -> bool {
    declared - there > ROUNDING + declared / 100.0
}

/// What a file lacks whose own structure shows its end, where FFmpeg takes the end of the file for
/// the end of the content.
fn cut_short(format: &str, file: &Path) -> Option<String> {
    let mut file = File::open(file).ok()?;
    let length = file.metadata().ok()?.len();
    match format {
        "wav" | "w64" => {
            let mut head = Vec::new();
            (&mut file).take(WAVE_HEAD).read_to_end(&mut head).ok()?;
            let end = if format == "wav" { wave_end(&head)? } else { wave64_end(&head)? };
            let lacks = end.checked_sub(length).filter(|lacks| *lacks > 0)?;
            Some(format!("its header declares {lacks} bytes more than the file has"))
        }
        "ogg" => {
            let tail = ogg_tail(&mut file, length)?;
            let last = tail.windows(5).rposition(|bytes| bytes == b"OggS\0")?;
            let whole = ogg_page(&tail[last..]).is_some_and(|size| size <= tail.len() - last);
            (!whole).then(|| "its last page is cut short".to_owned())
        }
        _ => None,
    }
}

/// A note on an Ogg file whose pages are whole, and whose last one is not marked as the end of a
/// stream (RFC 3533, 6): recordings of live streams are like this, and also files that were cut
/// between two pages.
pub(super) fn unmarked_end(format: &str, file: &Path) -> Option<String> {
    if format != "ogg" {
        return None;
    }
    let mut file = File::open(file).ok()?;
    let length = file.metadata().ok()?.len();
    let tail = ogg_tail(&mut file, length)?;
    let last = tail.windows(5).rposition(|bytes| bytes == b"OggS\0")?;
    let marked = tail.get(last + 5).is_some_and(|flags| flags & 4 != 0);
    (!marked).then(|| {
        "its last page is not marked as the end of a stream, so that nothing shows whether more \
         followed"
            .to_owned()
    })
}

/// The last bytes of an Ogg file, which contain its last page.
fn ogg_tail(file: &mut File, length: u64) -> Option<Vec<u8>> {
    file.seek(SeekFrom::Start(length.saturating_sub(OGG_TAIL))).ok()?;
    let mut tail = Vec::new();
    file.take(OGG_TAIL).read_to_end(&mut tail).ok()?;
    Some(tail)
}

/// The size of an Ogg page by its header: 27 bytes, the last of them the number of segments; their
/// sizes; the segments.
fn ogg_page(page: &[u8]) -> Option<usize> {
    let segments = page.get(27..27 + usize::from(*page.get(26)?))?;
    Some(27 + segments.len() + segments.iter().map(|size| usize::from(*size)).sum::<usize>())
}

/// The end of the samples in a WAVE file by its header; `None` if the writer did not know it.
fn wave_end(head: &[u8]) -> Option<u64> {
    let number = |at: usize| Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?));
    let mut at = 12;
    let mut long = None;
    loop {
        let size = number(at + 4)?;
        match head.get(at..at + 4)? {
            // The sizes of files of more than 4 GiB (EBU Tech 3306).
            b"ds64" => long = head.get(at + 16..).and_then(|it| it.first_chunk().copied()),
            b"data" => {
                let start = u64::try_from(at + 8).ok()?;
                return match (size, long) {
                    (u32::MAX, Some(long)) => start.checked_add(u64::from_le_bytes(long)),
                    // Writers to a pipe put a very large number there.
                    (0 | UNKNOWN_SIZE.., _) => None,
                    _ => Some(start + u64::from(size)),
                };
            }
            _ => {}
        }
        at += 8 + usize::try_from(size.next_multiple_of(2)).ok()?;
    }
}

/// The end of the samples in a Sony Wave64 file by its header.
fn wave64_end(head: &[u8]) -> Option<u64> {
    let mut at = 40;
    loop {
        let size = u64::from_le_bytes(*head.get(at + 16..)?.first_chunk()?);
        if head.get(at..at + 4)? == b"data" {
            return u64::try_from(at).ok()?.checked_add(size);
        }
        at = at.checked_add(usize::try_from(size.max(24).next_multiple_of(8)).ok()?)?;
    }
}

/// Parts of messages about tags and about what FFmpeg repairs, in lower case.
const HARMLESS: &[&str] = &[
    "frame, skipped",
    "incorrect bom value",
    "error reading frame",
    "invalid concatenated file detected",
];

/// Parts of the messages of FFmpeg's decoders, which look for the size of the pictures, before the
/// first key frame, in lower case.
const LATE_START: &[&str] = &[
    "invalid frame dimensions 0x0",
    "non-existing pps",
    "non-existing sps",
    "decode_slice_header error",
    "no frame!",
    "mmco: unref short failure",
    "pps id out of range",
    "sps id out of range",
    "error parsing nal unit",
];

/// Parts of the messages of FFmpeg's demuxers and parsers for truncated or damaged files.
const DAMAGE: &[&str] = &[
    "partial file",
    "ended prematurely",
    "truncat",
    "corrupt",
    "invalid",
    "missing picture",
    "error reading",
    "broken header",
    "wrong sample count",
    "error applying bitstream filters",
    "i/o error",
    "input/output error",
    "read error",
    "end of file",
    "exceeds containing master element",
    EDIT_UNITS_LOST,
];

/// The warning of FFmpeg's demuxer of MXF for frames that it passes over, in lower case.
const EDIT_UNITS_LOST: &str = "edit unit sync lost";

/// The warning for packets of a transport stream of which something is missing, in lower case.
const LOST_PACKETS: &str = "packet corrupt";

/// Parts of FFmpeg's warnings of data that it has left out, in lower case.
const LEFT_OUT: [&str; 2] = [EDIT_UNITS_LOST, LOST_PACKETS];

/// How FFmpeg names the level of a message.
const LEVELS: [&str; 4] = ["[error] ", "[fatal] ", "[panic] ", WARNING];
const WARNING: &str = "[warning] ";

/// The seconds between the ends of two tracks from which on a viewer notices.
const EARLY: f64 = 5.0;

/// The error in seconds of the header of an intact file: a packet or two.
const ROUNDING: f64 = 0.5;

/// The bytes in which the samples of a WAVE file begin: pictures and scripts may precede them.
const WAVE_HEAD: u64 = 16 << 20;

/// Sizes from here on stand for an unknown size.
const UNKNOWN_SIZE: u32 = 0x7fff_0000;

/// The bytes that hold the last page of an Ogg file: a page has at most 65,307 bytes.
const OGG_TAIL: u64 = 1 << 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_tags_and_late_starts_are_no_damage() {
        let cases = [
            ("[mp3 @ 0x5] Error reading comment frame, skipped", false, ""),
            ("Invalid frame dimensions 0x0.\n    Last message repeated 4 times", true, ""),
            ("Invalid frame dimensions 0x0.", false, "Invalid frame dimensions 0x0."),
            ("a\nno frame!\n    Last message repeated 4 times\nb", true, "a\nb"),
            ("a\n    Last message repeated 4 times", true, "a\n    Last message repeated 4 times"),
        ];
        for (said, late, kept) in cases {
            assert_eq!(serious(said, late), kept, "{said}");
        }
    }

    #[test]
    fn errors_and_warnings_of_lost_data_are_told() {
        let cases = [
            ("[mov @ 0x5] [warning] st: 0 edit list 1 Cannot find an index entry", "", false),
            (
                "[mp4 @ 0x5] [error] broken header\n more of it",
                "[mp4 @ 0x5] broken header\n more of it",
                true,
            ),
            (
                "[ts @ 0x5] [warning] Packet corrupt (stream = 0)",
                "[ts @ 0x5] Packet corrupt (stream = 0)",
                false,
            ),
            (
                "[mxf @ 0x5] [warning] edit unit sync lost on stream 0",
                "[mxf @ 0x5] edit unit sync lost on stream 0",
                true,
            ),
            ("[a @ 0x5] [warning] no\n    Last message repeated 2 times", "", false),
        ];
        for (said, told, damaged) in cases {
            assert_eq!(telling(said.as_bytes()), told);
            assert_eq!(is_damage(told), damaged, "{told}");
        }
    }

    #[test]
    fn an_ogg_page_has_the_size_of_its_segments() {
        let head = |sizes: &[u8]| {
            let count = u8::try_from(sizes.len()).unwrap();
            [&b"OggS\0"[..], &[0; 21], &[count], sizes].concat()
        };
        assert_eq!(ogg_page(&head(&[255, 3])), Some(27 + 2 + 258));
        assert_eq!(ogg_page(&head(&[])), Some(27));
        assert_eq!(ogg_page(&head(&[255, 3])[..28]), None, "cut within the header");
    }

    #[test]
    fn the_end_of_wave_files_is_that_of_their_header() {
        let wave = |size: u32| {
            let mut head = b"RIFF\0\0\0\0WAVEfmt \x03\0\0\0abc\0data".to_vec();
            head.extend(size.to_le_bytes());
            head
        };
        assert_eq!(wave_end(&wave(100)), Some(32 + 100));
        for unknown in [0, u32::MAX, 0x7fff_ffff] {
            assert_eq!(wave_end(&wave(unknown)), None, "{unknown}");
        }
        assert_eq!(wave_end(b"RIFF\0\0\0\0WAVEfmt "), None);
    }
}
