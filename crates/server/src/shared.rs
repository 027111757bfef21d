//! What all threads of a server look at: titles, sessions, and the books as they were laid open
//! last. Nobody decides anything on what is here.

use crate::clock::Clock;
use crate::engine::{self, SessionSummary};
use crate::library::Library;
use crate::log::Log;
use crate::sessions::Sessions;
use crate::wire;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use units::SlotIndex;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) titles: Library,
    pub(crate) sessions: Sessions,
    pub(crate) log: Log,
    pub(crate) http: HttpCounters,
    /// Seconds from admission to the first media bytes.
    pub(crate) startup: Histogram,
    /// Of each ended session, seconds by which its reads were early, at the least.
    pub(crate) slack: Histogram,
    pub(crate) stopping: AtomicBool,
    pub(crate) about: About,
    books: Mutex<Arc<Books>>,
    worst_lateness: AtomicU64,
}

/// What does not change while a server runs.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) policy: &'static str,
    pub(crate) survive_loss: bool,
    pub(crate) slot: Duration,
    pub(crate) network: String,
}

/// What the threads that speak HTTP count.
#[derive(Debug, Default)]
pub(crate) struct HttpCounters {
    pub(crate) connections: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    /// Responses by the first digit of their status, from 1.
    pub(crate) responses: [AtomicU64; 5],
    /// Viewers cut off because they did not read.
    pub(crate) stalled: AtomicU64,
    /// Responses that broke off because bytes could not be had.
    pub(crate) broken: AtomicU64,
    /// Each body that is being sent holds one.
    pub(crate) under_way: Arc<()>,
}

impl HttpCounters {
    /// Whether any body of media is being sent, or waits for the next of its bytes.
    pub(crate) fn is_sending(&self) -> bool {
        Arc::strong_count(&self.under_way) > 1
    }
}

/// The engine's books at the start of a slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    pub(crate) engine: engine::Status,
    /// Per disk, the last slots.
    pub(crate) slots: Vec<VecDeque<wire::SlotUse>>,
    pub(crate) watched: Vec<wire::Watched>,
}

impl Shared {
    pub(crate) fn new(
        clock: Clock,
        titles: Library,
        sessions: Sessions,
        log: Log,
        about: About,
    ) -> Self {
        Self {
            clock,
            titles,
            sessions,
            log,
            http: HttpCounters::default(),
            // 10 ms to 20 s.
            startup: Histogram::new(exponential_buckets(0.01, 2.0, 12)),
            // 1 ms to half a minute.
            slack: Histogram::new(exponential_buckets(0.001, 2.0, 16)),
            stopping: AtomicBool::new(false),
            about,
            books: Mutex::default(),
            worst_lateness: AtomicU64::new(0),
        }
    }

    /// The books as they were laid open last.
    pub(crate) fn books(&self) -> Arc<Books> {
        Arc::clone(&self.books.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lays the books open; the slot that has just begun is `slot`.
    pub(crate) fn publish(
        &self,
        slot: SlotIndex,
        engine: engine::Status,
        watched: Vec<wire::Watched>,
    ) {
        let slots = self.books().slots.clone();
        let mut books = Books { engine: engine::Status::default(), slots, watched };
        books.slots.resize_with(engine.disks.len(), VecDeque::new);
        for (disk, slots) in engine.disks.iter().zip(&mut books.slots) {
            if slots.len() == SLOTS_KEPT {
                slots.pop_front();
            }
            slots.push_back(wire::SlotUse {
                slot: slot.0.saturating_sub(1),
                reads: disk.last_slot_reads,
                min_read: disk.min_read,
                active: engine.active,
            });
        }
        books.engine = engine;
        *self.books.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(books);
    }

    pub(crate) fn session_ended(&self, summary: &SessionSummary) {
        let late = u64::try_from(summary.worst_lateness.as_nanos()).unwrap_or(u64::MAX);
        self.worst_lateness.fetch_max(late, Ordering::Relaxed);
        if let Some(slack) = summary.least_slack {
            self.slack.observe(slack.as_secs_f64());
        }
    }

    /// The server at this moment, as `/status` tells it.
    pub(crate) fn status(&self) -> wire::Status {
        let books = self.books();
        let engine = &books.engine;
        wire::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime: self.clock.uptime().as_secs_f64(),
            stopping: self.stopping.load(Ordering::Relaxed),
            policy: self.about.policy.to_owned(),
            slot: self.about.slot.as_secs_f64(),
            network: self.about.network.clone(),
            sessions: engine.sessions,
            active: engine.active,
            admitted: engine.admitted,
            admitted_smaller: engine.admitted_smaller,
            refused: wire::Refused {
                disk: engine.refused_disk,
                memory: engine.refused_memory,
                network: engine.refused_network,
            },
            survive_loss: self.about.survive_loss,
            refused_for_loss: engine.refused_for_loss,
            moved: engine.moved,
            ended_by_loss: engine.ended_by_loss,
            glitches: engine.glitches,
            on_time: engine.on_time,
            broken_certificates: engine.broken_certificates,
            void_certificates: engine.void_certificates,
            worst_lateness: Duration::from_nanos(self.worst_lateness.load(Ordering::Relaxed))
                .as_secs_f64(),
            buffers_used: engine.buffers_used,
            buffers_total: engine.buffers_total,
            cache_hits: engine.cache_hits,
            connections: self.http.connections.load(Ordering::Relaxed),
            sent_bytes: self.http.sent_bytes.load(Ordering::Relaxed),
            disks: self.disks(&books),
            watched: books.watched.clone(),
        }
    }

    fn disks(&self, books: &Books) -> Vec<wire::DiskStatus> {
        let shelves = self.titles.shelves.iter().zip(&books.engine.disks).zip(&books.slots);
        let disks = shelves.map(|((shelf, disk), slots)| wire::DiskStatus {
            store: shelf.path.display().to_string(),
            uuid: shelf.store.info().uuid.to_string(),
            method: shelf.method.clone(),
            read_size: shelf.read_size.0,
            min_read: disk.min_read,
            reads: disk.reads,
            bytes: disk.bytes,
            failures: disk.failures,
            in_flight: disk.in_flight,
            sessions: disk.sessions,
            lost: disk.lost,
            behind: disk.behind_part(),
            slowest_slot: disk.slowest_slot,
            observed: disk.observed,
            least_slack: disk.least_slack,
            promised_slack: disk.promised_slack.map(|slack| slack.as_secs_f64()),
            slowed: shelf.store.device().lateness().map(|late| wire::Slowed {
                requests: late.requests,
                late_median: late.median.as_secs_f64(),
                late_p99: late.p99.as_secs_f64(),
                late_longest: late.longest.as_secs_f64(),
            }),
            slots: slots.iter().copied().collect(),
        });
        disks.collect()
    }
}

/// Ten minutes of slots at the usual 500 ms: what a page plots.
const SLOTS_KEPT: usize = 1200;
