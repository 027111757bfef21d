//! Text tracks as IMSC (W3C, TTML Profiles for Internet Media Subtitles and Captions 1.0.1, text
//! profile): a document as a file, or one in each segment of fragmented MP4 (ISO/IEC 14496-30).
//!
//! ```text
//!   cue        1.6 s to 4.2 s   <i>One</i> &amp; two | three
//!   document   <p begin="00:00:01.600" end="00:00:04.200"><span style="s">
//!                <span style="i">One</span> &amp; two<br/>three</span></p>
//!   segment    moof (one sample, as long as the segment) | mdat (a document with its cues)
//! ```
//! Times are those of the presentation, in a segment, too: a cue that is shown in two segments is
//! in both with all its time, and the time of the sample says which part of it is shown.

use super::text::ShownCue;
use crate::{TextDescription, language};
use std::fmt::Write;
use std::ops::Range;

/// Writes a document with these cues.
pub(super) fn document<'a>(
    about: &TextDescription,
    cues: impl Iterator<Item = ShownCue<'a>>,
) -> String {
    let language = language::tag(&about.language).unwrap_or_default();
    let forced = if about.forced { " itts:forcedDisplay=\"true\"" } else { "" };
    // Writing to a string cannot fail.
    let mut out = String::from(HEAD);
    let _ = write!(out, " xml:lang=\"{language}\">\n{STYLES}<body region=\"r\"{forced}>\n<div>\n");
    cues.for_each(|cue| write_cue(&mut out, &cue));
    out.push_str(END);
    out
}

/// The bytes of a written cue.
pub(super) fn length(cue: &ShownCue<'_>) -> usize {
    let mut out = String::new();
    write_cue(&mut out, cue);
    out.len()
}

/// A segment with this document, which is shown at `time` in ms.
pub(super) fn segment(document: &str, time: Range<u64>, sequence_number: u32) -> Vec<u8> {
    super::media_segment::text(document.as_bytes(), time, sequence_number)
}

/// The bytes of a segment without the document.
pub(super) const SEGMENT_HEAD_BYTES: u64 = super::media_segment::TEXT_HEAD_BYTES;

/// Writes a cue. Its text is a valid payload of WebVTT: tags are nested, and what is not a tag or a
/// reference is neither `<` nor `&`.
fn write_cue(out: &mut String, cue: &ShownCue<'_>) {
    let (start, end) = (super::text::time(cue.start), super::text::time(cue.end));
    let _ = write!(out, "<p begin=\"{start}\" end=\"{end}\"><span style=\"s\">");
    let mut rest = cue.text;
    while let Some(next) = rest.chars().next() {
        if let Some((from, to)) = MARKUP.iter().find(|(from, _)| rest.starts_with(from)) {
            out.push_str(to);
            rest = &rest[from.len()..];
            continue;
        }
        // What XML 1.0 has no character for; other control characters are in no payload.
        if !matches!(next, '\u{fffe}' | '\u{ffff}') {
            out.push(next);
        }
        rest = &rest[next.len_utf8()..];
    }
    out.push_str("</span></p>\n");
}

/// The sample entry (ISO/IEC 14496-30, 7.4): the namespace of the documents, no schema, and nothing
/// beside them.
pub(super) fn sample_entry() -> Vec<u8> {
    let mut entry = Vec::new();
    crate::boxes::write_box(&mut entry, b"stpp", |out| {
        out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1]);
        out.extend_from_slice(b"http://www.w3.org/ns/ttml\0\0\0");
    });
    entry
}

/// What stands in a cue's payload, and for it in a document.
const MARKUP: [(&str, &str); 10] = [
    ("<b>", "<span style=\"b\">"),
    ("</b>", "</span>"),
    ("<i>", "<span style=\"i\">"),
    ("</i>", "</span>"),
    ("<u>", "<span style=\"u\">"),
    ("</u>", "</span>"),
    ("\n", "<br/>"),
    // XML knows none of these names.
    ("&nbsp;", "\u{a0}"),
    ("&lrm;", "\u{200e}"),
    ("&rlm;", "\u{200f}"),
];

/// The codec of players for these documents.
pub(super) const CODEC: &str = "stpp.ttml.im1t";

/// Until the language.
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
    <tt xmlns=\"http://www.w3.org/ns/ttml\" xmlns:ttp=\"http://www.w3.org/ns/ttml#parameter\" \
    xmlns:tts=\"http://www.w3.org/ns/ttml#styling\" \
    xmlns:itts=\"http://www.w3.org/ns/ttml/profile/imsc1#styling\" \
    ttp:profile=\"http://www.w3.org/ns/ttml/profile/imsc1/text\" ttp:timeBase=\"media\"";
/// White text on a shade, in the middle of the lowest lines within the safe area, as players show
/// WebVTT.
const STYLES: &str = "<head>\n<styling>\n\
    <style xml:id=\"s\" tts:color=\"#ffffff\" tts:backgroundColor=\"#000000c0\"/>\n\
    <style xml:id=\"b\" tts:fontWeight=\"bold\"/>\n\
    <style xml:id=\"i\" tts:fontStyle=\"italic\"/>\n\
    <style xml:id=\"u\" tts:textDecoration=\"underline\"/>\n\
    </styling>\n<layout>\n\
    <region xml:id=\"r\" tts:origin=\"10% 10%\" tts:extent=\"80% 80%\" tts:displayAlign=\"after\" \
    tts:textAlign=\"center\" tts:fontFamily=\"proportionalSansSerif\" tts:fontSize=\"100%\"/>\n\
    </layout>\n</head>\n";
const END: &str = "</div>\n</body>\n</tt>\n";
