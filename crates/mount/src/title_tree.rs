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
//!
//! The tree depends on the titles and the kept folders alone, and not on the order in which they
//! came: of titles whose files would have the same name, the oldest has it. So a change of one
//! title touches the folders of that title, and the tree is the one that all titles would make.

use media::TitleKind;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::TitleId;

/// All titles of a store by their paths. A path has no slash in front; the root is empty.
#[derive(Debug, Default)]
pub(crate) struct TitleTree {
    root: TitleFolder,
    /// The names by which the paths of titles are found again.
    titles: HashMap<TitleId, (Box<str>, TreeFile)>,
    /// The paths of folders that stay without a title in them.
    kept: BTreeSet<String>,
}

/// The names in a folder.
#[derive(Debug, Default)]
pub(crate) struct TitleFolder {
    names: BTreeMap<String, NameUses>,
    /// Number of names that are folders.
    pub(crate) folders: usize,
    /// Whether the folder stays when nothing is in it.
    is_kept: bool,
}

/// All that would have one name in a folder.
#[derive(Debug, Default)]
struct NameUses {
    folder: Option<Box<TitleFolder>>,
    /// The titles whose files they are, the oldest first.
    titles: Vec<(TitleId, TreeFile)>,
}

/// A folder, or the file of a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeEntry {
    Folder,
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
    /// Gives a title the file that it has now: that of its name, or none. Returns the paths of the
    /// folders that are no more.
    pub(crate) fn set(&mut self, id: TitleId, now: Option<(&str, TreeFile)>) -> Vec<String> {
        let mut gone = Vec::new();
        if let Some((name, file)) = self.titles.get(&id) {
            if now == Some((&**name, *file)) {
                return gone;
            }
            let path = path_of(name, *file);
            let folders = &path[..path.len() - 1];
            let emptied = self.root.let_go(&path, Some(id));
            gone.extend((0..emptied).map(|last| folders[..folders.len() - last].join("/")));
            self.titles.remove(&id);
        }
        if let Some((name, file)) = now {
            let mut folders = path_of(name, file);
            let own = folders.pop().expect("a name is not empty");
            self.root.make(folders).add(own, id, file);
            self.titles.insert(id, (name.into(), file));
        }
        gone.retain(|path| self.folder(path).is_none());
        gone
    }

    /// A tree without titles that has the kept folders of this one.
    pub(crate) fn without_titles(&self) -> Self {
        let mut tree = Self::default();
        self.kept.iter().for_each(|path| tree.keep(path));
        tree
    }

    /// Makes a folder that stays without a title in it, or lets one stay that is there.
    pub(crate) fn keep(&mut self, path: &str) {
        if self.kept.insert(path.to_owned()) {
            self.root.make(parts(path)).is_kept = true;
        }
    }

    /// The folder stays no longer than titles are in it.
    pub(crate) fn let_go(&mut self, path: &str) {
        if self.kept.remove(path) {
            self.root.let_go(&parts(path), None);
        }
    }

    /// Gives the kept folders other paths, one by one.
    pub(crate) fn move_kept(&mut self, moved: impl Fn(&str) -> Option<String>) {
        let others = self.kept.iter().filter_map(|path| Some((path.clone(), moved(path)?)));
        for (old, new) in others.collect::<Vec<_>>() {
            self.let_go(&old);
            self.keep(&new);
        }
    }

    /// The entry at a path that is not the root.
    pub(crate) fn find(&self, path: &str) -> Option<TreeEntry> {
        let (folder, name) = split(path);
        self.folder(folder)?.entry(name)
    }

    /// The folder at a path.
    pub(crate) fn folder(&self, path: &str) -> Option<&TitleFolder> {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        parts.try_fold(&self.root, |folder, part| folder.names.get(part)?.folder.as_deref())
    }
}

impl TitleFolder {
    /// The names in this folder, with what they are.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (String, TreeEntry)> {
        self.names.iter().flat_map(move |(name, uses)| {
            let others = uses.others().map(|it| (other_name(name, it.0), entry_of(it)));
            // A title whose own file has that name is there instead.
            let others = others.filter(|(other, _)| !self.names.contains_key(other));
            uses.first().map(|entry| (name.clone(), entry)).into_iter().chain(others)
        })
    }

    fn entry(&self, name: &str) -> Option<TreeEntry> {
        if let Some(uses) = self.names.get(name) {
            return uses.first();
        }
        let (wanted, id) = title_in(name)?;
        self.names.get(&wanted)?.others().find(|it| it.0 == id).map(entry_of)
    }

    /// The folder inside this one, which is made if it is missing.
    fn make(&mut self, path: Vec<String>) -> &mut Self {
        path.into_iter().fold(self, |folder, part| {
            let uses = folder.names.entry(part).or_default();
            folder.folders += usize::from(uses.folder.is_none());
            uses.folder.get_or_insert_default()
        })
    }

    fn add(&mut self, name: String, id: TitleId, file: TreeFile) {
        let titles = &mut self.names.entry(name).or_default().titles;
        let at = titles.partition_point(|it| it.0 < id);
        titles.insert(at, (id, file));
    }

    /// Removes the file of a title, or lets a kept folder go, with the folders that are empty then.
    /// Returns their number: they are the last ones of the path.
    fn let_go(&mut self, path: &[String], title: Option<TitleId>) -> usize {
        let (name, rest) = path.split_first().expect("a name is not empty");
        let uses = self.names.get_mut(name).expect("it is in the tree");
        let mut emptied = 0;
        match title {
            Some(id) if rest.is_empty() => uses.titles.retain(|it| it.0 != id),
            _ => {
                let folder = uses.folder.as_mut().expect("it is a folder, or in one");
                match rest {
                    [] => folder.is_kept = false,
                    rest => emptied = folder.let_go(rest, title),
                }
                if folder.names.is_empty() && !folder.is_kept {
                    uses.folder = None;
                    self.folders -= 1;
                    emptied += 1;
                }
            }
        }
        if uses.folder.is_none() && uses.titles.is_empty() {
            self.names.remove(name);
        }
        emptied
    }
}

impl NameUses {
    /// What has the name: a folder, or the oldest title.
    fn first(&self) -> Option<TreeEntry> {
        match self.folder {
            Some(_) => Some(TreeEntry::Folder),
            None => self.titles.first().map(entry_of),
        }
    }

    /// The titles whose files get another name.
    fn others(&self) -> impl Iterator<Item = &(TitleId, TreeFile)> {
        self.titles.iter().skip(usize::from(self.folder.is_none()))
    }
}

fn entry_of((id, file): &(TitleId, TreeFile)) -> TreeEntry {
    match file {
        TreeFile::Title(_) => TreeEntry::Title(*id),
        TreeFile::Growing => TreeEntry::Growing(*id),
    }
}

/// The name of a title's file where something else has its name.
fn other_name(name: &str, id: TitleId) -> String {
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => format!("{stem} ({}).{extension}", id.0),
        _ => format!("{name} ({})", id.0),
    }
}

/// The title whose other name this is, and its own name.
fn title_in(other: &str) -> Option<(String, TitleId)> {
    let (front, extension) = match other.rsplit_once('.') {
        Some((front, _)) if front.ends_with(')') => (front, &other[front.len()..]),
        _ => (other, ""),
    };
    let (stem, number) = front.strip_suffix(')')?.rsplit_once(" (")?;
    let (name, id) = (format!("{stem}{extension}"), TitleId(number.parse().ok()?));
    (other_name(&name, id) == other).then_some((name, id))
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

/// The names that a path consists of.
fn parts(path: &str) -> Vec<String> {
    path.split('/').map(str::to_owned).collect()
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

    fn shown(tree: &TitleTree, path: &str, text: &mut String) {
        let indent = if path.is_empty() { 0 } else { 2 * (path.matches('/').count() + 1) };
        let entries: BTreeMap<_, _> = tree.folder(path).unwrap().entries().collect();
        for (name, entry) in entries {
            match entry {
                TreeEntry::Folder => {
                    writeln!(text, "{:indent$}{name}/", "").unwrap();
                    shown(tree, &join(path, &name), text);
                }
                TreeEntry::Title(id) | TreeEntry::Growing(id) => {
                    writeln!(text, "{:indent$}{name}: {}", "", id.0).unwrap();
                }
            }
        }
    }

    fn shown_whole(tree: &TitleTree) -> String {
        let mut text = String::new();
        shown(tree, "", &mut text);
        text
    }

    fn tree_of<'a>(titles: impl IntoIterator<Item = (u64, (&'a str, TreeFile))>) -> TitleTree {
        tree_with(&BTreeSet::new(), titles)
    }

    fn tree_with<'a>(
        kept: &BTreeSet<&str>,
        titles: impl IntoIterator<Item = (u64, (&'a str, TreeFile))>,
    ) -> TitleTree {
        let mut tree = TitleTree::default();
        kept.iter().for_each(|path| tree.keep(path));
        for (id, title) in titles {
            tree.set(TitleId(id), Some(title));
        }
        tree
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
        let tree = tree_of((1..).zip(titles.into_iter().chain(growing)));
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
        .assert_eq(&shown_whole(&tree));
        for (path, found) in [
            ("news/monday.mp4", Some(1)),
            ("news/monday", None),
            ("film.mp4/x", None),
            ("logo.png/large", Some(3)),
            ("logo (2).png", Some(2)),
            ("logo (3).png", None),
            ("film (6).mp4", None),
            ("nothing/here", None),
        ] {
            let title = tree.find(path).and_then(|entry| match entry {
                TreeEntry::Title(id) => Some(id.0),
                TreeEntry::Folder | TreeEntry::Growing(_) => None,
            });
            assert_eq!(title, found, "{path}");
        }
        assert!(tree.folder("").is_some() && tree.folder("news").is_some());
        assert!(tree.folder("film.mp4").is_none());
    }

    /// The paths of all folders. Each name of a list must be found, and each number of folders be
    /// right.
    fn folders(tree: &TitleTree, path: &str, all: &mut BTreeSet<String>) {
        let folder = tree.folder(path).unwrap();
        let mut inside = 0;
        for (name, entry) in folder.entries() {
            let at = join(path, &name);
            assert_eq!(tree.find(&at), Some(entry), "{at}");
            if entry == TreeEntry::Folder {
                inside += 1;
                assert!(all.insert(at.clone()));
                folders(tree, &at, all);
            }
        }
        assert_eq!(folder.folders, inside, "of {path}");
    }

    #[test]
    fn random_changes_make_the_tree_that_all_titles_would_make() {
        let names = ["a", "a.mp4", "a (3)", "b", "a/b", "a/b/c", "b/a", "a//b", "b/a.growing"];
        let files = [TreeFile::Title(Media), TreeFile::Title(File), TreeFile::Growing];
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut tree = TitleTree::default();
            let (mut titles, mut before) = (BTreeMap::new(), BTreeSet::<String>::new());
            let mut kept = BTreeSet::new();
            for _ in 0..30 {
                let folder = names[random.usize(..5)];
                match random.u8(..8) {
                    0 if kept.insert(folder) => tree.keep(folder),
                    1 if kept.remove(folder) => tree.let_go(folder),
                    _ => {}
                }
                before.clear();
                folders(&tree, "", &mut before);
                let id = random.u64(1..8);
                let title = (names[random.usize(..names.len())], files[random.usize(..3)]);
                let now = random.u8(..3).gt(&0).then_some(title);
                match now {
                    Some(title) => titles.insert(id, title),
                    None => titles.remove(&id),
                };
                let gone = tree.set(TitleId(id), now);
                let mut anew: Vec<_> = titles.iter().map(|(id, title)| (*id, *title)).collect();
                random.shuffle(&mut anew);
                let anew = tree_with(&kept, anew);
                assert_eq!(shown_whole(&tree), shown_whole(&anew), "seed {seed}: {titles:?}");
                let files = shown_whole(&tree).matches(": ").count();
                // What is named like the other file of a title is there instead of it.
                let takes = |name: &str| name == "a (3)";
                if !kept.iter().any(|it| takes(it)) && !titles.values().any(|it| takes(it.0)) {
                    assert_eq!(files, titles.len(), "seed {seed}: each title is there");
                }
                let mut after = BTreeSet::new();
                folders(&tree, "", &mut after);
                let gone: BTreeSet<String> = gone.into_iter().collect();
                assert_eq!(gone, &before - &after, "seed {seed}: {titles:?}");
            }
        }
    }
}
