//! The runs that judge one scenario: which server reads how, and who watches.
//!
//! Whoever leaves no plan changes a run only by refusing somebody. So all such policies whose
//! server reads alike watch one run in which everybody comes in, each until it would refuse.

use super::requests::Wanted;
use super::scenario::{Arrival, Scenario};
use super::station::{Rules, Station, Tally, Turns};
use super::study::{Row, Study};
use super::titles::BLOCK;
use scheduler::{Facts, PolicyKind};
use std::sync::Arc;
use std::time::Duration;
use units::ByteCount;

/// How a server reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// One block at a time, so many or a few more in a sweep: the paper's.
    Blocks(u32),
    /// Long reads, as many in a sweep as the disk is sure to make in a slot.
    Long,
    /// Long reads, in windows of disk time.
    Windows,
}

/// What is known of a study's disk when it is read in one way.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) facts: Arc<Facts>,
    guaranteed: u32,
}

/// What came of a run in which everybody came in.
pub(super) struct Run {
    /// Some time after the last arrival: from then on there are ever fewer streams, so that the
    /// bandwidth achieved has had its least.
    pub(super) looked_at: Tally,
    /// Whether nobody was late.
    pub(super) on_time: bool,
}

impl Study {
    /// How the server of a contender reads.
    pub(super) fn reading(&self, row: usize) -> Reading {
        let contender = &self.contenders[row];
        match contender.blocks {
            Some(blocks) => Reading::Blocks(blocks),
            None if contender.policy.plans(&self.known(Reading::Long).facts) => Reading::Windows,
            None => Reading::Long,
        }
    }

    /// Everybody comes in; those contenders whose server reads like this say whether they would
    /// have let everybody in.
    pub(super) fn together(
        &self,
        scenario: &Scenario,
        reading: Reading,
        rows: &mut [Row],
        seed: u64,
    ) -> Run {
        let rules = self.rules(None, reading);
        let mut station = Station::new(&rules, seed);
        let watches = |row: &usize| reading != Reading::Windows && self.reading(*row) == reading;
        let mut watching: Vec<usize> = (0..rows.len()).filter(watches).collect();
        for arrival in &scenario.arrivals {
            station.run_until(arrival.at);
            let wanted = wanted(arrival, &rules);
            let policies = watching.iter().map(|row| self.contenders[*row].policy);
            let mut said = station.consult(wanted, policies).into_iter();
            watching.retain(|row| {
                let (admits, took) = said.next().expect("an answer each");
                rows[*row].tally.decisions += 1;
                rows[*row].tally.deciding += took;
                admits
            });
            let _ = station.arrive(Arc::clone(wanted));
        }
        station.run_until(station.now() + LOOKED_AT);
        let looked_at = station.tally();
        // Once somebody is late, only who let everybody in wants to know how many there will be.
        let known = rows.is_empty();
        station.finish_unless(|tally| watching.is_empty() && (known || tally.late > 0));
        let ended = station.tally();
        for row in watching {
            let Tally { decisions, deciding, .. } = rows[row].tally;
            rows[row].accepted = true;
            rows[row].tally = Tally { decisions, deciding, ..ended };
        }
        Run { looked_at, on_time: ended.late == 0 }
    }

    /// A contender that leaves a plan has a run of its own.
    pub(super) fn alone(&self, scenario: &Scenario, policy: PolicyKind, seed: u64) -> Row {
        let rules = self.rules(Some(policy), Reading::Windows);
        let mut station = Station::new(&rules, seed);
        for arrival in &scenario.arrivals {
            station.run_until(arrival.at);
            if station.arrive(Arc::clone(wanted(arrival, &rules))).is_err() {
                let Tally { decisions, deciding, .. } = station.tally();
                return Row {
                    tally: Tally { decisions, deciding, ..Tally::default() },
                    ..Row::default()
                };
            }
        }
        station.finish();
        Row { accepted: true, tally: station.tally(), ..Row::default() }
    }

    pub(super) fn rules(&self, policy: Option<PolicyKind>, reading: Reading) -> Rules {
        let known = self.known(reading);
        let blocks = matches!(reading, Reading::Blocks(_));
        Rules {
            model: self.model.clone(),
            windows: reading == Reading::Windows,
            facts: Arc::clone(&known.facts),
            slot: self.habits.slot,
            startup: self.startup,
            policy,
            min_read: if let Reading::Blocks(blocks) = reading { blocks } else { known.guaranteed },
            read_size: if blocks { BLOCK } else { self.habits.read_size },
            memory: self.memory,
            turns: Turns::Random,
            trouble: None,
            clock: self.clock,
        }
    }

    pub(super) fn known(&self, reading: Reading) -> &Known {
        let (of, size) = match reading {
            Reading::Blocks(_) => (&self.known[0], BLOCK),
            Reading::Long | Reading::Windows => (&self.known[1], self.habits.read_size),
        };
        of.get_or_init(|| Known {
            facts: Arc::new(Facts::of_model(&self.model, ByteCount(size), 1)),
            guaranteed: self.model.guaranteed_reads(ByteCount(size), self.habits.slot),
        })
    }
}

fn wanted<'a>(arrival: &'a Arrival, rules: &Rules) -> &'a Arc<Wanted> {
    if rules.read_size == BLOCK { &arrival.blocks } else { &arrival.reads }
}

const LOOKED_AT: Duration = Duration::from_secs(120);
