//! Changes of the names of a mounted store: what is removed, renamed, and made a folder.

use super::{FilePlace, FsResult, INGEST, LONGEST_NAME, StoreFiles};
use crate::draft::Draft;
use crate::nodes::Unlinked;
use crate::title_tree::{MEDIA_ENDING, split};
use fuser::Errno;
use media::TitleKind;
use std::sync::Arc;
use std::time::SystemTime;
use store::{StoreError, TitleId, TitleRecord, TitleSelection};
use units::locked;

impl StoreFiles {
    pub(crate) fn unlink(&self, path: &str) -> FsResult<()> {
        self.refuse_if_read_only()?;
        let about = self.about(path)?;
        let place = self.place(path)?;
        let keep_folders = || locked(&self.state).keep_folders(path);
        let draft = match place {
            FilePlace::Folder | FilePlace::Frames(_) => return Err(Errno::EISDIR),
            FilePlace::Table(_) | FilePlace::Frame(..) => return Err(Errno::EPERM),
            FilePlace::Growing(_) => return Err(Errno::EBUSY),
            FilePlace::Title(title) => {
                keep_folders();
                self.remove(&title.name)?;
                None
            }
            FilePlace::Draft(draft) => {
                keep_folders();
                draft.unlink();
                locked(&self.state).let_go(path, &draft);
                // The title that it has become, or that it was to replace.
                if let Ok(FilePlace::Title(title)) = self.place(path) {
                    self.remove(&title.name)?;
                }
                Some(draft)
            }
        };
        let mut state = locked(&self.state);
        state.nodes.unlink(path, Some(Unlinked { about, draft }));
        state.touch_folder_of(path);
        Ok(())
    }

    fn remove(&self, name: &str) -> FsResult<()> {
        self.remove_title(name).map_err(|error| self.failed(name, &error))
    }

    /// Takes a title out of the catalogue. Its space is free after its last reader.
    pub(super) fn remove_title(&self, name: &str) -> Result<(), StoreError> {
        let title = self.store().hide(name)?;
        self.let_go_of(&title);
        Ok(())
    }

    /// Frees the space of a title that is not in the catalogue any more, after its last reader.
    fn let_go_of(&self, title: &TitleRecord) {
        let mut state = locked(&self.state);
        state.lengths.remove(&title.id);
        state.frames.remove(&title.id);
        state.recent.retain(|file| file.reader.record().id != title.id);
        drop(state);
        self.owner.free_hidden(title.id);
    }

    pub(crate) fn make_folder(&self, path: &str) -> FsResult<()> {
        self.refuse_if_read_only()?;
        if self.place(path).is_ok() {
            return Err(Errno::EEXIST);
        }
        if path.len() > LONGEST_NAME {
            return Err(Errno::ENAMETOOLONG);
        }
        // Nothing can be copied into it: what is taken in has no folders.
        if is_in_ingest(path) {
            return Err(Errno::EINVAL);
        }
        let mut state = self.state();
        if !state.is_folder(split(path).0, &self.options) {
            return Err(Errno::ENOENT);
        }
        state.tree.keep(path);
        state.changed.insert(path.to_owned(), SystemTime::now());
        state.touch_folder_of(path);
        Ok(())
    }

    pub(crate) fn remove_folder(&self, path: &str) -> FsResult<()> {
        self.refuse_if_read_only()?;
        if !matches!(self.place(path)?, FilePlace::Folder) {
            return Err(Errno::ENOTDIR);
        }
        let about = self.about(path)?;
        if path == INGEST {
            return Err(Errno::EBUSY);
        }
        if !self.list(path).is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        let mut state = locked(&self.state);
        state.keep_folders(path);
        state.tree.let_go(path);
        state.changed.remove(path);
        state.nodes.unlink(path, Some(Unlinked { about, draft: None }));
        state.touch_folder_of(path);
        Ok(())
    }

    /// Renames a file or a folder. A file in the new place is replaced, unless `keep` is set.
    pub(crate) fn rename(&self, old: &str, new: &str, keep: bool) -> FsResult<()> {
        self.refuse_if_read_only()?;
        if old == new {
            return Ok(());
        }
        locked(&self.state).renaming += 1;
        let renamed = self.rename_now(old, new, keep);
        let mut state = self.state();
        state.renaming -= 1;
        state.unlink_moved();
        renamed
    }

    fn rename_now(&self, old: &str, new: &str, keep: bool) -> FsResult<()> {
        let (from, to) = (self.place(old)?, self.place(new));
        if keep && to.is_ok() {
            return Err(Errno::EEXIST);
        }
        if !self.state().is_folder(split(new).0, &self.options) {
            return Err(Errno::ENOENT);
        }
        if from.is_made() || to.as_ref().is_ok_and(FilePlace::is_made) {
            return Err(Errno::EPERM);
        }
        locked(&self.state).keep_folders(old);
        match (from, to) {
            (FilePlace::Growing(_), _) | (_, Ok(FilePlace::Growing(_))) => {
                return Err(Errno::EBUSY);
            }
            (FilePlace::Folder, Ok(FilePlace::Title(_) | FilePlace::Draft(_))) => {
                return Err(Errno::ENOTDIR);
            }
            (FilePlace::Folder, to) => return self.rename_folder(old, new, to.is_ok()),
            (_, Ok(FilePlace::Folder)) => return Err(Errno::EISDIR),
            (FilePlace::Title(title), to) => {
                let name = renamed(&title, new)?;
                self.rename_title(&title, &name, new, to.ok())?;
            }
            (FilePlace::Draft(draft), to) => self.rename_draft(&draft, old, new, to.ok())?,
            (FilePlace::Table(_) | FilePlace::Frames(_) | FilePlace::Frame(..), _) => {
                return Err(Errno::EPERM);
            }
        }
        let mut state = locked(&self.state);
        state.nodes.rename(old, new);
        state.touch_folder_of(old);
        state.touch_folder_of(new);
        Ok(())
    }

    /// Renames a title to `name`, the title of the path `new`. What is there is replaced: another
    /// title with the same journal entry, so that one of both is there at any moment.
    fn rename_title(
        &self,
        title: &TitleRecord,
        name: &str,
        new: &str,
        there: Option<FilePlace>,
    ) -> FsResult<()> {
        let failed = |error: StoreError| self.failed(name, &error);
        match there {
            Some(FilePlace::Title(other)) if other.name == name && other.id != title.id => {
                let about = self.about(new)?;
                let other = self.store().replace(&title.name, name).map_err(failed)?;
                self.let_go_of(&other);
                locked(&self.state).nodes.unlink(new, Some(Unlinked { about, draft: None }));
            }
            there => {
                if there.is_some() && name != title.name {
                    self.unlink(new)?;
                }
                self.store().rename(&title.name, name).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn rename_draft(
        &self,
        draft: &Arc<Draft>,
        old: &str,
        new: &str,
        there: Option<FilePlace>,
    ) -> FsResult<()> {
        let (name, becomes) = title_of(new)?;
        if draft.is_closed() && !waits_at(new, draft) {
            return self.take_in_as((name, becomes), draft, old, new, there);
        }
        let rename = |title: Option<TitleId>| -> FsResult<(String, TitleKind)> {
            let Some(title) = title.and_then(|id| self.store().record_of(id)) else {
                if there.is_some() {
                    self.unlink(new)?;
                }
                return Ok((name, becomes));
            };
            // It is a title already, and stays what it is.
            let name = renamed(&title, new)?;
            self.rename_title(&title, &name, new, there)?;
            Ok((name, title.kind))
        };
        draft.rename(rename)?;
        draft.moved(new);
        let mut state = locked(&self.state);
        state.drafts.remove(old);
        state.drafts.insert(new.to_owned(), Arc::clone(draft));
        Ok(())
    }

    /// Makes a title of a complete file that has waited in the ingest folder, under the name that
    /// it gets. What has the name is replaced when the title is durable; where it does not become
    /// one, all is as before.
    fn take_in_as(
        &self,
        title: (String, TitleKind),
        draft: &Arc<Draft>,
        old: &str,
        new: &str,
        there: Option<FilePlace>,
    ) -> FsResult<()> {
        let about = there.is_some().then(|| self.about(new)).transpose()?;
        let remove = |name: &str| self.remove_title(name);
        self.sealed(draft.seal_as(title, self.owner.as_ref(), &remove))?;
        let (replaced, other) = match there {
            Some(FilePlace::Draft(other)) => {
                other.unlink();
                locked(&self.state).let_go(new, &other);
                (other.title(), Some(other))
            }
            Some(FilePlace::Title(other)) => (Some(other.id), None),
            _ => (None, None),
        };
        // A title of another name has this path; one of the same name was replaced.
        if let Some(other) = replaced.and_then(|id| self.store().record_of(id)) {
            self.remove(&other.name)?;
        }
        let mut state = locked(&self.state);
        if let Some(about) = about {
            state.nodes.unlink(new, Some(Unlinked { about, draft: other }));
        }
        state.let_go(old, draft);
        // Those who have it open go on; the last one lets go of it.
        if state.users(draft).next().is_some() {
            state.drafts.insert(new.to_owned(), Arc::clone(draft));
        }
        Ok(())
    }

    /// Renames all titles in a folder, one after another.
    fn rename_folder(&self, old: &str, new: &str, exists: bool) -> FsResult<()> {
        let inside = format!("{old}/");
        if old == INGEST || new == INGEST || is_in_ingest(new) || new.starts_with(&inside) {
            return Err(Errno::EINVAL);
        }
        if exists && !self.list(new).is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        // A recording keeps its name.
        if self.store().recordings().iter().any(|it| it.title.starts_with(&inside)) {
            return Err(Errno::EBUSY);
        }
        let inside_titles = TitleSelection { folder: Some(old.to_owned()), ..<_>::default() };
        let titles = || self.store().page(&inside_titles).titles;
        let drafts: Vec<_> = {
            let state = self.state();
            let inside = state.drafts.iter().filter(|(path, _)| path.starts_with(&inside));
            inside.map(|(path, draft)| (path.clone(), Arc::clone(draft))).collect()
        };
        let names =
            titles().into_iter().map(|it| it.name).chain(drafts.iter().map(|it| it.0.clone()));
        let longest = names.filter_map(|name| Some(name.strip_prefix(&inside)?.len())).max();
        if longest.is_some_and(|longest| new.len() + 1 + longest > LONGEST_NAME) {
            return Err(Errno::ENAMETOOLONG);
        }
        if exists {
            // A program may have the empty folder open.
            let unlinked = Unlinked { about: self.about(new)?, draft: None };
            locked(&self.state).nodes.unlink(new, Some(unlinked));
        }
        for (path, draft) in drafts {
            let to = format!("{new}/{}", &path[inside.len()..]);
            self.rename_draft(&draft, &path, &to, None)?;
        }
        // Those of drafts have their new names.
        for title in titles() {
            if let Some(rest) = title.name.strip_prefix(&inside) {
                let name = format!("{new}/{rest}");
                let renamed = self.store().rename(&title.name, &name);
                renamed.map_err(|error| self.failed(&title.name, &error))?;
            }
        }
        let mut state = locked(&self.state);
        let moved = |path: &str| match path.strip_prefix(&inside) {
            Some(rest) => format!("{new}/{rest}"),
            None if path == old => new.to_owned(),
            None => path.to_owned(),
        };
        state.tree.move_kept(|path| Some(moved(path)).filter(|new| new != path));
        let changed = std::mem::take(&mut state.changed).into_iter();
        state.changed = changed.map(|(path, time)| (moved(&path), time)).collect();
        state.nodes.rename(old, new);
        state.touch_folder_of(old);
        state.touch_folder_of(new);
        Ok(())
    }
}

/// The title that a new file becomes: its name and kind.
pub(super) fn title_of(path: &str) -> FsResult<(String, TitleKind)> {
    match path.strip_prefix(INGEST).and_then(|rest| rest.strip_prefix('/')) {
        Some(file) if file.contains('/') => Err(Errno::EINVAL),
        Some(file) => {
            let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
            Ok((if stem.is_empty() { file } else { stem }.to_owned(), TitleKind::Media))
        }
        None => Ok((path.to_owned(), TitleKind::File)),
    }
}

/// The name of a title whose file gets another path.
pub(super) fn renamed(title: &TitleRecord, path: &str) -> FsResult<String> {
    if is_in_ingest(path) {
        return Err(Errno::EINVAL);
    }
    match title.kind {
        TitleKind::File => Ok(path.to_owned()),
        // Under another extension the file would not be where the program has put it.
        TitleKind::Media => path.strip_suffix(MEDIA_ENDING).map(str::to_owned).ok_or(Errno::EINVAL),
    }
}

/// Whether a path is in the ingest folder, at any depth: no title gets such a name.
pub(super) fn is_in_ingest(path: &str) -> bool {
    path.strip_prefix(INGEST).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a file that is closed at this path waits in the ingest folder: for another name, or for
/// its bytes, because programs make a file and write it later.
pub(super) fn waits_at(path: &str, draft: &Draft) -> bool {
    is_hidden_ingest(path) || is_in_ingest(path) && draft.is_empty()
}

/// Whether it is a file in the ingest folder that waits for another name: copying programs write
/// under a hidden name first.
pub(super) fn is_hidden_ingest(path: &str) -> bool {
    is_in_ingest(path) && split(path).1.starts_with('.')
}
