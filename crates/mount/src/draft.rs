//! A file that is being written. Programs write in any order and change their minds, and media is
//! only known when it is complete: the bytes are in a spool file until the file is closed.
//!
//! ```text
//!   create, write, truncate ──▶ spool file ──close──▶ store::ingest ──▶ title
//!                                │    └──unlink, or an error (of a write, too)──▶ gone
//!                                └──close of a hidden or an empty file in `.ingest`──▶ waits
//!                                     a rename that fails changes nothing ◀─────────────┘
//! ```

use crate::MountError;
use media::TitleKind;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{
    IngestOptions, IngestReport, Store, StoreError, TitleId, TitleLeave, TitleOwner, TitleRecord,
    ingest,
};
use units::{Reason, locked};

/// A file that is being written, shared by all who have it open.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The spool file; [`Draft::write`] and [`Draft::set_length`] change it.
    pub(crate) file: File,
    spool: PathBuf,
    state: Mutex<DraftState>,
}

#[derive(Debug)]
struct DraftState {
    /// The leave to make a title of it; `None`: it becomes none.
    leave: Option<Box<dyn TitleLeave>>,
    /// The name of the title that it becomes.
    name: String,
    /// What it becomes.
    becomes: TitleKind,
    /// Whether it has bytes that its title does not have.
    is_changed: bool,
    /// Whether it was closed after its last change, and waits for its name or its bytes.
    is_closed: bool,
    /// Whether it was to become a title after its last change.
    is_tried: bool,
    /// The title that it has become, or that its bytes were copied from.
    title: Option<TitleId>,
    /// Whether it is unlinked and becomes nothing.
    is_gone: bool,
    /// Why bytes of it are missing, until it is written anew from its beginning.
    failed: Option<Errno>,
}

impl Draft {
    /// An empty file in the spool directory.
    pub(crate) fn new(
        spool: &Path,
        leave: Box<dyn TitleLeave>,
        name: String,
        becomes: TitleKind,
    ) -> Result<Self, MountError> {
        Self::of(spool, leave, name, becomes, None)
    }

    /// A file in the spool directory for the bytes of a file title.
    pub(crate) fn of_title(
        spool: &Path,
        leave: Box<dyn TitleLeave>,
        title: &TitleRecord,
    ) -> Result<Self, MountError> {
        Self::of(spool, leave, title.name.clone(), title.kind, Some(title.id))
    }

    fn of(
        spool: &Path,
        leave: Box<dyn TitleLeave>,
        name: String,
        becomes: TitleKind,
        title: Option<TitleId>,
    ) -> Result<Self, MountError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = spool.join(format!("tenuto-{}-{number}.spool", std::process::id()));
        // Other users of the directory do not read what is being written.
        let mut options = File::options();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path);
        let file = file.map_err(|source| MountError::Spool { path: path.clone(), source })?;
        // For `clean`. A file system without locks has none to tell.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let state = DraftState {
            leave: Some(leave),
            name,
            becomes,
            is_changed: false,
            is_closed: false,
            is_tried: false,
            title,
            is_gone: false,
            failed: None,
        };
        Ok(Self { file, spool: path, state: Mutex::new(state) })
    }

    /// Writes bytes. A close at the same time makes a title with all of them or without.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
        let mut state = locked(&self.state);
        state.changed();
        self.file.write_all_at(bytes, at).inspect_err(|error| {
            state.failed = Some(Errno::from_io_error(error).unwrap_or(Errno::IO));
        })
    }

    /// Changes the length.
    pub(crate) fn set_length(&self, bytes: u64) -> std::io::Result<()> {
        let mut state = locked(&self.state);
        self.file.set_len(bytes)?;
        state.changed();
        if bytes == 0 {
            state.failed = None;
        }
        Ok(())
    }

    /// Gives the space of a file back of which bytes are missing, before its last user has let go
    /// of it.
    pub(crate) fn free_if_failed(&self) {
        if locked(&self.state).failed.is_some() {
            // There is no further remedy for a failure here.
            let _ = self.file.set_len(0);
        }
    }

    /// Whether it has bytes that its title does not have.
    pub(crate) fn is_changed(&self) -> bool {
        let state = locked(&self.state);
        state.is_changed && !state.is_gone
    }

    /// Records that the file is closed, and waits at this path for another name or for its bytes.
    /// Says whether it has not waited before.
    pub(crate) fn closed(&self, path: &str) -> bool {
        let mut state = locked(&self.state);
        state.waits(Some(path));
        !std::mem::replace(&mut state.is_closed, true)
    }

    /// Records that the file has this path from now on.
    pub(crate) fn moved(&self, path: &str) {
        let state = locked(&self.state);
        if state.is_closed {
            state.waits(Some(path));
        }
    }

    /// Whether it was closed and waits for its name or its bytes.
    pub(crate) fn is_closed(&self) -> bool {
        let state = locked(&self.state);
        state.is_closed && !state.is_gone
    }

    /// Whether it has no bytes, and none are missing.
    pub(crate) fn is_empty(&self) -> bool {
        let state = locked(&self.state);
        state.failed.is_none() && self.file.metadata().is_ok_and(|about| about.len() == 0)
    }

    /// The title that it has become, or that its bytes were copied from.
    pub(crate) fn title(&self) -> Option<TitleId> {
        locked(&self.state).title
    }

    /// Whether its last close is to make a title of it: it has none with its bytes, and was not
    /// refused since its last change.
    pub(crate) fn is_to_be_sealed(&self) -> bool {
        let state = locked(&self.state);
        !state.is_gone && !state.is_tried && (state.is_changed || state.title.is_none())
    }

    /// Gives it another name: that which `rename` finds, which renames the title that it has.
    pub(crate) fn rename<E>(
        &self,
        rename: impl FnOnce(Option<TitleId>) -> Result<(String, TitleKind), E>,
    ) -> Result<(), E> {
        let mut state = locked(&self.state);
        (state.name, state.becomes) = rename(state.title)?;
        Ok(())
    }

    /// Records that the file is unlinked, and becomes nothing from now on.
    pub(crate) fn unlink(&self) {
        let mut state = locked(&self.state);
        (state.is_gone, state.leave) = (true, None);
    }

    /// Makes a title of the file; `None` where it is unlinked. A file title replaces a title of its
    /// name, which `remove` removes when the new one is durable; a media title replaces nothing.
    pub(crate) fn seal(
        &self,
        owner: &dyn TitleOwner,
        remove: &dyn Fn(&str) -> Result<(), StoreError>,
    ) -> Result<Option<IngestReport>, StoreError> {
        // Held until it is a title: it is sealed once, and a rename waits.
        self.seal_locked(&mut locked(&self.state), owner, remove)
    }

    /// Makes a title of the file as [`Draft::seal`] does, under another name and perhaps of another
    /// kind. Where that fails, the file waits as before.
    pub(crate) fn seal_as(
        &self,
        (name, becomes): (String, TitleKind),
        owner: &dyn TitleOwner,
        remove: &dyn Fn(&str) -> Result<(), StoreError>,
    ) -> Result<Option<IngestReport>, StoreError> {
        let mut state = locked(&self.state);
        let before = (std::mem::replace(&mut state.name, name), state.becomes);
        state.becomes = becomes;
        let sealed = self.seal_locked(&mut state, owner, remove);
        if sealed.is_err() {
            (state.name, state.becomes) = before;
            state.is_tried = false;
        }
        sealed
    }

    /// What [`Draft::seal`] does, of a file whose state is held.
    fn seal_locked(
        &self,
        state: &mut DraftState,
        owner: &dyn TitleOwner,
        remove: &dyn Fn(&str) -> Result<(), StoreError>,
    ) -> Result<Option<IngestReport>, StoreError> {
        if state.is_gone {
            return Ok(None);
        }
        let (store, io) = (owner.store(), owner.background_io());
        state.is_tried = true;
        if let Some(failed) = state.failed {
            let (action, path) = ("write", self.spool.clone());
            return Err(StoreError::File { action, path, source: failed.into() });
        }
        let is_file = state.becomes == TitleKind::File;
        let replaces = is_file && store.title(&state.name).is_some();
        let name = if replaces { self.beside(store, &state.name) } else { state.name.clone() };
        let options = IngestOptions {
            kind: state.becomes,
            name: Some(name.clone()),
            ..IngestOptions::default()
        };
        let files = [self.spool.clone()];
        let outcome = ingest(store, &files, &options, io, &mut |_| {}, &Default::default());
        let result = outcome.into_iter().next().expect("one file").result;
        let report = result.map_err(|error| as_copied(error, &state.name))?;
        if replaces {
            // The new title is durable: a crash from here on loses neither.
            remove(&state.name)?;
            store.rename(&name, &state.name)?;
        }
        (state.title, state.is_changed, state.is_closed) = (Some(report.title.id), false, false);
        state.waits(None);
        Ok(Some(report))
    }

    /// A name that no title has, for the time until the old title is removed.
    fn beside(&self, store: &Store, name: &str) -> String {
        let (folder, file) = crate::title_tree::split(name);
        let short: String = file.chars().take(LONGEST_PART).collect();
        let free = (0u32..).map(|number| {
            let name = format!(".{short}.new{number}");
            crate::title_tree::join(folder, &name)
        });
        free.into_iter().find(|name| store.title(name).is_none()).expect("numbers enough")
    }
}

impl DraftState {
    fn changed(&mut self) {
        if self.is_closed {
            self.waits(None);
        }
        (self.is_changed, self.is_closed, self.is_tried) = (true, false, false);
    }

    /// Tells the owner of the store where the file waits.
    fn waits(&self, path: Option<&str>) {
        if let Some(leave) = &self.leave {
            leave.waits(path);
        }
    }
}

/// An error of a file that was copied in by this name: nobody knows the file in the spool, and a
/// mount has no options of `tenuto ingest`.
fn as_copied(error: StoreError, name: &str) -> StoreError {
    let StoreError::Refused { reason, .. } = error else { return error };
    let hint = reason.hint.map(|hint| format!("with tenuto ingest: {hint}"));
    StoreError::Refused { file: name.into(), reason: Reason { hint, ..reason } }
}

/// Removes the spool files of processes that are gone: of mounts that were killed.
pub(crate) fn clean(spool: &Path) {
    let entries = std::fs::read_dir(spool).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let inner = name.to_str().and_then(|name| name.strip_prefix("tenuto-"));
        let inner = inner.and_then(|name| name.strip_suffix(".spool"));
        let process = inner.and_then(|inner| inner.split('-').next()?.parse::<u32>().ok());
        let is_gone = |process| !Path::new(&format!("/proc/{process}")).exists();
        if !process.is_some_and(is_gone) {
            continue;
        }
        // The processes of other containers are not seen here; their locks are. Another user's file
        // stays.
        let lock = |file: File| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if File::open(entry.path()).is_ok_and(lock) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // If that fails, the extension shows what the file was for.
        let _ = std::fs::remove_file(&self.spool);
    }
}

/// Characters of a title's name that its temporary name begins with.
const LONGEST_PART: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use units::Hinted;

    #[test]
    fn a_refused_file_has_the_name_by_which_it_was_copied() {
        let reason = Reason::new("it is damaged", "add --allow-damaged");
        let refused = StoreError::Refused { file: "/spool/tenuto-1-0.spool".into(), reason };
        let told = as_copied(refused, "film.mp4");
        assert_eq!(told.to_string(), "film.mp4 is not taken in: it is damaged");
        assert_eq!(told.hint().unwrap(), "with tenuto ingest: add --allow-damaged");
    }

    #[test]
    fn only_what_nobody_writes_any_more_is_removed_from_the_spool() {
        let spool = std::env::temp_dir().join(format!("tenuto-spool-{}", std::process::id()));
        std::fs::create_dir(&spool).unwrap();
        let draft = Draft::new(&spool, Box::new(()), "name".to_owned(), TitleKind::File).unwrap();
        // No process has this number: a mount that was killed, and one in another container.
        let [dead, hidden, foreign] =
            ["tenuto-4294967294-0.spool", "tenuto-4294967294-1.spool", "notes.spool"]
                .map(|name| spool.join(name));
        for path in [&dead, &hidden, &foreign] {
            std::fs::write(path, "bytes").unwrap();
        }
        let locked = File::open(&hidden).unwrap();
        flock(&locked, FlockOperation::NonBlockingLockExclusive).unwrap();
        clean(&spool);
        let left = [&dead, &hidden, &foreign, &draft.spool].map(|path| path.exists());
        assert_eq!(left, [false, true, true, true]);
        drop((draft, locked));
        std::fs::remove_dir_all(&spool).unwrap();
    }
}
