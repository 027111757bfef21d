//! The names of titles as folders and files. Names only: nothing here reads a store.
//!
//! ```text
//!   title                   file
//!   news/monday   (media)   news/monday.mp4
//!   logo.png      (file)    logo.png
//!   /odd//name    (media)   %2Fodd%2F%2Fname.mp4     no path of folders
//!   logo.png      (folder `logo.png/` exists, too)   logo.png (7), by the title's number
//!   match         (recorded)  match.growing.mp4
//! ```

use media::TitleKind;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use store::TitleId;

/// All titles of a store by their paths. A path has no slash in front; the root is empty.
#[derive(Debug, Default)]
pub(crate) struct TitleTree {
    root: TitleFolder,
}

/// The entries of a folder by name.
#[derive(Debug, Default)]
pub(crate) struct TitleFolder {
    pub(crate) entries: BTreeMap<String, TreeEntry>,
    /// Number of them that are folders.
    pub(crate) folders: usize,
}

/// A folder, or the file of a title.
#[derive(Debug)]
pub(crate) enum TreeEntry {
    Folder(TitleFolder),
    Title(TitleId),
    /// The file of a title that is being recorded.
    Growing(TitleId),
}

/// What the file of a title is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeFile {
    Title(TitleKind),
    /// A title that is being recorded.
    Growing,
}

impl TreeFile {
    /// The extension of the file's name.
    fn ending(self) -> &'static str {
        match self {
            Self::Title(TitleKind::File) => "",
            Self::Title(_) => MEDIA_ENDING,
            Self::Growing => GROWING_ENDING,
        }
    }
}

impl TitleTree {
    /// The tree of these titles: identifier, name and kind. Its shape does not depend on their
    /// order, except for the files of two titles that would have the same name.
    pub(crate) fn of(titles: &[(TitleId, &str, TreeFile)]) -> Self {
        let mut tree = Self::default();
        let paths: Vec<(TitleId, TreeFile, Vec<String>)> =
            titles.iter().map(|(id, name, file)| (*id, *file, path_of(name, *file))).collect();
        // Folders first: a title with the name of a folder gets another one.
        for (_, _, path) in &paths {
            tree.root.make(&path[..path.len() - 1]);
        }
        for (id, file, path) in paths {
            let (name, folders) = path.split_last().expect("a name is not empty");
            tree.root.make(folders).add(name, id, file);
        }
        tree
    }

    /// The entry at a path that is not the root.
    pub(crate) fn find(&self, path: &str) -> Option<&TreeEntry> {
        let (folder, name) = split(path);
        self.folder(folder)?.entries.get(name)
    }

    /// The folder at a path.
    pub(crate) fn folder(&self, path: &str) -> Option<&TitleFolder> {
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.into_iter().try_fold(&self.root, |folder, part| match folder.entries.get(part)? {
            TreeEntry::Folder(inner) => Some(inner),
            TreeEntry::Title(_) | TreeEntry::Growing(_) => None,
        })
    }
}

impl TitleFolder {
    /// The folder inside this one, which is made if it is missing.
    fn make(&mut self, path: &[String]) -> &mut Self {
        path.iter().fold(self, |folder, part| {
            let made = folder.entries.entry(part.clone());
            folder.folders += usize::from(matches!(made, Entry::Vacant(_)));
            match made.or_insert_with(|| TreeEntry::Folder(Self::default())) {
                TreeEntry::Folder(inner) => inner,
                TreeEntry::Title(_) | TreeEntry::Growing(_) => {
                    unreachable!("all folders are made before any title")
                }
            }
        })
    }

    fn add(&mut self, name: &str, id: TitleId, file: TreeFile) {
        let entry = match file {
            TreeFile::Title(_) => TreeEntry::Title(id),
            TreeFile::Growing => TreeEntry::Growing(id),
        };
        match self.entries.entry(name.to_owned()) {
            Entry::Vacant(free) => {
                free.insert(entry);
            }
            Entry::Occupied(_) => {
                let (stem, extension) = match name.rsplit_once('.') {
                    Some((stem, extension)) if !stem.is_empty() => (stem, extension),
                    _ => (name, ""),
                };
                let dot = if extension.is_empty() { "" } else { "." };
                let other = format!("{stem} ({}){dot}{extension}", id.0);
                self.entries.entry(other).or_insert(entry);
            }
        }
    }
}

/// The folders and the file name of a title.
fn path_of(name: &str, file: TreeFile) -> Vec<String> {
    let ending = file.ending();
    let is_path = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let file = format!("{name}{ending}");
    match is_path {
        true => file.split('/').map(str::to_owned).collect(),
        false => vec![file.replace('/', "%2F")],
    }
}

/// The folder of a path, and the name in it.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The path of a name in a folder.
pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The extension of the files of media titles. It does not depend on the codecs, which only the
/// title's index knows: a listing must not read the index of each title.
pub(crate) const MEDIA_ENDING: &str = ".mp4";

/// The extension of the file of a title that is being recorded. It has other bytes than the file of
/// the title that it becomes, so that programs must not take the one for the other.
const GROWING_ENDING: &str = ".growing.mp4";

#[cfg(test)]
mod tests {
    use super::*;
    use TitleKind::{File, Media};
    use expect_test::expect;
    use std::fmt::Write as _;

    fn shown(folder: &TitleFolder, indent: usize, text: &mut String) {
        for (name, entry) in &folder.entries {
            match entry {
                TreeEntry::Folder(inner) => {
                    writeln!(text, "{:indent$}{name}/", "").unwrap();
                    shown(inner, indent + 2, text);
                }
                TreeEntry::Title(id) | TreeEntry::Growing(id) => {
                    writeln!(text, "{:indent$}{name}: {}", "", id.0).unwrap();
                }
            }
        }
    }

    #[test]
    fn each_title_has_one_file() {
        let titles = [
            ("news/monday", Media),
            ("logo.png", File),
            ("logo.png/large", File),
            ("/odd//name", Media),
            ("news/../up", File),
            ("film", Media),
            ("film.mp4", File),
            (".hidden", File),
            ("news", Media),
            ("door/2.growing", Media),
        ];
        let titles = titles.map(|(name, kind)| (name, TreeFile::Title(kind)));
        let growing = ["door/1", "door/2", "news"].map(|name| (name, TreeFile::Growing));
        let titles: Vec<_> = (1..).map(TitleId).zip(titles.into_iter().chain(growing)).collect();
        let titles: Vec<_> = titles.iter().map(|(id, (name, file))| (*id, *name, *file)).collect();
        let tree = TitleTree::of(&titles);
        let mut text = String::new();
        shown(&tree.root, 0, &mut text);
        expect![[r#"
            %2Fodd%2F%2Fname.mp4: 4
            .hidden: 8
            door/
              1.growing.mp4: 11
              2.growing (12).mp4: 12
              2.growing.mp4: 10
            film (7).mp4: 7
            film.mp4: 6
            logo (2).png: 2
            logo.png/
              large: 3
            news/
              monday.mp4: 1
            news%2F..%2Fup: 5
            news.growing.mp4: 13
            news.mp4: 9
        "#]]
        .assert_eq(&text);
        for (path, found) in [
            ("news/monday.mp4", Some(1)),
            ("news/monday", None),
            ("film.mp4/x", None),
            ("logo.png/large", Some(3)),
            ("nothing/here", None),
        ] {
            let title = tree.find(path).and_then(|entry| match entry {
                TreeEntry::Title(id) => Some(id.0),
                TreeEntry::Folder(_) | TreeEntry::Growing(_) => None,
            });
            assert_eq!(title, found, "{path}");
        }
        assert!(tree.folder("").is_some() && tree.folder("news").is_some());
        assert!(tree.folder("film.mp4").is_none());
    }
}
