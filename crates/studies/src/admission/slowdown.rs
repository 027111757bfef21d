//! A disk that slows down while it is used (fail-stutter), and the guard that sees it.
//!
//! ```text
//!   minutes    0 ───────── 10 ────────────────── 20 ─────────────────────── 40
//!   disk       as modelled │ each read takes longer │ as modelled again
//!   charged    as modelled │ more, from the first   │ more, ever less
//!              sweep that took too long on
//! ```
//!
//! The requested load is twice the disk's transfer rate throughout. Streams that were accepted
//! before the disk slowed down are late in any case. The guard decides whether more are accepted.

use super::disk_server::{Rules, RunCounters, SingleDiskServer, SlowPeriod};
use super::long_run::ViewerArrivals;
use super::random::RandomSource;
use super::titles::TitleSource;
use std::time::Duration;
use units::Moment;

/// A stretch of time of a disk that slows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunPhase {
    /// From here in the run ...
    pub from: Duration,
    /// ... to here.
    pub until: Duration,
    /// By how much more than modelled everything was charged in the end: 0 is not at all.
    pub behind: f64,
    /// Part of the time in which bytes were transferred.
    pub load: f64,
    /// What happened in it.
    pub counters: RunCounters,
}

/// Runs forty minutes in which the disk takes `times` as long for ten; in stretches of `step`.
pub fn slowdown_run(
    rules: &Rules,
    source: &dyn TitleSource,
    times: f64,
    step: Duration,
    seed: u64,
) -> Vec<RunPhase> {
    let slow_period =
        SlowPeriod { from: Moment::ZERO + SLOWS, until: Moment::ZERO + RECOVERS, times };
    let rules = Rules { slow_period: Some(slow_period), ..rules.clone() };
    let mut random = RandomSource::new(seed, SLOWING);
    let mut arrivals = ViewerArrivals::new(&rules, source, OVERLOAD, &mut random);
    let mut server = SingleDiskServer::new(&rules, random.seed());
    let (mut phases, mut from) = (Vec::new(), Duration::ZERO);
    while from < ENDS {
        // Counters grow over the whole run: a phase is the difference.
        let before = server.counters();
        let until = (from + step).min(ENDS);
        arrivals.come_until(&mut server, until, &mut random);
        let counters = server.counters().since(&before);
        let load = counters.transfer.as_secs_f64() / (until - from).as_secs_f64();
        phases.push(RunPhase { from, until, behind: server.behind(), load, counters });
        from = until;
    }
    phases
}

/// Combines the phases that begin at `from` or later and before `until`; `None` if there is none.
pub fn together(phases: &[RunPhase], from: Duration, until: Duration) -> Option<RunPhase> {
    let mut inside = phases.iter().filter(|phase| (from..until).contains(&phase.from));
    let mut all = *inside.next()?;
    for phase in inside {
        let whole = (phase.until - all.from).as_secs_f64();
        let of = |phase: &RunPhase| phase.load * (phase.until - phase.from).as_secs_f64();
        // Phases may differ in length, so that loads are weighted by it; the slowdown is that at
        // the end.
        all.load = (of(&all) + of(phase)) / whole;
        (all.until, all.behind) = (phase.until, phase.behind);
        all.counters += phase.counters;
    }
    Some(all)
}

/// When the disk slows down ...
pub const SLOWS: Duration = Duration::from_secs(600);
/// ... and when it is itself again.
pub const RECOVERS: Duration = Duration::from_secs(1200);
/// The end of the run.
pub const ENDS: Duration = Duration::from_secs(2400);

/// Requested load as a multiple of the disk's transfer rate.
const OVERLOAD: f64 = 2.0;

// The name of a source of chance.
const SLOWING: u64 = 7;

#[cfg(test)]
mod tests {
    use super::super::{ClipKind, Clips, PolicyUnderTest, StoredTitles, fitted};
    use super::*;
    use scheduler::PolicyKind;

    #[test]
    fn what_is_let_in_shrinks_at_once_and_recovers_after_a_while() {
        let model = fitted::small();
        let tested = PolicyUnderTest::long(PolicyKind::TimeDomain);
        let rules = Rules { memory: 125 << 20, ..tested.rules(&model, 1 << 20) };
        let kept = StoredTitles::some(&Clips::fill(ClipKind::SHORT, model.capacity().0, 1), 16);
        let minute = Duration::from_secs(60);
        let run = |guarded| {
            let rules = Rules { guarded, ..rules.clone() };
            let phases = slowdown_run(&rules, &kept, 1.5, minute / 6, 1);
            let between = |from, until| together(&phases, from, until).unwrap();
            let of = |from, until| between(minute * from, minute * until);
            let just_after = between(minute * 20, minute * 20 + minute / 6);
            (of(5, 10), of(10, 11), of(11, 20), just_after, of(35, 40))
        };
        let (before, at_once, slow, just_after, later) = run(true);
        assert_eq!((before.behind, before.counters.late), (0.0, 0));
        assert!(at_once.behind > 0.2, "{at_once:?}");
        // Of five minutes.
        let few = at_once.counters.admitted * 5 * 2 < before.counters.admitted;
        assert!(few, "{at_once:?} {before:?}");
        assert!(slow.load < 0.9 * before.load, "{slow:?}");
        assert!(just_after.behind > 0.05, "not taken back at once: {just_after:?}");
        assert!(later.behind < 0.05 && later.load > 0.85 * before.load, "{later:?}");
        let (_, _, unguarded, ..) = run(false);
        assert!(unguarded.counters.late > 2 * slow.counters.late, "{unguarded:?} {slow:?}");
    }
}
