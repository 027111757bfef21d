//! `/metrics`: OpenMetrics text, made at each scrape from the last published snapshot, so that
//! counting costs nothing between scrapes.

use crate::auth_request::NoAnswer;
use crate::damage::FoundBy;
use crate::shared::Shared;
use crate::telemetry::Signal;
use crate::webhook::NotTaken;
use crate::wire;
use device::KernelCounters;
use director::clock::ClockDifference;
use engine::{CutShort, DiskStatus, Priority, RefusalCause, Resource};
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
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The content type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics at this moment, as text.
pub(crate) fn text(shared: &Arc<Shared>) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("tenuto");
    registry.register_with_unit(
        "session_startup",
        "Time from admission to the first media bytes",
        Unit::Seconds,
        shared.startup.clone(),
    );
    registry.register_with_unit(
        "session_slack",
        "Least time by which reads of a session were early, observed when it ends",
        Unit::Seconds,
        shared.slack.clone(),
    );
    registry.register_with_unit(
        "cmcd_buffer",
        "Media in players' buffers, at each request that reports it by CMCD",
        Unit::Seconds,
        shared.reports.buffer.clone(),
    );
    registry.register_with_unit(
        "auth_request",
        "Time to an answer of the service that decides on viewers",
        Unit::Seconds,
        shared.auth.counters.answers.clone(),
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
        self.http(&mut out)?;
        self.authorizations(&mut out)?;
        self.reports(&mut out)?;
        self.rtsp(&mut out)?;
        self.channels(&mut out)?;
        self.recordings(&mut out)?;
        self.readers(&mut out)?;
        self.webhook(&mut out)?;
        self.telemetry(&mut out)?;
        self.tls(&mut out)
    }
}

impl Scrape {
    /// Copies of titles that the placement of a cluster orders.
    fn copies(&self, out: &mut Out<'_, '_>, copies: &wire::CopyReport) -> fmt::Result {
        out.gauge("copies_ordered", "Copies of titles to be written", copies.ordered)?;
        let filling = copies.filling.len() as u64;
        out.gauge("copies_filling", "Copies of titles that are being written", filling)?;
        let failed = copies.failed.len() as u64;
        let help = "Copies of titles that could not be written or removed, and are tried again";
        out.gauge("copies_failed", help, failed)?;
        out.counter("copies_filled", "Copies of titles written", copies.filled)?;
        let help = "Bytes of copies written, by where they came from";
        let of_peers = copies.filled_bytes_of_peers;
        let sources =
            [("bucket", copies.filled_bytes.saturating_sub(of_peers)), ("peers", of_peers)];
        out.family("copies_filled_bytes", help, None, "source", &sources, ConstCounter::new)?;
        let help = "Copies written in the place of an outdated one";
        out.counter("copies_replaced", help, copies.replaced)?;
        out.counter("copies_evicted", "Copies of titles removed", copies.evicted)
    }

    fn sessions(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let engine = &self.0.snapshot().engine;
        let counters = &engine.counters;
        out.gauge("sessions", "Sessions admitted and not ended", engine.sessions)?;
        out.gauge("sessions_active", "Sessions that hold a reservation", engine.active)?;
        if let Some(membership) = &self.0.membership {
            let (cluster, node) = membership.names();
            let names = Info::new([("cluster", cluster), ("node", node)]);
            out.metric("cluster", "The cluster of the node, and its name there", None, &names)?;
            let registered = u64::from(membership.status().registered);
            let help = "Whether the lease of the node is valid, so that directors send viewers";
            out.gauge("cluster_registered", help, registered)?;
            let help = "Difference of etcd's clock from the server's; negative where it is behind";
            let difference = membership.clock_difference().map(ClockDifference::seconds);
            out.known_duration("cluster_clock_difference", help, difference)?;
            self.copies(out, &membership.copy_report())?;
        }
        let help = "Sessions whose reservation a newcomer may take: their viewers have gone";
        out.gauge("sessions_revocable", help, engine.revocable)?;
        let of_priority = |counts: [u64; Priority::ALL.len()]| {
            Priority::ALL.map(|priority| (priority.word(), counts[priority as usize]))
        };
        let sessions = of_priority(engine.by_priority);
        let help = "Sessions admitted and not ended, by priority";
        out.family("sessions_by_priority", help, None, "priority", &sessions, gauge)?;
        let preempted = [
            (CutShort::Priority.word(), counters.preempted_by_priority),
            (CutShort::Overload.word(), counters.preempted_by_overload),
        ];
        let help = "Sessions ended although their viewers played, by cause";
        let constant = ConstCounter::new;
        out.family("sessions_preempted", help, None, "cause", &preempted, constant)?;
        let preempted = of_priority(counters.preempted_of_priority);
        let help = "Sessions ended although their viewers played, by priority";
        let name = "sessions_preempted_by_priority";
        out.family(name, help, None, "priority", &preempted, constant)?;
        let help = "Reservations of viewers who had gone, given to newcomers";
        out.counter("reservations_revoked", help, counters.revoked)?;
        out.counter("admitted", "Sessions admitted", counters.admitted)?;
        out.counter(
            "admitted_downgraded",
            "Sessions admitted to a smaller rendition than the best",
            counters.admitted_downgraded,
        )?;
        let help = "Admission requests refused, by cause and by the resource that was short";
        let counter = MetricType::Counter;
        let mut family = out.0.encode_descriptor("refused", help, None, counter)?;
        // The engine is not asked while the server is stopping.
        let at_stop = self.0.refusals_at_stop();
        for (cause, resource, count) in counters.refused.iter() {
            let is_of_stop = cause == RefusalCause::Server && resource.is_none();
            let count = count + if is_of_stop { at_stop.iter().sum() } else { 0 };
            let resource = resource.map_or("none", Resource::word);
            let labels = [("cause", cause.word()), ("resource", resource)];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
        let refused = of_priority(std::array::from_fn(|priority| {
            counters.refused_by_priority[priority] + at_stop[priority]
        }));
        let help = "Admission requests and seeks refused, by priority";
        out.family("refused_by_priority", help, None, "priority", &refused, ConstCounter::new)?;
        let help = "Sessions that went on with more of a title that is being recorded";
        out.counter("extensions", help, counters.extended)?;
        let help = "Extensions of sessions that did not fit; their players ask again";
        out.counter("extensions_refused", help, counters.extensions_refused)?;
        let parts_at_stop = self.0.refused_at_stop.parts.load(Ordering::Relaxed);
        let nodes = [
            ("admitted", counters.node_fills_admitted),
            ("refused", counters.node_fills_refused + parts_at_stop),
        ];
        let help = "Parts of titles that other nodes of the cluster have asked for";
        out.family("peer_parts", help, None, "answer", &nodes, ConstCounter::new)?;
        let help = "Bytes sent to other nodes of the cluster, of parts that have ended";
        out.counter("peer_parts_sent_bytes", help, counters.node_fill_bytes)?;
        out.gauge("fills", "Fills of caches admitted and not ended", engine.fills)?;
        let limit = u64::from(self.0.settings().fills.unwrap_or(0));
        out.gauge("fills_limit", "The most fills of caches at a time", limit)?;
        out.counter("fills_admitted", "Fills of caches admitted", counters.fills_admitted)?;
        out.counter("fills_refused", "Fills of caches refused", self.0.fills_refused(counters))?;
        let help = "Bytes sent to fills of caches that have ended";
        out.counter("fills_sent_bytes", help, counters.fill_bytes)?;
        out.counter(
            "refused_for_failover",
            "Refused admission requests that fit without room for the loss of a disk",
            counters.refused_for_loss,
        )?;
        out.counter(
            "sessions_failed_over",
            "Sessions that continued with another copy when their disk was lost",
            counters.failed_over,
        )?;
        out.counter(
            "sessions_ended_by_disk_loss",
            "Sessions that ended because their disk was lost",
            counters.ended_by_disk_loss,
        )?;
        out.counter("deadlines_met", "Pieces in memory by their deadline", counters.deadlines_met)?;
        out.counter(
            "deadline_misses",
            "Pieces of admitted streams not in memory by their deadline",
            counters.deadline_misses,
        )?;
        // A largest value and no counter: it tells a miss of a millisecond from one of a minute.
        let late = counters.worst_lateness.as_secs_f64();
        out.duration("worst_lateness", "The worst lateness of a piece since the start", late)?;
        let violations = [
            ("disk", counters.violations_by_disk),
            ("scheduler", counters.violations_by_scheduler),
        ];
        let help = "Reads completed after the slot in which they were due, by cause";
        out.family("guarantee_violations", help, None, "cause", &violations, ConstCounter::new)?;
        let stopping = u64::from(self.0.stopping.load(Ordering::Relaxed));
        out.gauge("stopping", "1 while the server admits no session and stops", stopping)?;
        out.duration("slot", "The scheduling period", self.0.info.slot.as_secs_f64())?;
        out.duration("uptime", "Time since the start", self.0.clock.uptime().as_secs_f64())
    }

    fn memory(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let engine = &self.0.snapshot().engine;
        out.bytes("buffers_used", "Read buffers in use", engine.buffers_used)?;
        out.bytes("buffers_limit", "All read buffers", engine.buffers_total)?;
        let help = "Read buffers that the memory limit allows";
        out.bytes("buffers_target", help, engine.buffers_limit)?;
        let (titles, bytes) = self.0.content.held();
        out.gauge("titles_open", "Titles with their index in memory", titles)?;
        out.bytes("title_index", "Memory of the indexes of open titles", bytes)?;
        let help = "Pieces found in memory when their viewer came or their read was due";
        out.counter("cache_hits", help, engine.counters.cache_hits)?;
        let help = "Sessions of which a track follows a viewer ahead in memory";
        out.gauge("sessions_following", help, engine.following)?;
        let help = "Read buffers kept for viewers who follow another";
        out.bytes("intervals", help, engine.intervals)?;
        let help = "Pieces used again by a viewer who follows another: reads saved";
        out.counter("shared_reads", help, engine.counters.shared_reads)
    }

    fn disks(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let snapshot = self.0.snapshot();
        let stores = &self.0.content.stores;
        let names: Vec<String> =
            stores.iter().map(|opened| opened.path.display().to_string()).collect();
        let missing = self.0.info.missing.iter();
        let missing: Vec<String> = missing.map(|store| store.path.display().to_string()).collect();
        let disks = &snapshot.engine.disks;
        let of = |value: DiskFigure| -> Vec<(&str, u64)> {
            names.iter().map(String::as_str).zip(disks.iter().map(value)).collect()
        };
        let counters: [(&str, &str, DiskFigure); 3] = [
            ("reads", "Reads completed", |d| d.reads),
            ("read_bytes", "Bytes read", |d| d.bytes),
            ("read_failures", "Reads that failed or were damaged", |d| d.failures),
        ];
        for (name, help, value) in counters {
            let name = format!("disk_{name}");
            out.family(&name, help, None, "store", &of(value), ConstCounter::new)?;
        }
        let gauges: [(&str, &str, DiskFigure); 9] = [
            ("guaranteed_slot_reads", "Reads guaranteed in each slot", |d| d.min_read.into()),
            ("slot_reads", "Reads completed in the last slot", |d| d.last_slot.reads.into()),
            ("slowest_slot_reads", "Fewest reads in a slot lately", |d| {
                d.slowest_slot_reads.into()
            }),
            ("slack_reads", "Least slack of the schedule ahead", |d| d.slack_reads),
            ("reads_in_flight", "Reads in the device", |d| d.in_flight.into()),
            ("sessions", "Sessions read from the disk", |d| d.sessions),
            ("lost", "1 while the disk is lost and nothing is read from it", |d| d.lost.into()),
            ("draining", "1 while sessions leave the disk for others", |d| d.draining.into()),
            ("recordings", "Recordings for which disk time is kept", |d| d.recordings as u64),
        ];
        for (name, help, value) in gauges {
            let mut rows = of(value);
            if name == "lost" {
                rows.extend(missing.iter().map(|name| (name.as_str(), 1)));
            }
            out.family(&format!("disk_{name}"), help, None, "store", &rows, gauge)?;
        }
        let parts = disks.iter().map(DiskStatus::slowdown_part);
        let slowdown: Vec<(&str, f64)> = names.iter().map(String::as_str).zip(parts).collect();
        let help = "Part by which reads take longer than calibrated";
        // `Unit::Ratios` would end the name in `_ratios`.
        let unit = Unit::Other("ratio".to_owned());
        out.family("disk_slowdown", help, Some(&unit), "store", &slowdown, ConstGauge::new)?;
        let parts = disks.iter().map(|disk| disk.write_share.ratio());
        let shares: Vec<(&str, f64)> = names.iter().map(String::as_str).zip(parts).collect();
        let help = "Part of the disk's time that is kept for recordings";
        out.family("disk_recording_share", help, Some(&unit), "store", &shares, ConstGauge::new)?;
        let delays = snapshot.waited.iter().map(Duration::as_secs_f64);
        let delays: Vec<(&str, f64)> = names.iter().map(String::as_str).zip(delays).collect();
        let help = "Time for which the thread that reads the disk waited for a processor";
        let unit = Some(&Unit::Seconds);
        out.family("disk_thread_delay", help, unit, "store", &delays, ConstCounter::new)?;
        self.scrubs(&names, out)?;
        self.damage(out)?;
        self.write_failures(&names, out)?;
        self.space(&names, out)?;
        self.kernel_counters(&names, out)?;
        let pairs = names.iter().zip(disks);
        let observed: Vec<(&str, u64)> = pairs
            .filter_map(|(name, d)| Some((&**name, u64::from(d.observed_slot_reads?))))
            .collect();
        let help = "Fewest reads in a slot in which the disk was never idle";
        out.family("disk_observed_slot_reads", help, None, "store", &observed, gauge)
    }

    fn write_failures(&self, names: &[String], out: &mut Out<'_, '_>) -> fmt::Result {
        let stores = self.0.content.stores.iter();
        let failed = stores.map(|opened| u64::from(opened.store.write_failure().is_some()));
        let failed: Vec<(&str, u64)> = names.iter().map(String::as_str).zip(failed).collect();
        let help = "1 while nothing more is written to the store, after a write that failed";
        out.family("disk_write_failed", help, None, "store", &failed, gauge)
    }

    fn space(&self, names: &[String], out: &mut Out<'_, '_>) -> fmt::Result {
        let infos: Vec<_> = self.0.content.stores.iter().map(|it| it.store.info()).collect();
        let of = |chunks: fn(&store::StoreInfo) -> u64| -> Vec<(&str, u64)> {
            let bytes = infos.iter().map(|info| chunks(info) * info.chunk.0);
            names.iter().map(String::as_str).zip(bytes).collect()
        };
        let unit = Some(&Unit::Bytes);
        let help = "Space of the store for titles";
        out.family("disk_data", help, unit, "store", &of(|info| info.data_chunks), gauge)?;
        let help = "Space of the store that no title has";
        out.family("disk_free", help, unit, "store", &of(|info| info.free_chunks), gauge)
    }

    fn kernel_counters(&self, names: &[String], out: &mut Out<'_, '_>) -> fmt::Result {
        let stores = self.0.content.stores.iter();
        let counters = stores.map(|opened| opened.store.device().kernel_counters());
        let counters: Vec<(&str, KernelCounters)> =
            names.iter().map(String::as_str).zip(counters).collect();
        let known = |value: fn(&KernelCounters) -> Option<u64>| -> Vec<(&str, u64)> {
            counters.iter().filter_map(|(name, all)| Some((*name, value(all)?))).collect()
        };
        let help = "Commands that ended with an error, as the kernel counts them";
        let errors = known(|all| all.errors);
        out.family("disk_kernel_errors", help, None, "store", &errors, ConstCounter::new)?;
        let help = "Commands that the disk did not answer in time, as the kernel counts them";
        let timeouts = known(|all| all.timeouts);
        out.family("disk_kernel_timeouts", help, None, "store", &timeouts, ConstCounter::new)?;
        let busy = counters.iter().filter_map(|(name, all)| Some((*name, all.busy?.as_secs_f64())));
        let busy: Vec<(&str, f64)> = busy.collect();
        let help = "Time for which the disk had requests, of all programs";
        let unit = Some(&Unit::Seconds);
        out.family("disk_kernel_busy", help, unit, "store", &busy, ConstCounter::new)
    }

    fn scrubs(&self, names: &[String], out: &mut Out<'_, '_>) -> fmt::Result {
        let stores = &self.0.content.stores;
        let states: Vec<(&str, wire::Scrub)> = names
            .iter()
            .zip(stores)
            .filter_map(|(name, opened)| Some((name.as_str(), wire::Scrub::of(&opened.store)?)))
            .collect();
        let of = |value: fn(&wire::Scrub) -> u64| -> Vec<(&str, u64)> {
            states.iter().map(|(name, scrub)| (*name, value(scrub))).collect()
        };
        let unit = Some(&Unit::Bytes);
        let help = "Bytes that the present scrub has read";
        out.family("scrub_read", help, unit, "store", &of(|scrub| scrub.bytes), gauge)?;
        let help = "Bytes that the present scrub has still to read";
        out.family("scrub_left", help, unit, "store", &of(|scrub| scrub.bytes_left), gauge)?;
        let help = "Pieces of damage that the present scrub or the last complete one found";
        let damage = of(|scrub| scrub.damage.max(scrub.last_damage.unwrap_or(0)).into());
        out.family("scrub_damage", help, None, "store", &damage, gauge)?;
        let ended = states.iter().filter_map(|(name, scrub)| Some((*name, scrub.last?)));
        let ended: Vec<(&str, u64)> = ended.collect();
        let help = "When the last complete scrub ended, in seconds since 1970";
        let unit = Some(&Unit::Seconds);
        out.family("scrub_last_timestamp", help, unit, "store", &ended, gauge)?;
        let period = self.0.info.scrub.map(|period| period.as_secs());
        let due = names.iter().zip(stores).filter_map(|(name, opened)| {
            // A disk without time for one read has no state.
            let begun = opened.store.scrub_state().map_or(self.0.info.started, |it| it.begun);
            Some((name.as_str(), begun + period?))
        });
        let due: Vec<(&str, u64)> = due.collect();
        let help = "When the present scrub is to end, in seconds since 1970";
        out.family("scrub_due_timestamp", help, unit, "store", &due, gauge)
    }

    fn damage(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let help = "Pieces of damage found, by what has found them";
        let kind = MetricType::Counter;
        let mut family = out.0.encode_descriptor("damage_found", help, None, kind)?;
        for opened in &self.0.content.stores {
            let store = opened.path.display().to_string();
            for by in FoundBy::ALL {
                let labels = [("store", &*store), ("by", by.word())];
                let count = ConstCounter::new(opened.damage.count(by));
                count.encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn http(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let http = &self.0.http;
        let connections = http.connections.load(Ordering::Relaxed);
        out.gauge("http_connections", "Open connections", connections)?;
        let lanes = http.lanes.load(Ordering::Relaxed);
        out.gauge("http2_streams", "Requests over HTTP/2 that are not answered yet", lanes)?;
        let sent = http.sent_bytes.load(Ordering::Relaxed);
        out.counter("http_sent_bytes", "Bytes sent to players", sent)?;
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        let counts = http.responses.each_ref().map(|count| count.load(Ordering::Relaxed));
        let responses: Vec<_> = classes.into_iter().zip(counts).collect();
        let help = "Responses by class of status";
        out.family("http_responses", help, None, "class", &responses, ConstCounter::new)?;
        let timeouts = http.send_timeouts.load(Ordering::Relaxed);
        let help = "Connections closed because the peer took no bytes";
        out.counter("http_send_timeouts", help, timeouts)?;
        let aborted = http.aborted.load(Ordering::Relaxed);
        let help = "Responses ended early because their bytes could not be read";
        out.counter("http_aborted", help, aborted)
    }

    /// The operator's service that decides on viewers.
    fn authorizations(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let counters = &self.0.auth.counters;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let outcomes = [
            ("allowed", of(&counters.allowed)),
            ("refused", of(&counters.refused)),
            ("unanswered", of(&counters.unanswered)),
            ("busy", of(&counters.busy)),
        ];
        let help = "Viewers on whom the service of --auth-request decided, by outcome";
        out.family("authorizations", help, None, "outcome", &outcomes, ConstCounter::new)?;
        let help = "Viewers who got a kept answer, or that to the question of another viewer";
        out.counter("authorizations_shared", help, of(&counters.shared))?;
        let help = "Viewers who wait for the service of --auth-request";
        out.gauge("authorizations_waiting", help, of(&counters.waiting))?;
        let causes = NoAnswer::ALL;
        let failures = causes.map(|cause| (cause.word(), of(&counters.failures[cause as usize])));
        let help = "Questions to the service of --auth-request without an answer that can be used";
        out.family("auth_request_failures", help, None, "cause", &failures, ConstCounter::new)
    }

    fn reports(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let reports = &self.0.reports;
        let requests = reports.requests.load(Ordering::Relaxed);
        out.counter("cmcd_requests", "Requests with a player's report (CMCD)", requests)?;
        let starvations = reports.starvations.load(Ordering::Relaxed);
        let help = "Requests of sessions that report an empty buffer at the player";
        out.counter("cmcd_starvations", help, starvations)?;
        let ignored = reports.ignored.load(Ordering::Relaxed);
        let help = "Values of players' reports that are not valid and were ignored";
        out.counter("cmcd_ignored", help, ignored)
    }

    fn rtsp(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let rtsp = &self.0.rtsp;
        let connections = rtsp.connections.load(Ordering::Relaxed);
        out.gauge("rtsp_connections", "Open RTSP connections", connections)?;
        let playing = rtsp.playing.load(Ordering::Relaxed);
        out.gauge("rtsp_playing", "RTSP sessions that are being played", playing)?;
        let packets = rtsp.packets.load(Ordering::Relaxed);
        out.counter("rtsp_packets", "RTP and RTCP packets made", packets)?;
        let sent = rtsp.sent_bytes.load(Ordering::Relaxed);
        out.counter("rtsp_sent_bytes", "Bytes sent to RTSP players", sent)?;
        let dropped = rtsp.dropped_packets.load(Ordering::Relaxed);
        let help = "Packets over UDP that the kernel did not take";
        out.counter("rtsp_dropped_packets", help, dropped)?;
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        let counts = rtsp.responses.each_ref().map(|count| count.load(Ordering::Relaxed));
        let responses: Vec<_> = classes.into_iter().zip(counts).collect();
        let help = "Replies to RTSP requests by class of status";
        out.family("rtsp_responses", help, None, "class", &responses, ConstCounter::new)?;
        let timeouts = rtsp.send_timeouts.load(Ordering::Relaxed);
        let help = "RTSP connections closed because the peer took no bytes";
        out.counter("rtsp_send_timeouts", help, timeouts)?;
        let silent = rtsp.session_timeouts.load(Ordering::Relaxed);
        let help = "RTSP sessions ended because their player was silent";
        out.counter("rtsp_session_timeouts", help, silent)
    }

    fn readers(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let readers = &self.0.readers;
        let active = readers.active.load(Ordering::Relaxed);
        out.gauge("mount_reservations", "Files of mounts with a reserved rate", active)?;
        let refused = readers.refused.load(Ordering::Relaxed);
        let help = "Rates for files of mounts that were not reserved";
        out.counter("mount_reservations_refused", help, refused)?;
        let bytes = readers.bytes.load(Ordering::Relaxed);
        let help = "Bytes read through mounts at a reserved rate";
        out.counter("mount_reserved_bytes", help, bytes)?;
        let missed = readers.missed.load(Ordering::Relaxed);
        let help = "Bytes of mounted files with a reserved rate that were read without it";
        out.counter("mount_unreserved_bytes", help, missed)?;
        let unmounted = readers.unmounted.load(Ordering::Relaxed);
        let help = "Mounts of stores that have ended without the server's doing";
        out.counter("mounts_lost", help, unmounted)
    }

    fn channels(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let channels = &self.0.channels;
        let active = channels.active.load(Ordering::Relaxed);
        out.gauge("channels", "Titles that are sent to addresses of an operator", active)?;
        let datagrams = channels.datagrams.load(Ordering::Relaxed);
        out.counter("channel_datagrams", "Datagrams sent for channels", datagrams)?;
        let sent = channels.sent_bytes.load(Ordering::Relaxed);
        out.counter("channel_sent_bytes", "Bytes sent for channels", sent)?;
        let dropped = channels.dropped.load(Ordering::Relaxed);
        let help = "Datagrams of channels that the kernel did not take";
        out.counter("channel_dropped_datagrams", help, dropped)?;
        let failures = [
            ("not-admitted", channels.not_admitted.load(Ordering::Relaxed)),
            ("not-served", channels.not_served.load(Ordering::Relaxed)),
        ];
        let help = "Times that a channel that had begun could not go on";
        out.family("channel_failures", help, None, "cause", &failures, ConstCounter::new)
    }

    fn recordings(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let recordings = &self.0.recordings;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let outcomes = [
            ("done", of(&recordings.done)),
            ("failed", of(&recordings.failed)),
            ("interrupted", of(&recordings.interrupted)),
        ];
        let help = "Recordings by what has become of them; interrupted ones go on";
        out.family("recordings", help, None, "outcome", &outcomes, ConstCounter::new)
    }

    fn webhook(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let Some(counters) = self.0.webhook.counters() else { return Ok(()) };
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let outcomes = [
            ("delivered", of(&counters.delivered)),
            ("given-up", of(&counters.given_up)),
            ("dropped", of(&counters.dropped)),
        ];
        let help = "Events of the webhook, by what has become of them";
        out.family("webhook_events", help, None, "outcome", &outcomes, ConstCounter::new)?;
        let causes = NotTaken::ALL;
        let failed = causes.map(|cause| (cause.word(), of(&counters.failed[cause as usize])));
        let help = "Attempts to send an event of the webhook that failed";
        out.family("webhook_attempts_failed", help, None, "cause", &failed, ConstCounter::new)?;
        let help = "Events of the webhook that wait, or are being sent";
        out.gauge("webhook_waiting", help, of(&counters.waiting))
    }

    fn telemetry(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let Some(counters) = self.0.telemetry.counters() else { return Ok(()) };
        let of_each = Signal::ALL.map(|signal| (signal.word(), counters.of(signal)));
        let sent = of_each.map(|(word, counts)| (word, counts.sent.load(Ordering::Relaxed)));
        let help = "Spans and log records that the collector has taken";
        out.family("otlp_sent", help, None, "signal", &sent, ConstCounter::new)?;
        let dropped = of_each.map(|(word, counts)| (word, counts.dropped.load(Ordering::Relaxed)));
        let help = "Spans and log records dropped: the queue was full, or they were refused";
        out.family("otlp_dropped", help, None, "signal", &dropped, ConstCounter::new)?;
        let failing = of_each
            .map(|(word, counts)| (word, u64::from(counts.is_failing.load(Ordering::Relaxed))));
        let help = "Whether the collector did not take the last spans or log records";
        out.family("otlp_failing", help, None, "signal", &failing, gauge)
    }

    fn tls(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let Some(tls) = &self.0.tls else { return Ok(()) };
        let help = "When the certificate expires, in seconds since 1970";
        let expiry = ConstGauge::new(tls.expiry());
        out.metric("tls_certificate_expiry_timestamp", help, Some(&Unit::Seconds), &expiry)?;
        let counters = &tls.counters;
        let kinds = [("full", &counters.full), ("resumed", &counters.resumed)];
        let handshakes = kinds.map(|(kind, count)| (kind, count.load(Ordering::Relaxed)));
        let help = "TLS handshakes completed";
        out.family("tls_handshakes", help, None, "kind", &handshakes, ConstCounter::new)?;
        let failed = counters.failed.load(Ordering::Relaxed);
        out.counter("tls_handshake_failures", "TLS handshakes that failed", failed)
    }
}

/// Short forms of the encoder's calls.
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

    /// A time that may not be known yet, and then has no sample.
    fn known_duration(&mut self, name: &str, help: &str, value: Option<f64>) -> fmt::Result {
        let kind = ConstGauge::<f64>::TYPE;
        let sample = self.0.encode_descriptor(name, help, Some(&Unit::Seconds), kind)?;
        value.map_or(Ok(()), |value| ConstGauge::new(value).encode(sample))
    }

    /// One metric for each value of the label.
    fn family<N: Copy, M: EncodeMetric + TypedMetric>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        label: &str,
        values: &[(&str, N)],
        metric: fn(N) -> M,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, unit, M::TYPE)?;
        for (value, number) in values {
            metric(*number).encode(family.encode_family(&[(label, *value)])?)?;
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

/// A gauge of an unsigned number; integers of OpenMetrics are signed.
fn gauge(value: u64) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Reads one figure from the status of a disk.
type DiskFigure = fn(&DiskStatus) -> u64;
