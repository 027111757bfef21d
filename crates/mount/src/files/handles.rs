//! Opening, reading, writing and closing the files of a mounted store.
//!
//! ```text
//!   open ──▶ title ──── read ──▶ store, at the rate that is reserved or as time is left
//!        ├─▶ draft ──── read, write ──▶ spool file ── last close ──▶ title
//!        ├─▶ growing, frame, text ── read
//!        └─▶ folder: its names when it was opened
//! ```

use super::names::{is_hidden_ingest, is_in_ingest, title_of, waits_at};
use super::{FilePlace, FsResult, GrowingFile, INGEST, StoreFiles, TitleFile};
use crate::MountError;
use crate::about::About;
use crate::draft::Draft;
use crate::ldu_table::ldu_table;
use crate::reserved::HandleReservation;
use crate::title_tree::split;
use fuser::{Errno, FileType};
use media::{Body, TitleKind};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};
use store::{
    IngestReport, ReservedReadError, StoreError, TitleId, TitleLeave, TitleOwner, TitleReader,
    TitleRecord,
};
use units::locked;

/// What the kernel may keep of a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caching {
    /// The pages that it has: they are those of the same title.
    Kept,
    /// Pages that it reads from now on.
    Anew,
    /// Nothing: it asks for every read, also beyond the length that it was told.
    None,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FileAccess {
    pub(crate) writes: bool,
    pub(crate) truncates: bool,
}

/// An open file.
#[derive(Debug)]
pub(crate) enum OpenFile {
    Title {
        file: Box<TitleFile>,
        /// Where the title's file is written meanwhile: its readers see what is written.
        draft: OnceLock<Arc<Draft>>,
        reserved: HandleReservation,
        /// The inode number: the title may be removed or renamed elsewhere.
        number: u64,
    },
    /// A recording, to its end.
    Growing {
        file: Arc<GrowingFile>,
        /// The inode number: the path is there until the recording ends.
        number: u64,
    },
    /// A frame of a title: these bytes of a track.
    Frame {
        file: Box<TitleFile>,
        body: Body,
        /// The inode number.
        number: u64,
    },
    /// A text that was made when it was opened.
    Text(String),
    Draft {
        draft: Arc<Draft>,
        path_when_opened: String,
        writes: bool,
    },
    /// The names in a folder when it was opened.
    Folder(Vec<(String, FileType)>),
}

impl OpenFile {
    /// The names in an open folder.
    pub(crate) fn names(&self) -> &[(String, FileType)] {
        if let Self::Folder(names) = self { names } else { &[] }
    }

    /// The file that is being written, which this handle reads or writes.
    pub(super) fn draft(&self) -> Option<&Arc<Draft>> {
        match self {
            Self::Draft { draft, .. } => Some(draft),
            Self::Title { draft, .. } => draft.get(),
            Self::Growing { .. } | Self::Frame { .. } | Self::Text(_) | Self::Folder(_) => None,
        }
    }
}

impl StoreFiles {
    /// Opens a file or a folder. Returns its handle, and what the kernel may keep of it.
    pub(crate) fn open(&self, number: u64, access: FileAccess) -> FsResult<(u64, Caching)> {
        if access.writes && self.options.read_only {
            return Err(Errno::EROFS);
        }
        loop {
            let path = self.path(number)?;
            let open = match self.place(&path)? {
                FilePlace::Folder => OpenFile::Folder(self.list(&path)),
                FilePlace::Table(_) | FilePlace::Frame(..) | FilePlace::Growing(_)
                    if access.writes =>
                {
                    return Err(Errno::EPERM);
                }
                FilePlace::Frames(title) => {
                    let frames = self.frames(&title)?.ok_or(Errno::ENOENT)?;
                    let names = frames.names().map(|name| (name, FileType::RegularFile));
                    OpenFile::Folder(names.collect())
                }
                FilePlace::Frame(title, ldu) => {
                    let (file, body) = self.frame(&title, ldu)?;
                    self.store().keep(title.id);
                    let mut state = self.state();
                    // The title may have been removed meanwhile.
                    let is_there = self.store().record_of(title.id).is_some();
                    if !is_there || state.nodes.path(number) != Some(path.as_str()) {
                        drop(state);
                        self.store().let_go(title.id);
                        continue;
                    }
                    *state.readers.entry(title.id).or_default() += 1;
                    let open = OpenFile::Frame { file: Box::new(file), body, number };
                    return Ok((state.add(open), Caching::Anew));
                }
                FilePlace::Growing(file) => {
                    // The title that it becomes may be removed meanwhile.
                    self.store().keep(file.id());
                    let mut state = locked(&self.state);
                    *state.readers.entry(file.id()).or_default() += 1;
                    return Ok((state.add(OpenFile::Growing { file, number }), Caching::None));
                }
                FilePlace::Table(title) => {
                    let file = self.title_file(&title)?;
                    OpenFile::Text(ldu_table(file.reader.index(), &file.body))
                }
                // The file is made of the title; its bytes cannot be changed one by one.
                FilePlace::Title(title) if access.writes && title.kind == TitleKind::Media => {
                    return Err(Errno::EPERM);
                }
                FilePlace::Title(title) if !access.writes => {
                    let file = self.title_file(&title)?;
                    self.store().keep(title.id);
                    let mut state = self.state();
                    let is_it = state.nodes.path(number) == Some(path.as_str());
                    if !is_it || !state.is_at(&path, title.id) {
                        drop(state);
                        self.store().let_go(title.id);
                        continue;
                    }
                    *state.readers.entry(title.id).or_default() += 1;
                    let is_same = state.nodes.caches(number, title.id);
                    let caching = if is_same { Caching::Kept } else { Caching::Anew };
                    let (draft, reserved) = (OnceLock::new(), HandleReservation::default());
                    let open = OpenFile::Title { file: Box::new(file), draft, reserved, number };
                    return Ok((state.add(open), caching));
                }
                place @ (FilePlace::Draft(_) | FilePlace::Title(_)) => {
                    let opened = self.open_draft(&path, place, access)?;
                    match opened {
                        Some(handle) => return Ok((handle, Caching::Anew)),
                        None => continue,
                    }
                }
            };
            let is_text = matches!(open, OpenFile::Text(_));
            let caching = if is_text { Caching::None } else { Caching::Anew };
            return Ok((locked(&self.state).add(open), caching));
        }
    }

    /// Opens a file that is being written, or is from now on. `None` if it was renamed, removed or
    /// closed meanwhile.
    fn open_draft(
        &self,
        path: &str,
        place: FilePlace,
        access: FileAccess,
    ) -> FsResult<Option<u64>> {
        let draft = match place {
            FilePlace::Draft(draft) => draft,
            FilePlace::Title(title) => match self.draft_of(path, &title, access.truncates)? {
                Some(draft) => draft,
                None => return Ok(None),
            },
            _ => return Err(Errno::EISDIR),
        };
        let handle = {
            let mut state = locked(&self.state);
            if !state.drafts.get(path).is_some_and(|other| Arc::ptr_eq(other, &draft)) {
                return Ok(None);
            }
            if let Some(number) = state.nodes.number(path) {
                state.nodes.caches_draft(number);
            }
            state.add(OpenFile::Draft {
                draft: Arc::clone(&draft),
                path_when_opened: path.to_owned(),
                writes: access.writes,
            })
        };
        if access.truncates
            && let Err(error) = draft.set_length(0)
        {
            self.release(handle);
            return Err(error.into());
        }
        Ok(Some(handle))
    }

    /// The owner's leave to write a title of this name.
    fn leave(&self, name: &str) -> FsResult<Box<dyn TitleLeave>> {
        self.owner.begin_title(name).map_err(|error| self.told(&MountError::Store(error)))
    }

    /// A draft in the place of a file title, with its bytes unless it is to be empty. `None` if
    /// another title is in that place meanwhile.
    fn draft_of(
        &self,
        path: &str,
        title: &TitleRecord,
        empty: bool,
    ) -> FsResult<Option<Arc<Draft>>> {
        let draft = Draft::of_title(&self.options.spool, self.leave(&title.name)?, title);
        let draft = Arc::new(draft.map_err(|error| self.told(&error))?);
        if !empty {
            let file = self.title_file(title)?;
            let mut at = 0;
            let copied = file.reader.copy(&file.body, 0..file.body.len(), &mut |bytes| {
                let written = draft.file.write_all_at(bytes, at);
                at += bytes.len() as u64;
                written.map_err(|source| StoreError::File {
                    action: "write",
                    path: self.options.spool.clone(),
                    source,
                })
            });
            copied.map_err(|error| self.failed(&title.name, &error))?;
        }
        let mut state = self.state();
        // Another program may have opened it for writing meanwhile: both write the same draft.
        if let Some(other) = state.drafts.get(path) {
            return Ok(Some(Arc::clone(other)));
        }
        if !state.is_at(path, title.id) {
            return Ok(None);
        }
        state.drafts.insert(path.to_owned(), Arc::clone(&draft));
        for open in state.open.values() {
            if let OpenFile::Title { file, draft: written, .. } = open.as_ref()
                && file.reader.record().id == title.id
            {
                let _ = written.set(Arc::clone(&draft));
            }
        }
        Ok(Some(draft))
    }

    /// Makes a file, or opens the one that another program has made meanwhile, unless it is to be
    /// `new`. Returns its inode number and attributes, its handle, and what the kernel may keep.
    pub(crate) fn create(
        &self,
        path: &str,
        access: FileAccess,
        new: bool,
    ) -> FsResult<(u64, About, (u64, Caching))> {
        self.refuse_if_read_only()?;
        let (name, becomes) = title_of(path)?;
        if let Ok(place) = self.place(path) {
            return match place {
                _ if new => Err(Errno::EEXIST),
                FilePlace::Folder => Err(Errno::EISDIR),
                _ => {
                    let (number, _) = self.look_up(path)?;
                    let opened = self.open(number, access)?;
                    let about = self.about_number(number);
                    Ok((number, about.inspect_err(|_| self.release(opened.0))?, opened))
                }
            };
        }
        // A name that no title can have is refused now, and not when all bytes are written.
        let tried = self.store().begin(&name, becomes).map(drop);
        tried.map_err(|error| self.failed(&name, &error))?;
        let draft = Draft::new(&self.options.spool, self.leave(&name)?, name, becomes);
        let draft = Arc::new(draft.map_err(|error| self.told(&error))?);
        let handle = {
            let mut state = self.state();
            if !state.is_folder(split(path).0, &self.options) {
                return Err(Errno::ENOENT);
            }
            state.drafts.insert(path.to_owned(), Arc::clone(&draft));
            state.touch_folder_of(path);
            let path_when_opened = path.to_owned();
            state.add(OpenFile::Draft { draft, path_when_opened, writes: true })
        };
        let (number, about) = self.look_up(path).inspect_err(|_| self.release(handle))?;
        Ok((number, about, (handle, Caching::Anew)))
    }

    /// An open file.
    pub(crate) fn opened(&self, handle: u64) -> FsResult<Arc<OpenFile>> {
        locked(&self.state).open.get(&handle).map(Arc::clone).ok_or(Errno::EBADF)
    }

    /// Reads a part of an open file; less at its end.
    pub(crate) fn read(&self, file: &OpenFile, at: u64, most: usize) -> FsResult<Vec<u8>> {
        match file {
            OpenFile::Title { file, draft, reserved, .. } if draft.get().is_none() => {
                self.read_title(file, reserved, at, most)
            }
            OpenFile::Text(text) => {
                let from = usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
                Ok(text.as_bytes()[from..text.len().min(from.saturating_add(most))].to_vec())
            }
            OpenFile::Growing { file, .. } => {
                let look = self.looked(file)?;
                look.read(at, most).map_err(|error| self.failed(look.name(), &error))
            }
            OpenFile::Frame { file, body, .. } => self.copy(&file.reader, body, at, most),
            OpenFile::Folder(_) => Err(Errno::EISDIR),
            OpenFile::Title { .. } | OpenFile::Draft { .. } => {
                let draft = file.draft().expect("matched above");
                let mut bytes = vec![0; most];
                let mut got = 0;
                while got < most {
                    match draft.file.read_at(&mut bytes[got..], at + got as u64) {
                        Ok(0) => break,
                        Ok(more) => got += more,
                        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                bytes.truncate(got);
                Ok(bytes)
            }
        }
    }

    /// Reads a part of a title's file at the reserved rate, or best effort where there is none.
    fn read_title(
        &self,
        TitleFile { reader, body }: &TitleFile,
        reserved: &HandleReservation,
        at: u64,
        most: usize,
    ) -> FsResult<Vec<u8>> {
        let end = at.saturating_add(most as u64).min(body.len());
        let (range, title) = (at.min(end)..end, reader.record());
        let mut bytes = Vec::with_capacity(most);
        let owner = self.owner.as_ref();
        // Of a file title nothing can be reserved.
        let rate = self.options.rate.filter(|_| title.kind == TitleKind::Media);
        if let Some(guaranteed) = self.reservations.of_handle(reserved, owner, title, body, rate) {
            let read = guaranteed.read(range, &mut |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            });
            match read {
                Ok(()) => return Ok(bytes),
                // It may have got a beginning.
                Err(ReservedReadError::NotServed) => bytes.clear(),
                Err(ReservedReadError::Write(error)) => {
                    return Err(self.failed(&title.name, &error));
                }
            }
        }
        self.copy(reader, body, at, most)
    }

    /// Reads a part of a file of this title, best effort.
    fn copy(
        &self,
        reader: &TitleReader<Arc<dyn TitleOwner>>,
        body: &Body,
        at: u64,
        most: usize,
    ) -> FsResult<Vec<u8>> {
        let end = at.saturating_add(most as u64).min(body.len());
        let mut bytes = Vec::with_capacity(most);
        let read = reader.copy(body, at.min(end)..end, &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        });
        read.map_err(|error| self.failed(&reader.record().name, &error))?;
        Ok(bytes)
    }

    pub(crate) fn write(&self, file: &OpenFile, at: u64, bytes: &[u8]) -> FsResult<()> {
        let OpenFile::Draft { draft, writes: true, .. } = file else { return Err(Errno::EBADF) };
        draft.write(at, bytes).map_err(Errno::from)
    }

    /// Changes the length of the file with an inode number.
    pub(crate) fn set_length(&self, number: u64, length: u64) -> FsResult<()> {
        self.refuse_if_read_only()?;
        let unlinked = locked(&self.state).nodes.unlinked(number).cloned();
        if let Some(draft) = unlinked.and_then(|unlinked| unlinked.draft) {
            return draft.set_length(length).map_err(Errno::from);
        }
        let path = self.path(number)?;
        // Opened and closed, as a program would that has it open for this change only.
        let access = FileAccess { writes: true, truncates: length == 0 };
        let handle = loop {
            let place = match self.place(&path)? {
                FilePlace::Folder | FilePlace::Frames(_) => return Err(Errno::EISDIR),
                FilePlace::Table(_) | FilePlace::Frame(..) | FilePlace::Growing(_) => {
                    return Err(Errno::EPERM);
                }
                FilePlace::Title(title) if title.kind == TitleKind::Media => {
                    return Err(Errno::EPERM);
                }
                place => place,
            };
            if let Some(handle) = self.open_draft(&path, place, access)? {
                break handle;
            }
        };
        let draft = self.opened(handle)?.draft().map(Arc::clone).expect("it is one");
        let set = draft.set_length(length).map_err(Errno::from);
        // Others who have it open make a title of it when they close it.
        let is_last = locked(&self.state).writers(&draft) == 1;
        let sealed = if is_last { set.and_then(|()| self.close(&draft, &path)) } else { set };
        self.release(handle);
        sealed
    }

    /// A program closes the file: what was written becomes a title.
    pub(crate) fn flush(&self, file: &OpenFile) -> FsResult<()> {
        match file {
            OpenFile::Draft { draft, path_when_opened, writes: true } if draft.is_changed() => {
                self.close(draft, path_when_opened)
            }
            _ => Ok(()),
        }
    }

    /// Makes a title of a draft, unless it waits for its name.
    fn close(&self, draft: &Arc<Draft>, path_when_opened: &str) -> FsResult<()> {
        // It may have been renamed meanwhile; an unlinked one has no path any more.
        let path = locked(&self.state).path_of(draft).map(str::to_owned);
        let path = path.as_deref().unwrap_or(path_when_opened);
        if waits_at(path, draft) {
            draft.closed(path);
            return Ok(());
        }
        self.seal(draft)
    }

    /// Makes the bytes of an open file durable as far as they are written; a title's are.
    pub(crate) fn sync(&self, handle: u64) -> FsResult<()> {
        match self.opened(handle)?.draft() {
            Some(draft) => draft.file.sync_data().map_err(Errno::from),
            None => Ok(()),
        }
    }

    /// The last close of a handle.
    pub(crate) fn release(&self, handle: u64) {
        let Some(file) = locked(&self.state).open.remove(&handle) else { return };
        match file.as_ref() {
            OpenFile::Title { file, reserved, .. } => {
                self.has_read(file.reader.record().id, reserved);
            }
            OpenFile::Frame { file, .. } => {
                self.has_read(file.reader.record().id, &HandleReservation::default());
            }
            OpenFile::Growing { file, .. } => {
                locked(&self.state).has_read(file.id());
                self.store().let_go(file.id());
            }
            OpenFile::Draft { .. } | OpenFile::Text(_) | OpenFile::Folder(_) => {}
        }
        if let Some(draft) = file.draft() {
            self.draft_released(draft);
        }
    }

    fn has_read(&self, id: TitleId, reserved: &HandleReservation) {
        let is_last = locked(&self.state).has_read(id);
        self.reservations.closed(id, reserved, is_last);
        self.store().let_go(id);
    }

    fn draft_released(&self, draft: &Arc<Draft>) {
        let Some(path) = locked(&self.state).path_of_unused(draft) else { return };
        if waits_at(&path, draft) {
            if draft.closed(&path) && !is_hidden_ingest(&path) {
                (self.options.tell)(&format!("{path} is empty: {WAITS_FOR_BYTES}"));
            }
            return;
        }
        // An empty file was never written to, and not flushed; pages of a mapping may be written
        // after the file was closed.
        if draft.is_to_be_sealed() && !is_in_ingest(&path) {
            // Its last user is gone, who could be told of an error.
            let _ = self.seal(draft);
        }
        // Whoever sees that the name is gone finds the space free, too.
        draft.free_if_failed();
        // Another program may have opened it meanwhile.
        let mut state = locked(&self.state);
        if let Some(path) = state.path_of_unused(draft) {
            state.let_go(&path, draft);
        }
    }

    fn seal(&self, draft: &Draft) -> FsResult<()> {
        self.sealed(draft.seal(self.owner.as_ref(), &|name| self.remove_title(name)))
    }

    pub(super) fn sealed(&self, sealed: Result<Option<IngestReport>, StoreError>) -> FsResult<()> {
        let report = sealed.map_err(|error| self.told(&MountError::Store(error)))?;
        if let Some(line) = report.as_ref().and_then(noted) {
            (self.options.tell)(&line);
        }
        Ok(())
    }

    /// Tells which files have waited in the ingest folder in vain, and lets go of them: the mount
    /// has ended.
    pub(crate) fn tell_lost(&self) {
        let drafts: Vec<_> = {
            let state = locked(&self.state);
            let all = state.drafts.iter();
            all.map(|(path, draft)| (path.clone(), Arc::clone(draft))).collect()
        };
        let mut lost = Vec::new();
        for (path, draft) in drafts.into_iter().filter(|(_, draft)| draft.is_closed()) {
            draft.unlink();
            locked(&self.state).let_go(&path, &draft);
            lost.push(path);
        }
        if !lost.is_empty() {
            let lost = lost.join(", ");
            (self.options.tell)(&format!("unmounted: what waited in {INGEST} is lost: {lost}"));
        }
    }
}

/// The line for people on a title that was taken in: what is not in it, and further notes.
pub(super) fn noted(IngestReport { title, left_out, notes }: &IngestReport) -> Option<String> {
    let left_out = (!left_out.is_empty()).then(|| format!("left out: {}", left_out.join(", ")));
    let notes: Vec<_> = left_out.iter().chain(notes).map(String::as_str).collect();
    // A note may have what FFmpeg said, which has lines.
    let notes = notes.join("; ").lines().collect::<Vec<_>>().join(" ");
    (!notes.is_empty()).then(|| format!("{}: {notes}", title.name))
}

/// What becomes of an empty file in the ingest folder.
const WAITS_FOR_BYTES: &str = "it waits until something is written to it";
