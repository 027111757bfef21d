//! One viewer's way to a node: the attempt of `cluster::Director` over the watched view, with the
//! questions sent.
//!
//! ```text
//!   view locked     attempt.step ──▶ Ask(node)
//!   view unlocked   the node is asked, up to a second
//!   view locked     attempt.answered, attempt.step ──▶ Ask, Admitted or Refused
//! ```

use super::counters::{Cause, ServiceCounters};
use super::moves::WantedMoves;
use super::nodes::{Nodes, Question};
use super::reply::{NodeReply, NodeVerdict};
use super::steering;
use crate::clock::{ClockDifference, SYNCHRONISE};
use crate::unmet::UnmetDemand;
use crate::watching::{Say, WatchedCluster};
use cluster::{
    AdmissionClass, ClusterView, CopyPlace, Director, DirectorCounters, DirectorRefusal,
    DirectorSettings, DirectorStep, NodeAnswer, RefusalReason, StreamNeed, TitleName, TitleNumber,
};
use http_service::HttpResponse;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount, Moment, locked};

/// What sends viewers to nodes.
pub(super) struct Admission {
    watched: Arc<WatchedCluster>,
    nodes: Nodes,
    director: Mutex<Director>,
    unmet: Arc<UnmetDemand>,
    moves: WantedMoves,
    say: Say,
    /// Nodes of which it was said that they do not know this director.
    strangers: Mutex<BTreeSet<String>>,
    /// Nodes of which it was said that they do not answer, until they do.
    silent: Mutex<BTreeSet<String>>,
    /// Nodes of which it was said that their clocks differ, until they do not.
    with_other_clocks: Mutex<BTreeSet<String>>,
    /// The seed of the next viewer. Directors begin with different ones.
    seed: AtomicU64,
    /// Viewers who are asked for at the moment.
    busy: AtomicUsize,
}

/// A viewer who asks for a title.
#[derive(Clone, Debug)]
pub(super) struct Viewer<'a> {
    /// Path and query of the questions to nodes.
    pub(super) target: &'a str,
    /// The viewer's own proof of a right.
    pub(super) authorization: Option<&'a [u8]>,
    /// The span of the player or of a proxy (W3C Trace Context).
    pub(super) traceparent: Option<&'a [u8]>,
    /// The viewer's address.
    pub(super) client: IpAddr,
    /// How the viewer has reached the director: the beginning of the address of its steering
    /// manifest; `None`: it is not steered.
    pub(super) base: Option<String>,
    /// A viewer who goes on has lost a node, and what new viewers leave free is for that.
    pub(super) class: AdmissionClass,
}

/// What becomes of a viewer.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A node has reserved; where the viewer goes.
    Sent(String),
    /// Nobody has, and the time after which one would.
    Refused(Cause, &'static str, Option<Duration>),
    /// The viewer gets what a node has answered.
    ByNode(NodeReply),
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
            moves: WantedMoves::default(),
            strangers: Mutex::default(),
            silent: Mutex::default(),
            with_other_clocks: Mutex::default(),
            seed,
            busy: AtomicUsize::new(0),
        }
    }

    /// What the director has counted.
    pub(super) fn director_counters(&self) -> DirectorCounters {
        *locked(&self.director).counters()
    }

    /// How far the clock of the node at an address is ahead of this machine's, by its last answer.
    pub(super) fn clock_difference(&self, address: &str) -> Option<ClockDifference> {
        self.nodes.clock_difference(address.trim_end_matches('/'))
    }

    /// Whether this ticket is that of a viewer whom a node has admitted to the title.
    pub(super) fn has_admitted(&self, ticket: &str, title: &TitleName) -> bool {
        self.nodes.has_admitted(ticket, title.as_str())
    }

    /// A number by which the next viewer, or a cache, chooses among nodes.
    pub(super) fn next_seed(&self) -> u64 {
        self.seed.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether an answer to a viewer is on its way.
    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire) > 0
    }

    /// Admits a viewer of a title, or refuses.
    pub(super) fn admit(
        &self,
        title: &TitleName,
        viewer: &Viewer<'_>,
        counters: &ServiceCounters,
    ) -> Outcome {
        self.busy.fetch_add(1, Ordering::AcqRel);
        let started = Instant::now();
        let outcome = self.send(title, viewer, counters);
        match &outcome {
            Outcome::Sent(_) => counters.admitted(),
            Outcome::Refused(cause, ..) => counters.refused(*cause),
            Outcome::ByNode(_) => counters.refused(Cause::ByNode),
        }
        counters.took(started.elapsed());
        self.busy.fetch_sub(1, Ordering::AcqRel);
        outcome
    }

    fn send(&self, title: &TitleName, viewer: &Viewer<'_>, counters: &ServiceCounters) -> Outcome {
        if !self.watched.is_listed() {
            let message = "this director does not know the cluster yet";
            return Outcome::Refused(Cause::NotReady, message, Some(WHEN_READY));
        }
        let view = self.watched.view();
        let Some((number, need)) = known(&view, title) else {
            return Outcome::Refused(Cause::NoTitle, "no node has this title", None);
        };
        let seed = self.next_seed();
        let mut attempt = locked(&self.director).begin(number, need, viewer.class, seed);
        let mut step = attempt.step(&view, self.watched.now());
        let mut asked = place(&view, step);
        let (now, salt) = (self.watched.now(), seed.to_le_bytes());
        let with_title = steering::nodes_with(&view, number, now, self.kept(), &salt);
        drop(view);
        let mut location = String::new();
        // The answer of a node that has the title no more, as long as no other has answered.
        let (mut missing, mut only_missing) = (None, true);
        loop {
            let answer = match (step, asked) {
                (DirectorStep::Admitted(_), _) => {
                    locked(&self.director).end(&attempt);
                    return Outcome::Sent(location);
                }
                (DirectorStep::Refused(refused), _) => {
                    locked(&self.director).end(&attempt);
                    if let Some(reply) = missing.filter(|_| only_missing) {
                        return Outcome::ByNode(reply);
                    }
                    if matches!(refused.reason, RefusalReason::NoCopy | RefusalReason::Full) {
                        self.unmet.refused(title, viewer.client, Instant::now());
                    }
                    let is_full =
                        matches!(refused.reason, RefusalReason::Full | RefusalReason::Headroom);
                    let moved = is_full.then(|| self.want_move(title, number, need, viewer, seed));
                    let times = [refused.retry_after, moved.flatten()];
                    let retry_after = times.into_iter().flatten().min();
                    return refusal(DirectorRefusal { retry_after, ..refused });
                }
                (_, None) => NodeAnswer::Unreachable,
                (_, Some(node)) => {
                    counters.asked();
                    let elsewhere = steering::elsewhere(&with_title, &node.name);
                    // Without others there is nowhere to be steered to.
                    let base = viewer.base.as_deref().filter(|_| !elsewhere.is_empty());
                    let steering = base.map(|base| steering::address(base, title, &node.name));
                    let question = Question {
                        target: viewer.target,
                        authorization: viewer.authorization,
                        traceparent: viewer.traceparent,
                        client: viewer.client,
                        steering: steering.as_deref().unwrap_or_default(),
                        elsewhere: &elsewhere,
                    };
                    match self.ask(&node, question) {
                        Ok(NodeVerdict::Reserved(found)) => {
                            location = resolved(&node.address, viewer.target, &found);
                            NodeAnswer::Accepted
                        }
                        Ok(NodeVerdict::Full(time)) => {
                            counters.node_refused();
                            NodeAnswer::Refused(time)
                        }
                        Ok(NodeVerdict::NoRtsp) => NodeAnswer::Unsuited,
                        Ok(_) => NodeAnswer::Unreachable,
                        // Its record says so soon. Players give up at this answer, so the other
                        // nodes with the title are asked first.
                        Err(reply) if reply.is_no_title() => {
                            missing = Some(*reply);
                            NodeAnswer::Unsuited
                        }
                        Err(reply) => {
                            if let DirectorStep::Ask(place) = step {
                                self.watched.view().found_reachable(place.node);
                            }
                            return Outcome::ByNode(*reply);
                        }
                    }
                }
            };
            only_missing &= answer == NodeAnswer::Unsuited;
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

    /// Wants another viewer to move, so that there is room for one who was refused. The time within
    /// which there is; `None`: nobody can move.
    fn want_move(
        &self,
        title: &TitleName,
        number: TitleNumber,
        need: StreamNeed,
        viewer: &Viewer<'_>,
        seed: u64,
    ) -> Option<Duration> {
        let now = self.watched.now();
        if let Some(known) = self.moves.recall(title, viewer.client, now) {
            return known;
        }
        let view = self.watched.view();
        let class = viewer.class;
        let found = locked(&self.director).find_move(&view, number, need, class, seed, now);
        let found = found.map(|found| {
            (view.node(found.from.node).id().clone(), view.title(found.title).name().clone())
        });
        drop(view);
        self.moves.want((title.clone(), viewer.client), found, now);
        self.moves.recall(title, viewer.client, now).flatten()
    }

    /// Whether a viewer of this rate who moves to make room may take this place
    /// ([`Director::leaves_headroom`]).
    pub(super) fn leaves_headroom(
        &self,
        view: &ClusterView,
        title: TitleNumber,
        place: CopyPlace,
        rate: BitRate,
        now: Moment,
    ) -> bool {
        let need = StreamNeed { disk: rate, network: rate, memory: ByteCount(0) };
        locked(&self.director).leaves_headroom(view, title, (place, need), now)
    }

    /// The moves that are wanted.
    pub(super) fn moves(&self) -> &WantedMoves {
        &self.moves
    }

    /// The part of what nodes guarantee that new viewers leave free.
    pub(super) fn kept(&self) -> f64 {
        locked(&self.director).settings().kept
    }

    /// Asks a node; the reply itself where the viewer gets it.
    fn ask(
        &self,
        node: &AskedPlace,
        question: Question<'_>,
    ) -> Result<NodeVerdict, Box<NodeReply>> {
        let AskedPlace { name, address } = node;
        let reply = match self.nodes.ask(address, question) {
            Ok(reply) => reply,
            // The metrics count it, and the view leaves the node out for a while.
            Err(why) => {
                self.say_silent(name, &why);
                return Ok(NodeVerdict::Unknown);
            }
        };
        locked(&self.silent).remove(name);
        if let Some(difference) = self.clock_difference(address) {
            self.say_clocks(name, difference);
        }
        let verdict = reply.verdict();
        match verdict {
            NodeVerdict::ForViewer => return Err(Box::new(reply)),
            NodeVerdict::DirectorUnknown => self.say_once(
                name,
                "does not take this director for one of its cluster: its secret differs",
            ),
            NodeVerdict::NoRtsp => {
                self.say_once(name, "has no RTSP, and gets no viewers of it: start it with --rtsp");
            }
            NodeVerdict::Unknown => self.say_once(
                name,
                &format!("answers with status {} to the question of a director", reply.status),
            ),
            _ => {}
        }
        Ok(verdict)
    }

    fn say_silent(&self, node: &str, why: &str) {
        let mut silent = locked(&self.silent);
        if silent.len() < MOST_STRANGERS && silent.insert(node.to_owned()) {
            (self.say)(&format!("the node {node} gets no viewers, as it does not answer: {why}"));
        }
    }

    fn say_clocks(&self, node: &str, difference: ClockDifference) {
        let mut known = locked(&self.with_other_clocks);
        if !difference.is_large() {
            known.remove(node);
        } else if known.len() < MOST_STRANGERS && known.insert(node.to_owned()) {
            let what = format!("{difference} that of this director; {SYNCHRONISE}");
            (self.say)(&format!("the clock of the node {node} is {what}"));
        }
    }

    fn say_once(&self, node: &str, what: &str) {
        let mut strangers = locked(&self.strangers);
        if strangers.len() < MOST_STRANGERS && strangers.insert(node.to_owned()) {
            (self.say)(&format!("the node {node} {what}"));
        }
    }
}

impl Outcome {
    /// The answer to a viewer of HTTP.
    pub(super) fn over_http(self) -> HttpResponse {
        match self {
            Self::Sent(location) => HttpResponse::empty(302).field("Location", &location),
            Self::Refused(cause, message, time) => {
                let status = if cause == Cause::NoTitle { 404 } else { 503 };
                HttpResponse::json(status, &problem(cause, message, time)).retry_after(time)
            }
            Self::ByNode(reply) => for_viewer(reply),
        }
    }
}

/// A refusal, as nodes word theirs.
pub(super) fn problem(cause: Cause, message: &str, time: Option<Duration>) -> Value {
    if cause == Cause::NoTitle {
        return json!({ "error": cause.word(), "message": message });
    }
    let retry_after = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    json!({
        "error": "refused",
        "message": message,
        "cause": cause.word(),
        "retry_after_ms": retry_after,
    })
}

fn refusal(refused: DirectorRefusal) -> Outcome {
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
    Outcome::Refused(cause, message, time)
}

/// The number of a title that is in the cluster, and what one viewer of it needs.
pub(super) fn known(view: &ClusterView, title: &TitleName) -> Option<(TitleNumber, StreamNeed)> {
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
    if ["http://", "https://", "rtsp://", "rtsps://"].iter().any(|it| location.starts_with(it)) {
        return location.to_owned();
    }
    if location.starts_with('/') {
        return format!("{address}{location}");
    }
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{address}{folder}/{location}")
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
            ("rtsp://n1:554/t/film?ticket=a", "rtsp://n1:554/t/film?ticket=a"),
        ];
        for (location, wanted) in rows {
            assert_eq!(resolved("http://n1", "/t/film/master.m3u8?x=/y", location), wanted);
        }
    }
}
