//! What a director counts, apart from what `cluster::Director` does.

use prometheus_client::metrics::histogram::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Why a viewer was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Full,
    Headroom,
    NoCopy,
    Unreachable,
    NotReady,
    NoTitle,
    ByNode,
    NotAllowed,
}

/// What came of a request of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheOutcome {
    /// Sent to a node with the content of the address.
    Sent,
    /// Sent to a node with another content, which says so.
    OtherContent,
    NoTitle,
    NoCopy,
    NotReady,
    NotAllowed,
}

/// Counters, each of its own.
#[derive(Debug)]
pub(super) struct ServiceCounters {
    admitted: AtomicU64,
    refused: [AtomicU64; Cause::ALL.len()],
    caches: [AtomicU64; CacheOutcome::ALL.len()],
    /// Requests of caches that another node has not answered.
    cache_retries: AtomicU64,
    asked: AtomicU64,
    node_refused: AtomicU64,
    silent: AtomicU64,
    /// Replies to requests of RTSP, by the first digit of their status, from 1.
    rtsp_replies: [AtomicU64; CLASSES.len()],
    /// Time from a request to its answer.
    pub(super) admission: Histogram,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedService {
    pub(super) admitted: u64,
    pub(super) refused: [(&'static str, u64); Cause::ALL.len()],
    pub(super) caches: [(&'static str, u64); CacheOutcome::ALL.len()],
    pub(super) cache_retries: u64,
    pub(super) asked: u64,
    pub(super) node_refused: u64,
    pub(super) silent: u64,
    pub(super) rtsp_replies: [(&'static str, u64); CLASSES.len()],
}

impl Cause {
    pub(super) const ALL: [Self; 8] = [
        Self::Full,
        Self::Headroom,
        Self::NoCopy,
        Self::Unreachable,
        Self::NotReady,
        Self::NoTitle,
        Self::ByNode,
        Self::NotAllowed,
    ];

    /// The word in answers and metrics.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Headroom => "headroom",
            Self::NoCopy => "no-copy",
            Self::Unreachable => "unreachable",
            Self::NotReady => "not-ready",
            Self::NoTitle => "no-title",
            Self::ByNode => "by-node",
            Self::NotAllowed => "not-allowed",
        }
    }
}

impl CacheOutcome {
    const ALL: [Self; 6] = [
        Self::Sent,
        Self::OtherContent,
        Self::NoTitle,
        Self::NoCopy,
        Self::NotReady,
        Self::NotAllowed,
    ];

    /// The word in metrics.
    fn word(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::OtherContent => "other-content",
            Self::NoTitle => Cause::NoTitle.word(),
            Self::NoCopy => Cause::NoCopy.word(),
            Self::NotReady => Cause::NotReady.word(),
            Self::NotAllowed => Cause::NotAllowed.word(),
        }
    }
}

impl Default for ServiceCounters {
    fn default() -> Self {
        Self {
            admitted: AtomicU64::default(),
            refused: Default::default(),
            caches: Default::default(),
            cache_retries: AtomicU64::default(),
            asked: AtomicU64::default(),
            node_refused: AtomicU64::default(),
            silent: AtomicU64::default(),
            rtsp_replies: Default::default(),
            admission: Histogram::new(BOUNDS),
        }
    }
}

impl ServiceCounters {
    pub(super) fn admitted(&self) {
        self.admitted.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self, cause: Cause) {
        self.refused[cause as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn answered_cache(&self, outcome: CacheOutcome) {
        self.caches[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn cache_retried(&self) {
        self.cache_retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn asked(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn node_refused(&self) {
        self.node_refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn silent(&self) {
        self.silent.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn replied_over_rtsp(&self, status: u16) {
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        self.rtsp_replies[class].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn took(&self, time: Duration) {
        self.admission.observe(time.as_secs_f64());
    }

    pub(super) fn counted(&self) -> CountedService {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CountedService {
            admitted: of(&self.admitted),
            refused: Cause::ALL.map(|cause| (cause.word(), of(&self.refused[cause as usize]))),
            caches: CacheOutcome::ALL.map(|it| (it.word(), of(&self.caches[it as usize]))),
            cache_retries: of(&self.cache_retries),
            asked: of(&self.asked),
            node_refused: of(&self.node_refused),
            silent: of(&self.silent),
            rtsp_replies: std::array::from_fn(|it| (CLASSES[it], of(&self.rtsp_replies[it]))),
        }
    }
}

/// The classes of a status.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// Seconds: from a redirect on one machine to four nodes that do not answer.
const BOUNDS: [f64; 12] =
    [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 5.0];
