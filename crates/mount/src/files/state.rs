//! What a mounted store knows of its files: their names, inode numbers, and who has them open.

use super::handles::OpenFile;
use super::{FRAMES_ENDING, GrowingFile, INGEST, TitleFile};
use crate::StoreMountOptions;
use crate::draft::Draft;
use crate::frames::Frames;
use crate::nodes::Nodes;
use crate::title_tree::{TitleTree, TreeEntry, TreeFile, split};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;
use store::{RecordingFile, TitleId, TitleOwner};

/// What a mounted store knows of its files, under one lock.
#[derive(Debug, Default)]
pub(super) struct FilesState {
    pub(super) tree: TitleTree,
    /// The store's number of changes that the tree was made at.
    pub(super) made_at: Option<u64>,
    pub(super) nodes: Nodes,
    /// When the names in a folder changed last, of those that were changed through the mount.
    pub(super) changed: HashMap<String, SystemTime>,
    /// The files that are being written, by path.
    pub(super) drafts: BTreeMap<String, Arc<Draft>>,
    pub(super) open: HashMap<u64, Arc<OpenFile>>,
    pub(super) opened: u64,
    /// The files of titles that are being read, by how many.
    pub(super) readers: HashMap<TitleId, usize>,
    /// Names that are being changed through the mount.
    pub(super) renaming: usize,
    /// The lengths of the files of media titles.
    pub(super) lengths: HashMap<TitleId, u64>,
    /// The frames of those media titles that were asked for them.
    pub(super) frames: HashMap<TitleId, Option<Frames>>,
    /// The latest media files that were opened, the last one last.
    pub(super) recent: Vec<Arc<TitleFile>>,
    /// The files of titles that are being recorded.
    pub(super) growing: HashMap<TitleId, Arc<GrowingFile>>,
}

impl FilesState {
    pub(super) fn is_folder(&self, path: &str, options: &StoreMountOptions) -> bool {
        path.is_empty() || self.tree.folder(path).is_some() || path == INGEST && !options.read_only
    }

    /// The title with this identifier has this name and file now; `None`: there is none.
    pub(super) fn set(&mut self, id: TitleId, now: Option<(String, TreeFile)>) {
        let now = now.as_ref().map(|(name, file)| (name.as_str(), *file));
        for folder in self.tree.set(id, now) {
            self.changed.remove(&folder);
        }
    }

    /// Number of folders in a folder.
    pub(super) fn subfolders(&self, path: &str, options: &StoreMountOptions) -> u32 {
        let ingest = usize::from(path.is_empty() && !options.read_only);
        let all = self.tree.folder(path).map_or(0, |folder| folder.folders) + ingest;
        u32::try_from(all).unwrap_or(u32::MAX - 2)
    }

    /// The names in the folder of this path have changed.
    pub(super) fn touch_folder_of(&mut self, path: &str) {
        self.changed.insert(split(path).0.to_owned(), SystemTime::now());
    }

    pub(super) fn add(&mut self, file: OpenFile) -> u64 {
        self.opened += 1;
        self.open.insert(self.opened, Arc::new(file));
        self.opened
    }

    /// One reader of a title less; returns whether it was the last one.
    pub(super) fn has_read(&mut self, id: TitleId) -> bool {
        let Some(readers) = self.readers.get_mut(&id) else { return false };
        *readers -= 1;
        let is_last = *readers == 0;
        if is_last {
            self.readers.remove(&id);
        }
        is_last
    }

    /// A file that was removed, renamed or replaced by a command is what it was for those who have
    /// it open: its path is that of another file, or of none. Not while the mount itself changes
    /// names, whose files keep their numbers.
    pub(super) fn unlink_moved(&mut self) {
        if self.renaming > 0 {
            return;
        }
        let moved = self.open.values().filter_map(|open| {
            let (file, number, of_title) = match open.as_ref() {
                OpenFile::Title { file, number, draft, .. } if draft.get().is_none() => {
                    (file, *number, self.nodes.path(*number)?)
                }
                OpenFile::Frame { file, number, .. } => {
                    let frames = split(self.nodes.path(*number)?).0;
                    (file, *number, frames.strip_suffix(FRAMES_ENDING).unwrap_or(frames))
                }
                _ => return None,
            };
            let is_written = self.drafts.contains_key(of_title);
            let is_moved = !is_written && !self.is_at(of_title, file.reader.record().id);
            is_moved.then(|| self.nodes.path(number)).flatten().map(str::to_owned)
        });
        for path in moved.collect::<Vec<_>>() {
            self.nodes.unlink(&path, None);
        }
    }

    /// These titles are being recorded now, and no others.
    pub(super) fn record(
        &mut self,
        ids: impl Iterator<Item = TitleId>,
        owner: &Arc<dyn TitleOwner>,
    ) {
        let mut before = std::mem::take(&mut self.growing);
        for id in ids {
            let new = || Arc::new(RecordingFile::new(Arc::clone(owner), id));
            self.growing.insert(id, before.remove(&id).unwrap_or_else(new));
        }
        // What has ended has no path any more: another recording may get the name.
        for open in self.open.values() {
            if let OpenFile::Growing { file, number } = open.as_ref()
                && before.contains_key(&file.id())
                && let Some(path) = self.nodes.path(*number).map(str::to_owned)
            {
                self.nodes.unlink(&path, None);
            }
        }
    }

    /// The title or recording that a program has open under an inode number.
    pub(super) fn open_as(&self, wanted: u64) -> Option<Arc<OpenFile>> {
        let is_it = |open: &&Arc<OpenFile>| match open.as_ref() {
            OpenFile::Growing { number, .. } | OpenFile::Title { number, .. } => *number == wanted,
            _ => false,
        };
        self.open.values().find(is_it).cloned()
    }

    /// Whether the file at a path is this title's, and not written.
    pub(super) fn is_at(&self, path: &str, id: TitleId) -> bool {
        !self.drafts.contains_key(path)
            && matches!(self.tree.find(path), Some(TreeEntry::Title(found)) if found == id)
    }

    /// The folders that a file is in stay when it is the last one in them.
    pub(super) fn keep_folders(&mut self, path: &str) {
        let mut folder = split(path).0;
        while !folder.is_empty() && folder != INGEST {
            self.tree.keep(folder);
            folder = split(folder).0;
        }
    }

    /// The open files that read or write a draft.
    pub(super) fn users(&self, draft: &Arc<Draft>) -> impl Iterator<Item = &Arc<OpenFile>> {
        let is_it = |other: &Arc<Draft>| Arc::ptr_eq(other, draft);
        self.open.values().filter(move |file| file.draft().is_some_and(is_it))
    }

    /// Number of open files that write a draft.
    pub(super) fn writers(&self, draft: &Arc<Draft>) -> usize {
        let writes =
            |file: &&Arc<OpenFile>| matches!(file.as_ref(), OpenFile::Draft { writes: true, .. });
        self.users(draft).filter(writes).count()
    }

    /// The path of a draft that nobody has open.
    pub(super) fn path_of_unused(&self, draft: &Arc<Draft>) -> Option<String> {
        if self.users(draft).next().is_some() {
            return None;
        }
        self.path_of(draft).map(str::to_owned)
    }

    /// The path of a draft.
    pub(super) fn path_of(&self, draft: &Arc<Draft>) -> Option<&str> {
        let found = self.drafts.iter().find(|(_, other)| Arc::ptr_eq(other, draft));
        found.map(|(path, _)| path.as_str())
    }

    /// The path is no longer this draft's.
    pub(super) fn let_go(&mut self, path: &str, draft: &Arc<Draft>) {
        if self.drafts.get(path).is_some_and(|other| Arc::ptr_eq(other, draft)) {
            self.drafts.remove(path);
        }
    }
}
