//! `/metrics`: the books as OpenMetrics text. Made at each scrape from what was laid open last, so
//! that counting costs nothing between scrapes.

use crate::shared::Shared;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The content type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics at this moment.
pub(crate) fn text(shared: &Arc<Shared>) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("tenuto");
    registry.register_with_unit(
        "startup",
        "From admission to the first media bytes",
        Unit::Seconds,
        shared.startup.clone(),
    );
    registry.register_with_unit(
        "session_slack",
        "Least time by which reads of a session were early, observed when it ends",
        Unit::Seconds,
        shared.slack.clone(),
    );
    registry.register_collector(Box::new(Scrape(Arc::clone(shared))));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Scrape(Arc<Shared>);

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut out = Out(&mut encoder);
        self.sessions(&mut out)?;
        self.memory(&mut out)?;
        self.disks(&mut out)?;
        self.http(&mut out)
    }
}

impl Scrape {
    fn sessions(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let engine = &self.0.books().engine;
        out.gauge("sessions", "Sessions admitted and not ended", engine.sessions)?;
        out.gauge("sessions_active", "Sessions that hold a reservation", engine.active)?;
        out.counter("admitted", "Sessions admitted", engine.admitted)?;
        out.counter(
            "admitted_smaller",
            "Sessions admitted to less than the best rendition",
            engine.admitted_smaller,
        )?;
        let refused = [
            ("disk", engine.refused_disk),
            ("memory", engine.refused_memory),
            ("network", engine.refused_network),
        ];
        out.counters("refused", "Viewers refused, by scarce resource", "resource", &refused)?;
        out.counter(
            "refused_for_loss",
            "Viewers refused who would have come in if no disk could be lost",
            engine.refused_for_loss,
        )?;
        out.counter(
            "sessions_moved",
            "Sessions that went on with another copy when their disk was lost",
            engine.moved,
        )?;
        out.counter(
            "sessions_ended_by_loss",
            "Sessions that ended when their disk was lost",
            engine.ended_by_loss,
        )?;
        out.counter("glitches", "Pieces late for admitted sessions", engine.glitches)?;
        out.counter(
            "certificates_broken",
            "Reads done after the slot they were due in by a disk that took no longer than charged",
            engine.broken_certificates,
        )?;
        out.counter(
            "certificates_void",
            "Reads done after the slot they were due in by a disk that took longer than charged",
            engine.void_certificates,
        )?;
        out.counter("pieces_on_time", "Pieces in memory by their deadline", engine.on_time)?;
        let stopping = u64::from(self.0.stopping.load(Ordering::Relaxed));
        out.gauge("stopping", "1 while nobody new is let in because of a shutdown", stopping)?;
        out.duration("slot", "The scheduling period", self.0.about.slot.as_secs_f64())?;
        out.duration("uptime", "Since the start", self.0.clock.uptime().as_secs_f64())
    }

    fn memory(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let engine = &self.0.books().engine;
        out.bytes("buffers_used", "Read buffers in use", engine.buffers_used)?;
        out.bytes("buffers_limit", "Read buffers there are", engine.buffers_total)?;
        let (titles, bytes) = self.0.titles.held();
        out.gauge("titles_open", "Titles with their index in memory", titles)?;
        out.bytes("indexes_used", "Indexes in memory", bytes)?;
        out.counter(
            "cache_hits",
            "Pieces found in memory when their read was due",
            engine.cache_hits,
        )
    }

    fn disks(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let books = self.0.books();
        let names: Vec<String> =
            self.0.titles.shelves.iter().map(|shelf| shelf.path.display().to_string()).collect();
        let disks = &books.engine.disks;
        let of = |value: fn(&crate::engine::DiskStatus) -> u64| -> Vec<(&str, u64)> {
            names.iter().map(String::as_str).zip(disks.iter().map(value)).collect()
        };
        out.counters("disk_reads", "Reads completed", "store", &of(|d| d.reads))?;
        out.counters("disk_read_bytes", "Bytes read", "store", &of(|d| d.bytes))?;
        out.counters("disk_failures", "Reads failed or damaged", "store", &of(|d| d.failures))?;
        let guaranteed = of(|d| u64::from(d.min_read));
        out.gauges(
            "disk_slot_reads_guaranteed",
            "Guaranteed reads in a slot",
            "store",
            &guaranteed,
        )?;
        let used = of(|d| u64::from(d.last_slot_reads));
        out.gauges("disk_slot_reads", "Reads completed in the last slot", "store", &used)?;
        let slack = of(|d| d.least_slack);
        out.gauges("disk_slack_reads", "Least slack of the schedule ahead", "store", &slack)?;
        let flying = of(|d| u64::from(d.in_flight));
        let sessions = of(|d| d.sessions);
        out.gauges("disk_sessions", "Sessions read from it", "store", &sessions)?;
        let slowest = of(|d| u64::from(d.slowest_slot));
        out.gauges("disk_slowest_slot_reads", "Fewest in a slot lately", "store", &slowest)?;
        let behind = disks.iter().map(crate::engine::DiskStatus::behind_part);
        let behind: Vec<_> = names.iter().map(String::as_str).zip(behind).collect();
        out.parts("disk_behind", "Disk time beyond what is counted with", "store", &behind)?;
        let observed = names.iter().zip(disks);
        let observed = observed.filter_map(|(name, d)| Some((&**name, u64::from(d.observed?))));
        let observed: Vec<_> = observed.collect();
        let help = "Fewest in a slot in which it was never idle";
        out.gauges("disk_observed_slot_reads", help, "store", &observed)?;
        let lost = of(|d| u64::from(d.lost));
        out.gauges("disk_lost", "1 while nothing is read from it", "store", &lost)?;
        out.gauges("disk_in_flight", "Reads in the device", "store", &flying)
    }

    fn http(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let http = &self.0.http;
        let connections = http.connections.load(Ordering::Relaxed);
        out.gauge("http_connections", "Open connections", connections)?;
        let sent = http.sent_bytes.load(Ordering::Relaxed);
        out.counter("http_sent_bytes", "Bytes sent to viewers", sent)?;
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        let counts = http.responses.each_ref().map(|count| count.load(Ordering::Relaxed));
        let responses: Vec<_> = classes.into_iter().zip(counts).collect();
        out.counters("http_responses", "Responses by class of status", "class", &responses)?;
        let stalled = http.stalled.load(Ordering::Relaxed);
        out.counter("http_stalled", "Viewers cut off because they did not read", stalled)?;
        let broken = http.broken.load(Ordering::Relaxed);
        out.counter("http_broken", "Responses broken off because bytes could not be had", broken)
    }
}

/// Shorthand over the encoder.
struct Out<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Out<'_, '_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.metric(name, help, None, &ConstCounter::new(value))
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.metric(name, help, None, &gauge(value))
    }

    fn bytes(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.metric(name, help, Some(&Unit::Bytes), &gauge(value))
    }

    fn duration(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.metric(name, help, Some(&Unit::Seconds), &ConstGauge::new(value))
    }

    fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: &[(&str, u64)],
    ) -> fmt::Result {
        let values = values.iter().map(|(value, count)| (*value, ConstCounter::new(*count)));
        self.family((name, help, None), MetricType::Counter, label, values)
    }

    fn gauges(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: &[(&str, u64)],
    ) -> fmt::Result {
        let values = values.iter().map(|(value, count)| (*value, gauge(*count)));
        self.family((name, help, None), MetricType::Gauge, label, values)
    }

    fn parts(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: &[(&str, f64)],
    ) -> fmt::Result {
        let values = values.iter().map(|(value, part)| (*value, ConstGauge::new(*part)));
        self.family((name, help, Some(&Unit::Ratios)), MetricType::Gauge, label, values)
    }

    /// One metric of each label's value.
    fn family<'a>(
        &mut self,
        (name, help, unit): (&str, &str, Option<&Unit>),
        kind: MetricType,
        label: &str,
        values: impl Iterator<Item = (&'a str, impl EncodeMetric)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, unit, kind)?;
        for (value, metric) in values {
            metric.encode(family.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }

    fn metric(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        metric: &impl EncodeMetric,
    ) -> fmt::Result {
        metric.encode(self.0.encode_descriptor(name, help, unit, metric.metric_type())?)
    }
}

/// OpenMetrics' integers have a sign.
fn gauge(value: u64) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))
}
