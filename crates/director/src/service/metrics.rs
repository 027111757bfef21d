//! `/metrics`: OpenMetrics text, made at each scrape.

use super::ServiceState;
use crate::clock::ClockDifference;
use crate::planning::Planning;
use http_service::HttpResponse;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::Arc;

/// The metrics at this moment.
pub(super) fn metrics(state: &Arc<ServiceState>) -> HttpResponse {
    let mut registry = Registry::default();
    // The same name as a node's, so that both are joined with other metrics in the same way.
    let cluster = Info::new([("cluster", state.cluster.to_string())]);
    registry.sub_registry_with_prefix("tenuto").register("cluster", "The cluster", cluster);
    let of_director = registry.sub_registry_with_prefix("tenuto_director");
    of_director.register_with_unit(
        "admission",
        "Time from a viewer's request to its answer",
        Unit::Seconds,
        state.counters.admission.clone(),
    );
    of_director.register_collector(Box::new(DirectorScrape(Arc::clone(state))));
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => HttpResponse::with_body(200, CONTENT_TYPE, text),
        Err(error) => {
            HttpResponse::problem(503, "metrics", &error.to_string(), serde_json::Value::Null)
        }
    }
}

struct DirectorScrape(Arc<ServiceState>);

impl fmt::Debug for DirectorScrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectorScrape")
    }
}

impl Collector for DirectorScrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let state = &*self.0;
        let counted = state.counters.counted();
        let director = state.admission.director_counters();
        let watched = &state.watched;
        let view = watched.view();
        let now = watched.now();
        let nodes = view.nodes().filter(|(_, node)| node.digest().is_some()).count();
        let away = view.nodes().filter(|(_, node)| node.is_away()).count();
        let answering = view.nodes().filter(|(_, node)| node.is_well(now)).count();
        let titles = view.titles().filter(|(_, title)| title.size().is_some()).count();
        let addresses: Vec<String> =
            view.nodes().filter_map(|(_, node)| Some(node.digest()?.address.clone())).collect();
        drop(view);
        let clocks = addresses.iter().filter_map(|at| state.admission.clock_difference(at));
        let clock = clocks.max_by_key(|difference| difference.size());
        let help = "Viewers refused, by cause";
        let mut refused = encoder.encode_descriptor("refused", help, None, MetricType::Counter)?;
        for (cause, count) in counted.refused {
            ConstCounter::new(count).encode(refused.encode_family(&[("cause", cause)])?)?;
        }
        let help = "Requests of caches, by outcome";
        let kind = MetricType::Counter;
        let mut caches = encoder.encode_descriptor("cache_requests", help, None, kind)?;
        for (outcome, count) in counted.caches {
            ConstCounter::new(count).encode(caches.encode_family(&[("outcome", outcome)])?)?;
        }
        let help = "Replies to requests of RTSP, by class of status";
        let kind = MetricType::Counter;
        let mut replies = encoder.encode_descriptor("rtsp_responses", help, None, kind)?;
        for (class, count) in counted.rtsp_replies {
            ConstCounter::new(count).encode(replies.encode_family(&[("class", class)])?)?;
        }
        let mut counter = |name: &str, help: &str, count: u64| {
            let counter = ConstCounter::new(count);
            let kind = ConstCounter::<u64>::TYPE;
            counter.encode(encoder.encode_descriptor(name, help, None, kind)?)
        };
        counter("admitted", "Viewers sent to a node that has reserved", counted.admitted)?;
        let help = "Requests of caches that a node has failed before";
        counter("cache_retries", help, counted.cache_retries)?;
        counter("questions", "Questions to nodes", counted.asked)?;
        let help = "Questions that a node refused, because it had no room";
        counter("node_refusals", help, counted.node_refused)?;
        let help = "Questions without an answer that can be used";
        counter("node_silent", help, counted.silent)?;
        let help = "Viewers for whose title no ready copy was on a node that answers";
        counter("content_misses", help, director.content_misses)?;
        let help = "Viewers whom the node that was best did not accept";
        counter("health_misses", help, director.health_misses)?;
        let help = "Viewers told to go on at another node, to make room for others";
        counter("moves", help, state.admission.moves().made())?;
        counter("lists", "Lists of all records", watched.lists())?;
        let help = "Records that could not be used";
        counter("unusable_records", help, watched.unusable())?;
        let writes = state.planning.as_ref().map_or(0, Planning::writes);
        let help = "Writes to etcd, by a director with a bucket";
        counter("etcd_writes", help, writes)?;
        let mut gauge = |name: &str, help: &str, value: u64| {
            let gauge = ConstGauge::new(value);
            let kind = ConstGauge::<u64>::TYPE;
            gauge.encode(encoder.encode_descriptor(name, help, None, kind)?)
        };
        gauge("nodes", "Nodes that are registered", nodes as u64)?;
        gauge(
            "nodes_answering",
            "Nodes that have answered the last question, or were not asked since they came",
            answering as u64,
        )?;
        let help = "Nodes that belong to the cluster and are not registered";
        gauge("nodes_away", help, away as u64)?;
        gauge("titles", "Titles of the cluster", titles as u64)?;
        let connections = state.connections() as u64;
        gauge("connections", "Connections of viewers, over HTTP and RTSP", connections)?;
        if let Some(planning) = &state.planning {
            let shown = planning.shown();
            let help = "Whether this director plans the placement of titles";
            gauge("planning", help, u64::from(shown.is_planner))?;
            let help = "Whether the last list of the titles in the bucket failed";
            gauge("bucket_not_listed", help, u64::from(shown.is_not_listed))?;
            let help = "Titles of record in the bucket, as the director that plans knows them";
            gauge("titles_of_record", help, shown.titles as u64)?;
            gauge("fills_ordered", "Copies that nodes should still write", shown.fills)?;
            let help = "Titles of record that are damaged in the bucket";
            gauge("titles_damaged", help, shown.damaged as u64)?;
            let help = "Titles on nodes that the bucket lacks";
            gauge("titles_not_in_bucket", help, u64::from(shown.unlisted))?;
            let help = "Copies of titles that were replaced in the bucket";
            gauge("copies_outdated", help, shown.outdated)?;
            let help = "Copies whose content the bucket never had under their name";
            gauge("copies_own", help, shown.own)?;
            let help = "Copies that nodes should still remove";
            gauge("evictions_ordered", help, shown.evictions)?;
        }
        let mut seconds = |name: &str, help: &str, value: Option<f64>| {
            let kind = ConstGauge::<f64>::TYPE;
            let sample = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), kind)?;
            // What is not known yet has no sample.
            value.map_or(Ok(()), |value| ConstGauge::new(value).encode(sample))
        };
        let help = "The largest difference of a node's clock from that of this director, by the last \
                    answer of each; negative where the node's is behind";
        seconds("clock_difference", help, clock.map(ClockDifference::seconds))?;
        let help = "Time since the last answer of etcd";
        seconds("view_age", help, watched.age().map(|age| age.as_secs_f64()))
    }
}

/// The content type of the text.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
