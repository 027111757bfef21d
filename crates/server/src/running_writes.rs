//! The work that writes new titles into a served store, from the command to its answer: recordings,
//! ingests and copies. A recording that waits for its input, or for its next part, runs, although
//! nothing of it is in the store yet.
//!
//! ```text
//!   command, upload, order, file of a mount ──begin──▶ guard ──▶ listed until it is dropped
//!                                               │
//!   drain of the disk ──────────────────────────┴─ refused from then on; what runs goes on
//! ```
//! Whether a disk is drained, and what runs on it, are under one lock: what is not refused is
//! listed.

use crate::wire;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use store::{Store, StoreError, TitleLeave};
use units::locked;
use uuid::Uuid;

/// What writes new titles into one store.
#[derive(Debug)]
pub(crate) struct RunningWrites {
    store: PathBuf,
    uuid: Uuid,
    state: Mutex<WriteState>,
}

#[derive(Debug, Default)]
struct WriteState {
    /// Whether the store's disk is drained.
    is_draining: bool,
    running: Vec<Arc<BegunWrite>>,
}

/// What is done to write a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Recording,
    Ingest,
    Copy,
    /// A repair, which copies missing titles.
    Repair,
}

#[derive(Debug)]
struct BegunWrite {
    kind: WriteKind,
    /// The title, or the folder of parts.
    title: String,
    // In Unix seconds.
    since: u64,
    /// Whether an operator has ended it.
    is_ended: AtomicBool,
    /// Where the file that is to become the title waits for its user, in the mount.
    waits_at: Mutex<Option<String>>,
}

/// Counts work as running until it is dropped.
#[derive(Debug)]
pub(crate) struct WriteGuard {
    all: Arc<RunningWrites>,
    write: Arc<BegunWrite>,
}

impl WriteKind {
    fn verb(self) -> &'static str {
        match self {
            Self::Recording => "record",
            Self::Ingest => "ingest",
            Self::Copy => "copy",
            Self::Repair => "repair",
        }
    }
}

impl RunningWrites {
    /// Nothing yet, of the store at this path.
    pub(crate) fn new(store: &Path, uuid: Uuid) -> Self {
        Self { store: store.to_owned(), uuid, state: Mutex::default() }
    }

    /// Counts work as running until the guard is dropped.
    ///
    /// # Errors
    /// [`StoreError::Draining`]: the disk is to be taken out.
    pub(crate) fn begin(
        self: &Arc<Self>,
        kind: WriteKind,
        title: &str,
    ) -> Result<WriteGuard, StoreError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (title, since) = (title.to_owned(), now.as_secs());
        let (is_ended, waits_at) = (AtomicBool::new(false), Mutex::default());
        let write = Arc::new(BegunWrite { kind, title, since, is_ended, waits_at });
        let mut state = locked(&self.state);
        if state.is_draining {
            return Err(self.refusal(kind));
        }
        state.running.push(Arc::clone(&write));
        Ok(WriteGuard { all: Arc::clone(self), write })
    }

    /// The refusal of work that would begin now, before it does.
    pub(crate) fn check(&self, kind: WriteKind) -> Result<(), StoreError> {
        if locked(&self.state).is_draining { Err(self.refusal(kind)) } else { Ok(()) }
    }

    fn refusal(&self, kind: WriteKind) -> StoreError {
        let instead = match kind {
            WriteKind::Repair => "take the titles from its copies in other stores".to_owned(),
            kind => format!("{} into another store", kind.verb()),
        };
        let uuid = self.uuid;
        let end = format!("end the drain first (DELETE /api/v1/disks/{uuid}/drain)");
        StoreError::Draining { store: self.store.clone(), hint: format!("{instead}, or {end}") }
    }

    /// The disk is drained from now on, or no longer.
    pub(crate) fn set_draining(&self, is_draining: bool) {
        locked(&self.state).is_draining = is_draining;
    }

    /// Ends the recordings of a title, or into its folder; whether there are any.
    pub(crate) fn end_recordings(&self, title: &str) -> bool {
        let state = locked(&self.state);
        let is_of_it = |write: &&Arc<BegunWrite>| {
            write.kind == WriteKind::Recording && is_in(title, &write.title)
        };
        let mut ended = state.running.iter().filter(is_of_it);
        ended.by_ref().map(|write| write.is_ended.store(true, Ordering::Relaxed)).count() > 0
    }

    /// The titles that are being recorded in the store, then the recordings that have no title in
    /// it at the moment.
    pub(crate) fn recordings(&self, store: &Store) -> Vec<wire::Recording> {
        let mut listed: Vec<wire::Recording> =
            store.recordings().into_iter().map(wire::Recording::from).collect();
        let state = locked(&self.state);
        for asked in state.running.iter().filter(|write| write.kind == WriteKind::Recording) {
            if !listed.iter().any(|it| is_in(&it.title, &asked.title)) {
                let (title, since) = (asked.title.clone(), asked.since);
                listed.push(wire::Recording { title, since, bytes: 0 });
            }
        }
        listed
    }

    /// The other work.
    pub(crate) fn ingests(&self) -> Vec<wire::RunningWrite> {
        let state = locked(&self.state);
        let others = state.running.iter().filter(|write| write.kind != WriteKind::Recording);
        let described = |write: &Arc<BegunWrite>| wire::RunningWrite {
            kind: write.kind.verb().to_owned(),
            title: Some(write.title.clone()).filter(|title| !title.is_empty()),
            since: write.since,
            waits_at: locked(&write.waits_at).clone(),
        };
        others.map(described).collect()
    }
}

/// Whether a title has this name, or is in the folder of this name.
fn is_in(title: &str, name: &str) -> bool {
    let rest = title.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl WriteGuard {
    /// Whether an operator has ended it.
    pub(crate) fn is_ended(&self) -> bool {
        self.write.is_ended.load(Ordering::Relaxed)
    }
}

impl TitleLeave for WriteGuard {
    fn waits(&self, path: Option<&str>) {
        *locked(&self.write.waits_at) = path.map(str::to_owned);
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        locked(&self.all.state).running.retain(|it| !Arc::ptr_eq(it, &self.write));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes() -> Arc<RunningWrites> {
        Arc::new(RunningWrites::new(Path::new("a.store"), Uuid::from_bytes([7; 16])))
    }

    #[test]
    fn what_runs_goes_on_while_a_disk_is_drained_and_nothing_begins() {
        let all = writes();
        let film = all.begin(WriteKind::Ingest, "film").unwrap();
        all.set_draining(true);
        for (kind, wanted) in [
            (WriteKind::Recording, "record into another store, or end the drain first"),
            (WriteKind::Ingest, "ingest into another store, or end the drain first"),
            (WriteKind::Copy, "copy into another store, or end the drain first"),
            (WriteKind::Repair, "take the titles from its copies in other stores"),
        ] {
            let Err(StoreError::Draining { hint, .. }) = all.begin(kind, "x") else {
                panic!("{kind:?} begins on a draining disk")
            };
            assert!(hint.starts_with(wanted), "{hint}");
            assert!(all.check(kind).is_err());
        }
        let names = |all: &RunningWrites| -> Vec<_> {
            all.ingests().into_iter().map(|it| (it.kind, it.title.unwrap_or_default())).collect()
        };
        assert_eq!(names(&all), [("ingest".to_owned(), "film".to_owned())]);
        let waits_at = || all.ingests().into_iter().next().and_then(|it| it.waits_at);
        assert_eq!(waits_at(), None);
        film.waits(Some(".ingest/.film.mp4"));
        assert_eq!(waits_at().as_deref(), Some(".ingest/.film.mp4"));
        film.waits(None);
        assert_eq!(waits_at(), None);
        drop(film);
        assert_eq!(names(&all), []);
        all.set_draining(false);
        drop(all.begin(WriteKind::Copy, "x").unwrap());
    }

    #[test]
    fn a_recording_is_ended_by_its_name_or_by_that_of_a_part() {
        let all = writes();
        let begin = |title| all.begin(WriteKind::Recording, title).unwrap();
        let (match_, door) = (begin("match"), begin("door"));
        let _ingest = all.begin(WriteKind::Ingest, "film").unwrap();
        let ended = || [match_.is_ended(), door.is_ended()];
        assert!(["film", "mat", "matches", "doors/1"].iter().all(|name| !all.end_recordings(name)));
        assert_eq!(ended(), [false, false]);
        assert!(all.end_recordings("door/20261128T081500Z"));
        assert_eq!(ended(), [false, true]);
        assert!(all.end_recordings("match"));
        assert_eq!(ended(), [true, true]);
    }
}
