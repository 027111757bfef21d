//! What viewers and programs say of one round.

use super::parts::ClusterCounts;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tenuto_client::{PlayReport, ViewerOutcome, ViewerReport};

/// A round in which something was lost.
pub(super) struct LossRound {
    pub(super) loss: &'static str,
    /// The viewers over HTTP who played when it was lost.
    pub(super) crowd: PlayReport,
    /// The viewers over RTSP who played then.
    pub(super) rtsp: PlayReport,
    /// The viewers who came afterwards, by the other director.
    pub(super) newcomers: PlayReport,
    pub(super) counted: ClusterCounts,
}

impl LossRound {
    fn reports(&self) -> [&PlayReport; 3] {
        [&self.crowd, &self.rtsp, &self.newcomers]
    }

    fn viewers(&self) -> impl Iterator<Item = &ViewerReport> {
        self.reports().into_iter().flat_map(|report| &report.viewers)
    }

    fn sum(&self, of: impl Fn(&PlayReport) -> u64) -> u64 {
        self.reports().into_iter().map(of).sum()
    }

    /// Viewers who were admitted and did not play to the end of the round.
    fn failed(&self) -> u64 {
        self.sum(|report| u64::from(report.totals.failed + report.totals.unanswered))
    }

    fn stalls(&self) -> u64 {
        self.sum(|report| report.totals.stalls)
    }

    /// Why directors refused viewers, with the number of each cause.
    fn causes(&self) -> String {
        let mut causes: BTreeMap<&str, u32> = BTreeMap::new();
        let refused = self.viewers().filter(|viewer| viewer.outcome == ViewerOutcome::Refused);
        for cause in refused.filter_map(|viewer| viewer.refusal.as_ref()?.cause.as_deref()) {
            *causes.entry(cause).or_default() += 1;
        }
        let words: Vec<String> =
            causes.iter().map(|(cause, count)| format!(" ({cause} {count})")).collect();
        words.concat()
    }

    /// Viewers whom a node had no room for when they had lost theirs.
    fn no_room(&self) -> usize {
        self.viewers().filter(|viewer| viewer.put_off > 0).count()
    }

    /// The latest LDU of all, in milliseconds.
    fn worst(&self) -> f64 {
        self.viewers().map(|viewer| viewer.ldus.max_ms).fold(0.0, f64::max)
    }

    /// Whether every viewer who was admitted went on without a stall.
    pub(super) fn is_undisturbed(&self) -> bool {
        self.failed() + self.stalls() == 0
    }

    /// What was seen, in two lines.
    pub(super) fn sentence(&self) -> String {
        let ClusterCounts { sent, refused, admitted, late } = self.counted;
        format!(
            "viewers: {} played, {} went on at another node ({} waited for room), {} refused{}, {} failed, {} stalls, \
             worst lateness {:.0} ms\ndirectors: {sent} sent, {refused} refused; nodes: {admitted} \
             admitted, {late} reads late",
            self.sum(|report| u64::from(report.totals.admitted)),
            self.sum(|report| u64::from(report.totals.viewers_with_failovers)),
            self.no_room(),
            self.sum(|report| u64::from(report.totals.refused)),
            self.causes(),
            self.failed(),
            self.stalls(),
            self.worst()
        )
    }
}

/// All rounds as a table.
pub(super) fn table(rounds: &[LossRound]) -> String {
    let mut text = format!(
        "{:<26}{:>8}{:>11}{:>9}{:>9}{:>8}{:>8}{:>10}",
        "", "viewers", "failovers", "no room", "refused", "failed", "stalls", "worst ms"
    );
    for round in rounds {
        let _ = write!(
            text,
            "\n{:<26}{:>8}{:>11}{:>9}{:>9}{:>8}{:>8}{:>10.0}",
            round.loss,
            round.sum(|report| u64::from(report.totals.admitted)),
            round.sum(|report| report.totals.failovers),
            round.no_room(),
            round.sum(|report| u64::from(report.totals.refused)),
            round.failed(),
            round.stalls(),
            round.worst()
        );
        let totals = &round.rtsp.totals;
        let put_off = round.rtsp.viewers.iter().filter(|viewer| viewer.put_off > 0).count();
        let _ = write!(
            text,
            "\n{:<26}{:>8}{:>11}{:>9}{:>9}{:>8}{:>8}",
            "  over RTSP",
            totals.admitted,
            totals.failovers,
            put_off,
            totals.refused,
            totals.failed + totals.unanswered,
            totals.stalls
        );
    }
    let verdict = if rounds.iter().all(LossRound::is_undisturbed) {
        "Every viewer who was admitted went on without a stall."
    } else {
        "Not every viewer who was admitted went on without a stall."
    };
    text + "\n\n" + verdict
}
