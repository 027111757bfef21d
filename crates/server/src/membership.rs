//! A server as a node of a cluster: its lease in etcd, whether a question comes from a director of
//! the cluster, and what lets a viewer go on at another node.
//!
//! ```text
//!   node_records ──once a second──▶ Member (etcd): what is free, which titles are here
//!
//!   director ──the viewer's request, signed──▶ HTTP thread ──viewer_of──▶ the usual admission
//!   session ──failover_links──▶ manifest with other nodes and a ticket ──▶ ticket, at another node
//!           ──rtsp_location───▶ the address at which a player of RTSP goes on here, with a ticket
//! ```
//!
//! A server whose lease has ended answers directors that it is cut off: another node may have its
//! name by then, and directors do not know what it has free. Viewers who come directly and those
//! who were admitted before notice nothing.

use crate::access::{Permit, TokenOwner};
use crate::config::ClusterConfig;
use crate::copy_board::CopyBoard;
use crate::http::{Response, SignedQuestion, escape};
use crate::layout::DeliveryFormat;
use crate::sessions::{FailoverNodes, PlayerSession};
use crate::wire;
use cluster::NodeOrders;
use director::clock::ClockDifference;
use director::etcd::EtcdConfig;
use director::member::{Member, MemberConfig, MemberMessage, MemberRecords};
use director::secret::ClusterSecret;
use director::ticket::{Ticket, TicketError};
use engine::Priority;
use rtsp_message::headers::{StreamName, Target};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use units::{Hinted, Reason};

/// A server's place in its cluster.
#[derive(Debug)]
pub(crate) struct Membership {
    config: ClusterConfig,
    secret: ClusterSecret,
    /// The beginning of the node's addresses over RTSP; empty: there is no RTSP.
    rtsp: OnceLock<String>,
    /// `None` before the start and after the end.
    member: Mutex<Option<Member>>,
    copies: CopyBoard,
    /// Whether orders for copies are carried out.
    has_source: bool,
}

impl Membership {
    /// Reads the secret. The server is no member before [`Membership::start`].
    ///
    /// `has_source`: the server has a bucket, and carries out orders for copies.
    pub(crate) fn new(config: ClusterConfig, has_source: bool) -> Result<Self, Reason> {
        let secret = ClusterSecret::from_file(&config.secret)
            .map_err(|why| why.reason().about("--cluster-secret"))?;
        let copies = CopyBoard::default();
        let (rtsp, member) = (OnceLock::new(), Mutex::default());
        Ok(Self { config, secret, rtsp, member, copies, has_source })
    }

    /// The secret that it shares with the directors.
    pub(crate) fn secret(&self) -> &ClusterSecret {
        &self.secret
    }

    /// Registers the server, and keeps its records up to date. `say` hears of changes.
    pub(crate) fn start(
        &self,
        records: impl FnMut() -> MemberRecords + Send + 'static,
        say: impl FnMut(MemberMessage) + Send + 'static,
    ) -> Result<(), Reason> {
        let ClusterConfig { etcd, etcd_access, name, node, .. } = &self.config;
        let (endpoints, access) = (etcd.clone(), etcd_access.clone());
        let etcd = EtcdConfig { endpoints, cluster: name.clone(), access };
        let member = MemberConfig { etcd, node: node.clone(), lease: LEASE };
        *self.lock() = Some(Member::start(member, records, say)?);
        Ok(())
    }

    /// Leaves the cluster.
    pub(crate) fn stop(&self) {
        let member = self.lock().take();
        drop(member);
    }

    /// What the node should do with copies of titles.
    pub(crate) fn orders(&self) -> NodeOrders {
        self.lock().as_ref().map(Member::orders).unwrap_or_default()
    }

    /// The viewers that remain of each title, where the node is drained and others may go.
    pub(crate) fn remaining_viewers(&self) -> BTreeMap<String, u32> {
        self.lock().as_ref().map(Member::remaining_viewers).unwrap_or_default()
    }

    /// The copies that are being written.
    pub(crate) fn copies(&self) -> &CopyBoard {
        &self.copies
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

    /// The signature of a request to another node for a part of a title.
    pub(crate) fn sign_peer(&self, target: &str) -> String {
        self.secret.sign_peer(target)
    }

    /// The answer to a request for a part of a title that is not of a node of this cluster.
    pub(crate) fn check_peer(&self, signature: &str, target: &str) -> Result<(), Response> {
        if self.secret.verify_peer(target, signature) {
            return Ok(());
        }
        let message = "the signature is not that of a node of this cluster; give all nodes the same \
                       --cluster-secret";
        Err(Response::error(403, "peer-unknown", message))
    }

    /// The nodes at which a viewer may go on, as a director names them; `None`: no other.
    pub(crate) fn failover_nodes(&self, question: &SignedQuestion) -> Option<Arc<FailoverNodes>> {
        let nodes = question.elsewhere.split(',').filter_map(|node| node.split_once('='));
        let nodes: Vec<_> =
            nodes.map(|(name, address)| (name.to_owned(), address.to_owned())).collect();
        let steering = question.steering.clone();
        (!nodes.is_empty() && !steering.is_empty())
            .then(|| Arc::new(FailoverNodes { steering, nodes }))
    }

    /// What the manifest of a session says of other nodes; `None`: nothing.
    pub(crate) fn failover_links(&self, session: &PlayerSession) -> Option<FailoverLinks> {
        let FailoverNodes { steering, nodes } = &**session.failover.as_ref()?;
        let this = (self.config.node.to_string(), self.config.address.clone());
        let folder = |address: &str| format!("{address}/t/{}/", escape(&session.name));
        let servers = std::iter::once(&this).chain(nodes);
        let servers = servers.map(|(name, address)| (name.clone(), folder(address))).collect();
        let ticket = self.ticket_of(session, SEGMENTED, TICKET_LIFE)?.sign(&self.secret);
        let (token, and) = (session.query(), if steering.contains('?') { '&' } else { '?' });
        let token = token.trim_start_matches('?');
        let steering = format!("{steering}{and}{token}&ticket={ticket}");
        Some(FailoverLinks { steering, servers, ticket })
    }

    /// What another node has admitted, or why a ticket is not accepted.
    pub(crate) fn ticket(&self, text: &str) -> Result<Ticket, TicketError> {
        let ticket = Ticket::verify(text, &self.secret, unix_now())?;
        if ticket.form == SEGMENTED { Ok(ticket) } else { Err(TicketError::Forged) }
    }

    /// Says where viewers reach the node over RTSP: at the address that was given, or at this port
    /// of the host at which they reach it over HTTP.
    pub(crate) fn set_rtsp(&self, port: u16, is_secure: bool) {
        if let Some(address) = &self.config.rtsp_address {
            let _ = self.rtsp.set(address.clone());
            return;
        }
        let scheme = if is_secure { "rtsps" } else { "rtsp" };
        let uri: Option<http::Uri> = self.config.address.parse().ok();
        if let Some(host) = uri.as_ref().and_then(http::Uri::host) {
            let _ = self.rtsp.set(format!("{scheme}://{host}:{port}"));
        }
    }

    /// Whether viewers of RTSP can be sent here.
    pub(crate) fn has_rtsp(&self) -> bool {
        self.rtsp.get().is_some()
    }

    /// Where a viewer of RTSP goes on with a session that a director has asked for; `None`: there
    /// is no RTSP.
    pub(crate) fn rtsp_location(&self, session: &PlayerSession) -> Option<String> {
        let server = self.rtsp.get()?;
        let stream =
            (session.format == DeliveryFormat::TransportStream).then_some(StreamName::Transport);
        let path = Target { title: session.name.clone(), stream }.path();
        let ticket = self.ticket_of(session, OVER_RTSP, RTSP_TICKET_LIFE)?.sign(&self.secret);
        Some(format!("{server}{path}?ticket={ticket}"))
    }

    /// What a director has asked for over RTSP, or why a ticket is not accepted.
    pub(crate) fn rtsp_ticket(&self, text: &str) -> Result<Ticket, TicketError> {
        let ticket = Ticket::verify(text, &self.secret, unix_now())?;
        if ticket.form == OVER_RTSP { Ok(ticket) } else { Err(TicketError::Forged) }
    }

    fn ticket_of(&self, session: &PlayerSession, form: &str, life: Duration) -> Option<Ticket> {
        let until = session.permit.until;
        Some(Ticket {
            session: session.token?.to_string(),
            title: session.name.clone(),
            version: session.title.version.clone(),
            expires: (unix_now() + life.as_secs()).min(until.unwrap_or(u64::MAX)),
            form: form.to_owned(),
            part: session.presentation.params.query(),
            max_height: session.permit.max_height,
            priority: session.permit.priority.word().to_owned(),
            client: session.permit.client,
            subject: session.permit.subject().map(str::to_owned),
            token_id: session.permit.token_id().map(str::to_owned),
            until,
        })
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
            clock_difference: member.as_ref().and_then(|it| it.clock).map(ClockDifference::seconds),
            writes: member.map_or(0, |member| member.writes),
            copies: self.has_source.then(|| self.copy_report()),
        }
    }

    /// The names of the cluster and of the node.
    pub(crate) fn names(&self) -> (String, String) {
        (self.config.name.to_string(), self.config.node.to_string())
    }

    /// Whether orders for copies are carried out.
    pub(crate) fn has_source(&self) -> bool {
        self.has_source
    }

    /// How far the clock of etcd is ahead of the server's; `None` where etcd did not say its time.
    pub(crate) fn clock_difference(&self) -> Option<ClockDifference> {
        self.lock().as_ref().and_then(|member| member.status().clock)
    }

    /// The copies that placement orders.
    pub(crate) fn copy_report(&self) -> wire::CopyReport {
        let orders = self.orders();
        self.copies.report(orders.fill.len() as u64 + u64::from(orders.later))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Member>> {
        self.member.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a manifest says of other nodes.
#[derive(Debug)]
pub(crate) struct FailoverLinks {
    /// The address of the steering server for this session, with a query.
    pub(crate) steering: String,
    /// The nodes, this one first, with the folder of the title.
    pub(crate) servers: Vec<(String, String)>,
    /// The ticket that opens them.
    pub(crate) ticket: String,
}

pub(crate) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The answer to a question of a director at a server that is in no cluster.
pub(crate) fn in_no_cluster() -> Response {
    let message = "this server is in no cluster; start it with --cluster";
    Response::error(403, UNKNOWN_DIRECTOR, message)
}

/// What the viewer of a ticket may see.
pub(crate) fn permit_of(ticket: &Ticket) -> Permit {
    let priority = Priority::ALL.into_iter().find(|priority| priority.word() == ticket.priority);
    Permit {
        max_height: ticket.max_height,
        priority: priority.unwrap_or(Permit::default().priority),
        client: ticket.client,
        owner: TokenOwner::of(ticket.subject.clone(), ticket.token_id.clone()),
        until: ticket.until,
    }
}

/// The form of the sessions that are played over RTSP, at this node.
const OVER_RTSP: &str = "rtsp";
/// A player follows a redirect at once; longer than the reservation is kept.
const RTSP_TICKET_LIFE: Duration = Duration::from_secs(60);
/// The form of the sessions that go on at other nodes.
const SEGMENTED: &str = "segmented";
/// A ticket is used when a node is lost, whenever that is: longer than a title plays.
const TICKET_LIFE: Duration = Duration::from_secs(24 * 3600);
const UNKNOWN_DIRECTOR: &str = "director-unknown";
/// Time for which a node counts as alive without a sign of life.
const LEASE: Duration = Duration::from_secs(10);
/// A lease is granted again soon after etcd is back.
const CUT_OFF_RETRY: Duration = Duration::from_secs(2);
