//! What the very same server could have done with a scenario, knowing what nobody knows at the door.
//!
//! ```text
//!   delivered    everybody in, the platter as it turned                     anybody late?
//!   promisable   ... and from each arrival on every rotation a whole one    anybody late?
//!                ────┬────┬──────┬──────────▶  as it turned
//!                    └──  └──    └──────────   a run of its own, at the disk's worst, until all is read
//!   the most     the fewest left out so that the others' run is on time     how many stay?
//! ```
//!
//! *Promisable* is what a promise can be asked for: whoever lets somebody in does not know how the
//! platter will turn, and must be right even if it turns at its worst. What is delivered and not
//! promisable, this scheduler cannot promise by whatever arithmetic.
//!
//! *The most* is the offline optimum: an admission that knows who will come and how the platter will
//! turn, in front of the same scheduler. It leaves out the fewest. Of all who were left out by then
//! nobody has any part in what happens before the first late read but those who came before: so a
//! set that is late can only be mended by leaving out one of these, and sets are tried in the order
//! of their size.

use super::runs::{Reading, wanted};
use super::scenario::Scenario;
use super::station::{Rules, Station, Turns};
use super::study::Study;
use std::collections::BTreeSet;
use std::sync::Arc;

/// See the head of this file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hindsight {
    /// Everybody is in, and nobody was late.
    pub delivered: bool,
    /// ... nor would anybody have been, if from any arrival on every rotation had been a whole one.
    /// Of servers that read by windows only.
    pub promisable: bool,
    /// Viewers that could have been let in, at most; of servers that read by windows only.
    pub most: u64,
    /// Whether that many could; otherwise the search was given up.
    pub found: bool,
}

impl Hindsight {
    /// Of a server of which nothing more is asked.
    pub(super) fn of(delivered: bool) -> Self {
        Self { delivered, ..Self::default() }
    }
}

impl Study {
    /// Of a scenario that was delivered to everybody in time, or was not.
    pub(super) fn hindsight(
        &self,
        scenario: &Scenario,
        reading: Reading,
        delivered: bool,
        seed: u64,
    ) -> Hindsight {
        if reading != Reading::Windows {
            return Hindsight::of(delivered);
        }
        let rules = self.rules(None, reading);
        let promisable = delivered && is_promisable(scenario, &rules, seed);
        let came = scenario.arrivals.len();
        let (fewest, found) = match delivered {
            true => (0, true),
            false => fewest_left_out(|out| late(scenario, &rules, out, seed), MOST_TRIALS),
        };
        Hindsight { delivered, promisable, most: (came - fewest.min(came)) as u64, found }
    }
}

fn is_promisable(scenario: &Scenario, rules: &Rules, seed: u64) -> bool {
    let worst = Rules { turns: Turns::Worst, ..rules.clone() };
    let mut station = Station::new(rules, seed);
    scenario.arrivals.iter().all(|arrival| {
        station.run_until(arrival.at);
        let _ = station.arrive(Arc::clone(wanted(arrival, rules)));
        let mut at_worst = station.under(&worst);
        at_worst.finish_unless(|tally| tally.late > 0);
        at_worst.tally().late == 0
    })
}

/// Whether anybody is late when these are left out: of those who came, how many had by then.
fn late(scenario: &Scenario, rules: &Rules, out: &BTreeSet<usize>, seed: u64) -> Option<usize> {
    let mut station = Station::new(rules, seed);
    for (number, arrival) in scenario.arrivals.iter().enumerate() {
        station.run_until(arrival.at);
        if station.tally().late > 0 {
            return Some(number);
        }
        if !out.contains(&number) {
            let _ = station.arrive(Arc::clone(wanted(arrival, rules)));
        }
    }
    station.finish_unless(|tally| tally.late > 0);
    (station.tally().late > 0).then_some(scenario.arrivals.len())
}

/// The fewest that must be left out, and whether that many are enough; after so many trials that is
/// not known. `late` says of who is left out how many had come before the first was late, if any was.
fn fewest_left_out(
    late: impl Fn(&BTreeSet<usize>) -> Option<usize>,
    most_trials: usize,
) -> (usize, bool) {
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
    use super::super::presets::{Preset, Setup};
    use super::super::station::Trouble;
    use super::*;
    use scheduler::PolicyKind;
    use std::time::Duration;
    use units::Moment;

    fn study() -> Study {
        let mut study = Setup::new(Preset::Paper, Duration::from_millis(500)).study(None);
        study.contenders.retain(|contender| contender.policy == PolicyKind::TimeDomain);
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
        let slow = Trouble { from: Moment::ZERO, until: Moment::MAX, times: 2.5 };
        let rules = Rules { trouble: Some(slow), ..study.rules(None, Reading::Windows) };
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
            let judged = study.judge(number);
            let row = &judged.rows[0];
            assert!(!row.accepted || row.hindsight.promisable, "{number}: {judged:?}");
            accepted += u32::from(row.accepted);
            not_promisable += u32::from(!row.hindsight.promisable);
        }
        assert!(accepted > 20 && not_promisable > 2, "{accepted}, {not_promisable}");
    }
}
