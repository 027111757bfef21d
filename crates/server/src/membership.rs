//! A server as a node of a cluster: what it shows of itself in etcd, and whether a question comes
//! from a director of the cluster.
//!
//! ```text
//!   snapshot, catalogue ──once a second──▶ Member (etcd): what is free, which titles are here
//!
//!   director ──the viewer's request, signed──▶ HTTP thread ──viewer_of──▶ the usual path of admission
//! ```
//!
//! A server whose lease has ended answers directors that it is cut off: another node may have its
//! name by then, and directors do not know what it has free. Viewers who come directly and those
//! who were admitted before notice nothing.
//!
//! The rates that it shows rank it among others. Whether a viewer fits is decided by the engine.

use crate::ServerConfig;
use crate::config::ClusterConfig;
use crate::http::{Response, SignedQuestion, escape};
use crate::library::OpenStore;
use crate::plan::{self, PlanDisk, PlannedAudience, Question};
use crate::sessions::PlayerSession;
use crate::shared::Shared;
use crate::wire;
use cluster::{CapacityShare, CopyRecord, CopyState, NodeDigest, NodeDisk, TitleDemand, TitleName};
use director::etcd::EtcdConfig;
use director::member::{Member, MemberConfig, MemberMessage, MemberRecords};
use director::question::ClusterSecret;
use director::ticket::{Ticket, TicketError};
use disk::DiskModel;
use scheduler::PolicyKind;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use units::{BitRate, ByteCount, Reason};

/// A server's place in its cluster.
#[derive(Debug)]
pub(crate) struct Membership {
    config: ClusterConfig,
    secret: ClusterSecret,
    /// `None` before the start and after the end.
    member: Mutex<Option<Member>>,
}

impl Membership {
    /// Reads the secret. The server is no member before [`Membership::start`].
    pub(crate) fn new(config: ClusterConfig) -> Result<Self, Reason> {
        let secret = ClusterSecret::from_file(&config.secret).map_err(|why| {
            let reason = units::Hinted::reason(&why);
            Reason::new(
                format!("--cluster-secret: {}", reason.message),
                reason.hint.unwrap_or_default(),
            )
        })?;
        Ok(Self { config, secret, member: Mutex::default() })
    }

    /// Registers the server, and keeps its records up to date.
    pub(crate) fn start(&self, config: &ServerConfig, shared: &Arc<Shared>) -> Result<(), Reason> {
        let ClusterConfig { etcd, name, node, .. } = &self.config;
        let etcd = EtcdConfig { endpoints: etcd.clone(), cluster: name.clone() };
        let member = MemberConfig { etcd, node: node.clone(), lease: LEASE };
        // The threads of the server own its state; the member looks at it while it is there.
        let (seen, told) = (Arc::downgrade(shared), Arc::downgrade(shared));
        let mut records = NodeRecords::new(self.config.clone(), config);
        let records = move || records.now(&seen);
        let say = move |message: MemberMessage| tell(&told, &message);
        let member = Member::start(member, records, say)?;
        *self.lock() = Some(member);
        Ok(())
    }

    /// Leaves the cluster.
    pub(crate) fn stop(&self) {
        let member = self.lock().take();
        drop(member);
    }

    /// The address of the viewer for whom a director asks, or the answer to a question that is none
    /// of a director of this cluster.
    pub(crate) fn viewer_of(&self, question: &SignedQuestion) -> Result<IpAddr, Response> {
        if !self.secret.verify(question.signed(), &question.signature) {
            let message = "the signature is not that of a director of this cluster; give nodes and \
                           directors the same --cluster-secret";
            return Err(Response::error(403, UNKNOWN_DIRECTOR, message));
        }
        if !self.lock().as_ref().is_some_and(Member::is_registered) {
            let message = "this node is not registered in its cluster at the moment, and admits \
                           viewers only who come directly";
            return Err(Response::unavailable("cut-off", message, CUT_OFF_RETRY));
        }
        question.client.parse().map_err(|_| {
            let message = "Tenuto-Client is not the address of a viewer";
            Response::error(400, "bad-question", message)
        })
    }

    /// Where the viewer of a session may go on, as a director has told; `None`: nowhere.
    pub(crate) fn elsewhere(&self, question: &SignedQuestion) -> Option<Arc<OtherNodes>> {
        let nodes = question.elsewhere.split(',').filter_map(|node| node.split_once('='));
        let nodes: Vec<_> =
            nodes.map(|(name, address)| (name.to_owned(), address.to_owned())).collect();
        let steering = question.steering.clone();
        (!nodes.is_empty() && !steering.is_empty())
            .then(|| Arc::new(OtherNodes { steering, nodes }))
    }

    /// What the manifest of a session says of other nodes; `None`: nothing.
    pub(crate) fn told_by(&self, session: &PlayerSession) -> Option<ToldElsewhere> {
        let OtherNodes { steering, nodes } = &**session.elsewhere.as_ref()?;
        let this = (self.config.node.to_string(), self.config.address.clone());
        let folder = |address: &str| format!("{address}/t/{}/", escape(&session.name));
        let servers = std::iter::once(&this).chain(nodes);
        let servers = servers.map(|(name, address)| (name.clone(), folder(address))).collect();
        let ticket = Ticket {
            session: session.token?.to_string(),
            title: session.name.clone(),
            version: session.title.version.clone(),
            expires: unix_now() + TICKET_LIFE.as_secs(),
            form: SEGMENTED.to_owned(),
            part: session.presentation.params.query(),
            max_height: session.permit.max_height,
            priority: session.permit.priority.word().to_owned(),
        };
        let ticket = ticket.sign(&self.secret);
        Some(ToldElsewhere { steering: steering.clone(), servers, ticket })
    }

    /// What another node has admitted, or why a ticket is not accepted.
    pub(crate) fn ticket(&self, text: &str) -> Result<Ticket, TicketError> {
        let ticket = Ticket::verify(text, &self.secret, unix_now())?;
        if ticket.form == SEGMENTED { Ok(ticket) } else { Err(TicketError::Forged) }
    }

    /// The state, for `/status`.
    pub(crate) fn status(&self) -> wire::ClusterMembership {
        let member = self.lock().as_ref().map(Member::status);
        wire::ClusterMembership {
            cluster: self.config.name.to_string(),
            node: self.config.node.to_string(),
            address: self.config.address.clone(),
            registered: member.as_ref().is_some_and(|member| member.registered),
            etcd: member.as_ref().map(|member| member.etcd_endpoint.clone()),
            error: member.as_ref().and_then(|member| member.last_error.clone()),
            writes: member.map_or(0, |member| member.writes),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Member>> {
        self.member.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nodes with the title of a session beside this one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OtherNodes {
    /// The address of the steering server.
    steering: String,
    /// Names and addresses.
    nodes: Vec<(String, String)>,
}

/// What a manifest says of other nodes.
#[derive(Debug)]
pub(crate) struct ToldElsewhere {
    /// The address of the steering server.
    pub(crate) steering: String,
    /// The nodes, this one first, with the folder of the title.
    pub(crate) servers: Vec<(String, String)>,
    /// The ticket that opens them.
    pub(crate) ticket: String,
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The answer to a question of a director at a server that is in no cluster.
pub(crate) fn in_no_cluster() -> Response {
    let message = "this server is in no cluster; start it with --cluster";
    Response::error(403, UNKNOWN_DIRECTOR, message)
}

/// Tells a change of the membership in the log, to the webhook, and to people.
fn tell(shared: &Weak<Shared>, message: &MemberMessage) {
    let Some(shared) = shared.upgrade() else { return };
    let event = match message {
        MemberMessage::Registered { .. } => "cluster-registered",
        _ => "cluster-not-registered",
    };
    shared.tell(event, || json!({ "detail": message.to_string() }));
    shared.notice(format!("cluster: {message}"));
}

/// What the server shows of itself.
struct NodeRecords {
    cluster: ClusterConfig,
    policy: PolicyKind,
    slot: Duration,
    startup: Duration,
    network: Option<BitRate>,
    /// The disk as which all stores are read, if they are slowed down.
    as_disk: Option<DiskModel>,
    /// The rate that each disk is guaranteed to hold, and the calibrated reads by which it was
    /// computed.
    guaranteed: Vec<Option<(u32, u64)>>,
}

impl NodeRecords {
    fn new(cluster: ClusterConfig, config: &ServerConfig) -> Self {
        let ServerConfig { policy, slot, startup, network, .. } = *config;
        let guaranteed = vec![None; config.stores.len()];
        let (startup, as_disk) = (startup.max(slot * 2), config.as_disk.clone());
        Self { cluster, policy, slot, startup, network, as_disk, guaranteed }
    }

    /// The records at this moment; of a server that ends, that nothing is free.
    fn now(&mut self, shared: &Weak<Shared>) -> MemberRecords {
        let ClusterConfig { address, rack, .. } = &self.cluster;
        let mut digest = NodeDigest {
            address: address.clone(),
            rack: rack.clone(),
            weight: u32::try_from(self.guaranteed.len()).unwrap_or(u32::MAX),
            lease: 0,
            disks: vec![CapacityShare::default(); self.guaranteed.len()],
            network: CapacityShare::default(),
            memory: CapacityShare::default(),
        };
        let (mut copies, mut titles) = (BTreeMap::new(), BTreeMap::new());
        let running = shared.upgrade();
        let running = running.filter(|it| !it.stopping.load(std::sync::atomic::Ordering::Relaxed));
        let Some(shared) = running else { return MemberRecords { digest, copies, titles } };
        let engine = &shared.snapshot().engine;
        let stores = &shared.content.stores;
        let typical = typical_rate(stores);
        let mut booked_of_all = 0;
        for (number, (opened, disk)) in stores.iter().zip(&engine.disks).enumerate() {
            let booked = disk.booked_rate.0;
            booked_of_all += booked;
            if !(disk.lost || disk.draining) {
                let guaranteed = self.guaranteed_rate(number, opened, disk.min_read, typical);
                digest.disks[number] = share(guaranteed, booked);
            }
        }
        let network = self.network.map_or(UNLIMITED, |rate| rate.0);
        digest.network = share(network, booked_of_all);
        digest.memory = share(engine.buffers_limit, engine.buffers_used);
        for (number, opened) in (0_u16..).zip(stores) {
            for record in opened.store.titles().iter().filter(|it| !it.duration.is_zero()) {
                // A name with a slash cannot be a key.
                let Ok(name) = TitleName::new(record.name.clone()) else { continue };
                let place = CopyRecord { disk: NodeDisk(number), state: CopyState::Ready };
                copies.entry(name.clone()).or_insert_with(Vec::new).push(place);
                titles.entry(name).or_insert_with(|| TitleDemand {
                    rate: BitRate::of(ByteCount(record.bytes), record.duration),
                    size: ByteCount(record.bytes),
                    viewers: 0.0,
                    copies: 0,
                });
            }
        }
        MemberRecords { digest, copies, titles }
    }

    /// The rate of streams like the stored ones that admission guarantees for a disk, planned as
    /// `tenuto plan` does, and again when the disk's guarantee has changed.
    fn guaranteed_rate(
        &mut self,
        number: usize,
        opened: &OpenStore,
        min_read: u32,
        typical: BitRate,
    ) -> u64 {
        if let Some((known, rate)) = self.guaranteed[number]
            && known == min_read
        {
            return rate;
        }
        let by_reads = u64::from(min_read) * opened.read_size.0 * 8 * 1_000
            / u64::try_from(self.slot.as_millis()).unwrap_or(u64::MAX).max(1);
        let calibrated = || {
            let calibration = opened.store.calibration()?.limited_to_endless_rate();
            let model = calibration.model();
            Some(PlanDisk::Measured(Box::new(calibration), model))
        };
        let modelled = self.as_disk.clone().map(PlanDisk::Model);
        let planned = modelled.or_else(calibrated).and_then(|disk| {
            let audience = PlannedAudience::Rate(typical);
            if plan::most_streams(&disk, &audience) > MOST_PLANNED {
                return None;
            }
            let question = Question {
                audience,
                memory: None,
                disks: 1,
                startup: self.startup,
                read: Some(opened.read_size),
                policies: vec![self.policy],
            };
            let (_, held) = plan::plan(&disk, question, &|_| ()).held()?;
            Some(held.streams * typical.0)
        });
        let rate = planned.unwrap_or(0).max(by_reads).min(UNLIMITED);
        self.guaranteed[number] = Some((min_read, rate));
        rate
    }
}

/// A resource of which `used` is reserved.
fn share(guaranteed: u64, used: u64) -> CapacityShare {
    CapacityShare { guaranteed, free: guaranteed.saturating_sub(used) }
}

/// The mean rate of the stored titles.
fn typical_rate(stores: &[OpenStore]) -> BitRate {
    let (mut bytes, mut time) = (ByteCount(0), Duration::ZERO);
    for record in stores.iter().flat_map(|opened| opened.store.titles()) {
        if !record.duration.is_zero() {
            bytes.0 += record.bytes;
            time += record.duration;
        }
    }
    BitRate::of(bytes, time).clamp(*plan::RATES.start(), *plan::RATES.end())
}

/// The form of the sessions that go on at other nodes.
const SEGMENTED: &str = "segmented";
/// A ticket is used when a node is lost, whenever that is: longer than a title plays.
const TICKET_LIFE: Duration = Duration::from_secs(24 * 3600);
const UNKNOWN_DIRECTOR: &str = "director-unknown";
/// Time for which a node counts as alive without a sign of life.
const LEASE: Duration = Duration::from_secs(10);
/// A lease is granted again soon after etcd is back.
const CUT_OFF_RETRY: Duration = Duration::from_secs(2);
/// The most streams of a disk for which its rate is planned: the time of a plan grows with them.
const MOST_PLANNED: u64 = 12_000;
/// A rate that is never the limit, and whose sums do not overflow.
const UNLIMITED: u64 = 1 << 50;
