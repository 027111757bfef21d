//! The cluster as a director watches it: a view that a thread keeps as new as etcd's answers.
//!
//! ```text
//!   round:  format, as of now ──other, older or long silent etcd──▶ list all ┐
//!              │                                                             ▼
//!              └──────────────────────────────────────────▶ watch ──changes──▶ ClusterView
//!                                                             │ compacted ──▶ list all
//!                                                             │ silent, ended ──▶ next round
//! ```
//!
//! Each round begins with a question that only a majority of etcd can answer, so that a member
//! which lags behind is not taken for an etcd that was restored. One that was restored while this
//! director heard nothing may have written on beyond the revision that is known here: after a long
//! silence all records are listed.
//!
//! A node whose record is there counts as alive, also where its digest is old: etcd removes the
//! record with the lease, and an etcd that is full takes no digests. While none answers, the view
//! stays as it is: the nodes decide themselves whether they may admit.

use crate::etcd::{
    EtcdClient, EtcdConfig, EtcdError, FORMAT_KEY, RecordChange, Stamp, WatchNews, check_format,
};
use cluster::{ClusterChange, ClusterEvent, ClusterName, ClusterView};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};
use units::{Moment, Reason, locked, nanos};

/// The view of a cluster, and how its watch goes.
pub(crate) struct WatchedCluster {
    start: Instant,
    view: Mutex<ClusterView>,
    is_listed: AtomicBool,
    lists: AtomicU64,
    unusable: AtomicU64,
    /// Nanoseconds from the start to the last answer of etcd; 0 before the first.
    heard: AtomicU64,
    /// Nanoseconds from the start to the last time at which the nodes in the view were known to
    /// have records; 0 before the first.
    confirmed: AtomicU64,
    shown: Mutex<WatchedFrom>,
}

/// Where the records come from.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchedFrom {
    /// The member of etcd that is asked.
    pub(crate) endpoint: String,
    /// Why there are no news, if there are none.
    pub(crate) error: Option<String>,
}

/// Takes texts for whoever runs the director.
pub(crate) type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// A round that has ended.
enum RoundEnd {
    /// The next round begins at once.
    Again,
    Failed(EtcdError),
    Unusable(String),
    /// Nobody needs the view any more.
    Over,
}

struct ClusterWatcher {
    client: EtcdClient,
    cluster: ClusterName,
    watched: Weak<WatchedCluster>,
    /// What the view has.
    known: Option<Stamp>,
    say: Say,
    /// What was said of the present trouble.
    is_troubled: bool,
}

impl WatchedCluster {
    /// Starts the thread, which ends when the view is dropped.
    ///
    /// # Errors
    /// No usable member of etcd.
    pub(crate) fn start(config: &EtcdConfig, say: Say) -> Result<Arc<Self>, Reason> {
        let client = EtcdClient::new(config)?;
        let endpoint = client.member().to_string();
        let watched = Arc::new(Self {
            start: Instant::now(),
            view: Mutex::default(),
            is_listed: AtomicBool::new(false),
            lists: AtomicU64::new(0),
            unusable: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            confirmed: AtomicU64::new(0),
            shown: Mutex::new(WatchedFrom { endpoint, error: None }),
        });
        let mut watcher = ClusterWatcher {
            client,
            cluster: config.cluster.clone(),
            watched: Arc::downgrade(&watched),
            known: None,
            say,
            is_troubled: false,
        };
        std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watcher.run())
            .map_err(|error| Reason::from(format!("cannot start a thread: {error}")))?;
        Ok(watched)
    }

    /// The present moment of the view's clock.
    pub(crate) fn now(&self) -> Moment {
        Moment(nanos(self.start.elapsed()))
    }

    pub(crate) fn view(&self) -> MutexGuard<'_, ClusterView> {
        locked(&self.view)
    }

    /// Whether the records were listed once.
    pub(crate) fn is_listed(&self) -> bool {
        self.is_listed.load(Ordering::Acquire)
    }

    /// Time since the last answer of etcd; `None` before the first.
    pub(crate) fn age(&self) -> Option<Duration> {
        let heard = self.heard.load(Ordering::Acquire);
        (heard > 0).then(|| self.now().since(Moment(heard)))
    }

    pub(crate) fn lists(&self) -> u64 {
        self.lists.load(Ordering::Relaxed)
    }

    pub(crate) fn unusable(&self) -> u64 {
        self.unusable.load(Ordering::Relaxed)
    }

    pub(crate) fn watched_from(&self) -> WatchedFrom {
        locked(&self.shown).clone()
    }

    fn hear(&self) {
        self.heard.store(self.now().0.max(1), Ordering::Release);
    }

    /// The records of all nodes are there, as far as can be known.
    fn confirm(&self) {
        let now = self.now();
        let before = self.confirmed.load(Ordering::Relaxed);
        if before == 0 || now.since(Moment(before)) >= CONFIRMED_EVERY {
            self.confirmed.store(now.0.max(1), Ordering::Relaxed);
            let mut view = self.view();
            view.prolong(now + PROLONGED);
            view.forget_bookings(now);
        }
    }

    /// The change of a record; counts those that cannot be used.
    fn usable(&self, key: &str, value: Option<&[u8]>) -> Option<ClusterChange> {
        let change = ClusterChange::from_record(key, value);
        if change.is_err() {
            self.unusable.fetch_add(1, Ordering::Relaxed);
        }
        change.ok()
    }
}

impl ClusterWatcher {
    fn run(&mut self) {
        loop {
            let end = self.round();
            let Some(watched) = self.watched.upgrade() else { return };
            let (error, pause) = match end {
                RoundEnd::Over => return,
                RoundEnd::Again => continue,
                RoundEnd::Failed(error) => (format!("etcd cannot be used: {error}"), PAUSE),
                RoundEnd::Unusable(why) => (why, PAUSE_UNUSABLE),
            };
            let endpoint = self.client.member().to_string();
            *locked(&watched.shown) = WatchedFrom { endpoint, error: Some(error.clone()) };
            watched.confirm();
            if !self.is_troubled {
                self.is_troubled = true;
                (self.say)(&error);
            }
            drop(watched);
            std::thread::sleep(pause);
        }
    }

    /// From the question whether the view is still that of this etcd to the end of its watch.
    fn round(&mut self) -> RoundEnd {
        match self.try_round() {
            Ok(end) => end,
            Err(error) => RoundEnd::Failed(error),
        }
    }

    fn try_round(&mut self) -> Result<RoundEnd, EtcdError> {
        let key = format!("{}{FORMAT_KEY}", self.client.prefix());
        let (format, stamp) = self.client.get(&key)?;
        // A cluster without any node has no such record.
        if let Some(value) = format
            && let Err(why) = check_format(&value, &self.cluster)
        {
            return Ok(RoundEnd::Unusable(why));
        }
        let Some(watched) = self.watched.upgrade() else { return Ok(RoundEnd::Over) };
        let silence = watched.age().unwrap_or_default();
        drop(watched);
        let known = match self.known {
            Some(known) if continues(known, stamp, silence) => known,
            _ => self.list()?,
        };
        let Some(watched) = self.watched.upgrade() else { return Ok(RoundEnd::Over) };
        watched.hear();
        // Otherwise the watch brings what is missing first.
        if known.revision >= stamp.revision {
            watched.confirm();
        }
        *locked(&watched.shown) =
            WatchedFrom { endpoint: self.client.member().to_string(), error: None };
        drop(watched);
        if std::mem::take(&mut self.is_troubled) {
            (self.say)("etcd can be used again");
        }
        let mut watch = match self.client.watch(known.revision + 1) {
            Ok(watch) => watch,
            Err(_) => return Ok(self.at_another_member()),
        };
        loop {
            let news = watch.next();
            let Some(watched) = self.watched.upgrade() else { return Ok(RoundEnd::Over) };
            match news {
                Ok(WatchNews::Changes { changes, stamp }) => {
                    if stamp.etcd != known.etcd {
                        return Ok(RoundEnd::Again);
                    }
                    watched.hear();
                    if !self.apply(&watched, changes) {
                        return Ok(RoundEnd::Again);
                    }
                    watched.confirm();
                }
                Ok(WatchNews::Compacted) => {
                    self.known = None;
                    return Ok(RoundEnd::Again);
                }
                Err(EtcdError::Silent(_)) => return Ok(RoundEnd::Again),
                Err(_) => return Ok(self.at_another_member()),
            }
        }
    }

    /// The next round asks another member. Whether etcd as a whole answers is seen there.
    fn at_another_member(&mut self) -> RoundEnd {
        self.client.leave_member();
        std::thread::sleep(PAUSE_BETWEEN_MEMBERS);
        RoundEnd::Again
    }

    fn list(&mut self) -> Result<Stamp, EtcdError> {
        let list = self.client.list()?;
        self.known = Some(list.stamp);
        let Some(watched) = self.watched.upgrade() else { return Ok(list.stamp) };
        let prefix = self.client.prefix().to_owned();
        let changes: Vec<ClusterChange> = list
            .records
            .iter()
            .filter_map(|record| {
                let key = below(&record.key, &prefix);
                if key == FORMAT_KEY {
                    return None;
                }
                watched.usable(&key, Some(&record.value))
            })
            .collect();
        watched.view().relist(list.stamp.revision, changes, watched.now());
        watched.lists.fetch_add(1, Ordering::Relaxed);
        watched.is_listed.store(true, Ordering::Release);
        Ok(list.stamp)
    }

    /// Changes the view; false where the form of the records has changed.
    fn apply(&mut self, watched: &WatchedCluster, changes: Vec<RecordChange>) -> bool {
        let mut is_known = true;
        for RecordChange { key, value, revision } in changes {
            if let Some(known) = &mut self.known {
                known.revision = known.revision.max(revision);
            }
            let key = below(&key, self.client.prefix());
            if key == FORMAT_KEY {
                is_known = false;
            } else if let Some(change) = watched.usable(&key, value.as_deref()) {
                watched.view().apply(ClusterEvent { revision, change }, watched.now());
            }
        }
        is_known
    }
}

/// Whether the history of an etcd that is `now` there goes on from what is known, when nothing was
/// heard of it for `silence`.
fn continues(known: Stamp, now: Stamp, silence: Duration) -> bool {
    known.etcd == now.etcd && known.revision <= now.revision && silence < LONG_SILENCE
}

/// The key below the cluster's prefix. Keys that are no text become unusable ones.
fn below(key: &[u8], prefix: &str) -> String {
    let key = String::from_utf8_lossy(key);
    key.strip_prefix(prefix).unwrap_or_default().to_owned()
}

/// Time between rounds while no member answers.
const PAUSE: Duration = Duration::from_millis(300);
/// Time between rounds while the records are of another format.
const PAUSE_UNUSABLE: Duration = Duration::from_secs(2);
/// Time before another member is asked for a watch.
const PAUSE_BETWEEN_MEMBERS: Duration = Duration::from_millis(20);
/// Time without an answer in which an etcd can be stopped, restored and written to again. A member
/// that is silent is left sooner.
const LONG_SILENCE: Duration = Duration::from_secs(10);
/// Time between two times at which the nodes of a view are prolonged.
const CONFIRMED_EVERY: Duration = Duration::from_millis(250);
/// Time for which nodes count as alive without news: longer than a round that fails.
const PROLONGED: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
