//! The files of a mounted store: what a path is, and what happens to it. No FUSE messages here.
//!
//! ```text
//!   path ──▶ a draft?  ──▶ a title's file?  ──▶ a folder of titles, or one made here?  ──▶ ENOENT
//! ```
//!
//! The lock is held for lookups only, never while the store reads or writes. A draft's own lock may
//! be held when it is taken, and is never taken under it: sealing and renaming a draft look up
//! names.

mod attributes;
mod handles;
mod names;
mod state;

pub(crate) use handles::{Caching, FileAccess, OpenFile};

use crate::about::About;
use crate::draft::Draft;
use crate::frames::Frames;
use crate::nodes::Unlinked;
use crate::reserved::TitleReservations;
use crate::title_tree::{TitleFolder, TreeEntry, TreeFile, join, split};
use crate::{MountError, StoreMountOptions};
use fuser::{Errno, FileType, Generation};
use media::{Body, TitleKind};
use state::FilesState;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::{
    RecordingFile, RecordingLook, RunningRecording, Store, StoreError, TitleId, TitleOwner,
    TitleReader, TitleRecord,
};
use units::{Hinted, locked};

/// The files of a mounted store.
pub(crate) struct StoreFiles {
    owner: Arc<dyn TitleOwner>,
    options: StoreMountOptions,
    state: Mutex<FilesState>,
    reservations: TitleReservations,
    pub(crate) started: SystemTime,
}

/// The file of a title that is being recorded, or was when it was opened.
type GrowingFile = RecordingFile<Arc<dyn TitleOwner>>;

/// The file of a title, with a reader of its own for each open file.
#[derive(Debug)]
pub(crate) struct TitleFile {
    reader: TitleReader<Arc<dyn TitleOwner>>,
    body: Arc<Body>,
}

impl TitleFile {
    /// The attributes of the file once its title has no name any more.
    fn about_removed(&self) -> About {
        About {
            kind: FileType::RegularFile,
            bytes: self.body.len(),
            time: time_of(self.reader.record()),
            can_write: false,
            grows: false,
            links: 0,
        }
    }
}

/// What a path is.
pub(crate) enum FilePlace {
    Folder,
    Title(TitleRecord),
    /// The table of a title's LDUs.
    Table(TitleRecord),
    /// The folder of a title's frames.
    Frames(TitleRecord),
    /// A frame of a title, by the number of its LDU.
    Frame(TitleRecord, usize),
    /// A title that is being recorded.
    Growing(Arc<GrowingFile>),
    Draft(Arc<Draft>),
}

impl FilePlace {
    /// Whether it is made of a title beside its file, and goes with it.
    fn is_made(&self) -> bool {
        matches!(self, Self::Table(_) | Self::Frames(_) | Self::Frame(..))
    }
}

type FsResult<T> = Result<T, Errno>;

impl fmt::Debug for StoreFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreFiles({:?})", self.options)
    }
}

impl StoreFiles {
    pub(crate) fn new(owner: Arc<dyn TitleOwner>, options: StoreMountOptions) -> Self {
        let (state, reservations) = (Mutex::default(), TitleReservations::default());
        Self { owner, options, state, reservations, started: SystemTime::now() }
    }

    /// Whether reads may wait for disk time that others have reserved.
    pub(crate) fn waits_for_others(&self) -> bool {
        self.owner.reservations().is_some()
    }

    /// The store.
    pub(crate) fn store(&self) -> &Store {
        self.owner.as_ref().store()
    }

    /// The state, with the titles that the store has now.
    fn state(&self) -> MutexGuard<'_, FilesState> {
        let mut state = locked(&self.state);
        // Before the titles are read: a change meanwhile is seen the next time.
        let changes = self.store().changes();
        if state.made_at == Some(changes) {
            return state;
        }
        let changed = state.made_at.and_then(|since| self.store().changed_since(since));
        let recordings = self.store().recordings();
        let growing = |it: &RunningRecording| (it.id, (it.title.clone(), TreeFile::Growing));
        let growing: HashMap<TitleId, _> = recordings.iter().map(growing).collect();
        let complete = |it: TitleRecord| (it.name, TreeFile::Title(it.kind));
        match changed {
            Some(changed) => {
                for id in changed {
                    let title = self.store().record_of(id).map(complete);
                    // Not taken out: what has changed twice is here twice.
                    state.set(id, title.or_else(|| growing.get(&id).cloned()));
                }
            }
            None => {
                state.tree = state.tree.without_titles();
                growing.into_iter().for_each(|(id, title)| state.set(id, Some(title)));
                for title in self.store().titles() {
                    state.set(title.id, Some(complete(title)));
                }
                let mut times = std::mem::take(&mut state.changed);
                times.retain(|path, _| state.is_folder(path, &self.options));
                state.changed = times;
            }
        }
        state.made_at = Some(changes);
        state.record(recordings.iter().map(|it| it.id), &self.owner);
        state.unlink_moved();
        state
    }

    /// Tells the inode numbers of this mount from those of one before it, in the handles that
    /// clients of an NFS server keep.
    pub(crate) fn generation(&self) -> Generation {
        let started = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        // The kernel keeps 32 bits of it. Zero would be that of any mount.
        Generation(started.as_secs() & u64::from(u32::MAX) | 1 << 31)
    }

    /// The path of an inode number.
    pub(crate) fn path(&self, number: u64) -> FsResult<String> {
        self.state().nodes.path(number).map(str::to_owned).ok_or(Errno::ESTALE)
    }

    /// The path of a name in the folder with an inode number.
    pub(crate) fn path_in(&self, folder: u64, name: &OsStr) -> FsResult<String> {
        let name = name.to_str().ok_or(Errno::EILSEQ)?;
        if name.len() > LONGEST_NAME {
            return Err(Errno::ENAMETOOLONG);
        }
        let folder = self.path(folder)?;
        Ok(match name {
            "." => folder,
            ".." => split(&folder).0.to_owned(),
            _ => join(&folder, name),
        })
    }

    /// What a path is, as the attributes that FUSE asks for, and the number that it has from now
    /// on.
    pub(crate) fn look_up(&self, path: &str) -> FsResult<(u64, About)> {
        let about = self.about(path)?;
        Ok((locked(&self.state).nodes.looked_up(path), about))
    }

    /// The attributes of the file with an inode number.
    pub(crate) fn about_number(&self, number: u64) -> FsResult<About> {
        let unlinked = locked(&self.state).nodes.unlinked(number).cloned();
        match unlinked {
            Some(Unlinked { about, draft: None }) => Ok(About { links: 0, ..about }),
            Some(Unlinked { draft: Some(draft), .. }) => {
                self.about_draft(&draft).map(|about| About { links: 0, ..about })
            }
            None => match self.path(number).and_then(|path| self.about(&path)) {
                // A recording that has ended, and a title that was removed or renamed elsewhere,
                // are there for those who have them open.
                Err(error) => {
                    let open = locked(&self.state).open_as(number);
                    match open.as_deref() {
                        Some(OpenFile::Growing { file, .. }) => {
                            Ok(About::growing(&*self.looked(file)?))
                        }
                        Some(OpenFile::Title { file, .. }) => Ok(file.about_removed()),
                        _ => Err(error),
                    }
                }
                about => about,
            },
        }
    }

    fn about_draft(&self, draft: &Draft) -> FsResult<About> {
        let about = draft.file.metadata().map_err(Errno::from)?;
        Ok(About {
            kind: FileType::RegularFile,
            bytes: about.len(),
            time: about.modified().unwrap_or(self.started),
            can_write: true,
            // Its title has another time, in whole seconds.
            grows: true,
            links: 1,
        })
    }

    pub(crate) fn forget(&self, number: u64, lookups: u64) {
        locked(&self.state).nodes.forget(number, lookups);
    }

    pub(crate) fn about(&self, path: &str) -> FsResult<About> {
        let place = self.place(path)?;
        let (kind, grows, links) = (FileType::RegularFile, false, 1);
        let file = |bytes, time, can_write| About { kind, bytes, time, can_write, grows, links };
        Ok(match place {
            FilePlace::Folder => {
                let state = locked(&self.state);
                About {
                    kind: FileType::Directory,
                    bytes: 0,
                    time: state.changed.get(path).copied().unwrap_or(self.started),
                    can_write: !self.options.read_only,
                    grows,
                    links: 2 + state.subfolders(path, &self.options),
                }
            }
            FilePlace::Growing(file) => About::growing(&*self.looked(&file)?),
            FilePlace::Draft(draft) => self.about_draft(&draft)?,
            FilePlace::Title(title) => {
                let can_write = title.kind == TitleKind::File && !self.options.read_only;
                file(self.length(&title)?, time_of(&title), can_write)
            }
            FilePlace::Frames(title) => About {
                kind: FileType::Directory,
                bytes: 0,
                time: time_of(&title),
                can_write: false,
                grows,
                links: 2,
            },
            FilePlace::Frame(title, ldu) => {
                let bytes = self.frame(&title, ldu)?.1.len();
                file(bytes, time_of(&title), false)
            }
            // It is made when it is opened; as in /proc, its length is not known before.
            FilePlace::Table(title) => file(0, time_of(&title), false),
        })
    }

    /// What a path is.
    fn place(&self, path: &str) -> FsResult<FilePlace> {
        let state = self.state();
        if let Some(draft) = state.drafts.get(path) {
            return Ok(FilePlace::Draft(Arc::clone(draft)));
        }
        if state.is_folder(path, &self.options) {
            return Ok(FilePlace::Folder);
        }
        if let Some(TreeEntry::Growing(id)) = state.tree.find(path) {
            let file = state.growing.get(&id).map(Arc::clone);
            return file.map(FilePlace::Growing).ok_or(Errno::ENOENT);
        }
        let title = |path: &str| match state.tree.find(path) {
            Some(TreeEntry::Title(id)) => self.store().record_of(id),
            _ => None,
        };
        if let Some(title) = title(path) {
            return Ok(FilePlace::Title(title));
        }
        let of_media = |title: &TitleRecord| title.kind == TitleKind::Media;
        if let Some(title) = path.strip_suffix(TABLE_ENDING).and_then(title).filter(of_media) {
            return Ok(FilePlace::Table(title));
        }
        let (folder, name) = split(path);
        let whole = path.strip_suffix(FRAMES_ENDING).and_then(title).filter(of_media);
        let part = folder.strip_suffix(FRAMES_ENDING).and_then(title).filter(of_media);
        // The index is read without the lock.
        drop(state);
        if let Some(title) = whole
            && self.frames(&title)?.is_some()
        {
            return Ok(FilePlace::Frames(title));
        }
        if let Some(title) = part
            && let Some(ldu) = self.frames(&title)?.and_then(|frames| frames.find(name))
        {
            return Ok(FilePlace::Frame(title, ldu));
        }
        Err(Errno::ENOENT)
    }

    /// The frames of a title that are files.
    fn frames(&self, title: &TitleRecord) -> FsResult<Option<Frames>> {
        if let Some(frames) = locked(&self.state).frames.get(&title.id) {
            return Ok(*frames);
        }
        let TitleFile { reader, .. } = self.title_file(title)?;
        let frames = Frames::of(reader.index(), |track| {
            let head = reader.piece(track, 0, FRAME_HEAD);
            head.map(|head| head.to_vec()).map_err(|error| self.failed(&title.name, &error))
        })?;
        locked(&self.state).frames.insert(title.id, frames);
        Ok(frames)
    }

    /// A frame of a title, and the file that it is.
    fn frame(&self, title: &TitleRecord, ldu: usize) -> FsResult<(TitleFile, Body)> {
        let frames = self.frames(title)?.ok_or(Errno::ENOENT)?;
        let file = self.title_file(title)?;
        let bytes = frames.bytes(file.reader.index(), ldu).ok_or(Errno::ENOENT)?;
        Ok((file, Body::of_track(frames.track, bytes)))
    }

    /// The file of a recording as it is now.
    fn looked(&self, file: &GrowingFile) -> FsResult<Arc<RecordingLook<Arc<dyn TitleOwner>>>> {
        file.look().map_err(|error| self.failed(&format!("recording {}", file.id().0), &error))
    }

    /// The length of a title's file. Of media the index is read once.
    fn length(&self, title: &TitleRecord) -> FsResult<u64> {
        if title.kind == TitleKind::File {
            return Ok(title.bytes);
        }
        if let Some(length) = locked(&self.state).lengths.get(&title.id) {
            return Ok(*length);
        }
        Ok(self.title_file(title)?.body.len())
    }

    /// The file of a title with a reader of its own.
    fn title_file(&self, title: &TitleRecord) -> FsResult<TitleFile> {
        let kept = {
            let state = locked(&self.state);
            state.recent.iter().find(|file| file.reader.record().id == title.id).map(Arc::clone)
        };
        if let Some(kept) = kept {
            let (reader, body) = (kept.reader.another(), Arc::clone(&kept.body));
            return Ok(TitleFile { reader, body });
        }
        let reader = TitleReader::open(Arc::clone(&self.owner), title.id);
        let opened = reader.and_then(|reader| Ok(TitleFile { body: reader.file()?, reader }));
        let file = opened.map_err(|error| self.failed(&title.name, &error))?;
        let mut state = locked(&self.state);
        if title.kind == TitleKind::Media {
            state.lengths.insert(title.id, file.body.len());
            if state.recent.len() == MOST_RECENT {
                state.recent.remove(0);
            }
            let (reader, body) = (file.reader.another(), Arc::clone(&file.body));
            state.recent.push(Arc::new(TitleFile { reader, body }));
        }
        Ok(file)
    }

    /// The names in a folder.
    fn list(&self, path: &str) -> Vec<(String, FileType)> {
        let state = self.state();
        let mut names = BTreeMap::new();
        for (name, entry) in state.tree.folder(path).into_iter().flat_map(TitleFolder::entries) {
            let kind = match entry {
                TreeEntry::Folder => FileType::Directory,
                TreeEntry::Title(_) | TreeEntry::Growing(_) => FileType::RegularFile,
            };
            names.insert(name, kind);
        }
        for draft in state.drafts.keys().filter(|draft| split(draft).0 == path) {
            names.insert(split(draft).1.to_owned(), FileType::RegularFile);
        }
        if path.is_empty() && !self.options.read_only {
            names.insert(INGEST.to_owned(), FileType::Directory);
        }
        names.into_iter().collect()
    }

    fn refuse_if_read_only(&self) -> FsResult<()> {
        if self.options.read_only { Err(Errno::EROFS) } else { Ok(()) }
    }

    /// The error number for an error with a title, which is told to the user where it is more than
    /// the number says.
    fn failed(&self, name: &str, error: &StoreError) -> Errno {
        let errno = errno_of(error);
        if errno.code() == Errno::EIO.code() || matches!(error, StoreError::Refused { .. }) {
            (self.options.tell)(&format!("{name}: {}", error.one_line()));
        }
        errno
    }

    fn told(&self, error: &MountError) -> Errno {
        (self.options.tell)(&error.one_line());
        match error {
            MountError::Store(error) => errno_of(error),
            MountError::Spool { source, .. } | MountError::Mount { source, .. } => {
                source.raw_os_error().map_or(Errno::EIO, Errno::from_i32)
            }
            MountError::Directory { .. } => Errno::EIO,
        }
    }
}

fn time_of(title: &TitleRecord) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(title.created)
}

fn errno_of(error: &StoreError) -> Errno {
    match error {
        StoreError::NoTitle { .. } => Errno::ENOENT,
        StoreError::Exists { .. }
        | StoreError::BeingRecorded { .. }
        | StoreError::BeingWritten { .. } => Errno::EEXIST,
        // No place for a file, for now: as on a file system that was made read-only.
        StoreError::Draining { .. } => Errno::EROFS,
        StoreError::BadName { name, .. } if name.len() > LONGEST_NAME => Errno::ENAMETOOLONG,
        StoreError::BadName { .. } | StoreError::Refused { .. } => Errno::EINVAL,
        StoreError::Full { .. }
        | StoreError::TooManyPieces { .. }
        | StoreError::CatalogueFull { .. } => Errno::ENOSPC,
        StoreError::File { source, .. } => {
            source.raw_os_error().map_or(Errno::EIO, Errno::from_i32)
        }
        _ => Errno::EIO,
    }
}

/// The folder in which a file becomes a media title.
const INGEST: &str = ".ingest";

/// The ending of the table of a title's LDUs.
const TABLE_ENDING: &str = ".index";

/// The ending of the folder of a title's frames.
const FRAMES_ENDING: &str = ".frames";

/// The bytes of a track that tell which files its frames are.
const FRAME_HEAD: usize = 2;

/// Bytes of a title's name at most.
pub(crate) const LONGEST_NAME: usize = 255;

/// Number of media files whose headers and indexes are kept in memory.
const MOST_RECENT: usize = 32;

#[cfg(test)]
mod tests;
