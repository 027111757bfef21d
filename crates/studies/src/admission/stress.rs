//! Anything that could make an admitted viewer wait: load, memory, reads and arrivals at random,
//! viewers who leave or jump, and in 40 % of the runs a platter that is always at its worst.
//!
//! What must come out of it for a policy that guarantees: no late read, and empty books.

use super::disk_server::{RotationalDelay, Rules, RunCounters, SingleDiskServer, ViewerNumber};
use super::fitted;
use super::random::RandomSource;
use super::requests::{ReadSchedule, Request, View};
use super::study::PolicyUnderTest;
use super::titles::{BLOCK, ClipKind, Clips, StoredTitles, TitleSource};
use disk::DiskModel;
use std::sync::Arc;
use std::time::Duration;
use units::{Moment, add_fields};

/// A row of runs against one policy.
#[derive(Clone, Debug)]
pub struct Stress {
    disks: Vec<StressDisk>,
    seed: u64,
}

/// A disk.
#[derive(Clone, Debug)]
struct StressDisk {
    titles: StoredTitles,
    /// With small reads and large ones.
    rules: Vec<Rules>,
}

/// What came of one run, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StressResult {
    /// Runs.
    pub runs: u64,
    /// Runs in which every rotation was a whole one.
    pub worst: u64,
    /// Runs in which a read was late.
    pub broken: u64,
    /// Runs with a late read in which every rotational delay was a whole revolution.
    pub broken_worst: u64,
    /// What happened in all.
    pub counters: RunCounters,
}

impl Stress {
    /// Against this policy, on the paper's two disks as fitted, or on one of one's own.
    pub fn new(tested: &PolicyUnderTest, model: Option<DiskModel>, seed: u64) -> Self {
        let models =
            model.map_or_else(|| vec![fitted::small(), fitted::large()], |model| vec![model]);
        let sizes: &[u64] = if tested.blocks.is_some() { &[BLOCK] } else { &READ_SIZES };
        let disk = |model: &DiskModel| {
            let clips = Clips::fill(ClipKind::SHORT, model.capacity().0, seed);
            let rules = sizes.iter().map(|size| tested.rules(model, *size));
            StressDisk { titles: StoredTitles::some(&clips, TITLES), rules: rules.collect() }
        };
        Self { disks: models.iter().map(disk).collect(), seed }
    }

    /// Run number `number`: a quarter of an hour.
    ///
    /// Panics when the books do not balance in the end.
    pub fn run(&self, number: u64) -> StressResult {
        let mut random = RandomSource::new(self.seed, number);
        let disk = &self.disks[random.below(self.disks.len())];
        let rules = Self::rules(disk, &mut random);
        // Even over the orders of magnitude, so that dense and sparse arrivals are equally
        // frequent.
        let gap = log_between(&mut random, 0.3, 30.0);
        let mut server = SingleDiskServer::new(&rules, random.seed());
        let mut inside: Vec<(ViewerNumber, Request)> = Vec::new();
        let mut now = 0.0;
        while now < RUN_SECONDS {
            now += random.exponential(gap);
            server.run_until(Moment::ZERO + Duration::from_secs_f64(now));
            // Viewers who have seen everything can neither leave nor seek.
            inside.retain(|(viewer, _)| server.watches(*viewer));
            one_event(&mut server, &rules, &disk.titles, &mut inside, &mut random);
        }
        server.finish();
        // Nobody is left, so that a booking that remains was never undone.
        assert!(server.is_empty(), "run {number}: the books do not balance");
        let counters = server.counters();
        let (worst, broken) = (rules.rotation == RotationalDelay::Worst, counters.late > 0);
        StressResult {
            runs: 1,
            worst: worst.into(),
            broken: broken.into(),
            broken_worst: (worst && broken).into(),
            counters,
        }
    }

    fn rules(disk: &StressDisk, random: &mut RandomSource) -> Rules {
        let rules = &disk.rules[random.below(disk.rules.len())];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes")]
        let memory = log_between(random, 16e6, 2e9) as u64;
        Rules {
            startup: Duration::from_secs_f64(random.between(0.5, 3.0)),
            memory,
            rotation: if random.happens(0.4) {
                RotationalDelay::Worst
            } else {
                RotationalDelay::Random
            },
            ..rules.clone()
        }
    }
}

/// Mostly somebody comes; some of those inside leave or jump.
fn one_event(
    server: &mut SingleDiskServer<'_>,
    rules: &Rules,
    titles: &StoredTitles,
    inside: &mut Vec<(ViewerNumber, Request)>,
    random: &mut RandomSource,
) {
    let whom = (!inside.is_empty()).then(|| random.below(inside.len()));
    let slot = rules.slot.as_secs_f64();
    let costs = rules.timings.costs.as_ref();
    match (random.part(), whom) {
        (part, Some(whom)) if part < 0.1 => server.leave(inside.swap_remove(whom).0),
        (part, Some(whom)) if part < 0.25 => {
            let (viewer, request) = inside[whom];
            let title = titles.title(request.title);
            let view = View::draw(&title, random);
            let schedule = Arc::new(ReadSchedule::new(&title, &view, rules.read_size, slot, costs));
            // A refused seek leaves the viewer with what it had.
            if let Ok(viewer) = server.seek(viewer, schedule) {
                inside[whom] = (viewer, Request { view, ..request });
            }
        }
        _ => {
            let number = random.below(titles.len());
            let title = titles.title(number);
            let view = View::draw(&title, random);
            let schedule = Arc::new(ReadSchedule::new(&title, &view, rules.read_size, slot, costs));
            if let Ok(viewer) = server.arrive(schedule) {
                inside.push((viewer, Request { title: number, view }));
            }
        }
    }
}

impl std::ops::AddAssign for StressResult {
    fn add_assign(&mut self, other: Self) {
        add_fields!(self, other; runs, worst, broken, broken_worst, counters);
    }
}

fn log_between(random: &mut RandomSource, low: f64, high: f64) -> f64 {
    random.between(low.ln(), high.ln()).exp()
}

/// Bytes of the largest read.
const READ_SIZES: [u64; 3] = [256 << 10, 1 << 20, 2 << 20];

/// Number of titles requested, from the disk's first to its last zone.
const TITLES: usize = 16;

const RUN_SECONDS: f64 = 900.0;

#[cfg(test)]
mod tests {
    use super::*;
    use scheduler::PolicyKind;

    fn stress(policy: PolicyKind, blocks: Option<u32>) -> Stress {
        Stress::new(&PolicyUnderTest { blocks, ..PolicyUnderTest::long(policy) }, None, 1)
    }

    #[test]
    fn nobody_who_was_let_in_by_disk_time_is_late_in_a_million_reads() {
        let stress = stress(PolicyKind::TimeDomain, None);
        let mut result = StressResult::default();
        for number in 0.. {
            let run = stress.run(number);
            assert_eq!(run.counters.late, 0, "run {number}: {run:?}");
            result += run;
            if result.counters.reads >= 1_000_000 {
                break;
            }
        }
        assert!(result.worst > result.runs / 4 && result.worst < result.runs, "{result:?}");
        assert!(
            result.counters.refused > result.counters.admitted / 4,
            "too little load: {result:?}"
        );
    }

    #[test]
    fn counting_blocks_against_what_was_observed_breaks_under_the_same_stress() {
        // What the smaller disk was seen to read at least, in slots of ordinary use.
        let observed = PolicyUnderTest {
            name: "observed".into(),
            policy: PolicyKind::VbrSim,
            blocks: Some(67),
        };
        let stress = Stress::new(&observed, Some(fitted::small()), 1);
        let late = (0..12).map(|number| stress.run(number).counters.late).sum::<u64>();
        assert!(late > 0, "the stress is too weak");
    }
}
