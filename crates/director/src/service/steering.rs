//! Where a viewer goes on who loses the node, or should leave it: other nodes with the title, for
//! the manifest, and the steering manifests of HLS and DASH.
//!
//! ```text
//!   question to n1 ── Tenuto-Elsewhere: n2=http://..,n3=http://..     DASH: several BaseURLs
//!                     Tenuto-Steering: http://director/steer/film?node=n1
//!   HLS   ──GET /steer/film?node=n1&s=S&ticket=T&names=0,1&_HLS_pathway="n1"──▶ director
//!         ◀── PATHWAY-PRIORITY n1, n2, n3; n2 and n3 as clones of n1 (RFC 8216bis, 4.4.6.6; 7)
//!   DASH  ──GET /steer/film?node=n1&s=S&ticket=T&locations=n1,n2,n3&_DASH_pathway="n1"──▶
//!         ◀── PATHWAY-PRIORITY n1, n2, n3; of those that the manifest has (ETSI TS 103 998)
//! ```
//!
//! The viewers of a lost node must not all go to the same other one: each viewer has an order of
//! its own, in which a node is first in proportion to what it has free.
//!
//! A viewer stays where the viewer is while that node answers: its reservation is there. Only
//! viewers of a node that is drained leave it, in groups, as the planner orders ([`has_its_turn`]),
//! and single ones where that makes room for others (`moves`); one whom no other node takes comes
//! back. But for these moves, the answer follows from what etcd has and the request alone, so that
//! any director gives it. Each address at another node is given by itself, because
//! players change no port with the host: the node has put the names of its media playlists, the
//! session and its ticket into the address of the steering manifest. In DASH all addresses are
//! relative to the base addresses that the manifest has, and players know no others: a viewer of
//! DASH moves among these.

use super::ServiceState;
use cluster::{
    CapacityShare, ClusterView, ContentTag, CopyPlace, CopyState, NodeId, NodeView, TitleName,
    TitleNumber, kept_of,
};
use http_service::{HttpRequest, HttpResponse};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use ring::digest;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use units::{BitRate, Moment};

/// A node with a copy of a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TitleNode {
    pub(super) name: String,
    pub(super) address: String,
    /// What its copy has; `None`: it is not known.
    content: Option<ContentTag>,
    /// Free rate of its disk with the copy, or of its network if that has less.
    free: u64,
    /// What of that new viewers may take.
    free_for_new: u64,
    /// The copy with most of that; `None`: it was removed.
    place: Option<CopyPlace>,
    is_drained: bool,
}

impl TitleNode {
    /// Whether its copy may be of this content; of one that is not known it may.
    pub(super) fn has(&self, content: Option<ContentTag>) -> bool {
        content.is_none() || self.content.is_none() || self.content == content
    }
}

/// The nodes with a ready copy of a title that answer, in the order of the viewer with this `salt`;
/// those that are drained come last. `kept`: the part that new viewers leave free.
pub(super) fn nodes_with(
    view: &ClusterView,
    title: TitleNumber,
    now: Moment,
    kept: f64,
    salt: &[u8],
) -> Vec<TitleNode> {
    let mut found: BTreeMap<&str, TitleNode> = BTreeMap::new();
    let copies = view.copies(title).iter().filter(|copy| copy.state == CopyState::Ready);
    for copy in copies.take(LOOKED_AT) {
        let node = view.node(copy.place.node);
        let Some(digest) = node.digest().filter(|_| node.answers(now)) else { continue };
        let disk = digest.disks.get(usize::from(copy.place.disk.0));
        let free = disk.map_or(0, |disk| disk.free.min(digest.network.free));
        let for_new = |of: &CapacityShare| of.free.saturating_sub(kept_of(of.guaranteed, kept));
        let free_for_new = disk.map_or(0, |disk| for_new(disk).min(for_new(&digest.network)));
        let with = || TitleNode {
            name: node.id().to_string(),
            content: copy.content,
            address: digest.address.trim_end_matches('/').to_owned(),
            free,
            free_for_new,
            place: Some(copy.place),
            is_drained: node.is_drained(),
        };
        let known = found.entry(node.id().as_str()).or_insert_with(with);
        known.free = known.free.max(free);
        if free_for_new > known.free_for_new {
            (known.free_for_new, known.place) = (free_for_new, Some(copy.place));
        }
    }
    let mut found: Vec<TitleNode> = found.into_values().collect();
    found.sort_by(|a, b| {
        let by_rate = || place_in_order(a, salt).total_cmp(&place_in_order(b, salt));
        a.is_drained.cmp(&b.is_drained).then_with(by_rate)
    });
    found
}

/// Where a node stands in the order of a viewer: the time of an event that happens at the node's
/// free rate, so that of two nodes each is first in proportion to what it has free.
fn place_in_order(node: &TitleNode, salt: &[u8]) -> f64 {
    -chance(&[salt, node.name.as_bytes()]).ln() / (node.free as f64).max(1.0)
}

/// A number from just above 0 to 1 that follows from these bytes.
fn chance(of: &[&[u8]]) -> f64 {
    let mut context = digest::Context::new(&digest::SHA256);
    of.iter().for_each(|bytes| context.update(bytes));
    let hash = context.finish();
    let bits = u32::from_le_bytes(hash.as_ref()[..4].try_into().expect("four bytes"));
    (f64::from(bits) + 1.0) / 4_294_967_296.0
}

/// The value of `Tenuto-Elsewhere` in a question to the node `asked`: nodes with the same content,
/// because a viewer cannot go on with another one.
pub(super) fn elsewhere(nodes: &[TitleNode], asked: &str) -> String {
    let content = nodes.iter().find(|node| node.name == asked).and_then(|node| node.content);
    let is_other = |node: &&TitleNode| node.name != asked && node.has(content);
    let others = nodes.iter().filter(is_other).take(OTHERS);
    let all: Vec<String> = others.map(|node| format!("{}={}", node.name, node.address)).collect();
    all.join(",")
}

/// The value of `Tenuto-Steering` in a question to the node `asked`; `base` is how the viewer
/// reached this director.
pub(super) fn address(base: &str, title: &TitleName, asked: &str) -> String {
    format!("{base}/steer/{}?node={asked}", utf8_percent_encode(title.as_str(), ESCAPED))
}

/// The title of a request for a steering manifest.
pub(super) fn title_of(request: &HttpRequest<'_>) -> Option<TitleName> {
    let name = request.path().strip_prefix("/steer/")?;
    TitleName::new(percent_decode_str(name).decode_utf8().ok()?).ok()
}

/// The steering manifest.
pub(super) fn manifest(
    state: &ServiceState,
    request: &HttpRequest<'_>,
    title: &TitleName,
) -> HttpResponse {
    let now = state.watched.now();
    let view = state.watched.view();
    let Some(number) = view.title_named(title) else {
        drop(view);
        return HttpResponse::problem(404, "no-title", "no node has this title", json!({}));
    };
    let session = request.raw_query("s").unwrap_or_default();
    let kept = state.admission.kept();
    let mut nodes = nodes_with(&view, number, now, kept, session.as_bytes());
    let first = request.query("node").unwrap_or_default();
    let locations = request.query("locations");
    let left = || state.admission.moves().was_told_to_leave(session, now);
    let present = match locations.is_some() {
        true => request.query("_DASH_pathway").and_then(|all| last_of(&all, left)),
        false => request.query("_HLS_pathway").map(|one| one.trim_matches('"').to_owned()),
    };
    let present = present.unwrap_or_else(|| first.clone());
    let present = &*present;
    let here = NodeId::new(present).ok().and_then(|id| view.node_named(&id));
    let here = here.map(|number| view.node(number)).filter(|node| node.answers(now));
    // The copy may have been removed, which its viewers play to the end.
    if let Some(here) = here.filter(|_| !nodes.iter().any(|node| node.name == present)) {
        nodes.extend(without_copy(here));
    }
    if let Some(locations) = &locations {
        nodes.retain(|node| locations.split(',').any(|name| name == node.name));
    }
    let mut next = None;
    if let Some(here) = here {
        let rate = view.title(number).size().map_or(BitRate(0), |size| size.rate);
        let is_leaving = leaving(here, number, title)
            .is_some_and(|(leave, of)| has_its_turn(leave, of, session.as_bytes(), now));
        let moves = state.admission.moves();
        let is_wanted = || moves.concern(here.id(), title, session, now);
        let leaves_headroom = |node: &TitleNode| {
            let place = node.place;
            place.is_none_or(|it| state.admission.leaves_headroom(&view, number, it, rate, now))
        };
        next = match is_leaving {
            true => with_room(&nodes, present, rate, |node| node.free),
            false => with_room(&nodes, present, rate, |node| node.free_for_new)
                .filter(|next| is_wanted() && leaves_headroom(next))
                .filter(|_| moves.leaves(here.id(), title, session, now)),
        };
    }
    let next = next.map(|node| node.name.clone());
    drop(view);
    if locations.is_some() {
        let body = list(in_order(&nodes, &first, present, next.as_deref()).1);
        return HttpResponse::json(200, &body);
    }
    let names = request.query("names").unwrap_or_default();
    let of = |name| request.raw_query(name).filter(|value| is_plain(value)).unwrap_or_default();
    let path = format!("/t/{}/", utf8_percent_encode(title.as_str(), ESCAPED));
    let query = format!("?s={}&ticket={}", of("s"), of("ticket"));
    let names: Vec<&str> = names.split(',').filter(|name| is_plain(name)).collect();
    let listed = Playlists { names, path, query };
    let body = steered(&nodes, &first, present, next.as_deref(), &listed);
    HttpResponse::with_body(200, "application/vnd.apple.steering-list", body.to_string())
}

/// The node that a player of DASH fetches from: the last of all from which it has fetched since it
/// has asked before. A player that comes back to one of them does not name it again: one that was
/// `left` long ago, and is among them, is where it has come back to.
fn last_of(all: &str, left: impl FnOnce() -> Option<NodeId>) -> Option<String> {
    let all: Vec<&str> = all.trim_matches('"').split(',').collect();
    let back = left().filter(|left| all.len() > 1 && all.contains(&left.as_str()));
    let last = all.last().filter(|last| !last.is_empty())?;
    Some(back.map_or_else(|| (*last).to_owned(), |back| back.to_string()))
}

/// The media playlists that a manifest has.
struct Playlists<'a> {
    /// Paths in the folder of the title, without extension: `0`, `text/0`.
    names: Vec<&'a str>,
    /// The folder.
    path: String,
    /// The query of all addresses.
    query: String,
}

impl Playlists<'_> {
    /// The address of each at a node, by its name.
    fn at(&self, address: &str) -> Value {
        let Self { names, path, query } = self;
        let of =
            |name: &&str| ((*name).to_owned(), format!("{address}{path}{name}.m3u8{query}").into());
        Value::Object(names.iter().map(of).collect())
    }
}

/// Whether a text can stand in an address as it is.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
}

/// A node whose copy of the title was removed.
fn without_copy(node: &NodeView) -> Option<TitleNode> {
    let address = node.digest()?.address.trim_end_matches('/').to_owned();
    let (name, is_drained) = (node.id().to_string(), node.is_drained());
    let (content, place) = (None, None);
    Some(TitleNode { name, address, content, free: 0, free_for_new: 0, place, is_drained })
}

/// How many of a title's viewers should leave a drained node now, and of how many.
fn leaving(node: &NodeView, title: TitleNumber, name: &TitleName) -> Option<(u32, u32)> {
    let remain = *node.orders().remain.get(name).filter(|_| node.is_drained())?;
    let (_, here) = node.viewers().iter().find(|(of, _)| *of == title)?;
    Some((here.saturating_sub(remain), *here))
}

/// Whether a viewer of this `salt` is among those who leave, in the present turn. All ask twice a
/// minute, and the answer stays the same for a turn; then others leave.
fn has_its_turn(leave: u32, of: u32, salt: &[u8], now: Moment) -> bool {
    let turn = u128::from(now.0) / TURN.as_nanos();
    chance(&[salt, &turn.to_le_bytes()]) * f64::from(of) <= f64::from(leave)
}

/// The first node that has room for a viewer of this rate who leaves `present`, and for another
/// one: half of what is free is left to new viewers.
fn with_room<'a>(
    nodes: &'a [TitleNode],
    present: &str,
    rate: BitRate,
    free: impl Fn(&TitleNode) -> u64,
) -> Option<&'a TitleNode> {
    let content = nodes.iter().find(|node| node.name == present).and_then(|node| node.content);
    let has_room = |node: &&TitleNode| {
        node.name != present
            && !node.is_drained
            && (content.is_none() || node.content.is_none() || node.content == content)
            && free(node) >= rate.0.saturating_mul(2)
    };
    nodes.iter().find(has_room)
}

/// The nodes that a steering manifest names, and the order in which the player should go to them.
/// `first`: the node whose manifest the player has. `present`: the one that it fetches from.
/// `next`: the one that it goes to now.
fn in_order<'a>(
    nodes: &'a [TitleNode],
    first: &'a str,
    present: &str,
    next: Option<&str>,
) -> (Vec<&'a TitleNode>, Vec<&'a str>) {
    let mut nodes: Vec<&TitleNode> = nodes.iter().collect();
    // Stable, so that the others stay in their order; first, so that it is among those that count.
    nodes.sort_by_key(|node| (next != Some(&*node.name), node.name != present));
    nodes.truncate(OTHERS + 1);
    let mut order: Vec<&str> = nodes.iter().map(|node| &*node.name).collect();
    // The manifest has no other base. A node that does not answer comes last.
    if !order.contains(&first) {
        order.push(first);
    }
    (nodes, order)
}

/// What the steering manifests of HLS and DASH have in common.
fn list(order: Vec<&str>) -> Value {
    json!({ "VERSION": 1, "TTL": ASKED_AGAIN_SECS, "PATHWAY-PRIORITY": order })
}

/// The steering manifest of HLS.
fn steered(
    nodes: &[TitleNode],
    first: &str,
    present: &str,
    next: Option<&str>,
    listed: &Playlists<'_>,
) -> Value {
    let (nodes, order) = in_order(nodes, first, present, next);
    let clones = nodes.iter().filter(|node| node.name != first);
    let clones: Vec<Value> = clones
        .map(|node| {
            let addresses = listed.at(&node.address);
            let replaced =
                json!({ "PER-VARIANT-URIS": addresses, "PER-RENDITION-URIS": addresses });
            json!({ "BASE-ID": first, "ID": node.name, "URI-REPLACEMENT": replaced })
        })
        .collect();
    let mut list = list(order);
    list["PATHWAY-CLONES"] = clones.into();
    list
}

/// Other nodes that a manifest names.
const OTHERS: usize = 2;
/// Copies that are looked at: a popular title has hundreds.
const LOOKED_AT: usize = 64;
/// A player leaves a node that is lost without being told; being told spreads viewers anew.
const ASKED_AGAIN_SECS: u32 = 30;
/// How long the same viewers have their turn to leave a node: all of them have asked by then, and a
/// planner has seen what the nodes that took them have left.
const TURN: Duration = Duration::from_secs(60);
/// Every character that is not unreserved in RFC 3986.
pub(super) const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, address: &str) -> TitleNode {
        let (name, address) = (name.to_owned(), address.to_owned());
        let (content, place) = (None, None);
        let is_drained = false;
        TitleNode { name, address, content, free: 0, free_for_new: 0, place, is_drained }
    }

    #[test]
    fn a_viewer_goes_on_only_where_the_same_content_is() {
        let [a, b] = ["a", "b"].map(|content| Some(ContentTag::of(content)));
        let with = |name, content| TitleNode { content, ..node(name, "http://x") };
        let all = [with("n1", a), with("n2", b), with("n3", a), with("n4", None)];
        assert_eq!(elsewhere(&all, "n1"), "n3=http://x,n4=http://x");
        assert_eq!(elsewhere(&all, "n2"), "n4=http://x");
        assert_eq!(elsewhere(&all, "n4"), "n1=http://x,n2=http://x");
    }

    #[test]
    fn a_viewer_stays_at_a_node_that_answers_and_leaves_one_that_does_not() {
        let all = [node("n2", "http://b:80"), node("n1", "http://a:80"), node("n3", "https://c")];
        let four = [all[0].clone(), node("n4", "http://d"), all[2].clone(), all[1].clone()];
        let rows = [
            (
                &all[..],
                "n1",
                "n1",
                "n1 n2 n3",
                "n2=http://b:80/t/f/0.m3u8?q n3=https://c/t/f/0.m3u8?q",
            ),
            (
                &all,
                "n3",
                "n2",
                "n2 n1 n3",
                "n2=http://b:80/t/f/0.m3u8?q n1=http://a:80/t/f/0.m3u8?q",
            ),
            (&all[..1], "n1", "n1", "n2 n1", "n2=http://b:80/t/f/0.m3u8?q"),
            (&all[..1], "n2", "n2", "n2", ""),
            (&[], "n1", "n1", "n1", ""),
            // Also where the viewer's order has others in front.
            (&four, "n1", "n1", "n1 n2 n4", "n2=http://b:80/t/f/0.m3u8?q n4=http://d/t/f/0.m3u8?q"),
        ];
        let (path, query) = ("/t/f/".to_owned(), "?q".to_owned());
        let listed = Playlists { names: vec!["0"], path, query };
        for (nodes, first, present, priority, cloned) in rows {
            let steered = steered(nodes, first, present, None, &listed);
            let texts = |value: &Value| -> Vec<String> {
                let all = value.as_array().unwrap().iter();
                all.map(|one| one.as_str().unwrap().to_owned()).collect()
            };
            assert_eq!(texts(&steered["PATHWAY-PRIORITY"]).join(" "), priority);
            let clones = steered["PATHWAY-CLONES"].as_array().unwrap().iter().map(|clone| {
                assert_eq!(clone["BASE-ID"], first);
                let address = clone["URI-REPLACEMENT"]["PER-VARIANT-URIS"]["0"].as_str().unwrap();
                format!("{}={address}", clone["ID"].as_str().unwrap())
            });
            assert_eq!(clones.collect::<Vec<_>>().join(" "), cloned, "{first} {present}");
        }
        assert_eq!(elsewhere(&all, "n1"), "n2=http://b:80,n3=https://c");
        assert_eq!(elsewhere(&all[1..2], "n1"), "");
    }

    #[test]
    fn a_player_of_dash_is_where_it_has_come_last_or_back_to() {
        let rows = [
            ("\"n1\"", None, Some("n1")),
            ("n1,n2", None, Some("n2")),
            ("\"n1,n2\"", Some("n1"), Some("n1")),
            ("\"n2\"", Some("n1"), Some("n2")),
            ("n3,n2", Some("n1"), Some("n2")),
            ("\"\"", None, None),
        ];
        for (all, left, wanted) in rows {
            let left = || left.map(|name| NodeId::new(name).unwrap());
            assert_eq!(last_of(all, left).as_deref(), wanted, "{all}");
        }
    }

    #[test]
    fn a_viewer_leaves_for_a_node_with_room_for_two_and_the_same_content() {
        let [a, b] = ["a", "b"].map(|content| Some(ContentTag::of(content)));
        let with = |name, content, free, is_drained| TitleNode {
            content,
            free,
            is_drained,
            ..node(name, "http://x")
        };
        let all = [
            with("n2", b, 90, false),
            with("n3", a, 9, false),
            with("n4", a, 90, true),
            with("n5", a, 10, false),
            with("n1", a, 90, true),
        ];
        for (nodes, rate, next, order) in [
            (&all[..], 5, Some("n5"), "n5 n1 n2"),
            (&all, 6, None, "n1 n2 n3"),
            (&all[..4], 5, Some("n2"), "n2 n3 n4 n1"),
        ] {
            let found = with_room(nodes, "n1", BitRate(rate), |node| node.free);
            assert_eq!(found.map(|node| &*node.name), next);
            let listed = Playlists { names: Vec::new(), path: String::new(), query: String::new() };
            let list = steered(nodes, "n1", "n1", next, &listed);
            let order_found: Vec<&str> = list["PATHWAY-PRIORITY"]
                .as_array()
                .unwrap()
                .iter()
                .map(|name| name.as_str().unwrap())
                .collect();
            assert_eq!(order_found.join(" "), order);
        }
    }

    #[test]
    fn so_many_viewers_have_their_turn_as_should_leave_and_then_others() {
        let at = |turn: u32| Moment::ZERO + TURN * turn;
        let who = |leave, of, now: Moment| -> Vec<u32> {
            (0..of).filter(|it| has_its_turn(leave, of, &it.to_le_bytes(), now)).collect()
        };
        let first = who(100, 1000, at(0));
        assert!((80..120).contains(&first.len()), "{}", first.len());
        assert_eq!(first, who(100, 1000, at(1) - Duration::from_secs(1)));
        assert_ne!(first, who(100, 1000, at(1)));
        assert_eq!(who(0, 1000, at(0)).len(), 0);
        assert_eq!(who(7, 7, at(0)).len(), 7);
    }

    #[test]
    fn the_viewers_of_a_lost_node_spread_by_what_others_have_free() {
        let [one, three] = [("n1", 1_000_000), ("n2", 3_000_000)]
            .map(|(name, free)| TitleNode { free, ..node(name, "http://a") });
        let first = (0..1_000_u32).filter(|viewer| {
            let salt = viewer.to_le_bytes();
            place_in_order(&one, &salt) < place_in_order(&three, &salt)
        });
        // A quarter of them.
        let first = first.count();
        assert!((200..300).contains(&first), "{first}");
        let full = TitleNode { free: 0, ..one };
        assert!(place_in_order(&full, b"x") > place_in_order(&three, b"x"));
    }
}
