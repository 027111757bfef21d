//! Text tracks: subtitles and captions as cues, which are lines of WebVTT with a time each.
//!
//! ```text
//! a section of the index region:
//!   flags u8 (1 default, 2 forced, 4 hearing impaired), language, title (each u32 length and bytes)
//!   cues  u32, per cue: start varint, ms after the start of the cue before
//!                       duration varint, ms; text varint length and bytes
//! ```
//!
//! Text is a hundredth of a percent of a title. So it is in the index region, which is read whole
//! when a title is opened, and not in data of its own: serving it reads no disk.
//!
//! What text may contain is decided here, once, when a track is made: valid cue payloads of the
//! W3C's WebVTT, of bounded size. Text comes from untrusted files.

use crate::ldu_coding::IMPOSSIBLE;
use units::{Decoder, Encoder, Malformed};

/// A text track: subtitles or captions in one language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextTrack {
    /// What it is, without its cues.
    pub description: TextDescription,
    /// In the order of their starts.
    cues: Vec<Cue>,
}

/// The properties of a text track without its cues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextDescription {
    /// ISO 639-2 code or tag of BCP 47, `und` if unknown.
    pub language: String,
    /// The title of the track, for menus; empty if it has none.
    pub title: String,
    /// Whether players should show it by default.
    pub default: bool,
    /// Whether it has only what every viewer needs (translated signs, for example), which players
    /// show also if subtitles are off.
    pub forced: bool,
    /// Whether it describes sounds, too, for viewers who do not hear them (SDH).
    pub hearing_impaired: bool,
}

/// One cue: text that is shown from one time to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cue {
    /// When it appears, in ms of the title's timeline.
    pub start: u32,
    /// When it disappears, in ms; later than `start`.
    pub end: u32,
    /// The cue payload as WebVTT has it: lines of which none is empty, with the tags `b`, `i` and
    /// `u`, each closed, and `&`, `<` and `>` escaped.
    pub text: Box<str>,
}

/// The reason why cues are no text track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// There are more cues than a track may have.
    #[error("more than {MAX_CUES} cues")]
    Cues,
    /// A cue is longer than it may be.
    #[error("a cue of more than {} KiB", MAX_CUE >> 10)]
    Cue,
    /// All cues together are longer than they may be.
    #[error("more than {} MiB of text", MAX_TEXT >> 20)]
    Text,
}

impl TextTrack {
    /// A track of these cues, in any order: start and end in ms, and text with the tags `b`, `i`
    /// and `u`. What is never shown is left out: empty text, and cues that end before they begin or
    /// before zero.
    pub fn new<'a>(
        mut description: TextDescription,
        cues: impl IntoIterator<Item = (i64, i64, &'a str)>,
    ) -> Result<Self, TextError> {
        let (mut kept, mut bytes) = (Vec::new(), 0);
        for (start, end, text) in cues {
            if text.len() > MAX_CUE {
                return Err(TextError::Cue);
            }
            let ms = |time: i64| u32::try_from(time.max(0)).unwrap_or(u32::MAX);
            let (start, end, text) = (ms(start), ms(end), payload(text));
            if text.is_empty() || end <= start {
                continue;
            }
            bytes += text.len();
            if bytes > MAX_TEXT {
                return Err(TextError::Text);
            }
            if kept.len() == MAX_CUES {
                return Err(TextError::Cues);
            }
            kept.push(Cue { start, end, text: text.into() });
        }
        if !is_code(&description.language) {
            description.language = "und".to_owned();
        }
        // Stable: cues with one start stay in the order of the source, which is that of the lines.
        kept.sort_by_key(|cue| cue.start);
        Ok(Self { description, cues: kept })
    }

    /// The cues in the order of their starts.
    pub fn cues(&self) -> &[Cue] {
        &self.cues
    }

    /// The memory of the track in bytes.
    pub fn memory(&self) -> u64 {
        let text: usize = self.cues.iter().map(|cue| cue.text.len() + size_of::<Cue>()).sum();
        text as u64
    }

    pub(crate) fn encode(&self, out: &mut Encoder) {
        let TextDescription { language, title, default, forced, hearing_impaired } =
            &self.description;
        let flags = [(*default, DEFAULT), (*forced, FORCED), (*hearing_impaired, IMPAIRED)];
        out.u8(flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum());
        out.bytes32(language.as_bytes());
        out.bytes32(title.as_bytes());
        out.count32(self.cues.len());
        let mut before = 0;
        for cue in &self.cues {
            out.varint(cue.start - before);
            out.varint(cue.end - cue.start);
            out.varint(u32::try_from(cue.text.len()).expect("a cue is short"));
            out.bytes(cue.text.as_bytes());
            before = cue.start;
        }
    }

    pub(crate) fn decode(reader: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| IMPOSSIBLE);
        let flags = reader.u8()?;
        let is = |flag| flags & flag != 0;
        let description = TextDescription {
            language: text(reader.bytes32()?)?,
            title: text(reader.bytes32()?)?,
            default: is(DEFAULT),
            forced: is(FORCED),
            hearing_impaired: is(IMPAIRED),
        };
        let count = reader.count32(CUE_LEN)?;
        let (mut cues, mut before, mut bytes) = (Vec::new(), 0u32, 0);
        for _ in 0..count {
            let start = before.checked_add(reader.varint()?).ok_or(IMPOSSIBLE)?;
            let end = start.checked_add(reader.varint()?).ok_or(IMPOSSIBLE)?;
            let length = usize::try_from(reader.varint()?).map_err(|_| IMPOSSIBLE)?;
            let words = text(reader.bytes(length)?)?;
            bytes += length;
            // What is kept as cue payload goes out as it is, so it must be one.
            if end == start || words.is_empty() || payload(&words) != words {
                return Err(IMPOSSIBLE);
            }
            cues.push(Cue { start, end, text: words.into() });
            before = start;
        }
        let fits = is_code(&description.language) && cues.len() <= MAX_CUES && bytes <= MAX_TEXT;
        if flags > DEFAULT | FORCED | IMPAIRED || !fits {
            return Err(IMPOSSIBLE);
        }
        Ok(Self { description, cues })
    }
}

/// Whether text may be the code of a language: it becomes part of a file's name on export.
fn is_code(text: &str) -> bool {
    let is_in = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=MAX_CODE).contains(&text.len()) && text.bytes().all(is_in)
}

/// Text as the payload of a cue (WebVTT, 4.2.2 and 6.4): no empty line, which would end the cue; no
/// control characters; the known tags properly nested; all else escaped. A payload is its own
/// payload.
fn payload(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if let Some((whole, closes, name)) = tag_at(rest) {
            rest = &rest[whole..];
            match (closes, open.iter().rposition(|it| *it == name)) {
                // A style that is on cannot be turned on.
                (false, None) => {
                    open.push(name);
                    push_tag(&mut out, "<", name);
                }
                (true, Some(at)) => {
                    open.drain(at..).rev().for_each(|name| push_tag(&mut out, "</", name));
                }
                _ => {}
            }
            continue;
        }
        if let Some(escape) = ESCAPES.iter().find(|escape| rest.starts_with(**escape)) {
            out.push_str(escape);
            rest = &rest[escape.len()..];
            continue;
        }
        match next {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\n' | '\r' => out.push('\n'),
            '\t' => out.push('\t'),
            c if c.is_control() || c == '\u{feff}' => {}
            c => out.push(c),
        }
        rest = &rest[next.len_utf8()..];
    }
    open.into_iter().rev().for_each(|name| push_tag(&mut out, "</", name));
    let shown = |line: &&str| !line.trim().is_empty();
    let lines: Vec<&str> = out.split('\n').filter(shown).collect();
    lines.join("\n")
}

/// The tag at the beginning of `text`: its length, whether it closes, its name.
fn tag_at(text: &str) -> Option<(usize, bool, &'static str)> {
    let inner = text.strip_prefix('<')?;
    let (closes, inner) = inner.strip_prefix('/').map_or((false, inner), |inner| (true, inner));
    let name = TAGS.into_iter().find(|name| inner.starts_with(name))?;
    inner[name.len()..].starts_with('>').then_some((
        name.len() + 2 + usize::from(closes),
        closes,
        name,
    ))
}

fn push_tag(out: &mut String, begin: &str, name: &str) {
    [begin, name, ">"].iter().for_each(|part| out.push_str(part));
}

/// The tags that FFmpeg writes for the styles of subtitles.
const TAGS: [&str; 3] = ["b", "i", "u"];
/// What stands for itself: texts of WebVTT and of SubRip have it already.
const ESCAPES: [&str; 6] = ["&amp;", "&lt;", "&gt;", "&nbsp;", "&lrm;", "&rlm;"];

/// The most cues of a track: a day with one every second.
const MAX_CUES: usize = 100_000;
/// The most bytes of a cue: a screen full of text has 2 KB.
const MAX_CUE: usize = 16 << 10;
/// The most bytes of a track's text: 30 times as many as a film's.
const MAX_TEXT: usize = 4 << 20;

/// The longest code of a language (BCP 47, 4.4.1).
const MAX_CODE: usize = 35;

/// Bytes of the shortest encoded cue.
const CUE_LEN: usize = 4;
const DEFAULT: u8 = 1;
const FORCED: u8 = 2;
const IMPAIRED: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn track(cues: &[(i64, i64, &str)]) -> Result<TextTrack, TextError> {
        TextTrack::new(TextDescription::default(), cues.iter().copied())
    }

    fn shown(cues: &[(i64, i64, &str)]) -> Vec<String> {
        let track = track(cues).unwrap();
        track.cues.iter().map(|cue| format!("{}-{} {:?}", cue.start, cue.end, cue.text)).collect()
    }

    #[test]
    fn cues_are_kept_in_order_and_what_is_never_shown_is_not() {
        let cues = [
            (2000, 3000, "second"),
            (1000, 5000, "first"),
            (2000, 2500, "beside"),
            (-2000, 500, "early"),
            (-2000, -1000, "never"),
            (3000, 3000, "at once"),
            (4000, 3000, "backwards"),
            (6000, i64::MAX, "late"),
            (7000, 8000, " \n\r\n\0"),
        ];
        let wanted = [
            "0-500 \"early\"",
            "1000-5000 \"first\"",
            "2000-3000 \"second\"",
            "2000-2500 \"beside\"",
            "6000-4294967295 \"late\"",
        ];
        assert_eq!(shown(&cues), wanted);
    }

    #[test]
    fn any_text_is_one_cue_of_webvtt() {
        let cases = [
            ("plain", "plain"),
            ("a & b < c > d", "a &amp; b &lt; c &gt; d"),
            ("1 --> 2", "1 --&gt; 2"),
            ("&amp; &lt; &nbsp;x", "&amp; &lt; &nbsp;x"),
            ("one\n\n\ntwo\r\nthree\rfour\n", "one\ntwo\nthree\nfour"),
            ("<i>x</i> <b>y</b><u>z</u>", "<i>x</i> <b>y</b><u>z</u>"),
            ("<i>x", "<i>x</i>"),
            ("<i><b>x</i>y</b>", "<i><b>x</b></i>y"),
            ("<i>a<i>b</i>c</i>", "<i>ab</i>c"),
            ("</i>x<script>y</script>", "x&lt;script&gt;y&lt;/script&gt;"),
            ("a\0b\u{1b}c\td\u{85}e\u{feff}", "abc\tde"),
            ("WEBVTT\nNOTE x\nSTYLE", "WEBVTT\nNOTE x\nSTYLE"),
        ];
        for (text, wanted) in cases {
            assert_eq!(payload(text), wanted, "{text:?}");
            assert_eq!(payload(wanted), wanted, "{text:?}: its own payload");
        }
        let mut random = fastrand::Rng::with_seed(1);
        let parts = ["<", ">", "/", "b", "i", "&", "amp;", "\n", "\r", "-", "\0", " ", "é", "u>"];
        for _ in 0..20_000 {
            let text: String =
                (0..random.usize(..12)).map(|_| parts[random.usize(..parts.len())]).collect();
            let once = payload(&text);
            assert_eq!(payload(&once), once, "{text:?}");
        }
    }

    #[test]
    fn text_is_bounded() {
        let long = "x".repeat(MAX_CUE + 1);
        assert_eq!(track(&[(0, 1, &long)]), Err(TextError::Cue));
        let most = &long[1..];
        let cues = vec![(0, 1, most); MAX_TEXT / MAX_CUE + 1];
        assert_eq!(track(&cues), Err(TextError::Text));
        assert!(track(&cues[1..]).is_ok());
        assert_eq!(track(&vec![(0, 1, "x"); MAX_CUES + 1]), Err(TextError::Cues));
    }
}
