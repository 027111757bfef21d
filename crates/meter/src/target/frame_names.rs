//! Names of files in a sequence of frames, as cameras and renderers write them.
//!
//! ```text
//!   A001C%03c/A001C%03c_%07d.dpx       %07d  the frame, in at least seven digits
//!   A001C001/A001C001_0000000.dpx      %03c  the clip, in at least three; from 1
//!   A001C001/A001C001_0000001.dpx
//! ```
//!
//! A directory for each clip, or one for all: the pattern decides. The module opens no file.

use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use units::Reason;

/// A pattern of file names in a sequence of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameNames {
    text: String,
    parts: Vec<NamePart>,
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NamePart {
    Text(String),
    /// The number of the clip, in at least this many digits.
    Clip(usize),
    /// The number of the frame within its clip, in at least this many digits.
    Frame(usize),
}

impl FromStr for FrameNames {
    type Err = Reason;

    /// Parses a pattern: a relative path with one `%d` in its last component.
    fn from_str(text: &str) -> Result<Self, Reason> {
        let wrong = |why: &str| {
            let example =
                "write, for example, A001C%03c/A001C%03c_%07d.dpx: c is the clip, d the frame";
            Reason::new(format!("'{text}': {why}"), example)
        };
        let relative =
            Path::new(text).components().all(|part| matches!(part, Component::Normal(_)));
        if text.is_empty() || !relative || text.ends_with('/') {
            return Err(wrong("not a path below the target"));
        }
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once('%') {
            if !before.is_empty() {
                parts.push(NamePart::Text(before.to_owned()));
            }
            let digits = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
            let width = if digits == 0 { Some(1) } else { after[..digits].parse().ok() };
            let width = width.filter(|width| (1..=18).contains(width));
            let width = width.ok_or_else(|| wrong("a number has 1 to 18 digits"))?;
            parts.push(match after[digits..].chars().next() {
                Some('c') => NamePart::Clip(width),
                Some('d') => NamePart::Frame(width),
                _ => return Err(wrong("after % comes a number of digits, and c or d")),
            });
            rest = &after[digits + 1..];
        }
        if !rest.is_empty() {
            parts.push(NamePart::Text(rest.to_owned()));
        }
        let frames = parts.iter().filter(|part| matches!(part, NamePart::Frame(_))).count();
        let last = text.rsplit('/').next().unwrap_or_default();
        let in_last = Self::parts_of(last).any(|letter| letter == 'd');
        if frames != 1 || !in_last {
            return Err(wrong("%d, the number of the frame, is once in the file's name"));
        }
        Ok(Self { text: text.to_owned(), parts })
    }
}

impl FrameNames {
    /// The letters of the numbers in a text that has been parsed.
    fn parts_of(text: &str) -> impl Iterator<Item = char> {
        let after = text.split('%').skip(1);
        after.filter_map(|part| part.chars().find(|letter| !letter.is_ascii_digit()))
    }

    /// The pattern as its user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether clips have names of their own.
    pub(crate) fn has_clips(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, NamePart::Clip(_)))
    }

    /// The number of directories above each file.
    pub(crate) fn depth(&self) -> usize {
        self.text.matches('/').count()
    }

    /// The path of a frame below the target.
    pub(crate) fn path(&self, clip: u32, frame: u64) -> PathBuf {
        let part = |part: &NamePart| match part {
            NamePart::Text(text) => text.clone(),
            NamePart::Clip(width) => format!("{clip:0width$}"),
            NamePart::Frame(width) => format!("{frame:0width$}"),
        };
        self.parts.iter().map(part).collect::<String>().into()
    }

    /// The clip and the frame with this path below the target; `None` for other files.
    pub(crate) fn numbers(&self, path: &str) -> Option<(u64, u64)> {
        let (mut rest, mut clip, mut frame) = (path, None, 0);
        for part in &self.parts {
            let width = match part {
                NamePart::Text(text) => {
                    rest = rest.strip_prefix(text.as_str())?;
                    continue;
                }
                NamePart::Clip(width) | NamePart::Frame(width) => *width,
            };
            let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            // Without a text between two numbers the first has exactly its width.
            let digits = if self.is_followed_by_a_number(part) { width } else { digits };
            let number = rest.get(..digits).filter(|_| digits >= width)?.parse::<u64>().ok()?;
            rest = &rest[digits..];
            match part {
                NamePart::Frame(_) => frame = number,
                // A clip has the same number in its directory's name and its files'.
                _ if clip.is_some_and(|clip| clip != number) => return None,
                _ => clip = Some(number),
            }
        }
        rest.is_empty().then_some((clip.unwrap_or(0), frame))
    }

    fn is_followed_by_a_number(&self, part: &NamePart) -> bool {
        let at = self.parts.iter().position(|other| std::ptr::eq(other, part));
        let next = at.and_then(|at| self.parts.get(at + 1));
        next.is_some_and(|next| !matches!(next, NamePart::Text(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_numbers_of_its_clip_and_frame() {
        for (pattern, clip, frame, path) in [
            ("A001C003_%07d.dpx", 0, 86_400, "A001C003_0086400.dpx"),
            ("A001C%03c/A001C%03c_%07d.dpx", 12, 5, "A001C012/A001C012_0000005.dpx"),
            ("%c/%d.exr", 3, 123, "3/123.exr"),
            ("%03c%04d.ari", 7, 12, "0070012.ari"),
            ("clip/%2d", 0, 1234, "clip/1234"),
        ] {
            let names = FrameNames::from_str(pattern).unwrap();
            assert_eq!(names.path(clip, frame), Path::new(path));
            assert_eq!(names.numbers(path), Some((clip.into(), frame)), "{path}");
            assert_eq!(names.has_clips(), clip > 0);
        }
        let names = FrameNames::from_str("A%03c/A%03c_%07d.dpx").unwrap();
        for other in ["A001/A002_0000001.dpx", "A001/A001_1.dpx", "A001/A001_0000001.dpx.tmp", "x"]
        {
            assert_eq!(names.numbers(other), None, "{other}");
        }
        assert_eq!((names.depth(), names.text()), (1, "A%03c/A%03c_%07d.dpx"));
    }

    #[test]
    fn a_pattern_that_cannot_name_frames_is_refused() {
        for (pattern, why) in [
            ("frame.dpx", "%d, the number of the frame"),
            ("%07d/frame.dpx", "%d, the number of the frame"),
            ("%d_%d.dpx", "%d, the number of the frame"),
            ("/films/%07d.dpx", "not a path below the target"),
            ("../%07d.dpx", "not a path below the target"),
            ("%07x.dpx", "after % comes"),
            ("%99d.dpx", "1 to 18 digits"),
            ("", "not a path below the target"),
        ] {
            let said = FrameNames::from_str(pattern).unwrap_err();
            assert!(said.message.contains(why) && said.hint.is_some(), "{pattern}: {said:?}");
        }
    }
}
