//! Inode numbers: the kernel names files by numbers, this program by paths.
//!
//! A number belongs to a path from the first lookup until the kernel has forgotten it, or the path
//! is renamed, which takes the number along. Some numbers stay when the kernel has forgotten them:
//! clients of an NFS server name a file by its number long after they have looked it up.

use crate::about::About;
use crate::draft::Draft;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use store::TitleId;

/// The paths of the inode numbers that the kernel knows, or has forgotten not long ago.
#[derive(Debug)]
pub(crate) struct Nodes {
    nodes: HashMap<u64, Node>,
    /// The numbers that the kernel forgot, and may have looked up again since; the oldest first.
    forgotten: VecDeque<u64>,
    numbers: BTreeMap<String, u64>,
    next: u64,
}

#[derive(Debug)]
struct Node {
    path: String,
    /// Number of lookups that the kernel has not forgotten.
    lookups: u64,
    /// Whether it is among those that were forgotten.
    was_forgotten: bool,
    /// The title that the kernel's cache has pages of.
    cached: Option<TitleId>,
    /// What it was when it was unlinked: an open file keeps that.
    unlinked: Option<Unlinked>,
}

/// An unlinked file, or a folder that was removed.
#[derive(Clone, Debug)]
pub(crate) struct Unlinked {
    /// The attributes that the file had then.
    pub(crate) about: About,
    /// Where it was being written; it can be written further.
    pub(crate) draft: Option<Arc<Draft>>,
}

impl Node {
    fn of(path: &str) -> Self {
        let path = path.to_owned();
        Self { path, lookups: 0, was_forgotten: false, cached: None, unlinked: None }
    }
}

/// The number of the root.
const ROOT: u64 = 1;

/// The most numbers that are kept when the kernel has forgotten them: some hundred bytes each.
const REMEMBERED: usize = 65_536;

impl Default for Nodes {
    fn default() -> Self {
        let root = Node { lookups: 1, ..Node::of("") };
        Self {
            nodes: [(ROOT, root)].into(),
            forgotten: VecDeque::new(),
            numbers: [(String::new(), ROOT)].into(),
            next: ROOT + 1,
        }
    }
}

impl Nodes {
    /// The number of a path that the kernel looks up.
    pub(crate) fn looked_up(&mut self, path: &str) -> u64 {
        let number = match self.numbers.get(path) {
            Some(number) => *number,
            None => {
                let number = self.next;
                self.next += 1;
                self.numbers.insert(path.to_owned(), number);
                self.nodes.insert(number, Node::of(path));
                number
            }
        };
        self.nodes.get_mut(&number).expect("it has a node").lookups += 1;
        number
    }

    /// The kernel forgets so many lookups.
    pub(crate) fn forget(&mut self, number: u64, lookups: u64) {
        let Some(node) = self.nodes.get_mut(&number).filter(|_| number != ROOT) else { return };
        node.lookups = node.lookups.saturating_sub(lookups);
        if node.lookups > 0 {
            return;
        }
        // Its cache is gone, too.
        node.cached = None;
        if self.numbers.get(&node.path) != Some(&number) {
            // An unlinked file, which nobody finds again.
            self.nodes.remove(&number);
            return;
        }
        if !std::mem::replace(&mut node.was_forgotten, true) {
            self.forgotten.push_back(number);
        }
        if self.forgotten.len() > REMEMBERED
            && let Some(oldest) = self.forgotten.pop_front()
        {
            self.let_go(oldest);
        }
    }

    /// The number is no more among those that were forgotten, and unless the kernel has looked it
    /// up again, no file's.
    fn let_go(&mut self, number: u64) {
        let Some(node) = self.nodes.get_mut(&number) else { return };
        node.was_forgotten = false;
        if node.lookups == 0
            && let Some(node) = self.nodes.remove(&number)
            && self.numbers.get(&node.path) == Some(&number)
        {
            self.numbers.remove(&node.path);
        }
    }

    /// The number of a path that the kernel knows.
    pub(crate) fn number(&self, path: &str) -> Option<u64> {
        self.numbers.get(path).copied()
    }

    /// The path of a number that the kernel knows; an unlinked file has none.
    pub(crate) fn path(&self, number: u64) -> Option<&str> {
        let node = self.nodes.get(&number)?;
        (self.numbers.get(&node.path) == Some(&number)).then_some(node.path.as_str())
    }

    /// The path is that of another file from now on, or of none; `unlinked` is what the file was.
    pub(crate) fn unlink(&mut self, path: &str, unlinked: Option<Unlinked>) {
        let Some(number) = self.numbers.remove(path) else { return };
        match self.nodes.get_mut(&number) {
            Some(node) if node.lookups > 0 => node.unlinked = unlinked,
            // Nobody has it open.
            _ => drop(self.nodes.remove(&number)),
        }
    }

    /// What an unlinked file was.
    pub(crate) fn unlinked(&self, number: u64) -> Option<&Unlinked> {
        self.nodes.get(&number)?.unlinked.as_ref()
    }

    /// Moves a path, and all paths in it.
    pub(crate) fn rename(&mut self, old: &str, new: &str) {
        self.unlink(new, None);
        let inside = format!("{old}/");
        let all = self.numbers.range(inside.clone()..).map(|(path, _)| path);
        let mut paths: Vec<String> =
            all.take_while(|path| path.starts_with(&inside)).cloned().collect();
        paths.push(old.to_owned());
        for path in paths {
            let Some(number) = self.numbers.remove(&path) else { continue };
            let moved = format!("{new}{}", &path[old.len()..]);
            if let Some(node) = self.nodes.get_mut(&number) {
                node.path.clone_from(&moved);
            }
            self.numbers.insert(moved, number);
        }
    }

    /// Records that a title is read through this number; returns whether it was the last one, too,
    /// so that the kernel's cache has nothing else.
    pub(crate) fn caches(&mut self, number: u64, title: TitleId) -> bool {
        let Some(node) = self.nodes.get_mut(&number) else { return false };
        node.cached.replace(title) == Some(title)
    }

    /// Records that the kernel's cache gets bytes that are no title's yet.
    pub(crate) fn caches_draft(&mut self, number: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.cached = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_follows_its_path_until_it_is_forgotten() {
        let mut nodes = Nodes::default();
        let [folder, file] = ["a", "a/b"].map(|path| nodes.looked_up(path));
        assert_eq!(nodes.looked_up("a/b"), file);
        nodes.rename("a", "c");
        assert_eq!((nodes.path(folder), nodes.path(file)), (Some("c"), Some("c/b")));
        assert_eq!(nodes.looked_up("c/b"), file);
        // A file with the old name is another one.
        assert_ne!(nodes.looked_up("a/b"), file);
        nodes.unlink("c/b", None);
        let newer = nodes.looked_up("c/b");
        assert!(newer != file && nodes.path(file).is_none(), "an unlinked file has no path");
        nodes.rename("c", "a");
        assert_eq!((nodes.path(newer), nodes.path(file)), (Some("a/b"), None));
        nodes.rename("a", "c");
        nodes.forget(file, 3);
        assert_eq!(nodes.path(file), None);
        assert_eq!(nodes.looked_up("c/b"), newer);
        assert!(!nodes.caches(newer, TitleId(1)) && nodes.caches(newer, TitleId(1)));
        assert!(!nodes.caches(newer, TitleId(2)));
        nodes.forget(ROOT, 5);
        assert_eq!(nodes.path(ROOT), Some(""));
    }

    #[test]
    fn the_numbers_that_were_forgotten_last_are_remembered() {
        let mut nodes = Nodes::default();
        let [first, second, third] = ["a", "b", "c"].map(|path| nodes.looked_up(path));
        nodes.rename("b", "d");
        for number in [first, second, third] {
            nodes.forget(number, 1);
        }
        nodes.unlink("c", None);
        assert_eq!(nodes.looked_up("a"), first, "the kernel has it again");
        nodes.rename("d", "e");
        assert_eq!((nodes.path(second), nodes.path(third)), (Some("e"), None));
        let others: Vec<u64> =
            (0..REMEMBERED).map(|other| nodes.looked_up(&other.to_string())).collect();
        for other in others {
            nodes.forget(other, 1);
        }
        assert_eq!((nodes.path(first), nodes.path(second)), (Some("a"), None));
        assert_ne!(nodes.looked_up("e"), second, "a number is never used again");
        nodes.forget(first, 1);
        assert_eq!(nodes.path(first), Some("a"));
        assert!(nodes.nodes.len() <= REMEMBERED + 2, "{}", nodes.nodes.len());
    }
}
