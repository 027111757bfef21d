//! The files of a mounted store: what a path is, and what happens to it. No FUSE messages here.
//!
//! ```text
//!   path ──▶ a draft?  ──▶ a title's file?  ──▶ a folder of titles, or one made here?  ──▶ ENOENT
//! ```
//!
//! The lock is held for lookups only, never while the store reads or writes. A draft's own lock may
//! be held when it is taken, and is never taken under it: sealing and renaming a draft look up
//! names.

use crate::draft::Draft;
use crate::frames::Frames;
use crate::ldu_table::ldu_table;
use crate::nodes::{Nodes, Unlinked};
use crate::reserved::{HandleReservation, IfReserved, NotChanged, TitleReservations};
use crate::title_tree::{MEDIA_ENDING, TitleFolder, TitleTree, TreeEntry, TreeFile, join, split};
use crate::{MountError, StoreMountOptions};
use fuser::{Errno, FileType, Generation};
use media::{Body, TitleIndex, TitleKind};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::{
    IngestReport, RecordingFile, RecordingLook, ReserveError, ReservedRate, ReservedReadError,
    RunningRecording, Store, StoreError, TitleId, TitleOwner, TitleReader, TitleRecord,
    TitleSelection,
};
use units::{BitRate, Hinted, float, locked};

/// The files of a mounted store.
pub(crate) struct StoreFiles {
    owner: Arc<dyn TitleOwner>,
    options: StoreMountOptions,
    state: Mutex<FilesState>,
    reservations: TitleReservations,
    pub(crate) started: SystemTime,
}

#[derive(Debug)]
struct FilesState {
    tree: TitleTree,
    /// The store's number of changes that the tree was made at.
    made_at: Option<u64>,
    nodes: Nodes,
    /// Folders that no title is in yet.
    folders: BTreeSet<String>,
    /// When the names in a folder changed last, of those that were changed through the mount.
    changed: HashMap<String, SystemTime>,
    /// The files that are being written, by path.
    drafts: BTreeMap<String, Arc<Draft>>,
    open: HashMap<u64, Arc<OpenFile>>,
    opened: u64,
    /// The files of titles that are being read, by how many.
    readers: HashMap<TitleId, usize>,
    /// Removed titles that are still being read.
    leaving: HashSet<TitleId>,
    /// The lengths of the files of media titles.
    lengths: HashMap<TitleId, u64>,
    /// The frames of those media titles that were asked for them.
    frames: HashMap<TitleId, Option<Frames>>,
    /// The latest media files that were opened, the last one last.
    recent: Vec<Arc<TitleFile>>,
    /// The files of titles that are being recorded.
    growing: HashMap<TitleId, Arc<GrowingFile>>,
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
    fn draft(&self) -> Option<&Arc<Draft>> {
        match self {
            Self::Draft { draft, .. } => Some(draft),
            Self::Title { draft, .. } => draft.get(),
            Self::Growing { .. } | Self::Frame { .. } | Self::Text(_) | Self::Folder(_) => None,
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

/// The attributes of a file that FUSE asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) kind: FileType,
    pub(crate) bytes: u64,
    pub(crate) time: SystemTime,
    pub(crate) can_write: bool,
    /// Whether it may be another one at the next look: the kernel asks again each time.
    pub(crate) grows: bool,
    /// Number of names: of a folder those in it and in its subfolders, of an unlinked file none.
    pub(crate) links: u32,
}

type FsResult<T> = Result<T, Errno>;

impl fmt::Debug for StoreFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreFiles({:?})", self.options)
    }
}

impl StoreFiles {
    pub(crate) fn new(owner: Arc<dyn TitleOwner>, options: StoreMountOptions) -> Self {
        let state = FilesState {
            tree: TitleTree::default(),
            made_at: None,
            nodes: Nodes::new(),
            folders: BTreeSet::new(),
            changed: HashMap::new(),
            drafts: BTreeMap::new(),
            open: HashMap::new(),
            opened: 0,
            readers: HashMap::new(),
            leaving: HashSet::new(),
            lengths: HashMap::new(),
            frames: HashMap::new(),
            recent: Vec::new(),
            growing: HashMap::new(),
        };
        let (state, reservations) = (Mutex::new(state), TitleReservations::default());
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
        let mut growing: HashMap<TitleId, _> = recordings.iter().map(growing).collect();
        let complete = |it: TitleRecord| (it.name, TreeFile::Title(it.kind));
        match changed {
            Some(changed) => {
                for id in changed {
                    let title = self.store().record_of(id).map(complete);
                    state.set(id, title.or_else(|| growing.remove(&id)));
                }
            }
            None => {
                state.tree = TitleTree::default();
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
        locked(&self.state).nodes.path(number).map(str::to_owned).ok_or(Errno::ESTALE)
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
                            Ok(about_growing(&*self.looked(file)?))
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
            FilePlace::Growing(file) => about_growing(&*self.looked(&file)?),
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
        for folder in state.made_folders_in(path) {
            names.insert(split(folder).1.to_owned(), FileType::Directory);
        }
        for draft in state.drafts.keys().filter(|draft| split(draft).0 == path) {
            names.insert(split(draft).1.to_owned(), FileType::RegularFile);
        }
        if path.is_empty() && !self.options.read_only {
            names.insert(INGEST.to_owned(), FileType::Directory);
        }
        names.into_iter().collect()
    }

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
                    let mut state = self.state();
                    // The title may have been removed meanwhile.
                    if self.store().record_of(title.id).is_none() {
                        return Err(Errno::ENOENT);
                    }
                    *state.readers.entry(title.id).or_default() += 1;
                    let open = OpenFile::Frame { file: Box::new(file), body };
                    return Ok((state.add(open), Caching::Anew));
                }
                FilePlace::Growing(file) => {
                    let mut state = locked(&self.state);
                    // The title that it becomes may be removed meanwhile.
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
                    let mut state = self.state();
                    if !state.is_at(&path, title.id) {
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

    /// A draft in the place of a file title, with its bytes unless it is to be empty. `None` if
    /// another title is in that place meanwhile.
    fn draft_of(
        &self,
        path: &str,
        title: &TitleRecord,
        empty: bool,
    ) -> FsResult<Option<Arc<Draft>>> {
        let draft = Draft::of_title(&self.options.spool, title);
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
        let draft = Draft::new(&self.options.spool, name, becomes);
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
            OpenFile::Frame { file, body } => self.copy(&file.reader, body, at, most),
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
        if waits_at(path.as_deref().unwrap_or(path_when_opened), draft) {
            draft.closed();
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
                let id = file.reader.record().id;
                let (is_last, is_over) = locked(&self.state).has_read(id);
                self.reservations.closed(id, reserved, is_last);
                if is_over {
                    self.owner.free_hidden(id);
                }
            }
            OpenFile::Frame { file, .. } => {
                let id = file.reader.record().id;
                let (is_last, is_over) = locked(&self.state).has_read(id);
                self.reservations.closed(id, &HandleReservation::default(), is_last);
                if is_over {
                    self.owner.free_hidden(id);
                }
            }
            OpenFile::Growing { file, .. } => {
                let (_, is_over) = locked(&self.state).has_read(file.id());
                if is_over {
                    self.owner.free_hidden(file.id());
                }
            }
            OpenFile::Draft { .. } | OpenFile::Text(_) | OpenFile::Folder(_) => {}
        }
        if let Some(draft) = file.draft() {
            self.draft_released(draft);
        }
    }

    fn draft_released(&self, draft: &Arc<Draft>) {
        let Some(path) = locked(&self.state).path_of_unused(draft) else { return };
        if waits_at(&path, draft) {
            if draft.closed() && !is_hidden_ingest(&path) {
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

    fn sealed(&self, sealed: Result<Option<IngestReport>, StoreError>) -> FsResult<()> {
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
    fn remove_title(&self, name: &str) -> Result<(), StoreError> {
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
        let is_read = state.readers.contains_key(&title.id);
        if is_read {
            state.leaving.insert(title.id);
        }
        drop(state);
        if !is_read {
            self.owner.free_hidden(title.id);
        }
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
        state.folders.insert(path.to_owned());
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
        state.folders.remove(path);
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
        let moved = |path: &String| match path.strip_prefix(&inside) {
            Some(rest) => format!("{new}/{rest}"),
            None if path == old => new.to_owned(),
            None => path.clone(),
        };
        state.folders = state.folders.iter().map(moved).collect();
        let changed = std::mem::take(&mut state.changed).into_iter();
        state.changed = changed.map(|(path, time)| (moved(&path), time)).collect();
        state.nodes.rename(old, new);
        state.touch_folder_of(old);
        state.touch_folder_of(new);
        Ok(())
    }

    /// The value of an extended attribute of a file; `None` if it has none of this name.
    pub(crate) fn attribute(&self, path: &str, name: &str) -> FsResult<Option<String>> {
        let title = match self.place(path)? {
            FilePlace::Title(title) => title,
            FilePlace::Growing(file) => return self.growing_attribute(&file, name),
            _ => return Ok(None),
        };
        let seconds = title.duration.as_secs_f64();
        let is_media = title.kind == TitleKind::Media;
        Ok(match name.strip_prefix(ATTRIBUTES) {
            Some("title") => Some(title.name),
            Some("id") => Some(title.id.0.to_string()),
            Some("duration") if is_media => Some(format!("{seconds:.3}")),
            Some("rate") => self.reservations.rate(title.id).map(|rate| rate.to_string()),
            Some("mean_rate") if is_media && seconds > 0.0 => {
                Some(format!("{:.0}", float(title.bytes) * 8.0 / seconds))
            }
            Some("codecs") if is_media => Some(codecs(self.title_file(&title)?.reader.index())),
            _ => None,
        })
    }

    /// The value of an extended attribute of a title that is being recorded.
    fn growing_attribute(&self, file: &GrowingFile, name: &str) -> FsResult<Option<String>> {
        let look = self.looked(file)?;
        let seconds = look.duration().as_secs_f64();
        Ok(match name.strip_prefix(ATTRIBUTES) {
            Some("title") => Some(look.name().to_owned()),
            Some("id") => Some(file.id().0.to_string()),
            Some("duration") => Some(format!("{seconds:.3}")),
            Some("mean_rate") if seconds > 0.0 => {
                Some(format!("{:.0}", float(look.body().len()) * 8.0 / seconds))
            }
            Some("codecs") => Some(codecs(look.index())),
            _ => None,
        })
    }

    /// The names of a file's extended attributes.
    pub(crate) fn attributes(&self, path: &str) -> FsResult<Vec<String>> {
        let mut names = Vec::new();
        match self.place(path)? {
            FilePlace::Title(title) => {
                names.extend(["title", "id"]);
                if title.kind == TitleKind::Media {
                    names.extend(["duration", "mean_rate", "codecs"]);
                }
                names.extend(self.reservations.rate(title.id).map(|_| RATE));
            }
            FilePlace::Growing(file) => {
                names.extend(["title", "id", "duration", "codecs"]);
                let has_rate = !self.looked(&file)?.duration().is_zero();
                names.extend(has_rate.then_some("mean_rate"));
            }
            _ => {}
        }
        Ok(names.iter().map(|name| format!("{ATTRIBUTES}{name}")).collect())
    }

    /// Sets an extended attribute of the file with an inode number: the rate that is reserved.
    pub(crate) fn set_attribute(
        &self,
        number: u64,
        name: &str,
        value: &[u8],
        present: IfReserved,
    ) -> FsResult<()> {
        let title = self.title_with_rate(number, name)?;
        let by = self.owner.reservations().ok_or(Errno::EOPNOTSUPP)?;
        let text = std::str::from_utf8(value).map_err(|_| Errno::EINVAL)?.trim();
        let rate = if text.is_empty() { Ok(NO_RATE) } else { text.parse() };
        let rate: ReservedRate = rate.map_err(|_| Errno::EINVAL)?;
        if rate == NO_RATE {
            self.reservations.give_back(title.id);
            return Ok(());
        }
        let file = self.title_file(&title)?;
        let set = self.reservations.set(by, &title, &file.body, rate, present);
        set.map_err(|why| match why {
            NotChanged::Exists => Errno::EEXIST,
            NotChanged::None => Errno::ENODATA,
            NotChanged::Reserve(why) => {
                let (errno, why) = match why {
                    ReserveError::Refused(why) => (Errno::EBUSY, why),
                    ReserveError::NotPossible(why) => (Errno::EOPNOTSUPP, why),
                };
                (self.options.tell)(&format!("{}: no rate is reserved: {why}", title.name));
                errno
            }
        })
    }

    /// Removes an extended attribute of the file with an inode number: the reserved rate.
    pub(crate) fn remove_attribute(&self, number: u64, name: &str) -> FsResult<()> {
        let title = self.title_with_rate(number, name)?;
        match self.reservations.give_back(title.id) {
            true => Ok(()),
            false => Err(Errno::ENODATA),
        }
    }

    /// The title with an inode number, if `name` is the attribute of its reserved rate.
    fn title_with_rate(&self, number: u64, name: &str) -> FsResult<TitleRecord> {
        match self.place(&self.path(number)?)? {
            FilePlace::Title(title) if name.strip_prefix(ATTRIBUTES) == Some(RATE) => Ok(title),
            _ => Err(Errno::EOPNOTSUPP),
        }
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

impl FilesState {
    fn is_folder(&self, path: &str, options: &StoreMountOptions) -> bool {
        path.is_empty()
            || self.tree.folder(path).is_some()
            || self.folders.contains(path)
            || path == INGEST && !options.read_only
    }

    /// The title with this identifier has this name and file now; `None`: there is none.
    fn set(&mut self, id: TitleId, now: Option<(String, TreeFile)>) {
        let now = now.as_ref().map(|(name, file)| (name.as_str(), *file));
        for folder in self.tree.set(id, now) {
            if !self.folders.contains(&folder) {
                self.changed.remove(&folder);
            }
        }
    }

    /// The folders in a folder that were made or kept here.
    fn made_folders_in(&self, path: &str) -> impl Iterator<Item = &String> {
        let inside = join(path, "");
        let from_here = self.folders.range(inside.clone()..);
        let all = from_here.take_while(move |folder| folder.starts_with(&inside));
        all.filter(move |folder| split(folder).0 == path)
    }

    /// Number of folders in a folder.
    fn subfolders(&self, path: &str, options: &StoreMountOptions) -> u32 {
        let of_titles = self.tree.folder(path);
        let made = self.made_folders_in(path);
        let empty = made.filter(|folder| self.tree.folder(folder).is_none()).count();
        let ingest = usize::from(path.is_empty() && !options.read_only);
        let all = of_titles.map_or(0, |folder| folder.folders) + empty + ingest;
        u32::try_from(all).unwrap_or(u32::MAX - 2)
    }

    /// The names in the folder of this path have changed.
    fn touch_folder_of(&mut self, path: &str) {
        self.changed.insert(split(path).0.to_owned(), SystemTime::now());
    }

    fn add(&mut self, file: OpenFile) -> u64 {
        self.opened += 1;
        self.open.insert(self.opened, Arc::new(file));
        self.opened
    }

    /// One reader of a title less; returns whether it was the last one, and whether the title was
    /// removed while it was read.
    fn has_read(&mut self, id: TitleId) -> (bool, bool) {
        let Some(readers) = self.readers.get_mut(&id) else { return (false, false) };
        *readers -= 1;
        if *readers > 0 {
            return (false, false);
        }
        self.readers.remove(&id);
        (true, self.leaving.remove(&id))
    }

    /// These titles are being recorded now, and no others.
    fn record(&mut self, ids: impl Iterator<Item = TitleId>, owner: &Arc<dyn TitleOwner>) {
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
    fn open_as(&self, wanted: u64) -> Option<Arc<OpenFile>> {
        let is_it = |open: &&Arc<OpenFile>| match open.as_ref() {
            OpenFile::Growing { number, .. } | OpenFile::Title { number, .. } => *number == wanted,
            _ => false,
        };
        self.open.values().find(is_it).cloned()
    }

    /// Whether the file at a path is this title's, and not written.
    fn is_at(&self, path: &str, id: TitleId) -> bool {
        !self.drafts.contains_key(path)
            && matches!(self.tree.find(path), Some(TreeEntry::Title(found)) if found == id)
    }

    /// The folders that a file is in stay when it is the last one in them.
    fn keep_folders(&mut self, path: &str) {
        let mut folder = split(path).0;
        while !folder.is_empty() && folder != INGEST {
            self.folders.insert(folder.to_owned());
            folder = split(folder).0;
        }
    }

    /// The open files that read or write a draft.
    fn users(&self, draft: &Arc<Draft>) -> impl Iterator<Item = &Arc<OpenFile>> {
        let is_it = |other: &Arc<Draft>| Arc::ptr_eq(other, draft);
        self.open.values().filter(move |file| file.draft().is_some_and(is_it))
    }

    /// Number of open files that write a draft.
    fn writers(&self, draft: &Arc<Draft>) -> usize {
        let writes =
            |file: &&Arc<OpenFile>| matches!(file.as_ref(), OpenFile::Draft { writes: true, .. });
        self.users(draft).filter(writes).count()
    }

    /// The path of a draft that nobody has open.
    fn path_of_unused(&self, draft: &Arc<Draft>) -> Option<String> {
        if self.users(draft).next().is_some() {
            return None;
        }
        self.path_of(draft).map(str::to_owned)
    }

    /// The path of a draft.
    fn path_of(&self, draft: &Arc<Draft>) -> Option<&str> {
        let found = self.drafts.iter().find(|(_, other)| Arc::ptr_eq(other, draft));
        found.map(|(path, _)| path.as_str())
    }

    /// The path is no longer this draft's.
    fn let_go(&mut self, path: &str, draft: &Arc<Draft>) {
        if self.drafts.get(path).is_some_and(|other| Arc::ptr_eq(other, draft)) {
            self.drafts.remove(path);
        }
    }
}

/// The title that a new file becomes: its name and kind.
fn title_of(path: &str) -> FsResult<(String, TitleKind)> {
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
fn renamed(title: &TitleRecord, path: &str) -> FsResult<String> {
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
fn is_in_ingest(path: &str) -> bool {
    path.strip_prefix(INGEST).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a file that is closed at this path waits in the ingest folder: for another name, or for
/// its bytes, because programs make a file and write it later.
fn waits_at(path: &str, draft: &Draft) -> bool {
    is_hidden_ingest(path) || is_in_ingest(path) && draft.is_empty()
}

/// Whether it is a file in the ingest folder that waits for another name: copying programs write
/// under a hidden name first.
fn is_hidden_ingest(path: &str) -> bool {
    is_in_ingest(path) && split(path).1.starts_with('.')
}

/// The line for people on a title that was taken in: what is not in it, and further notes.
fn noted(IngestReport { title, left_out, notes }: &IngestReport) -> Option<String> {
    let left_out = (!left_out.is_empty()).then(|| format!("left out: {}", left_out.join(", ")));
    let notes: Vec<_> = left_out.iter().chain(notes).map(String::as_str).collect();
    // A note may have what FFmpeg said, which has lines.
    let notes = notes.join("; ").lines().collect::<Vec<_>>().join(" ");
    (!notes.is_empty()).then(|| format!("{}: {notes}", title.name))
}

/// The codec strings of the tracks of a title.
fn codecs(index: &TitleIndex) -> String {
    let codecs = index.tracks.iter().map(|track| track.description.codec.as_str());
    codecs.collect::<Vec<_>>().join(",")
}

/// The attributes of the file of a recording.
fn about_growing(look: &RecordingLook<Arc<dyn TitleOwner>>) -> About {
    About {
        kind: FileType::RegularFile,
        bytes: look.body().len(),
        time: look.modified(),
        can_write: false,
        grows: true,
        links: 1,
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

/// What becomes of an empty file in the ingest folder.
const WAITS_FOR_BYTES: &str = "it waits until something is written to it";

/// The ending of the table of a title's LDUs.
const TABLE_ENDING: &str = ".index";

/// The ending of the folder of a title's frames.
const FRAMES_ENDING: &str = ".frames";

/// The bytes of a track that tell which files its frames are.
const FRAME_HEAD: usize = 2;

/// The prefix of the names of extended attributes.
const ATTRIBUTES: &str = "user.tenuto.";

/// The rate with which a reservation is given back.
const NO_RATE: ReservedRate = ReservedRate::Constant(BitRate(0));

/// The extended attribute that reserves a rate, behind the prefix.
const RATE: &str = "rate";

/// Bytes of a title's name at most.
pub(crate) const LONGEST_NAME: usize = 255;

/// Number of media files whose headers and indexes are kept in memory.
const MOST_RECENT: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};
    use store::{FormatOptions, SoleOwner};
    use units::ByteCount;

    /// The files of a store of its own in a folder of its own, and what they tell people.
    struct TestFiles {
        files: StoreFiles,
        told: Arc<Mutex<Vec<String>>>,
        folder: PathBuf,
    }

    impl TestFiles {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("tenuto-{name}-{}", std::process::id()));
            std::fs::create_dir(&folder).unwrap();
            let told = Arc::<Mutex<Vec<String>>>::default();
            let files = StoreFiles::new(Self::owner(&folder), Self::options(&folder, &told));
            Self { files, told, folder }
        }

        fn owner(folder: &Path) -> Arc<dyn TitleOwner> {
            let path = folder.join("a.store");
            let size = Some(ByteCount(SIZE));
            Store::format(&path, &FormatOptions { size, ..<_>::default() }).unwrap();
            Arc::new(SoleOwner(Store::open(&path).unwrap()))
        }

        fn options(folder: &Path, told: &Arc<Mutex<Vec<String>>>) -> StoreMountOptions {
            let told = Arc::clone(told);
            let tell = Arc::new(move |line: &str| locked(&told).push(line.to_owned()));
            StoreMountOptions { read_only: false, spool: folder.to_owned(), rate: None, tell }
        }

        fn take_told(&self) -> Vec<String> {
            std::mem::take(&mut locked(&self.told))
        }

        /// Writes a file at once, as a program that makes or empties it.
        fn write(&self, path: &str, bytes: &[u8]) -> FsResult<()> {
            let access = FileAccess { writes: true, truncates: true };
            let (_, _, (handle, _)) = self.files.create(path, access, false)?;
            let file = self.files.opened(handle)?;
            if !bytes.is_empty() {
                self.files.write(&file, 0, bytes)?;
            }
            let closed = self.files.flush(&file);
            self.files.release(handle);
            closed
        }

        fn read(&self, path: &str) -> FsResult<Vec<u8>> {
            let (number, about) = self.files.look_up(path)?;
            let (handle, _) = self.files.open(number, FileAccess::default())?;
            let bytes = self
                .files
                .opened(handle)
                .and_then(|file| self.files.read(&file, 0, usize::try_from(about.bytes).unwrap()));
            self.files.release(handle);
            bytes
        }

        fn names(&self, path: &str) -> Vec<String> {
            self.files.list(path).into_iter().map(|(name, _)| name).collect()
        }

        #[track_caller]
        fn fails(&self, result: FsResult<()>, errno: Errno) {
            assert_eq!(result.unwrap_err().code(), errno.code(), "{:?}", self.take_told());
        }
    }

    impl Drop for TestFiles {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    /// Bytes of a store for tests.
    const SIZE: u64 = 32 << 20;

    #[test]
    fn a_failed_rename_of_what_waits_changes_nothing() {
        let it = TestFiles::new("rename");
        it.write("h2.mp4", b"there").unwrap();
        it.write("full", b"old").unwrap();
        let text = b"no film".as_slice();
        it.write(".ingest/.a.mp4", text).unwrap();
        let long = format!(".ingest/{}", "n".repeat(256));
        let large = vec![7; usize::try_from(SIZE).unwrap()];
        it.write(".ingest/.large", &large).unwrap();
        for (from, to, errno) in [
            // No media; a name that no title can have; more than the store has room for, also in
            // the place of a file.
            (".ingest/.a.mp4", ".ingest/h3.mp4", Errno::EINVAL),
            (".ingest/.a.mp4", long.as_str(), Errno::ENAMETOOLONG),
            (".ingest/.a.mp4", ".ingest/folder/a.mp4", Errno::ENOENT),
            (".ingest/.large", "large", Errno::ENOSPC),
            (".ingest/.large", "full", Errno::ENOSPC),
            (".ingest/.large", ".ingest/.a.mp4/x", Errno::ENOENT),
        ] {
            it.fails(it.files.rename(from, to, false), errno);
            assert_eq!(it.names(".ingest"), [".a.mp4", ".large"], "{to}");
            assert_eq!(it.names(""), [".ingest", "full", "h2.mp4"], "{to}");
            assert!(it.read(".ingest/.a.mp4").unwrap() == text);
            assert!(it.read(".ingest/.large").unwrap() == large);
            assert_eq!(it.read("full").unwrap(), b"old");
        }
        // It waits on: under another name, then as a file in the place of another, then it is gone.
        it.files.rename(".ingest/.a.mp4", ".ingest/.b.mp4", false).unwrap();
        it.files.rename(".ingest/.b.mp4", "full", false).unwrap();
        assert_eq!(it.read("full").unwrap(), text);
        it.files.unlink(".ingest/.large").unwrap();
        assert_eq!(it.names(".ingest"), [""; 0]);
        assert_eq!(it.names(""), [".ingest", "full", "h2.mp4"]);
        let titles = it.files.store().titles();
        let named = |name: &str| titles.iter().filter(|title| title.name == name).count();
        assert_eq!((titles.len(), named("full"), named("h2.mp4")), (2, 1, 1));
    }

    #[test]
    fn an_empty_file_waits_for_its_bytes() {
        let it = TestFiles::new("empty");
        it.write(".ingest/zero.mov", b"").unwrap();
        assert_eq!(it.names(".ingest"), ["zero.mov"]);
        assert_eq!(it.read(".ingest/zero.mov").unwrap(), b"");
        // Once only: programs make a file, and write it when they have opened it again.
        it.write(".ingest/zero.mov", b"").unwrap();
        let told = it.take_told();
        assert_eq!(told, [".ingest/zero.mov is empty: it waits until something is written to it"]);
        it.files.rename(".ingest/zero.mov", ".ingest/one.mov", false).unwrap();
        assert_eq!(it.names(".ingest"), ["one.mov"]);
        // What is written is taken in at the close, or refused as ever.
        it.fails(it.write(".ingest/one.mov", b"no film"), Errno::EINVAL);
        assert_eq!(it.names(".ingest"), [""; 0]);
        it.write(".ingest/one.mov", b"").unwrap();
        it.files.unlink(".ingest/one.mov").unwrap();
        assert_eq!(it.names(".ingest"), [""; 0]);
        // Under a name outside it is an empty file title.
        it.write(".ingest/zero.mov", b"").unwrap();
        it.files.rename(".ingest/zero.mov", "empty", false).unwrap();
        assert_eq!((it.names(".ingest").len(), it.read("empty").unwrap()), (0, Vec::new()));
        assert_eq!(it.files.store().titles()[0].name, "empty");
    }

    #[test]
    fn no_title_gets_a_name_in_the_ingest_folder() {
        let it = TestFiles::new("ingest");
        it.files.make_folder("folder").unwrap();
        it.write("folder/file", b"text").unwrap();
        it.files.make_folder("empty").unwrap();
        for (from, to) in [
            ("folder", ".ingest/folder"),
            ("empty", ".ingest/empty"),
            ("folder", ".ingest/.hidden"),
            ("folder/file", ".ingest/file"),
        ] {
            it.fails(it.files.rename(from, to, false), Errno::EINVAL);
        }
        it.fails(it.files.make_folder(".ingest/folder"), Errno::EINVAL);
        // A command can give such a name; from there it can be taken back.
        it.files.store().rename("folder/file", ".ingest/deep/file").unwrap();
        it.fails(it.files.rename("empty", ".ingest/deep/empty", false), Errno::EINVAL);
        it.fails(it.files.make_folder(".ingest/deep/folder"), Errno::EINVAL);
        it.fails(it.write(".ingest/deep/new", b""), Errno::EINVAL);
        it.files.rename(".ingest/deep", "deep", false).unwrap();
        assert_eq!(it.read("deep/file").unwrap(), b"text");
    }

    #[test]
    fn files_that_waited_in_vain_are_named_once() {
        let it = TestFiles::new("lost");
        it.files.tell_lost();
        it.write("file", b"text").unwrap();
        it.write(".ingest/.a.mp4", b"text").unwrap();
        it.write(".ingest/.b", b"").unwrap();
        it.files.tell_lost();
        it.files.tell_lost();
        let lost = "unmounted: what waited in .ingest is lost: .ingest/.a.mp4, .ingest/.b";
        assert_eq!(it.take_told(), [lost]);
        assert_eq!(it.names(".ingest"), [""; 0]);
    }

    #[test]
    fn what_is_to_be_said_on_a_title_is_one_line() {
        let it = TestFiles::new("notes");
        it.write("news", b"text").unwrap();
        let title = it.files.store().titles().remove(0);
        let said = |left_out: &[&str], notes: &[&str]| {
            let [left_out, notes] =
                [left_out, notes].map(|of| of.iter().map(|it| (*it).to_owned()).collect());
            noted(&IngestReport { title: title.clone(), left_out, notes })
        };
        assert_eq!(said(&[], &[]), None);
        let whole = said(&["data stream 2", "data stream 3"], &["begins late", "FFmpeg: a\nb"]);
        let wanted = "news: left out: data stream 2, data stream 3; begins late; FFmpeg: a b";
        assert_eq!(whole.unwrap(), wanted);
    }
}
