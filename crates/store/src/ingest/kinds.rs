//! Files and tracks of a known kind that cannot be taken in: what they are, and what to do.
//!
//! A kind is recognised by FFmpeg's name of a codec, or by the first bytes of a file. FFmpeg's own
//! words are for causes that are not known here.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use units::Reason;

/// The reason for the refusal of a track in a codec that no player finds in MP4 or QuickTime.
/// `codec` is FFmpeg's name, `track` the track in words.
pub(super) fn codec_refusal(codec: &str, track: &str, video: bool) -> Reason {
    let known = CODECS.iter().find(|(names, ..)| names.split(' ').any(|name| name == codec));
    let (name, command) = match known {
        Some((_, name, command)) => ((*name).to_owned(), *command),
        None if video => (format!("{codec} video"), TO_H264),
        None => (format!("{codec} audio"), TO_AAC),
    };
    Reason::new(
        format!("{track} is {name}, which no player reads from MP4 or QuickTime"),
        format!("convert it first, for instance with `{command}`, or take it in with --as file"),
    )
}

/// The reason for the refusal of a file that FFmpeg could not open: by its first bytes, else by
/// FFmpeg's messages, else those messages themselves.
pub(super) fn unreadable(file: &Path, said: &str) -> Reason {
    if let Some(reason) = by_content(file) {
        return reason;
    }
    if said.contains("moov atom not found") && is_mp4(file) {
        return Reason::new(
            "it has no index (the box `moov`): it was cut short, or its recording did not end in \
             order",
            "repair it first, for instance with `untrunc WHOLE-FILE FILE`, or take it in with \
             --as file",
        );
    }
    if said.contains("not on whitelist") {
        return Reason::new(
            "it is not an audio or video file of a kind that Tenuto reads",
            "convert it to Matroska or MP4 first, or take it in with --as file",
        );
    }
    if said.ends_with("End of file") {
        return Reason::new(
            "it ends before FFmpeg has found what is in it: it was cut short",
            format!("get the whole file, or {KEEP}"),
        );
    }
    unknown("FFmpeg cannot read it", said)
}

/// The reason for the refusal of a file whose tracks FFmpeg could not copy, if its messages have a
/// known cause.
pub(super) fn uncopied(said: &str) -> Option<Reason> {
    let known = UNCOPIED.iter().find(|(sign, ..)| said.contains(sign));
    known.map(|(_, sentence)| Reason::new(*sentence, TO_OTHER_SOUND))
}

/// The reason for the refusal of a file in which FFmpeg finds a track, and no frame.
pub(super) fn no_frames(file: &Path) -> Reason {
    match is_initialization_segment(file) {
        Ok(true) => Reason::new(
            "it has headers only: it is the initialization segment of a stream, whose frames are \
             in other files",
            "join it with them first, for instance with `cat INIT SEGMENT1 SEGMENT2 > NEW.mp4`, or \
             take it in with --as file",
        ),
        _ => Reason::new("FFmpeg reads no frame of it from which playback could begin", KEEP),
    }
}

/// Whether a short MP4 file announces fragments (ISO/IEC 14496-12, 8.8.1) and has none.
fn is_initialization_segment(file: &Path) -> std::io::Result<bool> {
    let mut bytes = Vec::new();
    File::open(file)?.take(LOOKED_AT).read_to_end(&mut bytes)?;
    let has = |kind: &[u8; 4]| bytes.windows(4).any(|four| four == kind);
    Ok(is_mp4(file) && has(b"mvex") && !has(b"moof"))
}

/// A refusal for an unknown cause, with FFmpeg's message at its end.
pub(super) fn unknown(sentence: &str, said: &str) -> Reason {
    let detail = match said {
        "" => "FFmpeg gives no reason".to_owned(),
        said => format!("FFmpeg's message: {said}"),
    };
    Reason::new(sentence, format!("{KEEP} ({detail})"))
}

pub(super) fn still_picture(name: &str) -> Reason {
    Reason::new(format!("it is {name}; a still picture is no title"), STILL)
}

pub(super) fn encrypted() -> Reason {
    Reason::new("it is encrypted", "decrypt it first, with the key of whoever encrypted it")
}

/// The remedy for a file that is nothing but bytes to Tenuto.
pub(super) const KEEP: &str = "to keep its bytes, take it in with --as file";

/// The refusal of a file by its content.
fn by_content(file: &Path) -> Option<Reason> {
    let mut open = File::open(file).ok()?;
    let mut bytes = Vec::new();
    (&mut open).take(LOOKED_AT).read_to_end(&mut bytes).ok()?;
    let length = open.metadata().ok()?.len();
    // MP4 files may have their header at the end.
    if let Some(last) = length.checked_sub(LOOKED_AT).filter(|last| *last > 0) {
        open.seek(SeekFrom::Start(last.max(LOOKED_AT))).ok()?;
        open.take(LOOKED_AT).read_to_end(&mut bytes).ok()?;
    }
    let animated = |bytes: &[u8]| bytes.windows(4).take(PNG_HEAD).any(|kind| kind == b"acTL");
    if bytes.starts_with(b"\x89PNG") && animated(&bytes) {
        return Some(Reason::new("it is an animated PNG picture (APNG)", ANIMATION));
    }
    // The flags of an extended WebP file; one of them is for animations.
    let webp = bytes.starts_with(b"RIFF") && bytes.get(8..16) == Some(b"WEBPVP8X");
    if webp && bytes.get(20).is_some_and(|flags| flags & 2 != 0) {
        return Some(Reason::new("it is an animated WebP picture", WEBP_ANIMATION));
    }
    if bytes.starts_with(b"\xff\xd8\xff") && bytes.windows(4).any(|it| it == JPEG_AFTER_JPEG) {
        return Some(Reason::new("it is a sequence of JPEG pictures without times", JPEGS));
    }
    let found = FILES.iter().find(|(marks, ..)| marks.iter().all(|mark| mark.is_in(&bytes)));
    if let Some((_, name, hint)) = found {
        return Some(match *hint {
            STILL => still_picture(name),
            hint => Reason::new(format!("it is {name}"), hint),
        });
    }
    is_xhe_aac(&bytes).then(|| Reason::new(XHE_AAC, XHE_AAC_HINT))
}

/// Whether a file begins with a box of MP4 or QuickTime.
fn is_mp4(file: &Path) -> bool {
    let mut head = [0; 8];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut head));
    let kinds = [b"ftyp", b"mdat", b"wide", b"free", b"skip", b"pnot"];
    read.is_ok() && kinds.iter().any(|kind| head.ends_with(*kind))
}

/// Whether an MP4 file has an audio track of object type 42 (ISO/IEC 14496-3: USAC).
fn is_xhe_aac(bytes: &[u8]) -> bool {
    let after = |at: usize| bytes.get(at + 4..).unwrap_or_default();
    let entries = bytes.windows(4).enumerate().filter(|(_, kind)| *kind == b"esds");
    entries.map(|(at, _)| after(at)).any(|esds| {
        // The configuration follows the decoder's descriptor, whose 13 bytes begin with the codec.
        let tag = esds.iter().take(64).position(|byte| *byte == 5);
        let config = tag.map(|at| esds[at + 1..].iter().skip_while(|byte| **byte == 0x80));
        let first: Vec<u8> = config.into_iter().flatten().skip(1).take(2).copied().collect();
        // Five bits of ones are the escape for types from 32 on; six bits follow.
        matches!(first[..], [a, b] if a >> 3 == 31 && 32 + ((a & 7) << 3 | b >> 5) == 42)
    })
}

/// Bytes at a fixed place.
#[derive(Clone, Copy)]
struct Mark(usize, &'static [u8]);

impl Mark {
    fn is_in(self, bytes: &[u8]) -> bool {
        bytes.get(self.0..).is_some_and(|bytes| bytes.starts_with(self.1))
    }
}

const XHE_AAC: &str =
    "its audio is xHE-AAC, which FFmpeg cannot read before version 7.1 and few players know";
const XHE_AAC_HINT: &str = "convert it first, with FFmpeg 7.1 or later and `ffmpeg -i FILE -c:v \
                            copy -c:a aac NEW.mp4`, or take it in with --as file";

const STILL: &str = "take it in with --as file if its bytes are to be kept";
const LIST: &str = "name the files that it refers to, or take it in with --as file";
const ANIMATION: &str = "convert it first, for instance with `ffmpeg -i FILE -pix_fmt yuv420p \
                         -c:v libx264 NEW.mp4`, or take it in with --as file";
const WEBP_ANIMATION: &str = "convert it first, for instance with ImageMagick's `magick FILE \
                              NEW.mp4`, or take it in with --as file";
const JPEGS: &str = "give it times first, for instance with `ffmpeg -f mjpeg -framerate 25 -i FILE \
                     -c copy NEW.mkv`, or take it in with --as file";
const SOUND: &str =
    "convert it first, for instance with `ffmpeg -i FILE NEW.flac`, or take it in with --as file";

/// Files by their first bytes: marks, name, what to do.
const FILES: &[(&[Mark], &str, &str)] = &[
    (&[Mark(0, b"GIF8")], "a GIF picture", ANIMATION),
    (&[Mark(0, b"\x89PNG")], "a PNG picture", STILL),
    (&[Mark(0, b"\xff\xd8\xff")], "a JPEG picture", STILL),
    (&[Mark(0, b"RIFF"), Mark(8, b"WEBP")], "a WebP picture", STILL),
    (&[Mark(0, b"II*\0")], "a TIFF picture", STILL),
    (&[Mark(0, b"MM\0*")], "a TIFF picture", STILL),
    (&[Mark(0, b"BM"), Mark(6, b"\0\0\0\0")], "a BMP picture", STILL),
    (&[Mark(4, b"ftypheic")], "a HEIF picture", STILL),
    (&[Mark(4, b"ftypheix")], "a HEIF picture", STILL),
    (&[Mark(4, b"ftypmif1")], "a HEIF picture", STILL),
    (&[Mark(4, b"ftypavif")], "an AVIF picture", STILL),
    (&[Mark(0, b"DSD ")], "DSD audio (DSF)", SOUND),
    (&[Mark(0, b"FRM8"), Mark(12, b"DSD ")], "DSD audio (DSDIFF)", SOUND),
    (&[Mark(0, b"MP+")], "Musepack audio", SOUND),
    (&[Mark(0, b"MPCK")], "Musepack audio", SOUND),
    (&[Mark(0, b"MAC ")], "Monkey's Audio (APE)", SOUND),
    (&[Mark(0, b"tBaK")], "TAK audio", SOUND),
    (&[Mark(0, b"OFR ")], "OptimFROG audio", SOUND),
    (&[Mark(0, b"MThd")], "a MIDI file, which has notes and no sound", "take it in with --as file"),
    (&[Mark(0, b"#EXTM3U")], "a playlist", LIST),
    (&[Mark(0, b"ffconcat")], "a playlist", LIST),
    (&[Mark(0, b"%PDF")], "a PDF document", "take it in with --as file"),
    (&[Mark(0, b"PK\x03\x04")], "a ZIP archive", "unpack it first, or take it in with --as file"),
];

/// Messages of FFmpeg about tracks that it does not copy, and the cause in words.
const UNCOPIED: &[(&str, &str)] = &[
    (
        "is not defined by the ISOBMFF specification",
        "its AC-3 audio is of a variant for low sampling rates, which MP4 and QuickTime do not \
         have (ETSI TS 102 366, F)",
    ),
    (
        "input is not a single packet",
        "its speech (AMR) has several frames in a packet, which FFmpeg does not copy",
    ),
];
const TO_OTHER_SOUND: &str = "convert the sound first, for instance with `ffmpeg -i FILE -c:v copy \
                              -c:a aac NEW.mkv`, or take it in with --as file";

const TO_H264: &str = "ffmpeg -i FILE -c:v libx264 -c:a aac NEW.mp4";
const TO_AAC: &str = "ffmpeg -i FILE -c:v copy -c:a aac NEW.mkv";
const TO_FLAC: &str = "ffmpeg -i FILE -c:v copy -c:a flac NEW.mkv";

/// Codecs by FFmpeg's names: their usual name, and a command that converts them.
const CODECS: &[(&str, &str, &str)] = &[
    ("vp8", "VP8 video", "ffmpeg -i FILE -c:v libx264 -c:a aac NEW.mp4"),
    ("dirac", "Dirac video", TO_H264),
    ("rv10 rv20 rv30", "RealVideo", TO_H264),
    ("gif", "a GIF animation", TO_H264),
    ("apng", "an animated PNG", TO_H264),
    ("ape", "Monkey's Audio (APE)", TO_FLAC),
    ("wavpack", "WavPack audio", TO_FLAC),
    ("tta", "True Audio (TTA)", TO_FLAC),
    ("tak", "TAK audio", TO_FLAC),
    ("mlp", "Meridian Lossless Packing (MLP)", TO_FLAC),
    ("wmalossless", "Windows Media Audio Lossless", TO_FLAC),
    ("wmav1 wmav2 wmapro wmavoice", "Windows Media Audio", TO_AAC),
    ("musepack7 musepack8", "Musepack audio", TO_AAC),
    ("dsd_lsbf dsd_msbf dsd_lsbf_planar dsd_msbf_planar dst", "DSD audio", TO_FLAC),
    ("cook sipr atrac3 ra_144 ra_288 ralf", "RealAudio", TO_AAC),
    ("pcm_bluray pcm_dvd s302m", "PCM audio in the framing of discs and broadcasts", TO_FLAC),
    ("adpcm_ms adpcm_ima_wav adpcm_yamaha adpcm_g722 adpcm_g726", "ADPCM audio", TO_FLAC),
];

/// The end of a JPEG picture and the beginning of the next one.
const JPEG_AFTER_JPEG: &[u8] = b"\xff\xd9\xff\xd8";

/// The bytes before the pictures of a PNG file that may mark it as animated.
const PNG_HEAD: usize = 64 << 10;

/// The bytes of a file that are looked at: more than any header up to the audio configuration.
const LOOKED_AT: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use units::Hinted;

    #[test]
    fn causes_that_ffmpeg_names_for_programmers_are_told_in_words() {
        for (said, told) in [
            ("fatal error, input is not a single packet, implement a AVParser for it", "(AMR)"),
            (
                "RealAudio AC-3/DolbyNet with bsid 9 is not defined by the ISOBMFF specification \
                 in ETSI TS 102 366!",
                "AC-3 audio is of a variant for low sampling rates",
            ),
        ] {
            let reason = uncopied(said).unwrap().one_line();
            assert!(reason.contains(told) && reason.contains("; convert"), "{reason}");
        }
        assert!(uncopied("Invalid data found when processing input").is_none());
    }
}
