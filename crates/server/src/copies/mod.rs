//! Copies of titles of record that the placement of a cluster orders: written from the bucket, also
//! in the place of outdated ones, and removed. A thread for each disk.
//!
//! ```text
//!   etcd: orders/NODE ─▶ Member ─▶ evict: is the copy that of the bucket? ─▶ removed
//!                             └──▶ fill: peers, bucket ─parts, hashes─▶ PacedIo ─▶ store
//!                                                                           │
//!             CopyBoard ◀── what is written, done, failed ──────────────────┘
//!                 └─▶ copies/TITLE/NODE "filling", `/status`, metrics
//! ```
//!
//! Each disk writes one copy at a time, and a node a few at most, so that their parts need little
//! memory; each has its part of the rate. Nothing is removed that the bucket does not have, or had
//! under its name and has another content now.
//!
//! An outdated copy is served until the new one is whole. Its viewers then go on to its end, as
//! those of a removed title do, and new viewers get the new content.

mod paced_io;
mod peers;

use crate::background_io::EngineBackgroundIo;
use crate::control::{ServedStore, StoreOwner};
use crate::copy_board::CopyBoard;
use crate::copy_source::CopySource;
use crate::membership::Membership;
use crate::messages::CoreHandle;
use crate::running_writes::WriteKind;
use crate::shared::Shared;
use bucket::{BucketError, FillOptions, PartPeers};
use cluster::{ContentTag, CopyTarget};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use paced_io::PacedIo;
use peers::CopyPeers;
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use store::{JobProgress, StoreAccess, StoreError, TitleRecord};
use units::{BitRate, Hinted};

/// Ends the threads when it is dropped.
#[derive(Debug)]
pub(crate) struct CopyThreads {
    _running: Sender<()>,
    ends: Arc<AtomicBool>,
}

impl Drop for CopyThreads {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// Starts a thread for each store.
pub(crate) fn start(
    source: &CopySource,
    membership: &Arc<Membership>,
    stores: Vec<ServedStore>,
    shared: &Arc<Shared>,
    core: &CoreHandle,
    threads: &mut Vec<JoinHandle<()>>,
) -> io::Result<CopyThreads> {
    let (running, stopped) = bounded(0);
    let ends = Arc::new(AtomicBool::new(false));
    let at_once = stores.len().clamp(1, AT_ONCE);
    let rate = BitRate(source.rate.0 / at_once as u64);
    for (number, store) in (0..).zip(stores) {
        let copies = DiskCopies {
            number,
            source: source.clone(),
            rate,
            membership: Arc::clone(membership),
            shared: Arc::clone(shared),
            core: core.clone(),
            stopped: stopped.clone(),
            ends: Arc::clone(&ends),
            failed: BTreeMap::new(),
            store,
        };
        let builder = thread::Builder::new().name("copies".to_owned());
        threads.push(builder.spawn(move || copies.run())?);
    }
    Ok(CopyThreads { _running: running, ends })
}

/// The copies on one disk.
struct DiskCopies {
    /// Index of the store, which is its disk's number.
    number: u16,
    source: CopySource,
    /// The rate of one copy.
    rate: BitRate,
    membership: Arc<Membership>,
    shared: Arc<Shared>,
    core: CoreHandle,
    store: ServedStore,
    stopped: Receiver<()>,
    ends: Arc<AtomicBool>,
    /// Titles that failed, until they do not any more.
    failed: BTreeMap<String, FailedOrder>,
}

/// An order that failed, and is tried again.
struct FailedOrder {
    at: Instant,
    /// Time between the last two tries.
    pause: Duration,
    /// The free chunks of the store that had not room for the copy: with more it is tried at once.
    free: Option<u64>,
}

impl DiskCopies {
    fn run(mut self) {
        let membership = Arc::clone(&self.membership);
        while self.stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            let orders = membership.orders();
            let here = |targets: Vec<CopyTarget>| -> Vec<CopyTarget> {
                targets.into_iter().filter(|target| target.disk.0 == self.number).collect()
            };
            let (evict, fill) = (here(orders.evict), here(orders.fill));
            let is_ordered = |title: &String| {
                evict.iter().chain(&fill).any(|target| target.title.as_str() == title)
            };
            self.forget_withdrawn(is_ordered);
            // First, because they make room.
            for target in evict {
                if self.has(&target) {
                    self.attempt(&target, "copy-not-evicted", Self::evict);
                }
            }
            if self.source.is_open_now()
                && let Some(target) = fill.into_iter().find(|target| self.lacks(target))
                // A disk that is drained takes no copy: the planner finds another one.
                && let Ok(_running) =
                    self.store.writes().begin(WriteKind::Copy, target.title.as_str())
                && let Some(_turn) = membership.copies().take_turn(AT_ONCE)
            {
                self.attempt(&target, "copy-not-filled", Self::fill);
            }
        }
    }

    fn board(&self) -> &CopyBoard {
        self.membership.copies()
    }

    fn has(&self, target: &CopyTarget) -> bool {
        self.may_try(target.title.as_str()) && self.copy(target).is_some()
    }

    /// Whether the copy is not there, or is the outdated one that is to be replaced.
    fn lacks(&self, target: &CopyTarget) -> bool {
        let is_old = |record| is_outdated(target, &record);
        self.may_try(target.title.as_str()) && self.copy(target).is_none_or(is_old)
    }

    fn copy(&self, target: &CopyTarget) -> Option<TitleRecord> {
        self.store.store().find(target.title.as_str()).ok()
    }

    fn may_try(&self, title: &str) -> bool {
        self.failed.get(title).is_none_or(|failed| {
            let has_more = |free| self.store.store().info().free_chunks > free;
            Instant::now() >= failed.at || failed.free.is_some_and(has_more)
        })
    }

    /// Carries out an order. One that fails is tried again later, and the next one meanwhile.
    fn attempt(
        &mut self,
        target: &CopyTarget,
        event: &str,
        order: impl FnOnce(&Self, &CopyTarget) -> Result<(), BucketError>,
    ) {
        let (title, result) = (target.title.as_str(), order(self, target));
        match result {
            Ok(()) => {
                self.failed.remove(title);
                self.board().forget_failure(title);
            }
            Err(BucketError::Store(StoreError::Cancelled)) => {}
            Err(error) => {
                let before = self.failed.get(title).map_or(FIRST_PAUSE / 2, |failed| failed.pause);
                let pause = (before * 2).min(LONGEST_PAUSE);
                let is_full = matches!(
                    error,
                    BucketError::Store(StoreError::Full { .. } | StoreError::TooManyPieces { .. })
                );
                // What the writer had reserved has been given back.
                let free = is_full.then(|| self.store.store().info().free_chunks);
                let failed = FailedOrder { at: Instant::now() + pause, pause, free };
                self.failed.insert(title.to_owned(), failed);
                let (store, why) = (self.store.path().display().to_string(), error.one_line());
                self.board().failed(title, &why);
                let fields = || json!({ "store": store, "title": title, "message": why });
                self.shared.tell(event, fields);
            }
        }
    }

    /// An order that is not given any more has not failed.
    fn forget_withdrawn(&mut self, is_ordered: impl Fn(&String) -> bool) {
        let board = self.membership.copies();
        self.failed.retain(|title, _| {
            let stays = is_ordered(title);
            if !stays {
                board.forget_failure(title);
            }
            stays
        });
    }

    fn fill(&self, target: &CopyTarget) -> Result<(), BucketError> {
        let title = target.title.as_str();
        let old = self.copy(target);
        if let Some(old) = &old
            && self.source.bucket.manifest_until(title, &self.ends)?.content
                == old.content().to_string()
        {
            // The bucket has the old content again: the next order says so, too.
            return Ok(());
        }
        let cancel = AtomicBool::new(false);
        let opened = &self.shared.content.stores[usize::from(self.number)];
        let io = EngineBackgroundIo::new(self.core.clone(), opened);
        let entry = self.board().begin(title, self.number, old.is_some());
        let (rate, visit) = (self.rate, opened.visit);
        let ends = [&cancel, &self.ends];
        let paced = PacedIo::new(&io, &self.source, rate, visit, ends, &entry);
        let access: &dyn StoreAccess = &(self.store.store(), &paced as &dyn store::BackgroundIo);
        let mut on_progress = |done: JobProgress| {
            done.total.into_iter().for_each(|bytes| entry.has(bytes));
            let evicted = || {
                let orders = self.membership.orders();
                orders.evict.iter().any(|it| it.disk.0 == self.number && it.title.as_str() == title)
            };
            if self.ends.load(Ordering::Relaxed) || evicted() {
                cancel.store(true, Ordering::Relaxed);
            }
        };
        let bucket = self.source.bucket.clone().with_connections(CONNECTIONS);
        let of_part = BitRate(rate.0 / CONNECTIONS as u64);
        let membership = Arc::clone(&self.membership);
        let peers = CopyPeers::new(membership, &target.peers, of_part);
        let peers = peers.map(|peers| peers as Arc<dyn PartPeers>);
        let options = FillOptions { replaces: old.is_some(), peers };
        let filled = bucket.fill_with(access, title, options, &mut on_progress, &cancel)?;
        if let Some(old) = &filled.replaced {
            self.store.withdraw(old.id);
        }
        entry.done(&filled);
        let store = self.store.path().display().to_string();
        let (bytes, replaced) = (filled.title.bytes, filled.replaced.is_some());
        let fields =
            || json!({ "store": store, "title": title, "bytes": bytes, "replaced": replaced });
        self.shared.tell("copy-filled", fields);
        Ok(())
    }

    /// Removes a copy that the bucket has, too, or that was replaced there. Viewers who play it go
    /// on to its end.
    fn evict(&self, target: &CopyTarget) -> Result<(), BucketError> {
        let title = target.title.as_str();
        let record = self.store.store().find(title)?;
        let manifest = self.source.bucket.manifest_until(title, &self.ends)?;
        if manifest.content != record.content().to_string() && !is_outdated(target, &record) {
            return Err(BucketError::Exists { title: title.to_owned() });
        }
        self.store.remove(title, true)?;
        self.board().evicted();
        let store = self.store.path().display().to_string();
        self.shared.tell("copy-evicted", || json!({ "store": store, "title": title }));
        Ok(())
    }
}

/// Whether a copy has the content that the order calls outdated.
fn is_outdated(target: &CopyTarget, copy: &TitleRecord) -> bool {
    target.outdated == Some(ContentTag::of(&copy.content().to_string()))
}

/// Copies that a node writes at a time, at most: each has parts of 16 MiB in memory.
const AT_ONCE: usize = 4;
/// Connections for one copy.
const CONNECTIONS: usize = 2;
/// Time between looks at the orders.
const LOOK: Duration = Duration::from_millis(500);
/// Time to the second try of an order that failed; twice as long after each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// Time to the next try, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
