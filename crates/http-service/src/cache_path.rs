//! What an address for caches names: the title, and the version of its content where there is one.
//!
//! ```text
//!   /origin/news/evening/master.m3u8                           title news/evening
//!   /origin/news%2Fevening/master.m3u8                         the same
//!   /origin/news/evening.mp4                                   the same
//!   /origin/news/evening/2540be400-8c1f-4a2-09ab12cd-7d0~0.1.0/0/17.m4s    a version of it
//!   /origin/news/2540be400-8c1f-4a2-09ab12cd-7d0~0.1.0/news/evening/file.mp4   a file of it
//!   /origin/2540be400-8c1f-4a2-09ab12cd-7d0~0.1.0/news/evening/file.mp4    the same file
//! ```
//!
//! The folders of a title are those of the address, because many caches join `%2F` to `/` or refuse
//! it. So a version is known by its form. Whether any of it exists is not known here.
//!
//! A file of a title in a folder has its whole name behind the version, because the way to it is
//! one relative reference for both forms of the name, which have different folders in front.

/// An address for caches, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePath<'a> {
    /// The names that the name of the title consists of, with slashes between them. Of the address
    /// of a file the last one has the file's extension.
    pub title: &'a [String],
    /// The version of the title's content that the address is of; `None`: of the present one.
    pub version: Option<&'a str>,
    /// What is named of the title; nothing for the address of a file.
    pub resource: &'a [String],
}

impl<'a> CachePath<'a> {
    /// The readings of the decoded names below `/origin/`, the likeliest first. A title in a folder
    /// that is named like a version has two.
    pub fn readings(path: &'a [String]) -> impl Iterator<Item = Self> {
        let versions = (0..path.len()).rev().filter(|at| is_version(&path[*at]));
        let of_version = versions.map(|at| {
            let (title, resource) = (&path[..at], &path[at + 1..]);
            let (title, resource) = file_of(title, resource).unwrap_or((title, resource));
            Self { title, version: Some(&path[at]), resource }
        });
        let is_file = path.last().is_some_and(|name| file_title(name).is_some());
        let titles = if is_file { path.len() } else { path.len().saturating_sub(1) };
        let (title, resource) = path.split_at(titles);
        let entry = Self { title, version: None, resource };
        let all = of_version.chain(std::iter::once(entry));
        all.filter(|reading| !reading.title.is_empty())
    }

    /// The name of the title; `None` where there is none.
    pub fn title_name(&self) -> Option<String> {
        let name = self.title.join("/");
        let name = match self.resource {
            [] if self.version.is_none() => file_title(&name)?,
            _ => &name,
        };
        (!name.is_empty()).then(|| name.to_owned())
    }

    /// The identity of the content that the version is of.
    pub fn content(&self) -> Option<String> {
        let (numbers, _) = self.version?.split_once('~')?;
        let content: Vec<&str> = numbers.split('-').take(OF_CONTENT).collect();
        Some(content.join("-"))
    }
}

/// Whether the name of a title is the same for all caches: they join `a//b` and `a/x/../b` to
/// `a/b`, and would give one title for another one.
pub fn is_name_for_caches(title: &str) -> bool {
    title.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

/// The title and its file that stand behind a version, where some of the folders of the title stand
/// in front of it.
fn file_of<'a>(folders: &[String], below: &'a [String]) -> Option<(&'a [String], &'a [String])> {
    let (title, file) = below.split_at(below.len().checked_sub(1)?);
    let is_file = file[0] == "file.mp4" || file[0].starts_with("file-") && file[0].ends_with(".ts");
    let name = title.join("/");
    let is_below = |rest: &str| rest.starts_with('/') || folders.is_empty();
    let is_title = name.strip_prefix(&folders.join("/")).is_some_and(is_below);
    (is_file && !title.is_empty() && is_title).then_some((title, file))
}

/// The name of the title whose file has this name.
fn file_title(name: &str) -> Option<&str> {
    name.strip_suffix(".mp4").or_else(|| name.strip_suffix(".ts"))
}

/// Whether a name has the form of a version: five numbers or six, and the version of a program.
fn is_version(name: &str) -> bool {
    let Some((content, program)) = name.split_once('~') else { return false };
    let is_hex = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(is_hex);
    matches!(content.split('-').count(), 5 | 6)
        && content.split('-').all(is_number)
        && program.starts_with(|c: char| c.is_ascii_digit())
        && !program.contains('/')
}

/// Numbers of the identity of a content; behind it are the length of segments, and keys.
const OF_CONTENT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: &str = "2540be400-8c1f-4a2-09ab12cd-7d0~0.1.0";

    fn first(path: &str) -> Option<(String, bool, String)> {
        let path: Vec<String> = path.split('/').map(|name| name.replace("%2F", "/")).collect();
        let found = CachePath::readings(&path).next()?;
        Some((found.title_name()?, found.version.is_some(), found.resource.join("/")))
    }

    #[test]
    fn titles_are_in_the_folders_of_the_address() {
        for title in ["film", "news/evening", "a/b/c", "news/0", "x~1/key/text", "file.mp4/x"] {
            for written in [title.to_owned(), title.replace('/', "%2F")] {
                for (rest, has_version, resource) in [
                    (".mp4".to_owned(), false, ""),
                    (".ts".to_owned(), false, ""),
                    ("/master.m3u8".to_owned(), false, "master.m3u8"),
                    (format!("/{VERSION}/0.mp4"), true, "0.mp4"),
                    (format!("/{VERSION}/file.mp4"), true, "file.mp4"),
                    (format!("/{VERSION}/text/0/17.vtt"), true, "text/0/17.vtt"),
                ] {
                    let wanted = Some((title.to_owned(), has_version, resource.to_owned()));
                    assert_eq!(first(&format!("{written}{rest}")), wanted, "{written}{rest}");
                }
            }
        }
        for (path, title) in [
            ("V/film/file.mp4", "film"),
            ("V/news/evening/file-8000000.ts", "news/evening"),
            ("news/V/news/evening/file.mp4", "news/evening"),
            ("a%2Fb/V/a/b/c/file.mp4", "a/b/c"),
            ("news/V/file.mp4", "news"),
        ] {
            let resource = path.rsplit('/').next().expect("a name").to_owned();
            let wanted = Some((title.replace('V', VERSION), true, resource));
            assert_eq!(first(&path.replace('V', VERSION)), wanted, "{path}");
        }
        // Others have no such address, and neither have other folders: a title has few of them.
        for path in ["new/V/news/evening/file.mp4", "x/V/film/file.mp4", "x/V/y/0.mp4"] {
            let (title, _) = path.split_once('/').expect("a folder");
            let found = first(&path.replace('V', VERSION)).expect("a reading");
            assert_eq!((found.0.as_str(), found.1), (title, true), "{path}");
        }
        for nothing in ["", "film", ".mp4", ".ts", "master.m3u8"] {
            assert_eq!(first(nothing), None, "{nothing}");
        }
        let path = [VERSION, VERSION, "a.mp4"].map(str::to_owned);
        let all: Vec<_> = CachePath::readings(&path).filter_map(|it| it.title_name()).collect();
        assert_eq!(all, [VERSION.to_owned(), format!("{VERSION}/{VERSION}/a")]);
        let path = [VERSION, VERSION, "x", "file.mp4"].map(str::to_owned);
        let all: Vec<_> = CachePath::readings(&path).filter_map(|it| it.title_name()).collect();
        assert!(all.contains(&format!("{VERSION}/x")), "{all:?}");
    }

    #[test]
    fn versions_are_known_by_their_form() {
        assert!(is_version(VERSION) && is_version("0-1-2-3-4-abcdef~10.2.3-rc.1"));
        for other in [
            "film",
            "x~1",
            "0-1-2-3~1",
            "0-1-2-3-4~",
            "0-1-2-3-g~1",
            "0-1-2-3-4~x",
            "0-1-2-3-4~1/x",
            "~1",
        ] {
            assert!(!is_version(other), "{other}");
        }
        for (name, wanted) in [("a/b", true), ("..a", true), ("a//b", false), ("a/../b", false)] {
            assert_eq!(is_name_for_caches(name), wanted, "{name}");
        }
    }
}
