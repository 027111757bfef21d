//! A disk that slows down while it is used (fail-stutter), and the guard that sees it.
//!
//! ```text
//!   minutes    0 ───────── 10 ────────────────── 20 ─────────────────────── 40
//!   disk       as modelled │ each read takes longer │ as modelled again
//!   charged    as modelled │ more, from the first   │ more, ever less
//!              sweep that took too long on
//! ```
//!
//! Viewers ask for twice what the disk could transfer all the while. Nothing helps those who came in
//! before it slowed: the disk cannot do what it promised. What the guard decides is whether more
//! come in.

use super::chance::Chance;
use super::long_run::Visitors;
use super::station::{Rules, Station, Tally, Trouble};
use super::titles::Shelf;
use std::time::Duration;
use units::Moment;

/// A stretch of time of a disk that slows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// From here in the run ...
    pub from: Duration,
    /// ... to here.
    pub until: Duration,
    /// By how much more than modelled everything was charged in the end: 0 is not at all.
    pub behind: f64,
    /// Part of the time in which bytes were transferred.
    pub load: f64,
    /// What happened in it.
    pub tally: Tally,
}

/// Runs forty minutes in which the disk takes `times` as long for ten; in stretches of `step`.
pub fn slowing(
    rules: &Rules,
    shelf: &dyn Shelf,
    times: f64,
    step: Duration,
    seed: u64,
) -> Vec<Phase> {
    let trouble = Trouble { from: Moment::ZERO + SLOWS, until: Moment::ZERO + RECOVERS, times };
    let rules = Rules { trouble: Some(trouble), ..rules.clone() };
    let mut chance = Chance::new(seed, SLOWING);
    let mut visitors = Visitors::new(&rules, shelf, OVERLOAD, &mut chance);
    let mut station = Station::new(&rules, chance.seed());
    let (mut phases, mut from) = (Vec::new(), Duration::ZERO);
    while from < ENDS {
        let before = station.tally();
        let until = (from + step).min(ENDS);
        visitors.come_until(&mut station, until, &mut chance);
        let tally = station.tally().since(&before);
        let load = tally.transfer.as_secs_f64() / (until - from).as_secs_f64();
        phases.push(Phase { from, until, behind: station.behind(), load, tally });
        from = until;
    }
    phases
}

/// The same stretches put together: those that begin between these.
pub fn together(phases: &[Phase], from: Duration, until: Duration) -> Option<Phase> {
    let mut inside = phases.iter().filter(|phase| (from..until).contains(&phase.from));
    let mut all = *inside.next()?;
    for phase in inside {
        let whole = (phase.until - all.from).as_secs_f64();
        let of = |phase: &Phase| phase.load * (phase.until - phase.from).as_secs_f64();
        all.load = (of(&all) + of(phase)) / whole;
        (all.until, all.behind) = (phase.until, phase.behind);
        all.tally += phase.tally;
    }
    Some(all)
}

/// When the disk slows down ...
pub const SLOWS: Duration = Duration::from_secs(600);
/// ... and when it is itself again.
pub const RECOVERS: Duration = Duration::from_secs(1200);
/// The end of the run.
pub const ENDS: Duration = Duration::from_secs(2400);

/// Of what the disk could transfer.
const OVERLOAD: f64 = 2.0;

// The name of a source of chance.
const SLOWING: u64 = 7;

#[cfg(test)]
mod tests {
    use super::super::{ClipKind, Clips, Contender, Kept, fits};
    use super::*;
    use scheduler::PolicyKind;

    #[test]
    fn what_is_let_in_shrinks_at_once_and_recovers_slowly() {
        let model = fits::small();
        let contender = Contender::long(PolicyKind::TimeDomain);
        let rules = Rules { memory: 125 << 20, ..Rules::of(&contender, &model, 1 << 20) };
        let kept = Kept::some(&Clips::fill(ClipKind::SHORT, model.capacity().0, 1), 16);
        let minute = Duration::from_secs(60);
        let run = |guarded| {
            let rules = Rules { guarded, ..rules.clone() };
            let phases = slowing(&rules, &kept, 1.5, minute / 6, 1);
            let of = |from, until| together(&phases, minute * from, minute * until).unwrap();
            (of(5, 10), of(10, 11), of(11, 20), of(20, 21), of(35, 40))
        };
        let (before, at_once, slow, just_after, later) = run(true);
        assert_eq!((before.behind, before.tally.late), (0.0, 0));
        assert!(at_once.behind > 0.2, "{at_once:?}");
        // Of five minutes.
        let few = at_once.tally.admitted * 5 * 2 < before.tally.admitted;
        assert!(few, "{at_once:?} {before:?}");
        assert!(slow.load < 0.9 * before.load, "{slow:?}");
        assert!(just_after.behind > 0.05, "not taken back at once: {just_after:?}");
        assert!(later.behind < 0.05 && later.load > 0.85 * before.load, "{later:?}");
        let (_, _, unguarded, ..) = run(false);
        assert!(unguarded.tally.late > 2 * slow.tally.late, "{unguarded:?} {slow:?}");
    }
}
