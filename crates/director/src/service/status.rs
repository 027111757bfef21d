//! What a director shows of itself and of the cluster: `/healthz`, `/status`, `/titles`.

use super::ServiceState;
use crate::clock::ClockDifference;
use crate::planning::Planning;
use cluster::{
    CapacityShare, CopyState, CopyVersion, CopyView, NodeId, NodeNumber, NodeView, TitleName,
    TitleSize,
};
use http_service::HttpResponse;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use units::Moment;

/// 200 while the view is listed and etcd was heard of late.
pub(super) fn health(state: &ServiceState) -> HttpResponse {
    let watched = &state.watched;
    let not_ready = |why: &str| HttpResponse::problem(503, "not-ready", why, json!({}));
    match watched.age() {
        _ if state.is_stopping() => not_ready("the director is stopping"),
        Some(age) if watched.is_listed() && age <= TOO_OLD => {
            HttpResponse::with_body(200, "text/plain; charset=utf-8", "ok\n")
        }
        Some(age) if watched.is_listed() => {
            not_ready(&format!("etcd has not answered for {} s", age.as_secs()))
        }
        _ => not_ready("the records of the cluster are not listed yet"),
    }
}

/// The state as JSON.
pub(super) fn status(state: &ServiceState) -> HttpResponse {
    let watched = &state.watched;
    let now = watched.now();
    let counted = state.counters.counted();
    let director = state.admission.director_counters();
    let from = watched.watched_from();
    let refused: serde_json::Map<String, Value> = counted
        .refused
        .into_iter()
        .map(|(cause, count)| (cause.to_owned(), count.into()))
        .collect();
    let caches: serde_json::Map<String, Value> = counted
        .caches
        .into_iter()
        .map(|(outcome, count)| (outcome.to_owned(), count.into()))
        .collect();
    let view = watched.view();
    let nodes: Vec<Value> =
        view.nodes().filter_map(|(_, node)| node_status(state, node, now)).collect();
    let away: Vec<Value> = view
        .nodes()
        .filter(|(_, node)| node.is_away())
        .map(|(_, node)| json!({ "name": node.id().as_str(), "titles": node.held().count(), "drained": node.is_drained() }))
        .collect();
    let titles = view.titles().filter(|(_, title)| title.size().is_some()).count();
    let (revision, epoch) = (view.revision(), view.epoch());
    let planner = view.planner().map(str::to_owned);
    drop(view);
    let body = json!({
        "version": state.version,
        "cluster": state.cluster.as_str(),
        "uptime": seconds(now.since(Moment::ZERO)),
        "connections": state.connections(),
        "etcd": {
            "endpoint": from.endpoint,
            "error": from.error,
            "age": watched.age().map(seconds),
            "lists": watched.lists(),
            "writes": state.planning.as_ref().map_or(0, Planning::writes),
            "unusable_records": watched.unusable(),
        },
        "revision": revision,
        "epoch": epoch,
        "nodes": nodes,
        "away": away,
        "titles": titles,
        "planning": {
            "planner": planner,
            "here": state.planning.as_ref().map(planning_status),
        },
        "counters": {
            "admitted": counted.admitted,
            "refused": refused,
            "cache_requests": caches,
            "cache_retries": counted.cache_retries,
            "questions": counted.asked,
            "node_refusals": counted.node_refused,
            "node_silent": counted.silent,
            "content_misses": director.content_misses,
            "health_misses": director.health_misses,
        },
    });
    HttpResponse::with_body(200, "application/json", body.to_string())
}

/// How the planning of this director goes, if it is the one that plans.
fn planning_status(planning: &Planning) -> Value {
    let shown = planning.shown();
    json!({
        "plans": shown.is_planner,
        "titles": shown.titles,
        "fills": shown.fills,
        "evictions": shown.evictions,
        "damaged": shown.damaged,
        "not_in_bucket": shown.unlisted,
        "outdated": shown.outdated,
        "own": shown.own,
        "error": shown.error,
    })
}

fn node_status(state: &ServiceState, node: &NodeView, now: Moment) -> Option<Value> {
    let digest = node.digest()?;
    let share =
        |share: &CapacityShare| json!({ "free": share.free, "guaranteed": share.guaranteed });
    Some(json!({
        "name": node.id().as_str(),
        "address": digest.address,
        "rack": digest.rack,
        "answers": node.is_well(now),
        "lease": seconds(digest.lease()),
        "disks": digest.disks.iter().map(share).collect::<Vec<_>>(),
        "network": share(&digest.network),
        "memory": share(&digest.memory),
        "space": digest.space.iter().map(share).collect::<Vec<_>>(),
        "drained": node.is_drained(),
        "clock_difference":
            state.admission.clock_difference(&digest.address).map(ClockDifference::seconds),
        "fills_ordered": node.orders().fill.len() as u64 + u64::from(node.orders().later),
    }))
}

/// A title with its copies, and those that are outdated or have content of their own.
type ShownTitle = (TitleName, Option<TitleSize>, Vec<CopyView>, [Vec<CopyView>; 2]);

/// The titles of the cluster with the nodes that have them.
pub(super) fn titles(state: &ServiceState) -> HttpResponse {
    // Viewers wait for the view, so that only what is needed of it is taken under its lock.
    let (mut titles, names, unlisted) = {
        let view = state.watched.view();
        let titles: Vec<ShownTitle> = view
            .titles()
            .filter(|(number, title)| title.size().is_some() || !view.copies(*number).is_empty())
            .map(|(number, title)| {
                let of = |wanted: CopyVersion| -> Vec<CopyView> {
                    let copies = view.different_copies(number);
                    copies.filter(|(_, it)| *it == wanted).map(|(copy, _)| copy).collect()
                };
                let different = [CopyVersion::Outdated, CopyVersion::Own].map(of);
                (title.name().clone(), title.size(), view.copies(number).to_vec(), different)
            })
            .collect();
        let unlisted = view.unlisted().cloned();
        let names: BTreeMap<NodeNumber, NodeId> =
            view.nodes().map(|(number, node)| (number, node.id().clone())).collect();
        (titles, names, unlisted)
    };
    titles.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let nodes = |copies: &[CopyView], wanted: CopyState| {
        let with = copies.iter().filter(|copy| copy.state == wanted);
        let nodes: BTreeSet<&NodeId> =
            with.filter_map(|copy| names.get(&copy.place.node)).collect();
        json!(nodes)
    };
    let shown = titles.iter().map(|(name, size, copies, [outdated, own])| {
        let path = utf8_percent_encode(name.as_str(), ESCAPED);
        json!({
            "name": name,
            "bit_rate": size.map(|size| size.rate.0),
            "bytes": size.map(|size| size.size.0),
            "ready": nodes(copies, CopyState::Ready),
            "filling": nodes(copies, CopyState::Filling),
            "outdated": nodes(outdated, CopyState::Ready),
            "own": nodes(own, CopyState::Ready),
            "in_bucket": unlisted.as_ref().and_then(|it| it.has(name)).map(|is_missing| !is_missing),
            "hls": format!("/t/{path}/master.m3u8"),
            "dash": format!("/t/{path}/manifest.mpd"),
            "mp4": format!("/t/{path}.mp4"),
        })
    });
    let body = json!({ "titles": shown.collect::<Vec<_>>() }).to_string();
    HttpResponse::with_body(200, "application/json", body)
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

/// Time without an answer of etcd after which a director is not healthy: three leases.
const TOO_OLD: Duration = Duration::from_secs(30);
/// Every character that is not unreserved in RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
