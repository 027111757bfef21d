//! What a node of a cluster shows of itself in etcd: what is free, and which titles are here.
//!
//! ```text
//!   snapshot of the engine ──▶ digest: free of the rate that each disk holds, network, memory
//!   catalogues of the stores ──▶ copies, rates and sizes of titles; what is being filled
//!   sessions ──▶ viewers of each title
//! ```
//!
//! The rates rank the node among others. Whether a viewer fits is decided by the engine.

use crate::ServerConfig;
use crate::config::ClusterConfig;
use crate::library::OpenStore;
use crate::membership::Membership;
use crate::plan::{self, PlanDisk, PlannedAudience, Question};
use crate::shared::Shared;
use crate::wire;
use cluster::{CapacityShare, ContentTag, CopyRecord, NodeDigest, NodeDisk, TitleName, TitleSize};
use director::member::{MemberMessage, MemberRecords};
use disk::DiskModel;
use scheduler::PolicyKind;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use units::{BitRate, ByteCount, Reason};

/// Makes a server that runs a member of its cluster.
pub(crate) fn join(
    membership: &Membership,
    config: &ServerConfig,
    shared: &Arc<Shared>,
) -> Result<(), Reason> {
    let Some(cluster) = config.cluster.clone() else { return Ok(()) };
    // The threads of the server own its state; the member looks at it while it is there.
    let (seen, told) = (Arc::downgrade(shared), Arc::downgrade(shared));
    let of_secret = Arc::downgrade(shared);
    membership.secret().tell_changes(move |text| {
        if let Some(shared) = of_secret.upgrade() {
            shared.notice(format!("cluster secret: {text}"));
        }
    });
    let disks = shared.content.stores.len();
    let mut records = NodeRecords::new(cluster, membership.has_source(), config, disks);
    membership.start(move || records.now(&seen), move |message| tell(&told, &message))
}

/// Tells a change of the membership in the log, to the webhook, and to people.
fn tell(shared: &Weak<Shared>, message: &MemberMessage) {
    let Some(shared) = shared.upgrade() else { return };
    let event = match message {
        MemberMessage::Registered { .. } => "cluster-registered",
        MemberMessage::ClocksDiffer { .. } => "cluster-clocks-differ",
        _ => "cluster-not-registered",
    };
    shared.tell(event, || json!({ "detail": message.to_string() }));
    shared.notice(format!("cluster: {message}"));
}

/// What the server shows of itself.
struct NodeRecords {
    cluster: ClusterConfig,
    /// Whether it can write copies: it has a bucket.
    takes_copies: bool,
    policy: PolicyKind,
    slot: Duration,
    startup: Duration,
    network: Option<BitRate>,
    /// The disk as which all stores are read, if they are slowed down.
    as_disk: Option<DiskModel>,
    /// The rate that each disk is guaranteed to hold, and the calibrated reads by which it was
    /// computed.
    guaranteed: Vec<Option<(u32, u64)>>,
    catalogue: NodeCatalogue,
}

/// The titles of all stores, as they were when the catalogues last changed.
#[derive(Default)]
struct NodeCatalogue {
    /// The changes of each store until then; empty before the first look.
    changes: Vec<u64>,
    copies: BTreeMap<TitleName, Vec<CopyRecord>>,
    titles: BTreeMap<TitleName, TitleSize>,
    /// Mean rate of the titles.
    rate: BitRate,
}

impl NodeRecords {
    fn new(
        cluster: ClusterConfig,
        takes_copies: bool,
        config: &ServerConfig,
        disks: usize,
    ) -> Self {
        let ServerConfig { policy, slot, startup, network, .. } = *config;
        let guaranteed = vec![None; disks];
        let (startup, as_disk) = (startup.max(slot * 2), config.as_disk.clone());
        let catalogue = NodeCatalogue::default();
        Self {
            cluster,
            takes_copies,
            policy,
            slot,
            startup,
            network,
            as_disk,
            guaranteed,
            catalogue,
        }
    }

    /// The records at this moment; of a server that ends, that nothing is free.
    fn now(&mut self, shared: &Weak<Shared>) -> MemberRecords {
        let ClusterConfig { address, rack, .. } = &self.cluster;
        let disks = u32::try_from(self.guaranteed.len()).unwrap_or(u32::MAX);
        let mut digest = NodeDigest {
            address: address.clone(),
            rack: rack.clone(),
            weight: if self.takes_copies { disks } else { 0 },
            lease: 0,
            disks: vec![CapacityShare::default(); self.guaranteed.len()],
            network: CapacityShare::default(),
            memory: CapacityShare::default(),
            space: Vec::new(),
        };
        let (mut viewers, mut filling) = (BTreeMap::new(), Vec::new());
        let running = shared.upgrade();
        let running = running.filter(|it| !it.stopping.load(Ordering::Relaxed));
        if let Some(shared) = running {
            let snapshot = shared.snapshot();
            let engine = &snapshot.engine;
            let stores = &shared.content.stores;
            self.catalogue.update(stores);
            // A plan takes up to seconds, and the lease waits for it: one at a time.
            let mut may_plan = true;
            for (number, (opened, disk)) in stores.iter().zip(&engine.disks).enumerate() {
                let booked = disk.booked_rate.0;
                if !(disk.lost || disk.draining) {
                    let guaranteed =
                        self.guaranteed_rate(number, opened, disk.min_read, &mut may_plan);
                    digest.disks[number] = share(guaranteed, booked);
                }
            }
            let network = self.network.map_or(UNLIMITED, |rate| rate.0);
            digest.network = share(network, engine.sent_rate.0);
            digest.memory = share(engine.buffers_limit, engine.buffers_used);
            let takes_copies =
                |number: usize| engine.disks.get(number).is_none_or(|disk| !disk.draining);
            let spaces = stores.iter().enumerate();
            digest.space =
                spaces.map(|(number, opened)| space(opened, takes_copies(number))).collect();
            viewers = viewers_of(&snapshot.playing);
            filling = shared.membership.as_ref().map_or(filling, |it| it.copies().filling());
        }
        let NodeCatalogue { copies, titles, .. } = &self.catalogue;
        let mut copies = copies.clone();
        for (title, disk) in filling {
            let Ok(name) = TitleName::new(title) else { continue };
            let disks = copies.entry(name).or_default();
            // One that is ready meanwhile is in the catalogue.
            if disks.iter().all(|copy| copy.disk.0 != disk) {
                disks.push(CopyRecord::filling(NodeDisk(disk)));
            }
        }
        MemberRecords { digest, copies, titles: titles.clone(), viewers }
    }

    /// The rate of streams like the stored ones that admission guarantees for a disk, planned as
    /// `tenuto plan` does, and again when the disk's guarantee has changed.
    fn guaranteed_rate(
        &mut self,
        number: usize,
        opened: &OpenStore,
        min_read: u32,
        may_plan: &mut bool,
    ) -> u64 {
        if let Some((known, rate)) = self.guaranteed[number]
            && known == min_read
        {
            return rate;
        }
        let by_reads = u64::from(min_read) * opened.read_size.0 * 8 * 1_000
            / u64::try_from(self.slot.as_millis()).unwrap_or(u64::MAX).max(1);
        if !std::mem::take(may_plan) {
            return by_reads.min(UNLIMITED);
        }
        let typical = self.catalogue.rate;
        let calibrated = || opened.store.calibration().map(PlanDisk::measured);
        let modelled = self.as_disk.clone().map(PlanDisk::Model);
        let planned = modelled.or_else(calibrated).and_then(|disk| {
            let audience = PlannedAudience::Rate(typical);
            if plan::most_streams(&disk, &audience) > plan::MOST_STREAMS_WHILE_SERVING {
                return None;
            }
            let question = Question {
                audience,
                memory: None,
                disks: 1,
                startup: self.startup,
                read: Some(opened.read_size),
                popularity: None,
                policies: vec![self.policy],
            };
            let (_, held) = plan::plan(&disk, question, &mut plan::in_turn).held()?;
            Some(held.streams * typical.0)
        });
        let rate = planned.unwrap_or(0).max(by_reads).min(UNLIMITED);
        self.guaranteed[number] = Some((min_read, rate));
        rate
    }
}

impl NodeCatalogue {
    /// Looks at the catalogues again if one has changed.
    fn update(&mut self, stores: &[OpenStore]) {
        let changes: Vec<u64> = stores.iter().map(|opened| opened.store.changes()).collect();
        if changes == self.changes {
            return;
        }
        *self = Self { changes, ..Self::default() };
        let (mut bytes, mut time) = (ByteCount(0), Duration::ZERO);
        for (number, opened) in (0_u16..).zip(stores) {
            for record in opened.store.titles().iter().filter(|it| !it.duration.is_zero()) {
                bytes.0 += record.bytes;
                time += record.duration;
                // A name with a slash cannot be a key.
                let Ok(name) = TitleName::new(record.name.clone()) else { continue };
                let content = ContentTag::of(&record.content().to_string());
                let place = CopyRecord::ready(NodeDisk(number), Some(content));
                self.copies.entry(name.clone()).or_default().push(place);
                self.titles.entry(name).or_insert_with(|| TitleSize {
                    rate: BitRate::of(ByteCount(record.bytes), record.duration),
                    size: ByteCount(record.bytes + record.index_bytes),
                });
            }
        }
        self.rate = BitRate::of(bytes, time).clamp(*plan::RATES.start(), *plan::RATES.end());
    }
}

/// The bytes of a store for titles, and those that are free.
fn space(opened: &OpenStore, takes_copies: bool) -> CapacityShare {
    let info = opened.store.info();
    // The ends of tracks, and other uses of the store.
    let spare = info.data_chunks / 64;
    let bytes =
        |chunks: u64| chunks.saturating_sub(spare).saturating_mul(info.chunk.0).min(MOST_SPACE);
    let free = if takes_copies { bytes(info.free_chunks) } else { 0 };
    CapacityShare { guaranteed: bytes(info.data_chunks), free }
}

/// The viewers of each title, of the most popular ones. A node that copies a title is none.
fn viewers_of(playing: &[wire::TitleSessions]) -> BTreeMap<TitleName, u32> {
    let mut playing: Vec<_> = playing.iter().filter(|title| title.viewers > 0).collect();
    playing.sort_unstable_by_key(|title| std::cmp::Reverse(title.viewers));
    let named = playing.into_iter().take(MOST_VIEWED).filter_map(|title| {
        let viewers = u32::try_from(title.viewers).unwrap_or(u32::MAX);
        Some((TitleName::new(title.title.clone()).ok()?, viewers))
    });
    named.collect()
}

/// A resource of which `used` is reserved.
fn share(guaranteed: u64, used: u64) -> CapacityShare {
    CapacityShare { guaranteed, free: guaranteed.saturating_sub(used) }
}

/// A rate that is never the limit, and whose sums do not overflow.
const UNLIMITED: u64 = 1 << 50;
/// Bytes of a disk that a record can say.
const MOST_SPACE: u64 = 1 << 50;
/// Titles whose viewers a record says, at most: it must fit into a request to etcd.
const MOST_VIEWED: usize = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_are_no_viewers_of_a_title() {
        let sessions = |title: &str, sessions, viewers| wire::TitleSessions {
            title: title.to_owned(),
            sessions,
            viewers,
        };
        let playing = [sessions("copied", 8, 0), sessions("both", 9, 2), sessions("watched", 5, 5)];
        let told: Vec<_> = viewers_of(&playing)
            .into_iter()
            .map(|(name, viewers)| (name.as_str().to_owned(), viewers))
            .collect();
        assert_eq!(told, [("both".to_owned(), 2), ("watched".to_owned(), 5)]);
    }
}
