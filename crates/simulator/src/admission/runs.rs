//! The runs that judge one scenario: which server reads how, and who watches.
//!
//! Whoever leaves no plan changes a run only by refusing somebody. So all such policies whose
//! server reads alike watch one run in which everybody comes in, each until it would refuse.

use super::requests::Wanted;
use super::scenario::{Arrival, Scenario};
use super::station::{Rules, Station, Tally, Turns};
use super::study::{Row, Study};
use super::titles::BLOCK;
use disk::DiskModel;
use scheduler::{Facts, PolicyKind};
use std::sync::{Arc, OnceLock};
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

impl Reading {
    fn is_long(self) -> bool {
        !matches!(self, Self::Blocks(_))
    }
}

/// What is known of a study's disk when it is read in one way.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) facts: Arc<Facts>,
    pub(super) guaranteed: u32,
}

/// What came of a run in which everybody came in.
pub(super) struct Run {
    /// Some time after the last arrival: from then on there are ever fewer streams, so that the
    /// bandwidth achieved has had its least.
    pub(super) looked_at: Tally,
    /// Whether nobody was late.
    pub(super) on_time: bool,
    /// Stretches of slots in which the disk was never idle: the reads completed in each.
    pub(super) stretches: Vec<Vec<u32>>,
}

impl Study {
    /// The servers that differ in how they read, each with a contender that has it.
    pub(super) fn servers(&self) -> Vec<(String, usize)> {
        let mut readings = Vec::new();
        let mut servers = Vec::new();
        for row in 0..self.contenders.len() {
            let reading = self.reading(row);
            if readings.contains(&reading) {
                continue;
            }
            readings.push(reading);
            let name = match reading {
                Reading::Blocks(blocks) => format!("{blocks} blocks at a time"),
                Reading::Long => "long reads by number".to_owned(),
                Reading::Windows => "long reads by time".to_owned(),
            };
            servers.push((name, row));
        }
        servers
    }

    /// A contender whose server reads by windows.
    pub(super) fn by_windows(&self) -> Option<usize> {
        (0..self.contenders.len()).find(|row| self.plans(*row))
    }

    /// Whether a contender's server reads by windows.
    pub(super) fn plans(&self, row: usize) -> bool {
        self.reading(row) == Reading::Windows
    }

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
        Run { looked_at, on_time: ended.late == 0, stretches: station.into_stretches() }
    }

    /// A contender's own run: who is refused goes, and the others stay.
    pub(super) fn alone(
        &self,
        scenario: &Scenario,
        policy: PolicyKind,
        reading: Reading,
        seed: u64,
    ) -> Row {
        let rules = self.rules(Some(policy), reading);
        let mut station = Station::new(&rules, seed);
        for arrival in &scenario.arrivals {
            station.run_until(arrival.at);
            let _ = station.arrive(Arc::clone(wanted(arrival, &rules)));
        }
        let Tally { admitted, refused, decisions, deciding, .. } = station.tally();
        let row = Row { let_in: admitted, ..Row::default() };
        if refused > 0 {
            return Row { tally: Tally { decisions, deciding, ..Tally::default() }, ..row };
        }
        station.finish();
        Row { accepted: true, tally: station.tally(), ..row }
    }

    pub(super) fn rules(&self, policy: Option<PolicyKind>, reading: Reading) -> Rules {
        let known = self.known(reading);
        Rules {
            model: self.model.clone(),
            windows: reading == Reading::Windows,
            facts: Arc::clone(&known.facts),
            slot: self.habits.slot,
            startup: self.startup,
            policy,
            min_read: if let Reading::Blocks(blocks) = reading { blocks } else { known.guaranteed },
            read_size: if reading.is_long() { self.habits.read_size } else { BLOCK },
            memory: self.memory,
            turns: Turns::Random,
            guarded: true,
            trouble: None,
            clock: self.clock,
        }
    }

    pub(super) fn known(&self, reading: Reading) -> &Known {
        let size = if reading.is_long() { self.habits.read_size } else { BLOCK };
        let known = || Known::of_model(&self.model, size, self.habits.slot);
        self.known[usize::from(reading.is_long())].get_or_init(known)
    }

    pub(super) fn known_mut(&mut self, reading: Reading) -> &mut OnceLock<Known> {
        &mut self.known[usize::from(reading.is_long())]
    }
}

impl Known {
    /// Of a disk exactly as modelled.
    pub(super) fn of_model(model: &DiskModel, size: u64, slot: Duration) -> Self {
        Self {
            facts: Arc::new(Facts::of_model(model, ByteCount(size), 1)),
            guaranteed: model.guaranteed_reads(ByteCount(size), slot),
        }
    }
}

pub(super) fn wanted<'a>(arrival: &'a Arrival, rules: &Rules) -> &'a Arc<Wanted> {
    if rules.read_size == BLOCK { &arrival.blocks } else { &arrival.reads }
}

const LOOKED_AT: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::super::hindsight::Hindsight;
    use super::super::presets::{Preset, Setup};
    use super::*;

    fn study() -> Study {
        Setup::new(Preset::Paper, Duration::from_millis(500)).study(None)
    }

    #[test]
    fn who_watches_a_run_says_what_it_would_have_said_in_its_own() {
        let study = study();
        let mut accepted = 0;
        for number in 0..6 {
            let judged = study.judge(number);
            for (row, watched) in judged.rows.iter().enumerate() {
                let (seed, scenario) = study.drawn(number);
                let contender = &study.contenders[row];
                let alone = study.alone(&scenario, contender.policy, study.reading(row), seed);
                assert_eq!(watched.accepted, alone.accepted, "{number}: {}", contender.name);
                if alone.accepted {
                    let known =
                        |tally: &Tally| (tally.reads, tally.late, tally.buffers, tally.busy);
                    assert_eq!(known(&watched.tally), known(&alone.tally), "{number}: {row}");
                    accepted += 1;
                }
            }
        }
        assert!(accepted > 6, "only {accepted} accepted");
    }

    #[test]
    fn all_that_is_delivered_below_95_percent_is_accepted_by_disk_time_and_in_time() {
        let mut study = study();
        study.contenders.retain(|contender| contender.policy == PolicyKind::TimeDomain);
        let (mut below, mut beyond) = (0, 0);
        for number in 0..56 {
            let judged = study.judge(number);
            let row = judged.rows[0];
            assert!(!row.accepted || row.tally.late == 0, "{number}: {row:?}");
            let Hindsight { delivered, promisable, most, .. } = row.hindsight;
            assert!(!delivered || judged.fluid, "{number}: more than anybody could");
            assert!(delivered || !promisable, "{number}: the disk was worse than at its worst");
            assert_eq!(delivered, most == judged.came, "{number}: {judged:?}");
            assert_eq!(row.accepted, row.let_in == judged.came, "{number}: {judged:?}");
            if judged.requested < 0.95 * judged.achieved {
                assert!(row.accepted || !delivered, "{number}: {judged:?}");
                below += 1;
            } else {
                beyond += u32::from(row.accepted);
            }
        }
        assert!(below > 20 && beyond > 10, "{below} below, {beyond} accepted beyond");
    }
}
