//! The offline optimum: how much of a scenario the same server could have served with knowledge of
//! future arrivals and rotational delays.
//!
//! ```text
//!   delivered    all accepted, rotational delays as drawn                   any read late?
//!   promisable   ... and after each arrival every delay a whole revolution  any read late?
//!                ────┬────┬──────┬──────────▶  as drawn
//!                    └──  └──    └──────────   a run of its own, at the disk's worst
//!   the most     the fewest left out so that the others are on time         how many stay?
//! ```
//!
//! *Promisable* scenarios are those that an admission test could accept: it does not know the
//! rotational delays, and must be right even if each is the worst. A scenario that is delivered but
//! not promisable cannot be guaranteed by this scheduler, whatever the admission test.
//!
//! *The most* is the result of an admission test that knows all arrivals and rotational delays, in
//! front of the same scheduler. It leaves out the fewest viewers. Only viewers who arrived before
//! the first late read can have caused it, so at least one of them must be left out as well. Sets
//! are tried in the order of their size.

use super::super::disk_server::{RotationalDelay, Rules, SingleDiskServer};
use super::super::scenario::Scenario;
use super::Study;
use super::runs::{ReadMode, schedule};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Whether a scenario can be served with knowledge of the future, and how many of its viewers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OfflineResult {
    /// All viewers were accepted, and no read was late.
    pub delivered: bool,
    /// No read would have been late if every rotational delay after any arrival had been a whole
    /// revolution; known only for servers that read by windows.
    pub promisable: bool,
    /// The most viewers that could have been accepted; known only for servers that read by windows.
    pub most: u64,
    /// Whether `most` is exact; otherwise the search was given up.
    pub found: bool,
}

impl OfflineResult {
    /// Result for a server for which only `delivered` is known.
    pub(super) fn of(delivered: bool) -> Self {
        Self { delivered, ..Self::default() }
    }
}

impl Study {
    /// Evaluates a scenario offline; `delivered` says whether all viewers were served on time.
    pub(super) fn offline(
        &self,
        scenario: &Scenario,
        mode: ReadMode,
        delivered: bool,
        seed: u64,
    ) -> OfflineResult {
        if mode != ReadMode::Windows {
            return OfflineResult::of(delivered);
        }
        let rules = self.rules(None, mode);
        let promisable = delivered && is_promisable(scenario, &rules, seed);
        let came = scenario.arrivals.len();
        let (fewest, found) = match delivered {
            true => (0, true),
            false => fewest_left_out(|out| late(scenario, &rules, out, seed), MOST_TRIALS),
        };
        OfflineResult { delivered, promisable, most: (came - fewest.min(came)) as u64, found }
    }
}

fn is_promisable(scenario: &Scenario, rules: &Rules, seed: u64) -> bool {
    let worst = Rules { rotation: RotationalDelay::Worst, ..rules.clone() };
    let mut server = SingleDiskServer::new(rules, seed);
    scenario.arrivals.iter().all(|arrival| {
        server.run_until(arrival.at);
        let _ = server.arrive(Arc::clone(schedule(arrival, rules)));
        // An admission test knows the past and no rotational delay to come: from here on each is
        // the worst.
        let mut at_worst = server.under(&worst);
        at_worst.finish_unless(|counters| counters.late > 0);
        at_worst.counters().late == 0
    })
}

/// Whether anybody is late when these are left out: of those who came, how many had by then.
fn late(scenario: &Scenario, rules: &Rules, out: &BTreeSet<usize>, seed: u64) -> Option<usize> {
    let mut server = SingleDiskServer::new(rules, seed);
    for (number, arrival) in scenario.arrivals.iter().enumerate() {
        server.run_until(arrival.at);
        // Looked at before the viewer comes: it cannot have caused what was late already.
        if server.counters().late > 0 {
            return Some(number);
        }
        if !out.contains(&number) {
            let _ = server.arrive(Arc::clone(schedule(arrival, rules)));
        }
    }
    server.finish_unless(|counters| counters.late > 0);
    (server.counters().late > 0).then_some(scenario.arrivals.len())
}

/// Number of viewers that must be left out at least, and whether it is exact; the search ends after
/// a limited number of trials. `late` is given a set to leave out and returns how many viewers had
/// arrived before the first late read, or `None` if no read was late.
fn fewest_left_out(
    late: impl Fn(&BTreeSet<usize>) -> Option<usize>,
    most_trials: usize,
) -> (usize, bool) {
    // A set of sets: the same viewers can be left out in several orders.
    let (mut sets, mut trials, mut left_out) = (BTreeSet::from([BTreeSet::new()]), 0, 0);
    loop {
        assert!(!sets.is_empty(), "with everybody left out nobody is late");
        let mut larger = BTreeSet::new();
        for out in &sets {
            if trials == most_trials {
                return (left_out, false);
            }
            trials += 1;
            let Some(came) = late(out) else { return (left_out, true) };
            for one in (0..came).filter(|one| !out.contains(one)) {
                let mut with = out.clone();
                with.insert(one);
                larger.insert(with);
            }
        }
        (sets, left_out) = (larger, left_out + 1);
    }
}

/// Scenarios far beyond what the disk can do would be searched for hours.
const MOST_TRIALS: usize = 300;

#[cfg(test)]
mod tests {
    use super::super::super::disk_server::SlowPeriod;
    use super::super::super::presets::{Preset, Setup};
    use super::*;
    use scheduler::PolicyKind;
    use std::time::Duration;
    use units::Moment;

    fn study() -> Study {
        let mut study = Setup::new(Preset::Paper, Duration::from_millis(500)).study(None);
        study.tested.retain(|tested| tested.policy == PolicyKind::TimeDomain);
        study
    }

    /// Every set there is.
    fn brute_force(came: usize, late: impl Fn(&BTreeSet<usize>) -> Option<usize>) -> usize {
        let sets =
            (0..1_u32 << came).map(|bits| (0..came).filter(|i| bits >> i & 1 == 1).collect());
        let on_time = sets.filter(|out| late(out).is_none()).map(|out: BTreeSet<usize>| out.len());
        on_time.min().expect("nobody is late when all are left out")
    }

    /// Loads that come one after the other and stay for a while: late at the first moment at which
    /// they are too many.
    #[test]
    fn the_fewest_are_those_of_a_search_through_all_sets() {
        let mut several = 0;
        for seed in 0..400 {
            let mut random = fastrand::Rng::with_seed(seed);
            let loads: Vec<(usize, u32)> =
                (0..random.usize(1..9)).map(|_| (random.usize(1..6), random.u32(1..9))).collect();
            let most = random.u32(4..16);
            let late = |out: &BTreeSet<usize>| {
                (0..loads.len()).map(|now| now + 1).find(|came| {
                    let here = |i: &usize| !out.contains(i) && i + loads[*i].0 >= *came;
                    (0..*came).filter(here).map(|i| loads[i].1).sum::<u32>() > most
                })
            };
            let (fewest, found) = fewest_left_out(late, usize::MAX);
            assert_eq!((fewest, found), (brute_force(loads.len(), late), true), "seed {seed}");
            several += u32::from(fewest > 1);
            let (at_least, found) = fewest_left_out(late, 3);
            assert!(at_least <= fewest && (!found || at_least == fewest), "seed {seed}");
        }
        assert!(several > 100, "only {several} with more than one");
    }

    /// Real runs: the first viewers of scenarios on a disk that is too slow for them.
    #[test]
    fn the_offline_optimum_of_short_scenarios_is_that_of_a_search_through_all_sets() {
        let study = study();
        let slow = SlowPeriod { from: Moment::ZERO, until: Moment::MAX, times: 2.5 };
        let rules = Rules { slow_period: Some(slow), ..study.rules(None, ReadMode::Windows) };
        let mut left_out = 0;
        for number in 0..6 {
            let (seed, mut scenario) = study.drawn(number);
            scenario.arrivals.truncate(8);
            let late = |out: &BTreeSet<usize>| late(&scenario, &rules, out, seed);
            let (fewest, found) = fewest_left_out(late, usize::MAX);
            let brute = brute_force(scenario.arrivals.len(), late);
            assert_eq!((fewest, found), (brute, true), "{number}");
            left_out += fewest;
        }
        assert!(left_out > 3, "only {left_out} left out");
    }

    #[test]
    fn what_disk_time_accepts_could_be_promised() {
        let study = study();
        let (mut accepted, mut not_promisable) = (0, 0);
        for number in 0..42 {
            let result = study.judge(number);
            let row = &result.rows[0];
            assert!(!row.accepted || row.offline.promisable, "{number}: {result:?}");
            accepted += u32::from(row.accepted);
            not_promisable += u32::from(!row.offline.promisable);
        }
        assert!(accepted > 20 && not_promisable > 2, "{accepted}, {not_promisable}");
    }
}
