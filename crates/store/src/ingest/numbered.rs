//! Numbered pictures, each a file, that become one title: `shot.000001.dpx`, `shot.000002.dpx`.
//!
//! ```text
//!   shot.%06d.dpx ──names of the folder──▶ 1 to 240, without a gap ──heads──▶ all of one size
//!                                              └──ffmpeg (image2)──▶ as any other input
//! ```
//!
//! The demuxer is the only one that reads files beside the one that it was given: those whose names
//! the user has given with a pattern. Pictures are not decoded: one that is damaged between its
//! head and its end is kept as it is.

use super::picture_end::is_cut;
use super::picture_size::{PictureFormat, PictureSize, part, picture_size};
use super::probe::local;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use units::Reason;

/// The number of pictures that are shown in a second, as a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PictureRate {
    pictures: u32,
    seconds: u32,
}

impl FromStr for PictureRate {
    type Err = Reason;

    /// Parses `25`, `30000/1001` or `23.976`, which is 24000/1001.
    fn from_str(text: &str) -> Result<Self, Reason> {
        let ratio = || {
            if let Some((_, pictures)) = TELEVISION.iter().find(|(name, _)| *name == text) {
                return Some((*pictures, 1001));
            }
            match text.split_once('/') {
                Some((pictures, seconds)) => Some((pictures.parse().ok()?, seconds.parse().ok()?)),
                None => Some((text.parse().ok()?, 1)),
            }
        };
        match ratio() {
            Some((pictures, seconds)) if is_rate(pictures, seconds) => {
                Ok(Self { pictures, seconds })
            }
            _ => Err(Reason::new(
                format!("'{text}' is no number of pictures in a second"),
                format!("give 25, 30000/1001 or 23.976, for instance; {MOST_A_SECOND} at most"),
            )),
        }
    }
}

impl fmt::Display for PictureRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds {
            1 => write!(f, "{}", self.pictures),
            seconds => write!(f, "{}/{seconds}", self.pictures),
        }
    }
}

fn is_rate(pictures: u32, seconds: u32) -> bool {
    let most = u64::from(seconds) * u64::from(MOST_A_SECOND);
    // A picture is shown for a day at most.
    pictures > 0
        && u64::from(pictures) * 86_400 >= u64::from(seconds)
        && u64::from(pictures) <= most
}

/// The files of a pattern: all numbers from the first to the last.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NumberedPictures {
    folder: PathBuf,
    name: NumberedName,
    first: u32,
    /// The number of pictures.
    pub(super) count: u32,
    /// The bytes of all together.
    pub(super) bytes: u64,
    rate: PictureRate,
}

/// A file name with a place for a number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NumberedName {
    before: String,
    /// The least digits; numbers with fewer have zeros in front.
    digits: usize,
    after: String,
}

impl NumberedPictures {
    /// Finds the pictures of a pattern.
    pub(super) fn find(pattern: &Path, rate: PictureRate) -> Result<Self, Reason> {
        let name = NumberedName::of(pattern).ok_or_else(|| {
            let hint = "name numbered pictures, such as shot.%06d.dpx, of 19 digits at most, or \
                        leave --fps out";
            Reason::new("its name has no place for a number", hint)
        })?;
        let folder = pattern.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        let failed = |error: std::io::Error| Reason::from(format!("its folder: {error}"));
        let (mut numbers, mut bytes, mut other) = (Vec::new(), 0, None);
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let file = entry.file_name();
            let Some(file) = file.to_str() else { continue };
            match name.number(file) {
                Some(number) if numbers.len() < MOST_PICTURES => {
                    // Follows links, as FFmpeg does.
                    let about = std::fs::metadata(entry.path()).map_err(failed)?;
                    bytes += about.len();
                    numbers.push(number);
                }
                Some(_) => {
                    return Err(Reason::new(
                        format!("there are more than {MOST_PICTURES} pictures"),
                        "give the parts of it names of their own",
                    ));
                }
                None if other.is_none() && name.is_similar(file) => other = Some(file.to_owned()),
                None => {}
            }
        }
        numbers.sort_unstable();
        let (Some(&first), Some(&last)) = (numbers.first(), numbers.last()) else {
            let hint = match other {
                Some(file) => format!("there is {file}: %06d is a number of six digits"),
                None => "%06d is a number of six digits, %d one without zeros in front".to_owned(),
            };
            return Err(Reason::new("no file has such a name", hint));
        };
        if let Some(gaps) = gaps(&numbers) {
            let hint = "copy what is missing there, or give the parts names of their own";
            let message = format!("of the pictures {first} to {last} some are missing: {gaps}");
            return Err(Reason::new(message, hint));
        }
        let count = u32::try_from(numbers.len()).expect("at most MOST_PICTURES");
        Ok(Self { folder, name, first, count, bytes, rate })
    }

    /// The input arguments for FFmpeg.
    pub(super) fn input(&self) -> Vec<OsString> {
        let (first, rate) = (self.first.to_string(), self.rate.to_string());
        let words = ["-protocol_whitelist", "file", "-format_whitelist", "image2", "-f", "image2"];
        let of_names = ["-pattern_type", "sequence", "-start_number", &first, "-framerate", &rate];
        let mut words: Vec<OsString> = words.iter().chain(&of_names).map(OsString::from).collect();
        let NumberedName { before, digits, after } = &self.name;
        // A per cent sign that is no place for a number is written twice.
        let [before, after] = [before, after].map(|part| part.replace('%', "%%"));
        let folder = local(&self.folder).into_encoded_bytes();
        let times = |byte: &u8| if *byte == b'%' { 2 } else { 1 };
        let folder = folder.iter().flat_map(|byte| std::iter::repeat_n(*byte, times(byte)));
        let mut file = OsString::from_vec(folder.collect());
        file.push(format!("/{before}%0{digits}d{after}"));
        words.extend(["-i".into(), file]);
        words
    }

    /// Looks at all pictures. `Err` within: why they are no title, if two differ in their size or
    /// format. `goes_on` is asked between them.
    pub(super) fn check_all<E>(
        &self,
        mut goes_on: impl FnMut() -> Result<(), E>,
    ) -> Result<Result<CutPictures, Reason>, E> {
        let mut before: Option<(String, PictureHead)> = None;
        let mut cut = CutPictures::default();
        for number in self.first..=self.first + (self.count - 1) {
            goes_on()?;
            let name = self.name.with(number);
            let file = File::open(self.folder.join(&name)).ok();
            let head = PictureHead::of(file.as_ref());
            match &before {
                Some((first, wanted)) if *wanted != head => {
                    let (wanted, head) = (wanted.beside(&head), head.beside(wanted));
                    return Ok(Err(Reason::new(
                        format!("its pictures differ: {first} has {wanted}, {name} has {head}"),
                        "ingest those of one size and format as one title",
                    )));
                }
                Some(_) => {}
                None => before = Some((name.clone(), head)),
            }
            if file.is_some_and(|file| is_cut(&file)) {
                cut.count += 1;
                cut.first.get_or_insert(name);
            }
        }
        Ok(Ok(cut))
    }
}

/// Pictures of which the end of the file is missing.
#[derive(Debug, Default)]
pub(super) struct CutPictures {
    count: u32,
    /// The name of the first.
    first: Option<String>,
}

impl CutPictures {
    /// What is missing, if anything is.
    pub(super) fn missing(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        let (count, pictures) = (self.count, if self.count == 1 { "picture" } else { "pictures" });
        Some(format!("the end of {count} {pictures} is missing, the first is {first}"))
    }
}

/// What a picture's head tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PictureHead {
    size: Option<PictureSize>,
    format: Option<PictureFormat>,
}

impl PictureHead {
    fn of(file: Option<&File>) -> Self {
        let head = file.and_then(|file| part(file, 0, 16));
        let format = head.and_then(|head| PictureFormat::of_head(&head));
        Self { size: file.and_then(picture_size), format }
    }

    /// What it has that the other has not, in words.
    fn beside(&self, other: &Self) -> String {
        let Some(size) = self.size else { return "no size".to_owned() };
        match self.format {
            Some(format) if other.size == self.size => format!("{size} in {}", format.name()),
            _ => size.to_string(),
        }
    }
}

impl NumberedName {
    /// The name in a pattern: `%d` or `%06d` is the place of the number.
    fn of(pattern: &Path) -> Option<Self> {
        let name = pattern.file_name()?.to_str()?;
        name.match_indices('%').find_map(|(at, _)| {
            let (digits, after) = name[at + 1..].split_once('d')?;
            let is_count = digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
            let digits = if digits.is_empty() { 1 } else { digits.parse().ok()? };
            let (before, after) = (name[..at].to_owned(), after.to_owned());
            (is_count && digits <= MOST_DIGITS).then_some(Self { before, digits, after })
        })
    }

    fn with(&self, number: u32) -> String {
        let Self { before, digits, after } = self;
        format!("{before}{number:0digits$}{after}", digits = *digits)
    }

    /// What is in the place of the number.
    fn in_place<'a>(&self, file: &'a str) -> Option<&'a str> {
        let rest = file.strip_prefix(self.before.as_str())?.strip_suffix(self.after.as_str())?;
        let is_number = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some(rest)
    }

    fn number(&self, file: &str) -> Option<u32> {
        let number = self.in_place(file)?.parse().ok().filter(|number| *number <= LAST)?;
        (self.with(number) == file).then_some(number)
    }

    /// Whether it would be one of the files with another number of digits.
    fn is_similar(&self, file: &str) -> bool {
        self.in_place(file).is_some()
    }
}

/// Whether a file's name has a place for a number.
pub(super) fn is_pattern(file: &Path) -> bool {
    NumberedName::of(file).is_some()
}

/// The name of a title of a pattern: what is in front of the number, or else behind it.
pub(super) fn title_of(pattern: &Path) -> Option<String> {
    let NumberedName { before, after, .. } = NumberedName::of(pattern)?;
    let after = after.rsplit_once('.').map_or("", |(name, _)| name);
    let separators: &[char] = &['.', '_', '-', ' '];
    let mut names = [before.as_str(), after].into_iter().map(|part| part.trim_matches(separators));
    names.find(|name| !name.is_empty()).map(str::to_owned)
}

/// The numbers that are missing, of numbers in order; `None` if none is.
fn gaps(numbers: &[u32]) -> Option<String> {
    let pairs = numbers.windows(2).filter(|pair| pair[1] > pair[0] + 1);
    let mut words = pairs.map(|pair| match (pair[0] + 1, pair[1] - 1) {
        (only, last) if only == last => only.to_string(),
        (first, last) => format!("{first} to {last}"),
    });
    let mut named: Vec<String> = words.by_ref().take(MOST_GAPS).collect();
    let more = words.count();
    if more > 0 {
        named.push(format!("{more} more gaps"));
    }
    (!named.is_empty()).then(|| named.join(", "))
}

/// The rates of television that are written with three digits, by the pictures in 1001 seconds.
const TELEVISION: [(&str, u32); 4] =
    [("23.976", 24_000), ("29.97", 30_000), ("59.94", 60_000), ("119.88", 120_000)];

/// The highest rate: that of slow-motion cameras.
const MOST_A_SECOND: u32 = 1000;

/// The most pictures of a title: eleven hours of film, and as many as a mount numbers.
const MOST_PICTURES: usize = 999_999;

/// The digits of a number, zeros in front included, and the last number, in FFmpeg.
const MOST_DIGITS: usize = 19;
const LAST: u32 = i32::MAX as u32;

/// The gaps that an error names.
const MOST_GAPS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_numbers_and_ratios() {
        for (text, wanted) in [
            ("25", Some("25")),
            ("30000/1001", Some("30000/1001")),
            ("23.976", Some("24000/1001")),
            ("1/10", Some("1/10")),
            ("0", None),
            ("25/0", None),
            ("1001", None),
            ("1/86401", None),
            ("fast", None),
            ("24.5", None),
        ] {
            let got = text.parse::<PictureRate>().ok().map(|rate| rate.to_string());
            assert_eq!(got.as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn patterns_give_names_numbers_and_titles() {
        for (pattern, file, number, title) in [
            ("shot.%06d.dpx", "shot.000017.dpx", Some(17), Some("shot")),
            ("shot.%06d.dpx", "shot.0017.dpx", None, Some("shot")),
            ("shot.%06d.dpx", "shot.1234567.dpx", Some(1_234_567), Some("shot")),
            ("shot.%06d.dpx", "shot.0123456.dpx", None, Some("shot")),
            ("%d_final.png", "8_final.png", Some(8), Some("final")),
            ("%d_final.png", "08_final.png", None, Some("final")),
            ("a%b_%3d.png", "a%b_007.png", Some(7), Some("a%b")),
            ("%04d.exr", "0001.exr", Some(1), None),
            ("%04d.exr", "9999999999.exr", None, None),
            ("%010d.png", "0000000001.png", Some(1), None),
            ("%010d.png", "2147483648.png", None, None),
            ("a.%019d.png", "a.0000000000000000240.png", Some(240), Some("a")),
            ("a.%019d.png", "a.000000000000000240.png", None, Some("a")),
        ] {
            let path = Path::new("/shots").join(pattern);
            let name = NumberedName::of(&path).expect(pattern);
            assert_eq!(name.number(file), number, "{pattern} {file}");
            assert_eq!(title_of(&path).as_deref(), title, "{pattern}");
        }
        for pattern in ["shot.dpx", "100%.dpx", "%s.dpx", "%-5d.png", "%020d.png", "%099d.png"] {
            assert_eq!(NumberedName::of(Path::new(pattern)), None, "{pattern}");
        }
    }

    #[test]
    fn missing_numbers_are_named() {
        for (numbers, wanted) in [
            (&[1, 2, 3][..], None),
            (&[7], None),
            (&[1, 3], Some("2")),
            (&[1, 3, 9, 11], Some("2, 4 to 8, 10")),
            (&[1, 3, 5, 7, 9, 11], Some("2, 4, 6, 2 more gaps")),
        ] {
            assert_eq!(gaps(numbers).as_deref(), wanted, "{numbers:?}");
        }
    }
}
