//! The report of a run, summarised from its sessions.

use super::outcome::{
    Distribution, DriftReport, LduReport, Parameters, PlayReport, RtpReport, Totals, ViewerOutcome,
    ViewerReport,
};
use super::rendition_account::shown;
use super::renditions::RenditionStats;
use super::rtsp::Reception;
use super::run::PlayRun;
use super::session::{Session, SessionState};
use super::{PlayOptions, RtspTransport};
use player::{Drift, DriftFactors, PlaybackState, PlayerReport};
use std::time::Duration;
use units::{Hinted, Moment};

/// The report of a run.
pub(crate) fn summarize(options: &PlayOptions, titles: usize, run: PlayRun) -> PlayReport {
    let shown = shown(&run.sessions);
    let viewers: Vec<ViewerReport> = run
        .sessions
        .iter()
        .zip(&shown)
        .map(|(session, shown)| viewer(session, shown.as_ref()))
        .collect();
    let together = shown.iter().flatten().fold(RenditionStats::default(), RenditionStats::and);
    // Refused viewers do not play, so they have no stalls to count.
    let admitted = || viewers.iter().filter(|viewer| viewer.outcome == ViewerOutcome::Admitted);
    let fetched = || run.sessions.iter().flat_map(|session| &session.fetched);
    // Pieces without a first byte failed, and have no time to it.
    let waits = fetched().filter_map(|piece| Some(ms(piece.first?.since(piece.sent))));
    let handshakes = run.opened.iter().filter_map(|opened| opened.handshake.map(ms));
    let drifts = run.sessions.iter().filter_map(|session| session.last.as_ref());
    PlayReport {
        parameters: parameters(options, titles),
        complete: run.complete,
        seconds: run.took.as_secs_f64(),
        totals: totals(&viewers, &together, run.took),
        startup_ms: Distribution::of(viewers.iter().filter_map(|viewer| viewer.startup_ms)),
        answer_ms: Distribution::of(viewers.iter().filter_map(|viewer| viewer.answer_ms)),
        connect_ms: Distribution::of(run.opened.iter().map(|opened| ms(opened.connect))),
        handshake_ms: Distribution::of(handshakes),
        first_byte_ms: Distribution::of(waits),
        stalled_ms: Distribution::of(admitted().map(|viewer| viewer.stalled_ms)),
        drift_ms: Distribution::of(
            drifts.flat_map(|last| last.drift.units().iter().map(|nanos| to_ms(nanos.abs()))),
        ),
        renditions: together.reports(),
        viewers,
        samples: run.samples,
        saved: run.saved,
    }
}

fn parameters(options: &PlayOptions, titles: usize) -> Parameters {
    Parameters {
        urls: options.urls.clone(),
        titles,
        viewers: match &options.trace {
            Some(trace) => u32::try_from(trace.rows().len()).unwrap_or(u32::MAX),
            None => options.viewers,
        },
        arrivals: match &options.trace {
            Some(_) => "trace".to_owned(),
            None => options.arrivals.to_string(),
        },
        seed: options.seed,
        duration_s: options.duration.map(|time| time.as_secs_f64()),
        start_s: options.player.start.as_secs_f64(),
        buffer_s: options.player.buffer.as_secs_f64(),
        dead_band_ms: ms(options.player.dead_band),
        switching: options.switching.name().to_owned(),
        rtsp_transport: match options.rtsp {
            RtspTransport::Tcp => "tcp",
            RtspTransport::Udp => "udp",
        }
        .to_owned(),
        bandwidth_bits_per_s: options.bandwidth.map(|rate| rate.0),
        retry: options.retry,
        view: options.view.query(),
    }
}

fn totals(viewers: &[ViewerReport], shown: &RenditionStats, took: Duration) -> Totals {
    let mut totals = Totals {
        switches_up: shown.up,
        switches_down: shown.down,
        below_best: shown.below.len() as u64,
        mean_rendition_bits_per_s: shown.mean(),
        share_of_best: shown.share_of_best(),
        ..Totals::default()
    };
    for viewer in viewers {
        totals.arrived += 1;
        *match viewer.outcome {
            ViewerOutcome::Admitted => &mut totals.admitted,
            ViewerOutcome::Refused => &mut totals.refused,
            ViewerOutcome::Failed => &mut totals.failed,
            ViewerOutcome::Unanswered => &mut totals.unanswered,
        } += 1;
        if let (ViewerOutcome::Refused, Some(refusal)) = (viewer.outcome, &viewer.refusal) {
            *totals.refused_by.entry(refusal.resource.clone()).or_default() += 1;
        }
        totals.finished += u32::from(viewer.stage == "finished");
        totals.failovers += u64::from(viewer.failovers);
        totals.refused_speeds += u64::from(viewer.refused_speeds);
        totals.refused_seeks += u64::from(viewer.refused_seeks);
        totals.viewers_with_failovers += u32::from(viewer.failovers > 0);
        totals.stalls += viewer.stalls;
        totals.viewers_with_stalls += u32::from(viewer.stalls > 0);
        totals.stalled_s += viewer.stalled_ms / 1e3;
        totals.played_s += viewer.played_s;
        totals.bytes += viewer.bytes;
        totals.ldus += viewer.ldus.received;
        totals.late_ldus += viewer.ldus.late;
        totals.lost_packets += viewer.rtp.map_or(0, |rtp| rtp.lost);
    }
    // Nobody who neither played nor stalled has a ratio.
    if totals.played_s + totals.stalled_s > 0.0 {
        totals.stall_ratio = totals.stalled_s / (totals.played_s + totals.stalled_s);
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let bits = totals.bytes as f64 * 8.0;
    totals.bits_per_s = if took.is_zero() { 0.0 } else { bits / took.as_secs_f64() };
    totals
}

/// The report of one viewer.
fn viewer(session: &Session, shown: Option<&RenditionStats>) -> ViewerReport {
    let SessionState::Done(outcome) = session.state else { panic!("everybody has been sent home") };
    let last = session.last.as_ref();
    let startup = last.and_then(|last| last.startup);
    let (error, hint) =
        session.error.as_ref().map(|error| (error.to_string(), error.hint())).unzip();
    ViewerReport {
        viewer: session.number,
        url: session.url.to_string(),
        arrived_s: session.arrived.since(Moment::ZERO).as_secs_f64(),
        outcome,
        attempts: session.attempts,
        refusal: session.refusal.clone(),
        error,
        hint: hint.flatten(),
        answer_ms: session.answered.map(|at| ms(at.since(session.arrived))),
        startup_ms: startup.map(ms),
        stage: last.map_or("none", |last| stage(last.state)).to_owned(),
        played_s: last.map_or(0.0, |last| last.played.as_secs_f64()),
        stalls: last.map_or(0, |last| last.stalls.count),
        stalled_ms: last.map_or(0.0, |last| ms(last.stalls.total)),
        longest_stall_ms: last.map_or(0.0, |last| ms(last.stalls.longest)),
        seeks_ms: last.map_or(Vec::new(), |last| last.seeks.iter().copied().map(ms).collect()),
        least_margin_ms: last.and_then(|last| last.least_margin).map(to_ms),
        drift: last.map_or_else(DriftReport::default, |last: &PlayerReport| drift(&last.drift)),
        ldus: ldus(&session.ldus.drift),
        rtp: session.reception.map(rtp),
        pieces: last.map_or(0, |last| last.pieces),
        bytes: session.bytes,
        put_off: session.put_off,
        failovers: session.failovers,
        refused_speeds: session.refused_speeds,
        refused_seeks: session.refused_seeks,
        switches_up: shown.map_or(0, |shown| shown.up),
        switches_down: shown.map_or(0, |shown| shown.down),
        below_best: shown.map_or(0, |shown| shown.below.len() as u64),
        mean_rendition_bits_per_s: shown.and_then(RenditionStats::mean),
        renditions: shown.map_or(Vec::new(), RenditionStats::reports),
    }
}

fn drift(drift: &Drift) -> DriftReport {
    DriftReport {
        pieces: drift.units().len(),
        adf_ms: ms(drift.accumulated()),
        normalised_adf_ms: ms(drift.normalised()),
        cdf_ms: ms(drift.consecutive()),
        p50_ms: ms(drift.quantile(0.5)),
        p99_ms: ms(drift.quantile(0.99)),
        max_ms: ms(drift.quantile(1.0)),
    }
}

fn rtp(reception: Reception) -> RtpReport {
    let Reception { packets, lost, jitter } = reception;
    RtpReport { packets, lost, jitter_ms: ms(jitter) }
}

fn ldus(drift: &DriftFactors) -> LduReport {
    LduReport {
        received: drift.count(),
        late: drift.late(),
        adf_ms: ms(drift.accumulated()),
        normalised_adf_ms: ms(drift.normalised()),
        cdf_ms: ms(drift.consecutive()),
        max_ms: ms(drift.largest()),
    }
}

fn stage(stage: PlaybackState) -> &'static str {
    match stage {
        PlaybackState::Waiting => "waiting",
        PlaybackState::Playing => "playing",
        PlaybackState::Stalled => "stalled",
        PlaybackState::Paused => "paused",
        PlaybackState::Finished => "finished",
        PlaybackState::Stopped => "stopped",
    }
}

/// Milliseconds rounded to microseconds: finer digits are noise of the clock.
fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn to_ms(nanos: i64) -> f64 {
    (nanos as f64 / 1e3).round() / 1e3
}
