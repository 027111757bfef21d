//! Other nodes of the cluster as sources of a copy: asked for each part one after the other, before
//! the bucket is.
//!
//! ```text
//!   part ─▶ first node that is not set aside ─┬─ right bytes ──────────────────────▶ the copy
//!                                             ├─ no room: set aside for a while ──┐
//!                                             └─ silent, gone, other content,     ├─▶ the next node,
//!                                                wrong bytes: not asked again ────┘   then the bucket
//! ```
//!
//! A node reads the part for us as for a viewer, at the rate of the copy, or refuses at once.

use crate::http::PartRequest;
use crate::membership::Membership;
use crate::outgoing;
use bucket::{PartPeers, WantedPart};
use director::question::PEER_HEADER;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount, locked};
use ureq::Agent;
use ureq::tls::TlsConfig;

/// The nodes that are asked for the parts of one copy.
pub(super) struct CopyPeers {
    membership: Arc<Membership>,
    agent: Agent,
    /// The rate that each part is asked for.
    rate: BitRate,
    peers: Mutex<Vec<AskedPeer>>,
}

struct AskedPeer {
    /// The beginning of its addresses.
    address: String,
    /// When it may be asked again.
    from: Instant,
}

/// Why a node has not sent a part.
enum NoPart {
    /// The node has no room now.
    Busy,
    /// The node is not to be asked again for this copy.
    Useless,
}

impl CopyPeers {
    /// The nodes at these addresses, the best first; `None` where none can be asked. `rate`: that
    /// of each part.
    pub(super) fn new(
        membership: Arc<Membership>,
        addresses: &[String],
        rate: BitRate,
    ) -> Option<Arc<Self>> {
        let now = Instant::now();
        let peers: Vec<AskedPeer> = addresses
            .iter()
            .map(|address| address.trim_end_matches('/').to_owned())
            .map(|address| AskedPeer { address, from: now })
            .collect();
        let is_secure = peers.iter().any(|peer| peer.address.starts_with("https://"));
        if peers.is_empty() {
            return None;
        }
        // A machine that trusts no authority could verify no node.
        let agent = agent(outgoing::tls(is_secure).ok()?);
        Some(Arc::new(Self { membership, agent, rate, peers: Mutex::new(peers) }))
    }

    fn ask(&self, address: &str, wanted: &WantedPart) -> Result<Vec<u8>, NoPart> {
        let bytes = wanted.range.end - wanted.range.start;
        let WantedPart { content, track, range, .. } = wanted.clone();
        let part = PartRequest { content, track, range, rate: self.rate };
        let target = part.target(&wanted.title);
        let signature = self.membership.sign_peer(&target);
        let patience = PATIENCE + 2 * ByteCount(bytes).time_at(self.rate);
        let request = self.agent.get(format!("{address}{target}")).header(PEER_HEADER, signature);
        let asked = request.config().timeout_global(Some(patience)).build().call();
        let mut answer = asked.map_err(|_| NoPart::Useless)?;
        match answer.status().as_u16() {
            200 => {}
            429 | 503 => return Err(NoPart::Busy),
            _ => return Err(NoPart::Useless),
        }
        let read = answer.body_mut().with_config().limit(bytes + 1).read_to_vec();
        read.map_err(|_| NoPart::Useless)
    }

    /// The first of the nodes that may be asked now.
    fn next(&self, after: Option<&str>) -> Option<String> {
        let (peers, now) = (locked(&self.peers), Instant::now());
        let skipped = after.and_then(|address| peers.iter().position(|it| it.address == address));
        let mut rest = peers.iter().skip(skipped.map_or(0, |at| at + 1));
        rest.find(|peer| now >= peer.from).map(|peer| peer.address.clone())
    }

    fn set_aside(&self, address: &str, why: &NoPart) {
        let time = match why {
            NoPart::Busy => BUSY,
            NoPart::Useless => FOR_GOOD,
        };
        // The others stay in their order: another thread may be between two of them.
        let mut peers = locked(&self.peers);
        let peer = peers.iter_mut().find(|peer| peer.address == address);
        peer.into_iter().for_each(|peer| peer.from = Instant::now() + time);
    }
}

impl PartPeers for CopyPeers {
    fn part(&self, wanted: &WantedPart, is_right: &dyn Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let mut last = None;
        while let Some(address) = self.next(last.as_deref()) {
            let answer = self.ask(&address, wanted).and_then(|bytes| match is_right(&bytes) {
                true => Ok(bytes),
                false => Err(NoPart::Useless),
            });
            match answer {
                Ok(bytes) => return Some(bytes),
                Err(why) => self.set_aside(&address, &why),
            }
            last = Some(address);
        }
        None
    }
}

/// Requests to nodes, whose certificates are verified by those that the machine trusts.
fn agent(tls: TlsConfig) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .max_redirects(0)
        .tls_config(tls)
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .user_agent("tenuto")
        .build();
    config.new_agent()
}

/// Time for a connection, and for the beginning of an answer: a part that is admitted begins within
/// the start-up of a session.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time for which a node without room is not asked again.
const BUSY: Duration = Duration::from_secs(10);
/// Longer than any copy takes: a day.
const FOR_GOOD: Duration = Duration::from_secs(24 * 3600);
