//! What the threads for copies are doing and have done, for the node's records, its status and its
//! metrics.

use crate::wire;
use bucket::FilledTitle;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use units::{BitRate, ByteCount, locked};

/// The copies of a node that are being written, and counters.
#[derive(Debug, Default)]
pub(crate) struct CopyBoard {
    turns: AtomicUsize,
    filled: AtomicU64,
    filled_bytes: AtomicU64,
    /// Bytes of filled copies that came from other nodes.
    peer_bytes: AtomicU64,
    replaced: AtomicU64,
    evicted: AtomicU64,
    failures: AtomicU64,
    now: Mutex<CopiesNow>,
}

#[derive(Debug, Default)]
struct CopiesNow {
    filling: Vec<wire::FillingCopy>,
    /// Why titles failed, until they do not any more.
    failed: BTreeMap<String, String>,
}

/// The right to write a copy.
pub(crate) struct FillTurn<'a>(&'a AtomicUsize);

impl Drop for FillTurn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A copy that is being written; dropped, it is not any more.
pub(crate) struct BoardEntry<'a> {
    board: &'a CopyBoard,
    title: &'a str,
    disk: u16,
}

impl CopyBoard {
    /// The right to write a copy; `None` while as many as `most` are written.
    pub(crate) fn take_turn(&self, most: usize) -> Option<FillTurn<'_>> {
        let before = self.turns.fetch_add(1, Ordering::AcqRel);
        let turn = FillTurn(&self.turns);
        (before < most).then_some(turn)
    }

    pub(crate) fn begin<'a>(&'a self, title: &'a str, disk: u16, replaces: bool) -> BoardEntry<'a> {
        let named = title.to_owned();
        let copy = wire::FillingCopy { title: named, disk, replaces, ..Default::default() };
        locked(&self.now).filling.push(copy);
        BoardEntry { board: self, title, disk }
    }

    pub(crate) fn failed(&self, title: &str, why: &str) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut now = locked(&self.now);
        if now.failed.len() < MOST_FAILED || now.failed.contains_key(title) {
            now.failed.insert(title.to_owned(), why.to_owned());
        }
    }

    pub(crate) fn forget_failure(&self, title: &str) {
        locked(&self.now).failed.remove(title);
    }

    pub(crate) fn evicted(&self) {
        self.evicted.fetch_add(1, Ordering::Relaxed);
    }

    /// The titles that are being written, with their disks.
    pub(crate) fn filling(&self) -> Vec<(String, u16)> {
        let now = locked(&self.now);
        now.filling.iter().map(|copy| (copy.title.clone(), copy.disk)).collect()
    }

    /// The state, for `/status`.
    pub(crate) fn report(&self, ordered: u64) -> wire::CopyReport {
        let now = locked(&self.now);
        let failed = |(title, message): (&String, &String)| wire::FailedCopy {
            title: title.clone(),
            message: message.clone(),
        };
        wire::CopyReport {
            ordered,
            filling: now.filling.clone(),
            failed: now.failed.iter().map(failed).collect(),
            filled: self.filled.load(Ordering::Relaxed),
            filled_bytes: self.filled_bytes.load(Ordering::Relaxed),
            filled_bytes_of_peers: self.peer_bytes.load(Ordering::Relaxed),
            replaced: self.replaced.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
        }
    }
}

impl BoardEntry<'_> {
    /// Notes how many bytes are to be written.
    pub(crate) fn has(&self, bytes: u64) {
        self.change(|copy| copy.bytes = Some(bytes));
    }

    /// Notes a write of so many bytes more, at a kept rate or without one.
    pub(crate) fn writes(&self, bytes: ByteCount, kept: Option<BitRate>) {
        self.change(|copy| {
            copy.done += bytes.0;
            copy.kept_rate = kept.map(|rate| rate.0);
        });
    }

    fn change(&self, change: impl FnOnce(&mut wire::FillingCopy)) {
        let mut now = locked(&self.board.now);
        let mut copies = now.filling.iter_mut();
        let own = copies.find(|copy| copy.title == self.title && copy.disk == self.disk);
        if let Some(copy) = own {
            change(copy);
        }
    }

    pub(crate) fn done(&self, filled: &FilledTitle) {
        let board = self.board;
        board.filled.fetch_add(1, Ordering::Relaxed);
        board.filled_bytes.fetch_add(filled.title.bytes, Ordering::Relaxed);
        board.peer_bytes.fetch_add(filled.peer_bytes, Ordering::Relaxed);
        board.replaced.fetch_add(u64::from(filled.replaced.is_some()), Ordering::Relaxed);
    }
}

impl Drop for BoardEntry<'_> {
    fn drop(&mut self) {
        let mut now = locked(&self.board.now);
        now.filling.retain(|copy| copy.title != self.title || copy.disk != self.disk);
    }
}

/// Titles whose failures are remembered, at most.
const MOST_FAILED: usize = 100;
