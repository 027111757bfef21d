//! One viewer's way to a node: the attempt of `cluster::Director` over the watched view, with the
//! questions sent.
//!
//! ```text
//!   view locked     attempt.step ──▶ Ask(node)
//!   view unlocked   the node is asked, up to a second
//!   view locked     attempt.answered, attempt.step ──▶ Ask, Admitted or Refused
//! ```

use super::counters::{Cause, ServiceCounters};
use super::nodes::{Nodes, Question};
use super::reply::{NodeReply, NodeVerdict};
use super::{request, steering};
use crate::unmet::UnmetDemand;
use crate::watching::{Say, WatchedCluster};
use cluster::{
    AdmissionClass, ClusterView, CopyPlace, Director, DirectorCounters, DirectorRefusal,
    DirectorSettings, DirectorStep, NodeAnswer, RefusalReason, StreamNeed, TitleName, TitleNumber,
};
use http_service::{HttpRequest, HttpResponse};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount, locked};

/// What sends viewers to nodes.
pub(super) struct Admission {
    watched: Arc<WatchedCluster>,
    nodes: Nodes,
    director: Mutex<Director>,
    unmet: Arc<UnmetDemand>,
    say: Say,
    /// Nodes of which it was said that they do not know this director.
    strangers: Mutex<BTreeSet<String>>,
    /// The seed of the next viewer. Directors begin with different ones.
    seed: AtomicU64,
    /// Viewers who are asked for at the moment.
    busy: AtomicUsize,
}

/// A node that is to be asked.
struct AskedPlace {
    name: String,
    address: String,
}

impl Admission {
    pub(super) fn new(
        watched: Arc<WatchedCluster>,
        nodes: Nodes,
        settings: DirectorSettings,
        unmet: Arc<UnmetDemand>,
        say: Say,
    ) -> Self {
        let director = Mutex::new(Director::new(settings));
        let mut seed = [0; 8];
        // Without chance the viewers of several directors would choose alike, and no worse.
        let _ = SystemRandom::new().fill(&mut seed);
        let seed = AtomicU64::new(u64::from_le_bytes(seed));
        Self {
            watched,
            nodes,
            director,
            say,
            unmet,
            strangers: Mutex::default(),
            seed,
            busy: AtomicUsize::new(0),
        }
    }

    /// What the director has counted.
    pub(super) fn director_counters(&self) -> DirectorCounters {
        *locked(&self.director).counters()
    }

    /// Whether an answer to a viewer is on its way.
    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire) > 0
    }

    /// Admits a viewer of a title, or refuses; the answer to the viewer.
    pub(super) fn admit(
        &self,
        title: &TitleName,
        request: &HttpRequest<'_>,
        counters: &ServiceCounters,
    ) -> HttpResponse {
        self.busy.fetch_add(1, Ordering::AcqRel);
        let answer = self.answer(title, request, counters);
        self.busy.fetch_sub(1, Ordering::AcqRel);
        answer
    }

    fn answer(
        &self,
        title: &TitleName,
        request: &HttpRequest<'_>,
        counters: &ServiceCounters,
    ) -> HttpResponse {
        if !self.watched.is_listed() {
            counters.refused(Cause::NotReady);
            let message = "this director does not know the cluster yet";
            return refusal(Cause::NotReady, message, Some(WHEN_READY));
        }
        let view = self.watched.view();
        let Some((number, need)) = known(&view, title) else {
            drop(view);
            counters.refused(Cause::NoTitle);
            return HttpResponse::problem(
                404,
                Cause::NoTitle.word(),
                "no node has this title",
                json!({}),
            );
        };
        let seed = self.seed.fetch_add(1, Ordering::Relaxed);
        let mut attempt = locked(&self.director).begin(number, need, AdmissionClass::New, seed);
        let mut step = attempt.step(&view, self.watched.now());
        let mut asked = place(&view, step);
        let with_title =
            steering::nodes_with(&view, number, self.watched.now(), &seed.to_le_bytes());
        drop(view);
        let base = request::base(request);
        let mut location = String::new();
        loop {
            let answer = match (step, asked) {
                (DirectorStep::Admitted(_), _) => {
                    locked(&self.director).end(&attempt);
                    counters.admitted();
                    return HttpResponse::empty(302).field("Location", &location);
                }
                (DirectorStep::Refused(refused), _) => {
                    locked(&self.director).end(&attempt);
                    if matches!(refused.reason, RefusalReason::NoCopy | RefusalReason::Full) {
                        self.unmet.refused(title, request.client, Instant::now());
                    }
                    return self.refuse(refused, counters);
                }
                (_, None) => NodeAnswer::Unreachable,
                (_, Some(node)) => {
                    counters.asked();
                    let elsewhere = steering::elsewhere(&with_title, &node.name);
                    // Without others there is nowhere to be steered to.
                    let base = base.as_deref().filter(|_| !elsewhere.is_empty());
                    let steering = base.map(|base| steering::address(base, title, &node.name));
                    let question = Question {
                        target: request.target,
                        authorization: request.field("authorization"),
                        client: request.client,
                        steering: steering.as_deref().unwrap_or_default(),
                        elsewhere: &elsewhere,
                    };
                    match self.ask(&node, question) {
                        Ok(NodeVerdict::Reserved(found)) => {
                            location = resolved(&node.address, request.target, &found);
                            NodeAnswer::Accepted
                        }
                        Ok(NodeVerdict::Full(time)) => {
                            counters.node_refused();
                            NodeAnswer::Refused(time)
                        }
                        Ok(_) => NodeAnswer::Unreachable,
                        Err(reply) => {
                            counters.refused(Cause::ByNode);
                            return for_viewer(reply);
                        }
                    }
                }
            };
            if answer == NodeAnswer::Unreachable {
                counters.silent();
            }
            let mut view = self.watched.view();
            let now = self.watched.now();
            attempt.answered(&mut view, answer, now);
            step = attempt.step(&view, now);
            asked = place(&view, step);
        }
    }

    /// Asks a node; the reply itself where the viewer gets it.
    fn ask(&self, node: &AskedPlace, question: Question<'_>) -> Result<NodeVerdict, NodeReply> {
        let AskedPlace { name, address } = node;
        let reply = match self.nodes.ask(address, question) {
            Ok(reply) => reply,
            // The metrics count it, and the view leaves the node out for a while.
            Err(_) => return Ok(NodeVerdict::Unknown),
        };
        let verdict = reply.verdict();
        match verdict {
            NodeVerdict::ForViewer => return Err(reply),
            NodeVerdict::DirectorUnknown => self.say_once(
                name,
                "does not take this director for one of its cluster: its secret differs",
            ),
            NodeVerdict::Unknown => self.say_once(
                name,
                &format!("answers with status {} to the question of a director", reply.status),
            ),
            _ => {}
        }
        Ok(verdict)
    }

    fn say_once(&self, node: &str, what: &str) {
        let mut strangers = locked(&self.strangers);
        if strangers.len() < MOST_STRANGERS && strangers.insert(node.to_owned()) {
            (self.say)(&format!("the node {node} {what}"));
        }
    }

    fn refuse(&self, refused: DirectorRefusal, counters: &ServiceCounters) -> HttpResponse {
        let DirectorRefusal { reason, retry_after } = refused;
        let (cause, message, time) = match reason {
            RefusalReason::NoCopy => {
                (Cause::NoCopy, "no node that answers has this title", retry_after)
            }
            RefusalReason::Full => (Cause::Full, "the nodes with this title are full", retry_after),
            RefusalReason::Unreachable => {
                let message = "the nodes with this title do not answer";
                (Cause::Unreachable, message, retry_after.or(Some(WHEN_TRIED_AGAIN)))
            }
            RefusalReason::Headroom => {
                let message = "what is free is kept for the viewers of a node that may be lost";
                (Cause::Headroom, message, retry_after)
            }
        };
        counters.refused(cause);
        refusal(cause, message, time)
    }
}

/// The number of a title that is in the cluster, and what one viewer of it needs.
fn known(view: &ClusterView, title: &TitleName) -> Option<(TitleNumber, StreamNeed)> {
    let number = view.title_named(title)?;
    let size = view.title(number).size();
    if size.is_none() && view.copies(number).is_empty() {
        return None;
    }
    // Without a known rate any place fits: the node decides. It has the books of its memory, too.
    let rate = size.map_or(BitRate(1), |size| size.rate);
    Some((number, StreamNeed { disk: rate, network: rate, memory: ByteCount(0) }))
}

fn place(view: &ClusterView, step: DirectorStep) -> Option<AskedPlace> {
    let DirectorStep::Ask(CopyPlace { node, .. }) = step else { return None };
    let node = view.node(node);
    let address = node.digest()?.address.trim_end_matches('/').to_owned();
    Some(AskedPlace { name: node.id().to_string(), address })
}

/// Where the viewer goes: the node's `Location` may be an address, a path or relative to the
/// request.
fn resolved(address: &str, target: &str, location: &str) -> String {
    if location.starts_with("http://") || location.starts_with("https://") {
        return location.to_owned();
    }
    if location.starts_with('/') {
        return format!("{address}{location}");
    }
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{address}{folder}/{location}")
}

fn refusal(cause: Cause, message: &str, time: Option<Duration>) -> HttpResponse {
    let retry_after = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let more = json!({ "cause": cause.word(), "retry_after_ms": retry_after });
    HttpResponse::problem(503, "refused", message, more).retry_after(time)
}

fn for_viewer(reply: NodeReply) -> HttpResponse {
    let NodeReply { status, content_type, authenticate, retry_after, body, .. } = reply;
    let content_type = content_type.as_deref().unwrap_or("application/json");
    let answer = HttpResponse::with_body(status, content_type, body)
        .retry_after(retry_after.map(Duration::from_secs));
    match authenticate {
        Some(authenticate) => answer.field("WWW-Authenticate", &authenticate),
        None => answer,
    }
}

/// A list of the records takes less.
const WHEN_READY: Duration = Duration::from_secs(1);
/// A node that did not answer is asked again after this time.
const WHEN_TRIED_AGAIN: Duration = Duration::from_secs(2);
/// Nodes of which something was said.
const MOST_STRANGERS: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_an_address_of_the_node() {
        let rows = [
            ("/t/film/master.m3u8?s=a", "http://n1/t/film/master.m3u8?s=a"),
            ("master.m3u8?s=a", "http://n1/t/film/master.m3u8?s=a"),
            ("https://other/x?s=a", "https://other/x?s=a"),
        ];
        for (location, wanted) in rows {
            assert_eq!(resolved("http://n1", "/t/film/master.m3u8?x=/y", location), wanted);
        }
    }
}
