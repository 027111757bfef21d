//! Placement: one director of a cluster plans which nodes have copies of which titles of record.
//!
//! ```text
//!   titles of record ──a minute──┐
//!                                ▼
//!   WatchedCluster ─────▶ PlacementPlanner ──what differs──▶ etcd: orders/NODE, titles/TITLE,
//!                                ▲                                 contents/TITLE, unlisted
//!   etcd: planner ──lease────────┘   held by one director; another takes it when that has ended
//! ```
//!
//! Orders are written on the condition that the lease is still that of the key `planner`: a
//! director that was stopped for long writes nothing over the orders of another. They say where a
//! node should come to, so that those of an old planner do no harm until the next one looks.
//!
//! A planner that cannot list the bucket for a minute leaves planning to another director, says so
//! in `unable/DIRECTOR`, and plans again only after it could list the bucket.
//!
//! Each of these directors, also one that waits, tells in `unmet/DIRECTOR` whom it has refused:
//! `DIRECTOR` is a number by chance for each process.

use crate::etcd::{
    Condition, EtcdClient, EtcdConfig, EtcdError, FormatFailure, LeaseAge, LeaseKeeper,
    RecordWrite, hold_format,
};
use crate::unmet::UnmetDemand;
use crate::watching::{Say, WatchedCluster};
use cluster::placement::{self, CopyRules, PlacementPlanner};
use cluster::{
    ClusterChange, ClusterEvent, ContentTag, CopyVersion, DirectorSettings, NodeId, NodeOrders,
    TitleName, TitleSize, UnableDirector,
};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::{Reason, locked};

type TitleList = Box<dyn FnMut() -> TitleListResult + Send>;
type TitleListResult = Result<ListedTitles, String>;

/// The titles of record: all of them, because a list that ends early is a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedTitles {
    /// Titles that nodes can be filled with.
    pub titles: BTreeMap<TitleName, TitleSize>,
    /// Contents of these titles, as far as they are known: a title whose content has changed was
    /// replaced.
    pub contents: BTreeMap<TitleName, ContentTag>,
    /// Titles that are damaged in the bucket, and go to no node.
    pub damaged: BTreeSet<TitleName>,
}

impl From<BTreeMap<TitleName, TitleSize>> for ListedTitles {
    fn from(titles: BTreeMap<TitleName, TitleSize>) -> Self {
        Self { titles, ..Self::default() }
    }
}

/// What a director needs to plan placement.
pub struct PlanningConfig {
    /// How many copies a title has.
    pub rules: CopyRules,
    /// The titles of record, by name. Called about once a minute, for as long as it takes; what it
    /// says replaces what it said before, and a failure changes nothing.
    pub titles: TitleList,
}

impl PlanningDirector {
    /// A director that listens there, with an identity of its own. One that listens at all
    /// addresses of its machine is shown with the machine's name.
    pub(crate) fn new(
        listen: SocketAddr,
        unmet: Arc<UnmetDemand>,
        settings: DirectorSettings,
    ) -> Result<Self, Reason> {
        let mut id = [0; 16];
        let filled = SystemRandom::new().fill(&mut id);
        filled.map_err(|_| Reason::from("the machine has no random numbers"))?;
        let id = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let address = shown_address(listen, host.trim());
        Ok(Self { id, address, unmet, patience: UNABLE_AFTER, settings })
    }
}

/// Where a director listens, for people who look from elsewhere.
fn shown_address(listen: SocketAddr, host: &str) -> String {
    match listen.ip().is_unspecified() && !host.is_empty() {
        true => format!("{host}:{}", listen.port()),
        false => listen.to_string(),
    }
}

impl fmt::Debug for PlanningConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanningConfig").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// The director that plans, or would.
pub(crate) struct PlanningDirector {
    /// An identity among all directors of the cluster, also among those that listen at the same
    /// address of different machines: the key of the director's records.
    pub(crate) id: String,
    /// What is shown of it: where it listens.
    pub(crate) address: String,
    /// The viewers whom it has refused.
    pub(crate) unmet: Arc<UnmetDemand>,
    /// Time for which it cannot list the bucket before it leaves planning to others.
    pub(crate) patience: Duration,
    /// How it sends viewers to nodes.
    pub(crate) settings: DirectorSettings,
}

/// The thread of a director that plans placement, or waits until it is its turn.
pub(crate) struct Planning {
    shared: Arc<PlanningState>,
    /// Dropped to end the thread.
    running: Option<Sender<()>>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

/// How planning goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShownPlanning {
    /// Whether this director plans.
    pub(crate) is_planner: bool,
    /// Whether the last list of the titles of record failed.
    pub(crate) is_not_listed: bool,
    /// Titles of record.
    pub(crate) titles: usize,
    /// Copies that are still to be written.
    pub(crate) fills: u64,
    /// Titles of record that are damaged.
    pub(crate) damaged: usize,
    /// Copies that are still to be removed.
    pub(crate) evictions: u64,
    /// Titles that nodes have and the bucket lacks.
    pub(crate) unlisted: u32,
    /// Copies of content that the bucket has replaced.
    pub(crate) outdated: u64,
    /// Copies of content that the bucket never had under their name.
    pub(crate) own: u64,
    /// Why the last pass failed.
    pub(crate) error: Option<String>,
}

#[derive(Default)]
struct PlanningState {
    writes: AtomicU64,
    shown: Mutex<ShownPlanning>,
}

struct PlanningThread {
    client: EtcdClient,
    etcd: EtcdConfig,
    director: PlanningDirector,
    /// What the record of refused viewers says, and when it was written.
    unmet: Option<(BTreeMap<TitleName, u32>, Instant)>,
    watched: Arc<WatchedCluster>,
    rules: CopyRules,
    /// To the thread that lists titles, which may take longer than a lease.
    titles_asked: Sender<()>,
    titles_listed: Receiver<TitleListResult>,
    lease: LeaseKeeper,
    is_planner: bool,
    planner: PlacementPlanner,
    /// `None`: they were never listed.
    titles: Option<ListedTitles>,
    /// When the titles are to be listed again.
    list_at: Option<Instant>,
    /// Why the last list failed.
    not_listed: Option<String>,
    /// Since when lists have failed.
    failing_since: Option<Instant>,
    /// Whether planning is left to others, until a list does not fail.
    has_given_up: bool,
    /// What the record of this director's trouble says.
    told_unable: Option<UnableDirector>,
    planned: Option<Instant>,
    shared: Arc<PlanningState>,
    say: Say,
    is_troubled: bool,
}

impl Planning {
    /// Starts the thread.
    pub(crate) fn start(
        etcd: &EtcdConfig,
        director: PlanningDirector,
        watched: Arc<WatchedCluster>,
        config: PlanningConfig,
        say: Say,
    ) -> Result<Self, Reason> {
        let shared = Arc::new(PlanningState::default());
        let (titles_asked, titles_listed) = start_listing(config.titles)?;
        let mut thread = PlanningThread {
            client: EtcdClient::new(etcd)?,
            etcd: etcd.clone(),
            director,
            unmet: None,
            watched,
            lease: LeaseKeeper::new(LEASE),
            is_planner: false,
            planner: PlacementPlanner::new(config.rules),
            titles: None,
            rules: config.rules,
            titles_asked,
            titles_listed,
            list_at: None,
            not_listed: None,
            failing_since: None,
            has_given_up: false,
            told_unable: None,
            planned: None,
            shared: Arc::clone(&shared),
            say,
            is_troubled: false,
        };
        let (running, stop) = bounded::<()>(0);
        let (ending, ended) = bounded(0);
        let run = move || {
            // Dropped at the end, however the thread ends.
            let _ending: Sender<()> = ending;
            while stop.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                thread.pass();
            }
            thread.lease.leave(&mut thread.client);
        };
        std::thread::Builder::new()
            .name("placement".to_owned())
            .spawn(run)
            .map_err(|error| Reason::from(format!("cannot start a thread: {error}")))?;
        Ok(Self { shared, running: Some(running), ended })
    }

    /// How planning goes.
    pub(crate) fn shown(&self) -> ShownPlanning {
        locked(&self.shared.shown).clone()
    }

    /// Transactions that changed records.
    pub(crate) fn writes(&self) -> u64 {
        self.shared.writes.load(Ordering::Relaxed)
    }
}

impl Drop for Planning {
    fn drop(&mut self) {
        self.running = None;
        // Where etcd does not answer, the lease ends by itself.
        let _ = self.ended.recv_timeout(TO_LEAVE);
    }
}

impl PlanningThread {
    fn pass(&mut self) {
        let result = self.try_pass();
        let error = match result {
            Ok(error) => error,
            Err(FormatFailure::Etcd(error)) => Some(format!("etcd cannot be used: {error}")),
            Err(FormatFailure::Unusable(why)) => Some(why),
        };
        if self.lease.held().is_none_or(|lease| Instant::now() >= lease.until) {
            self.is_planner = false;
        }
        match &error {
            Some(error) if !self.is_troubled => (self.say)(&format!("placement: {error}")),
            None if self.is_troubled && self.is_planner => (self.say)("placement goes on"),
            None if self.is_troubled => (self.say)("this director can plan placement again"),
            _ => {}
        }
        self.is_troubled = error.is_some();
        let mut shown = locked(&self.shared.shown);
        let listed = |of: fn(&ListedTitles) -> usize| self.titles.as_ref().map_or(0, of);
        shown.titles = listed(|listed| listed.titles.len());
        shown.damaged = listed(|listed| listed.damaged.len());
        (shown.is_planner, shown.error) = (self.is_planner, error);
        shown.is_not_listed = self.not_listed.is_some();
        if !self.is_planner {
            (shown.fills, shown.evictions, shown.unlisted) = (0, 0, 0);
            (shown.outdated, shown.own) = (0, 0);
        }
    }

    /// One pass; what does not keep the planner from planning, but should be known.
    fn try_pass(&mut self) -> Result<Option<String>, FormatFailure> {
        let (lease, age) = self.lease.hold(&mut self.client)?;
        if age == LeaseAge::New {
            self.is_planner = false;
            (self.unmet, self.told_unable) = (None, None);
        }
        self.tell_unmet(lease.id)?;
        let is_unable = self.failing_since.is_some_and(|at| at.elapsed() >= self.director.patience);
        if self.is_planner && is_unable {
            self.give_up(lease.id)?;
        }
        if !self.is_planner && !self.has_given_up {
            self.take_over(lease.id)?;
        }
        // Also one that has lost its lease meanwhile tells when it could list them again.
        if self.is_planner || self.not_listed.is_some() {
            self.list_titles();
        }
        self.tell_unable(lease.id)?;
        if !self.is_planner {
            return Ok(self.not_listed.clone());
        }
        let is_due = self.planned.is_none_or(|at| at.elapsed() >= PLAN_EVERY);
        if self.titles.is_some() && self.watched.is_listed() && is_due {
            self.plan(lease.id)?;
            self.planned = Some(Instant::now());
        }
        Ok(self.not_listed.clone())
    }

    /// Has the titles of record listed when it is time, and takes the last list.
    fn list_titles(&mut self) {
        if self.list_at.is_none_or(|at| Instant::now() >= at) {
            // One that takes longer than this time is not asked for twice at once.
            self.list_at = Some(Instant::now() + LIST_EVERY);
            let _ = self.titles_asked.try_send(());
        }
        if let Ok(listed) = self.titles_listed.try_recv() {
            let pause = if listed.is_ok() { LIST_EVERY } else { LIST_AGAIN };
            self.list_at = Some(Instant::now() + pause);
            self.not_listed = match listed {
                Ok(titles) => {
                    self.titles = Some(titles);
                    (self.failing_since, self.has_given_up) = (None, false);
                    None
                }
                Err(why) => {
                    self.failing_since.get_or_insert_with(Instant::now);
                    Some(format!("the titles of record are not known: {why}"))
                }
            };
        }
    }

    /// Lets another director plan. What only the planner knows goes.
    fn give_up(&mut self, lease: u64) -> Result<(), EtcdError> {
        let key = self.planner_key();
        let changes = [ClusterChange::Planner(None), ClusterChange::Unlisted(None)];
        let prefix = self.client.prefix().to_owned();
        let writes = changes.map(|change| RecordWrite::of(&change, &prefix, None));
        if self.client.transact(&[Condition::HeldBy(&key, lease)], &writes)? {
            self.shared.writes.fetch_add(1, Ordering::Relaxed);
        }
        (self.is_planner, self.has_given_up) = (false, true);
        (self.say)("this director leaves the placement of titles to others until it can list them");
        Ok(())
    }

    /// Tells in etcd that this director has given up, or has no more.
    fn tell_unable(&mut self, lease: u64) -> Result<(), FormatFailure> {
        let why = self.not_listed.as_deref().filter(|_| self.has_given_up);
        let unable = why.map(|why| {
            // A character has four bytes at most.
            let why = why.chars().take(UnableDirector::LONGEST_WHY / 4).collect();
            UnableDirector { address: self.director.address.clone(), why }
        });
        if unable == self.told_unable {
            return Ok(());
        }
        hold_format(&mut self.client, &self.etcd.cluster)?;
        let change = ClusterChange::Unable(self.director.id.clone(), unable.clone());
        let write = RecordWrite::of(&change, self.client.prefix(), Some(lease));
        self.client.transact(&[], &[write])?;
        self.shared.writes.fetch_add(1, Ordering::Relaxed);
        self.told_unable = unable;
        Ok(())
    }

    /// Writes whom this director has refused, for whichever director plans: when it has changed,
    /// and not more often than placement can follow.
    fn tell_unmet(&mut self, lease: u64) -> Result<(), FormatFailure> {
        let viewers = self.director.unmet.viewers(Instant::now());
        let is_told = match &self.unmet {
            None => viewers.is_empty(),
            Some((told, at)) => *told == viewers || at.elapsed() < UNMET_EVERY,
        };
        if is_told {
            return Ok(());
        }
        hold_format(&mut self.client, &self.etcd.cluster)?;
        let change = ClusterChange::Unmet(self.director.id.clone(), viewers.clone());
        let write = RecordWrite::of(&change, self.client.prefix(), Some(lease));
        self.client.transact(&[], &[write])?;
        self.shared.writes.fetch_add(1, Ordering::Relaxed);
        self.unmet = Some((viewers, Instant::now()));
        Ok(())
    }

    /// Becomes the planner if there is none.
    fn take_over(&mut self, lease: u64) -> Result<bool, FormatFailure> {
        hold_format(&mut self.client, &self.etcd.cluster)?;
        let key = self.planner_key();
        let change = ClusterChange::Planner(Some(self.director.address.clone()));
        let put = [RecordWrite::of(&change, self.client.prefix(), Some(lease))];
        // An answer that was lost may have been that of our own transaction.
        self.is_planner = self.client.transact(&[Condition::Absent(&key)], &put)?
            || self.client.transact(&[Condition::HeldBy(&key, lease)], &put)?;
        if self.is_planner {
            self.shared.writes.fetch_add(1, Ordering::Relaxed);
            // What was remembered of the time before is old.
            self.planner = PlacementPlanner::new(self.rules);
            (self.list_at, self.planned) = (None, None);
            self.failing_since = None;
            (self.say)("this director plans the placement of titles");
        }
        Ok(self.is_planner)
    }

    fn plan(&mut self, lease: u64) -> Result<(), EtcdError> {
        // Viewers wait for the view while it is copied, and not while it is planned.
        let Some(ListedTitles { titles, contents, damaged }) = &self.titles else {
            return Ok(());
        };
        let mut view = self.watched.view().clone();
        let known: BTreeMap<NodeId, NodeOrders> =
            view.nodes().map(|(_, node)| (node.id().clone(), node.orders().clone())).collect();
        let size_of =
            |name: &TitleName| view.title_named(name).and_then(|number| view.title(number).size());
        let unknown = titles.iter().filter(|(name, _)| size_of(name).is_none());
        let mut changes: Vec<ClusterChange> =
            unknown.map(|(name, size)| ClusterChange::Title(name.clone(), Some(*size))).collect();
        let is_listed = |name: &TitleName| titles.contains_key(name) || damaged.contains(name);
        let replaced = placement::content_changes(&view, contents, is_listed);
        for change in &replaced {
            let event = ClusterEvent { revision: view.revision(), change: change.clone() };
            view.apply(event, self.watched.now());
        }
        changes.extend(replaced);
        let versions = || {
            let all = view.titles().flat_map(|(number, _)| view.different_copies(number));
            all.map(|(_, version)| version)
        };
        let of = |wanted| versions().filter(|version| *version == wanted).count() as u64;
        let (outdated, own) = (of(CopyVersion::Outdated), of(CopyVersion::Own));
        let unlisted = placement::unlisted_titles(&view, is_listed);
        let count = unlisted.count;
        if view.unlisted() != Some(&unlisted) {
            changes.push(ClusterChange::Unlisted(Some(unlisted)));
        }
        let remain =
            placement::remaining_viewers(&view, &self.director.settings, self.watched.now());
        let mut orders = self.planner.plan(view, titles, self.watched.now());
        for (node, remain) in remain {
            orders.entry(node).or_default().remain = remain;
        }
        {
            let mut shown = locked(&self.shared.shown);
            let fills = |orders: &NodeOrders| orders.fill.len() as u64 + u64::from(orders.later);
            shown.fills = orders.values().map(fills).sum();
            (shown.unlisted, shown.outdated, shown.own) = (count, outdated, own);
            shown.evictions = orders.values().map(|orders| orders.evict.len() as u64).sum();
        }
        for (node, known) in known {
            let wanted = orders.remove(&node).unwrap_or_default();
            if wanted != known {
                changes.push(ClusterChange::Orders(node, wanted));
            }
        }
        for batch in changes.chunks(MOST_OF_A_TRANSACTION) {
            // What only the planner knows goes with it; orders stay until the next one plans.
            let write = |change: &ClusterChange| {
                let of_planner = matches!(change, ClusterChange::Unlisted(_)).then_some(lease);
                RecordWrite::of(change, self.client.prefix(), of_planner)
            };
            let writes: Vec<RecordWrite> = batch.iter().map(write).collect();
            let key = self.planner_key();
            if !self.client.transact(&[Condition::HeldBy(&key, lease)], &writes)? {
                self.is_planner = false;
                self.lease.forget();
                return Ok(());
            }
            self.shared.writes.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn planner_key(&self) -> String {
        format!("{}{}", self.client.prefix(), ClusterChange::Planner(None).to_record().0)
    }
}

/// Starts a thread that lists the titles of record as often as it is asked to.
fn start_listing(mut titles: TitleList) -> Result<(Sender<()>, Receiver<TitleListResult>), Reason> {
    let (ask, asked) = bounded(1);
    let (answer, listed) = bounded(1);
    let run = move || {
        while asked.recv().is_ok() && answer.send(titles()).is_ok() {}
    };
    std::thread::Builder::new()
        .name("titles".to_owned())
        .spawn(run)
        .map_err(|error| Reason::from(format!("cannot start a thread: {error}")))?;
    Ok((ask, listed))
}

/// Time for which nobody plans after a planner was lost.
const LEASE: Duration = Duration::from_secs(10);
/// Time between passes.
const PAUSE: Duration = Duration::from_millis(500);
/// Time between plans.
const PLAN_EVERY: Duration = Duration::from_secs(3);
/// Time between records of refused viewers.
const UNMET_EVERY: Duration = Duration::from_secs(30);
/// Time between lists of the titles of record.
const LIST_EVERY: Duration = Duration::from_secs(60);
/// Time to the next list after one that failed.
const LIST_AGAIN: Duration = Duration::from_secs(5);
/// Time for which the titles cannot be listed before another director plans.
const UNABLE_AFTER: Duration = Duration::from_secs(60);
/// Time for giving the lease back, at most.
const TO_LEAVE: Duration = Duration::from_secs(2);
/// Records of one transaction: etcd takes 128 unless configured otherwise.
const MOST_OF_A_TRANSACTION: usize = 100;

#[cfg(test)]
mod tests;
