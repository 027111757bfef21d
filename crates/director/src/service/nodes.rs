//! Questions to nodes over connections that are kept.
//!
//! ```text
//!   ask ──▶ idle connection of the node, or a new one ──GET, two headers──▶ node
//!                 ▲                                                          │ within 1 s
//!                 └──────────────── kept when all of the answer is read ◀────┘
//! ```
//!
//! A node may have ended a kept connection meanwhile: then the question is asked once more on a new
//! one. A node has a limit of connections per client, and a director is one client to it, so that
//! the connections to one node are bounded here.

use super::reply::{NodeReply, ReplyError};
use super::transport::{NodeAddress, NodeStream, NodeTransports};
use crate::clock::ClockDifference;
use crate::question::{
    CLIENT_HEADER, ELSEWHERE_HEADER, SIGNATURE_HEADER, STEERING_HEADER, SignedText,
};
use crate::secret::ClusterSecret;
use crate::ticket::Ticket;
use std::collections::HashMap;
use std::io::Write;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use units::locked;

/// What a director asks a node for a viewer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'a> {
    /// Path and query of the viewer's request.
    pub(super) target: &'a str,
    /// The viewer's own proof of a right.
    pub(super) authorization: Option<&'a [u8]>,
    /// The span of the player or of a proxy, of which the session becomes a part.
    pub(super) traceparent: Option<&'a [u8]>,
    /// The viewer's address.
    pub(super) client: IpAddr,
    /// The address of the steering manifest.
    pub(super) steering: &'a str,
    /// Other nodes with the title.
    pub(super) elsewhere: &'a str,
}

/// The nodes that were asked, with the connections to them.
pub(super) struct Nodes {
    secret: ClusterSecret,
    transports: NodeTransports,
    known: Mutex<HashMap<String, Arc<AskedNode>>>,
}

struct AskedNode {
    address: Result<NodeAddress, String>,
    connections: Mutex<NodeConnections>,
    freed: Condvar,
    /// How far its clock is ahead of this machine's, by its last answer.
    clock: Mutex<Option<ClockDifference>>,
}

#[derive(Default)]
struct NodeConnections {
    idle: Vec<NodeStream>,
    in_use: usize,
}

/// The right to one connection, which is given back when it is dropped.
struct ConnectionPermit<'a> {
    node: &'a AskedNode,
    /// The connection, if it can be used again.
    stream: Option<NodeStream>,
}

impl Nodes {
    pub(super) fn new(secret: ClusterSecret) -> Self {
        Self { secret, transports: NodeTransports::default(), known: Mutex::default() }
    }

    /// Whether a node has signed this ticket for a viewer of the title, within the last day. One
    /// that has expired tells it as well.
    pub(super) fn has_admitted(&self, ticket: &str, title: &str) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = now.saturating_sub(LONGEST_VIEW).as_secs();
        Ticket::verify(ticket, &self.secret, since).is_ok_and(|ticket| ticket.title == title)
    }

    /// How far the clock of the node at an address is ahead of this machine's, by its last answer.
    pub(super) fn clock_difference(&self, address: &str) -> Option<ClockDifference> {
        let node = locked(&self.known).get(address).map(Arc::clone)?;
        *locked(&node.clock)
    }

    /// Asks the node at an address.
    ///
    /// # Errors
    /// No answer within a second, or none that can be understood; the reason as text.
    pub(super) fn ask(&self, address: &str, question: Question<'_>) -> Result<NodeReply, String> {
        let deadline = Instant::now() + PATIENCE;
        let node = self.node(address);
        let at = node.address.as_ref().map_err(Clone::clone)?;
        let request = self.request(at, question);
        let mut permit = node.permit(deadline)?;
        if let Some(mut stream) = permit.stream.take() {
            match exchange(&mut stream, &request, deadline) {
                Ok(reply) => return Ok(permit.keep(stream, reply)),
                // The node has ended the connection before it saw the question.
                Err(ReplyError::Ended) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        let mut stream = self.transports.connect(at, deadline)?;
        match exchange(&mut stream, &request, deadline) {
            Ok(reply) => Ok(permit.keep(stream, reply)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn node(&self, address: &str) -> Arc<AskedNode> {
        let mut known = locked(&self.known);
        if let Some(node) = known.get(address) {
            return Arc::clone(node);
        }
        // Addresses change when nodes move; what is left of old ones is bounded here.
        if known.len() >= MOST_NODES {
            known.clear();
        }
        let node = Arc::new(AskedNode {
            address: NodeAddress::parse(address),
            connections: Mutex::default(),
            freed: Condvar::new(),
            clock: Mutex::default(),
        });
        known.insert(address.to_owned(), Arc::clone(&node));
        node
    }

    fn request(&self, node: &NodeAddress, question: Question<'_>) -> Vec<u8> {
        let Question { target, authorization, traceparent, client, steering, elsewhere } = question;
        let path = node.path();
        let whole;
        let target = if path.is_empty() {
            target
        } else {
            whole = format!("{path}{target}");
            &whole
        };
        let mut request = Vec::with_capacity(512);
        let mut line = |parts: &[&[u8]]| parts.iter().for_each(|part| request.extend(*part));
        line(&[b"GET ", target.as_bytes(), b" HTTP/1.1\r\nHost: ", node.host().as_bytes()]);
        let client = client.to_string();
        let signed = SignedText { client: &client, target, steering, elsewhere };
        let signature = self.secret.sign(signed);
        line(&[b"\r\n", CLIENT_HEADER.as_bytes(), b": ", client.as_bytes()]);
        for (name, value) in [(STEERING_HEADER, steering), (ELSEWHERE_HEADER, elsewhere)] {
            if !value.is_empty() {
                line(&[b"\r\n", name.as_bytes(), b": ", value.as_bytes()]);
            }
        }
        line(&[b"\r\n", SIGNATURE_HEADER.as_bytes(), b": ", signature.as_bytes()]);
        if let Some(authorization) = authorization {
            line(&[b"\r\nAuthorization: ", authorization]);
        }
        if let Some(traceparent) = traceparent {
            line(&[b"\r\ntraceparent: ", traceparent]);
        }
        line(&[b"\r\n\r\n"]);
        request
    }
}

/// The reply, and when its question was sent.
fn exchange(
    stream: &mut NodeStream,
    request: &[u8],
    deadline: Instant,
) -> Result<(NodeReply, SystemTime), ReplyError> {
    let sent = SystemTime::now();
    // A connection that the other side has ended may take what is written.
    stream.write_all(request).and_then(|()| stream.flush()).map_err(|_| ReplyError::Ended)?;
    Ok((NodeReply::read(stream, deadline)?, sent))
}

impl AskedNode {
    /// Waits for the right to a connection.
    fn permit(&self, deadline: Instant) -> Result<ConnectionPermit<'_>, String> {
        let mut connections = locked(&self.connections);
        while connections.in_use >= MOST_CONNECTIONS {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err("all connections to it are in use".to_owned());
            }
            let waited = self.freed.wait_timeout(connections, left);
            connections = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        connections.in_use += 1;
        let stream = connections.idle.pop();
        Ok(ConnectionPermit { node: self, stream })
    }
}

impl ConnectionPermit<'_> {
    fn keep(&mut self, stream: NodeStream, (reply, sent): (NodeReply, SystemTime)) -> NodeReply {
        *locked(&self.node.clock) = reply.clock_difference(sent);
        if reply.keeps_connection {
            self.stream = Some(stream);
        }
        reply
    }
}

impl Drop for ConnectionPermit<'_> {
    fn drop(&mut self) {
        let mut connections = locked(&self.node.connections);
        connections.in_use -= 1;
        connections.idle.extend(self.stream.take());
        drop(connections);
        self.node.freed.notify_one();
    }
}

/// Time for one question, with the connection to the node if there is none yet.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// Connections to one node: a quarter of what a node allows one client.
const MOST_CONNECTIONS: usize = 250;
/// The longest time between a viewer's ticket and the loss of its node.
const LONGEST_VIEW: Duration = Duration::from_secs(86_400);
/// Addresses of nodes that are remembered.
const MOST_NODES: usize = 10_000;
