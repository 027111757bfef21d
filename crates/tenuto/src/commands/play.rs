//! `play`: plays titles as many viewers and reports start-up times, stalls and refusals.

use crate::args::viewing::PlayArgs;
use crate::failure::{Code, Failure};
use crate::limits;
use crate::out::{self, Bar, facts};
use player::{AbrRule, Behaviour, PlayerOptions, ViewerAction};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tenuto_agent::stop_on_signals;
use tenuto_client::{
    Arrivals, Choice, PlayOptions, PlayReport, RtspTransport, Totals, View, ViewerOutcome,
    ViewerSample,
};
use units::show::count;
use units::{BitRate, ByteCount, Reason, show};

pub(crate) fn play(args: &PlayArgs) -> Result<(), Failure> {
    let options = options(args)?;
    let stop = stop_on_signals()?;
    // Before the first connection, whose failure would count as that of a viewer.
    limits::raise_open_files();
    let bar = Bar::new();
    let report = tenuto_client::play(&options, &stop, &mut |sample| bar.say(&state(sample)))?;
    // The bar would otherwise be drawn into the report.
    drop(bar);
    if args.report.json {
        out::print_json(&report);
    } else {
        tell(&report);
    }
    if !report.complete {
        return Err(Failure::reported(Code::Invalid));
    }
    match report.totals {
        Totals { failed: 0, refused, stalls, .. }
            if args.strict && u64::from(refused) + stalls > 0 =>
        {
            Err(Failure::reported(Code::Refused))
        }
        // Refusing some viewers is the normal answer of a full server. Only when nobody was
        // admitted is the run a refusal as a whole.
        Totals { admitted: 0, failed: 0, refused, .. } if refused > 0 => {
            Err(Failure::reported(Code::Refused))
        }
        Totals { failed, .. } if failed > 0 => Err(Failure::reported(Code::Failed)),
        _ => Ok(()),
    }
}

fn options(args: &PlayArgs) -> Result<PlayOptions, Failure> {
    let defaults = PlayOptions::default();
    // Every file that may be written is tested before viewers play for minutes.
    for path in args.save.iter().flat_map(|path| saved_as(path)) {
        args.overwrite.check(&path)?;
    }
    if args.save.is_some() && args.switching.switching != AbrRule::Never {
        return Err(Failure::usage("--save cannot put several renditions into one file")
            .hint("leave out --switching, or --save"));
    }
    let behaviour: Behaviour =
        args.behaviour.as_deref().map_or_else(|| Ok(Behaviour::default()), parsed)?;
    let changes_speed =
        behaviour.steps().iter().any(|step| matches!(step.action, ViewerAction::Speed(_)));
    if args.save.is_some() && changes_speed {
        return Err(Failure::usage("--save cannot put several speeds into one file")
            .hint("leave the action 'speed' out of --behaviour, or leave out --save"));
    }
    check_rtsp(args)?;
    check_trace(args)?;
    Ok(PlayOptions {
        urls: args.urls.clone(),
        viewers: args.viewers,
        arrivals: args.arrivals,
        choice: args.choice,
        trace: match &args.trace {
            None => None,
            Some(path) => Some(parsed(path)?),
        },
        form: args.form,
        rtsp: args.rtsp_transport,
        bandwidth: args.bandwidth,
        seed: args.random.seed,
        duration: args.duration,
        behaviour,
        stay: args.stay,
        view: View {
            from: args.from,
            to: args.to,
            speed: args.speed,
            skip: args.skip,
            wait: args.wait,
        },
        player: PlayerOptions { start: args.start_buffer, buffer: args.buffer, ..defaults.player },
        switching: args.switching.switching,
        save: args.save.clone(),
        retry: args.retry,
        patience: args.timeout,
        trust: args.tls.trust()?,
        identity: args.tls.identity()?,
    })
}

/// Refuses options that have no effect over RTSP.
fn check_rtsp(args: &PlayArgs) -> Result<(), Failure> {
    if !args.urls.iter().any(|url| url.starts_with("rtsp")) {
        return Ok(());
    }
    let given = [
        ("--save", args.save.is_some()),
        ("--switching", args.switching.switching != AbrRule::Never),
        ("--wait", args.wait.is_some()),
    ];
    if args.bandwidth.is_some() && args.rtsp_transport == RtspTransport::Udp {
        return Err(Failure::usage("--bandwidth limits connections, and datagrams are in none")
            .hint("leave out --bandwidth, or --rtsp-transport udp"));
    }
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::usage(format!("{option} has no effect over RTSP"))
            .hint("leave it out, or give the address of a playlist")),
    }
}

/// Refuses options that say the same as a trace.
fn check_trace(args: &PlayArgs) -> Result<(), Failure> {
    let given = [
        ("--viewers", args.viewers != 1),
        ("--arrivals", args.arrivals != Arrivals::AllAtOnce),
        ("--choice", args.choice != Choice::RoundRobin),
    ];
    match given.into_iter().find(|(_, is_given)| args.trace.is_some() && *is_given) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Failure::usage(format!("--trace and {option} contradict each other"))
                .hint("the trace says who comes when, and for which title"))
        }
    }
}

/// The files that `--save` may write: the file itself, or for HLS one per track.
fn saved_as(path: &Path) -> [PathBuf; 3] {
    let track = |kind: &str| match path.extension().and_then(|extension| extension.to_str()) {
        Some(extension) => path.with_extension(format!("{kind}.{extension}")),
        None => path.with_extension(kind),
    };
    [path.to_owned(), track("video"), track("audio")]
}

/// The content of a file; the error says what is wrong with it.
fn parsed<T: FromStr<Err = Reason>>(file: &Path) -> Result<T, Failure> {
    out::read_text(file)?.parse().map_err(|reason: Reason| Failure {
        hint: reason.hint,
        ..Failure::usage(format!("{}: {}", file.display(), reason.message))
    })
}

fn state(sample: &ViewerSample) -> String {
    format!(
        "{} playing, {} waiting, {} stalled, {} refused, {} ended",
        sample.playing, sample.waiting, sample.stalled, sample.refused, sample.gone
    )
}

fn tell(report: &PlayReport) {
    if !report.complete {
        out::note("interrupted: the report covers the time until then");
    }
    out::print(&page(report));
    for path in &report.saved {
        out::note(&format!("saved {}", path.display()));
    }
    let failed = report.viewers.iter().filter(|viewer| viewer.outcome == ViewerOutcome::Failed);
    for viewer in failed.take(ERRORS_SHOWN) {
        let why = viewer.error.as_deref().unwrap_or("the reason is unknown");
        let sentence = format!("viewer {}: {why}", viewer.viewer);
        out::complain(&Failure { hint: viewer.hint.clone(), ..Failure::new(sentence) });
    }
}

/// Errors that the page shows; `--json` has them all.
const ERRORS_SHOWN: usize = 5;

fn page(report: &PlayReport) -> String {
    let (totals, wanted) = (&report.totals, &report.parameters);
    let viewers = format!(
        "{} of {} requested ({}, arrivals {}) in {}",
        totals.arrived,
        wanted.viewers,
        count(wanted.titles, "title"),
        wanted.arrivals,
        show::length(report.seconds)
    );
    let mut lines = vec![("viewers", viewers)];
    if let Some(rate) = wanted.bandwidth_bits_per_s {
        lines.push(("bandwidth", format!("{} for each viewer", BitRate(rate))));
    }
    lines.extend([
        ("admitted", format!("{}, {} watched to the end", totals.admitted, totals.finished)),
        ("refused", refused(report)),
    ]);
    if totals.failed + totals.unanswered > 0 {
        lines.push(("failed", format!("{}, unanswered {}", totals.failed, totals.unanswered)));
    }
    let startup = &report.startup_ms;
    // Quantiles of nothing would be shown as zero, which is the best value.
    if startup.count > 0 {
        let [p50, p95, max] = [startup.p50, startup.p95, startup.max].map(show::millis);
        lines.push(("start-up", format!("50 % up to {p50}, 95 % up to {p95}, longest {max}")));
    }
    if totals.failovers > 0 {
        let viewers = count(totals.viewers_with_failovers, "viewer");
        lines.push(("failovers", format!("{}, of {viewers}, to another node", totals.failovers)));
    }
    if totals.refused_speeds > 0 {
        let refused = totals.refused_speeds;
        lines.push(("speed changes", format!("{refused} refused; the viewers went on as before")));
    }
    if totals.refused_seeks > 0 {
        let refused = totals.refused_seeks;
        lines.push(("seeks", format!("{refused} refused; the viewers went on as before")));
    }
    lines.push(("stalls", stalls(totals)));
    let drift = &report.drift_ms;
    // A viewer that left before the end of its first segment has no drift.
    if drift.count > 0 {
        let [p50, p99, max] = [drift.p50, drift.p99, drift.max].map(show::millis);
        lines.push(("drift", format!("50 % up to {p50}, 99 % up to {p99}, longest {max}")));
    }
    if totals.ldus > 0 {
        let late = format!("{} of {} came late", totals.late_ldus, count(totals.ldus, "LDU"));
        lines.push(("LDUs", late));
    }
    let packets: u64 =
        report.viewers.iter().filter_map(|viewer| viewer.rtp).map(|rtp| rtp.packets).sum();
    if packets > 0 {
        lines.push(("RTP", format!("{packets} packets, {} lost", totals.lost_packets)));
    }
    lines.extend(meter::report::renditions(report));
    let rate = BitRate(units::rounded(totals.bits_per_s));
    lines.push(("received", format!("{} at {rate}", ByteCount(totals.bytes))));
    facts(&lines)
}

fn refused(report: &PlayReport) -> String {
    let by: Vec<String> =
        report.totals.refused_by.iter().map(|(resource, n)| format!("{resource} {n}")).collect();
    let first = report.viewers.iter().find_map(|viewer| viewer.refusal.as_ref());
    match first {
        Some(refusal) if report.totals.refused > 0 => {
            format!("{} ({}); the first: {}", report.totals.refused, by.join(", "), refusal.reason)
        }
        _ => report.totals.refused.to_string(),
    }
}

fn stalls(totals: &Totals) -> String {
    if totals.stalls == 0 {
        return "none".to_owned();
    }
    format!(
        "{}, seen by {}, {:.1} % of the time",
        totals.stalls,
        count(totals.viewers_with_stalls, "viewer"),
        totals.stall_ratio * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::RootCommand;
    use crate::cli;
    use std::ffi::OsString;

    /// Defaults are declared as text; the meter and the player have them as values.
    #[test]
    fn the_declared_defaults_are_the_meters() {
        let line = ["tenuto", "play", "http://a/"].map(OsString::from);
        let RootCommand::Play(args) = cli::parse(line).unwrap().command else {
            panic!("the arguments of play")
        };
        let given = options(&args).unwrap();
        let wanted = PlayOptions { urls: given.urls.clone(), ..PlayOptions::default() };
        assert_eq!(format!("{given:?}"), format!("{wanted:?}"));
    }
}
