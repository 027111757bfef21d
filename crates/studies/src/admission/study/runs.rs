//! The runs that judge one scenario: which server reads how, and who watches.
//!
//! Whoever leaves no plan changes a run only by refusing somebody. So all such policies whose
//! server reads alike watch one run in which everybody comes in, each until it would refuse.

use super::super::disk_server::{RotationalDelay, Rules, RunCounters, SingleDiskServer};
use super::super::requests::ReadSchedule;
use super::super::scenario::{Arrival, Scenario};
use super::super::titles::BLOCK;
use super::{PolicyResult, Study};
use disk::DiskModel;
use scheduler::{DiskTimings, PolicyKind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use units::ByteCount;

/// How a server reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// One block at a time, so many or a few more in a sweep: the paper's.
    Blocks(u32),
    /// Long reads, as many in a sweep as the disk is sure to make in a slot.
    Long,
    /// Long reads, in windows of disk time.
    Windows,
}

impl ReadMode {
    fn is_long(self) -> bool {
        !matches!(self, Self::Blocks(_))
    }
}

/// What is known of a study's disk when it is read in one way.
#[derive(Clone, Debug)]
pub(crate) struct KnownDisk {
    pub(crate) timings: Arc<DiskTimings>,
    pub(crate) guaranteed: u32,
}

/// What came of a run in which everybody came in.
pub(crate) struct SharedRun {
    /// Some time after the last arrival: from then on there are ever fewer streams, so that the
    /// bandwidth achieved has had its least.
    pub(crate) looked_at: RunCounters,
    /// Whether nobody was late.
    pub(crate) on_time: bool,
    /// Stretches of slots in which the disk was never idle: the reads completed in each.
    pub(crate) stretches: Vec<Vec<u32>>,
}

impl Study {
    /// The servers that differ in how they read, each with a contender that has it.
    pub(crate) fn servers(&self) -> Vec<(String, usize)> {
        let mut readings = Vec::new();
        let mut servers = Vec::new();
        for row in 0..self.tested.len() {
            let mode = self.read_mode(row);
            if readings.contains(&mode) {
                continue;
            }
            readings.push(mode);
            let name = match mode {
                ReadMode::Blocks(blocks) => format!("{blocks} blocks at a time"),
                ReadMode::Long => "long reads by number".to_owned(),
                ReadMode::Windows => "long reads by time".to_owned(),
            };
            servers.push((name, row));
        }
        servers
    }

    /// A contender whose server reads by windows.
    pub(crate) fn by_windows(&self) -> Option<usize> {
        (0..self.tested.len()).find(|row| self.plans(*row))
    }

    /// Whether a contender's server reads by windows.
    pub(crate) fn plans(&self, row: usize) -> bool {
        self.read_mode(row) == ReadMode::Windows
    }

    /// How the server of a contender reads.
    pub(crate) fn read_mode(&self, row: usize) -> ReadMode {
        let tested = &self.tested[row];
        match tested.blocks {
            Some(blocks) => ReadMode::Blocks(blocks),
            None if tested.policy.plans(&self.known(ReadMode::Long).timings) => ReadMode::Windows,
            None => ReadMode::Long,
        }
    }

    /// Everybody comes in; those contenders whose server reads like this say whether they would
    /// have let everybody in.
    pub(crate) fn together(
        &self,
        scenario: &Scenario,
        mode: ReadMode,
        rows: &mut [PolicyResult],
        seed: u64,
    ) -> SharedRun {
        let rules = self.rules(None, mode);
        let mut server = SingleDiskServer::new(&rules, seed);
        // A policy with a plan decides what is read, so that it cannot share the run of another.
        let watches = |row: &usize| mode != ReadMode::Windows && self.read_mode(*row) == mode;
        let mut watching: Vec<usize> = (0..rows.len()).filter(watches).collect();
        for arrival in &scenario.arrivals {
            server.run_until(arrival.at);
            let schedule = schedule(arrival, &rules);
            let policies = watching.iter().map(|row| self.tested[*row].policy);
            let mut said = server.consult(schedule, policies).into_iter();
            // A policy that would refuse stops watching: from here on its own run would differ.
            watching.retain(|row| {
                let (admits, took) = said.next().expect("an answer each");
                rows[*row].counters.decisions += 1;
                rows[*row].counters.deciding += took;
                admits
            });
            // These rules have no policy, so that every viewer is admitted.
            let _ = server.arrive(Arc::clone(schedule));
        }
        server.run_until(server.now() + LOOKED_AT);
        let looked_at = server.counters();
        // Once somebody is late, only who let everybody in wants to know how many there will be.
        let known = rows.is_empty();
        server.finish_unless(|counters| watching.is_empty() && (known || counters.late > 0));
        let ended = server.counters();
        for row in watching {
            let RunCounters { decisions, deciding, .. } = rows[row].counters;
            rows[row].accepted = true;
            rows[row].counters = RunCounters { decisions, deciding, ..ended };
        }
        SharedRun { looked_at, on_time: ended.late == 0, stretches: server.into_stretches() }
    }

    /// A contender's own run: who is refused goes, and the others stay.
    pub(crate) fn alone(
        &self,
        scenario: &Scenario,
        policy: PolicyKind,
        mode: ReadMode,
        seed: u64,
    ) -> PolicyResult {
        let rules = self.rules(Some(policy), mode);
        let mut server = SingleDiskServer::new(&rules, seed);
        for arrival in &scenario.arrivals {
            server.run_until(arrival.at);
            let _ = server.arrive(Arc::clone(schedule(arrival, &rules)));
        }
        let RunCounters { admitted, refused, decisions, deciding, .. } = server.counters();
        let row = PolicyResult { admitted, ..PolicyResult::default() };
        // With a refusal only the decisions count: what is read is another scenario.
        if refused > 0 {
            return PolicyResult {
                counters: RunCounters { decisions, deciding, ..RunCounters::default() },
                ..row
            };
        }
        server.finish();
        PolicyResult { accepted: true, counters: server.counters(), ..row }
    }

    pub(crate) fn rules(&self, policy: Option<PolicyKind>, mode: ReadMode) -> Rules {
        let known = self.known(mode);
        Rules {
            model: self.model.clone(),
            windows: mode == ReadMode::Windows,
            timings: Arc::clone(&known.timings),
            slot: self.workload.slot,
            startup: self.startup,
            policy,
            min_read: if let ReadMode::Blocks(blocks) = mode { blocks } else { known.guaranteed },
            read_size: if mode.is_long() { self.workload.read_size } else { BLOCK },
            memory: self.memory,
            rotation: RotationalDelay::Random,
            guarded: true,
            slow_period: None,
            clock: self.clock,
        }
    }

    pub(crate) fn known(&self, mode: ReadMode) -> &KnownDisk {
        let size = if mode.is_long() { self.workload.read_size } else { BLOCK };
        let known = || KnownDisk::of_model(&self.model, size, self.workload.slot);
        self.known[usize::from(mode.is_long())].get_or_init(known)
    }

    pub(crate) fn known_mut(&mut self, mode: ReadMode) -> &mut OnceLock<KnownDisk> {
        &mut self.known[usize::from(mode.is_long())]
    }
}

impl KnownDisk {
    /// Properties of a disk that behaves exactly as its model.
    pub(crate) fn of_model(model: &DiskModel, size: u64, slot: Duration) -> Self {
        Self {
            timings: Arc::new(DiskTimings::of_model(model, ByteCount(size), 1)),
            guaranteed: model.guaranteed_reads(ByteCount(size), slot),
        }
    }
}

pub(crate) fn schedule<'a>(arrival: &'a Arrival, rules: &Rules) -> &'a Arc<ReadSchedule> {
    if rules.read_size == BLOCK { &arrival.blocks } else { &arrival.reads }
}

const LOOKED_AT: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::super::super::presets::{Preset, Setup};
    use super::super::OfflineResult;
    use super::*;

    fn study() -> Study {
        Setup::new(Preset::Paper, Duration::from_millis(500)).study(None)
    }

    #[test]
    fn who_watches_a_run_says_what_it_would_have_said_in_its_own() {
        let study = study();
        let mut accepted = 0;
        for number in 0..6 {
            let result = study.judge(number);
            for (row, watched) in result.rows.iter().enumerate() {
                let (seed, scenario) = study.drawn(number);
                let tested = &study.tested[row];
                let alone = study.alone(&scenario, tested.policy, study.read_mode(row), seed);
                assert_eq!(watched.accepted, alone.accepted, "{number}: {}", tested.name);
                if alone.accepted {
                    let known = |counters: &RunCounters| {
                        (counters.reads, counters.late, counters.buffers, counters.busy)
                    };
                    assert_eq!(known(&watched.counters), known(&alone.counters), "{number}: {row}");
                    accepted += 1;
                }
            }
        }
        assert!(accepted > 6, "only {accepted} accepted");
    }

    #[test]
    fn all_that_is_delivered_below_95_percent_is_accepted_by_disk_time_and_in_time() {
        let mut study = study();
        study.tested.retain(|tested| tested.policy == PolicyKind::TimeDomain);
        let (mut below, mut beyond) = (0, 0);
        for number in 0..56 {
            let result = study.judge(number);
            let row = result.rows[0];
            assert!(!row.accepted || row.counters.late == 0, "{number}: {row:?}");
            let OfflineResult { delivered, promisable, most, .. } = row.offline;
            assert!(!delivered || result.fluid, "{number}: more than anybody could");
            assert!(delivered || !promisable, "{number}: the disk was worse than at its worst");
            assert_eq!(delivered, most == result.arrived, "{number}: {result:?}");
            assert_eq!(row.accepted, row.admitted == result.arrived, "{number}: {result:?}");
            if result.requested < 0.95 * result.achieved {
                assert!(row.accepted || !delivered, "{number}: {result:?}");
                below += 1;
            } else {
                beyond += u32::from(row.accepted);
            }
        }
        assert!(below > 20 && beyond > 10, "{below} below, {beyond} accepted beyond");
    }
}
