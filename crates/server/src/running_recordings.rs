//! The recordings that run on a served store, as those who gave the command see them: a recording
//! that waits for its input, or for its next part, runs, although nothing of it is in the store
//! yet.

use crate::wire;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use store::Store;

/// The recordings of one store that have begun and not ended.
#[derive(Debug, Default)]
pub(crate) struct RunningRecordings {
    asked: Mutex<Vec<AskedRecording>>,
}

/// A recording, or a folder of parts, from the command to its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AskedRecording {
    title: String,
    // In Unix seconds.
    since: u64,
}

/// Counts a recording as running until it is dropped.
#[derive(Debug)]
pub(crate) struct RunningGuard<'a> {
    all: &'a RunningRecordings,
    recording: AskedRecording,
}

impl RunningRecordings {
    /// Counts a recording of this title, or of parts in this folder, until the guard is dropped.
    pub(crate) fn begin(&self, title: &str) -> RunningGuard<'_> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let recording = AskedRecording { title: title.to_owned(), since: now.as_secs() };
        self.asked().push(recording.clone());
        RunningGuard { all: self, recording }
    }

    /// The titles that are being recorded in the store, then the recordings that have no title in
    /// it at the moment.
    pub(crate) fn listed(&self, store: &Store) -> Vec<wire::Recording> {
        let mut listed: Vec<wire::Recording> =
            store.recordings().into_iter().map(wire::Recording::from).collect();
        for asked in &*self.asked() {
            let is_of_it = |it: &wire::Recording| {
                let rest = it.title.strip_prefix(&asked.title);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            if !listed.iter().any(is_of_it) {
                let AskedRecording { title, since } = asked.clone();
                listed.push(wire::Recording { title, since, bytes: 0 });
            }
        }
        listed
    }

    fn asked(&self) -> MutexGuard<'_, Vec<AskedRecording>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        let mut asked = self.all.asked();
        if let Some(place) = asked.iter().position(|it| *it == self.recording) {
            asked.remove(place);
        }
    }
}
