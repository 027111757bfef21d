//! Anything that could make an admitted viewer wait: load, memory, reads and arrivals at random,
//! viewers who leave or jump, and in 40 % of the runs a platter that is always at its worst.
//!
//! What must come out of it for a policy that guarantees: no late read, and empty books.

use super::chance::Chance;
use super::fits;
use super::requests::{Request, View, Wanted};
use super::station::{Rules, Station, Tally, Turns, Viewer};
use super::study::Contender;
use super::titles::{BLOCK, ClipKind, Clips, Kept, Shelf};
use disk::DiskModel;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// A row of runs against one policy.
#[derive(Clone, Debug)]
pub struct Stress {
    houses: Vec<House>,
    seed: u64,
}

/// A disk.
#[derive(Clone, Debug)]
struct House {
    titles: Kept,
    /// With small reads and large ones.
    rules: Vec<Rules>,
}

/// What came of one run, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Strain {
    /// Runs.
    pub runs: u64,
    /// Runs in which every rotation was a whole one.
    pub worst: u64,
    /// Runs in which a read was late.
    pub broken: u64,
    /// Of those, the ones with every rotation a whole one.
    pub broken_worst: u64,
    /// What happened in all.
    pub tally: Tally,
}

impl Stress {
    /// Against this policy, on the paper's two disks as fitted, or on one of one's own.
    pub fn new(contender: &Contender, model: Option<DiskModel>, seed: u64) -> Self {
        let models = model.map_or_else(|| vec![fits::small(), fits::large()], |model| vec![model]);
        let sizes: &[u64] = if contender.blocks.is_some() { &[BLOCK] } else { &READ_SIZES };
        let house = |model: &DiskModel| {
            let clips = Clips::fill(ClipKind::SHORT, model.capacity().0, seed);
            let rules = sizes.iter().map(|size| Rules::of(contender, model, *size));
            House { titles: Kept::some(&clips, TITLES), rules: rules.collect() }
        };
        Self { houses: models.iter().map(house).collect(), seed }
    }

    /// Run number `number`: a quarter of an hour.
    ///
    /// Panics when the books do not balance in the end.
    pub fn run(&self, number: u64) -> Strain {
        let mut chance = Chance::new(self.seed, number);
        let house = &self.houses[chance.below(self.houses.len())];
        let rules = Self::rules(house, &mut chance);
        let gap = log_between(&mut chance, 0.3, 30.0);
        let mut station = Station::new(&rules, chance.seed());
        let mut inside: Vec<(Viewer, Request)> = Vec::new();
        let mut now = 0.0;
        while now < RUN_SECONDS {
            now += chance.exponential(gap);
            station.run_until(Moment::ZERO + Duration::from_secs_f64(now));
            inside.retain(|(viewer, _)| station.watches(*viewer));
            one_event(&mut station, &rules, &house.titles, &mut inside, &mut chance);
        }
        station.finish();
        assert!(station.is_empty(), "run {number}: the books do not balance");
        let tally = station.tally();
        let (worst, broken) = (rules.turns == Turns::Worst, tally.late > 0);
        Strain {
            runs: 1,
            worst: worst.into(),
            broken: broken.into(),
            broken_worst: (worst && broken).into(),
            tally,
        }
    }

    fn rules(house: &House, chance: &mut Chance) -> Rules {
        let rules = &house.rules[chance.below(house.rules.len())];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes")]
        let memory = log_between(chance, 16e6, 2e9) as u64;
        Rules {
            startup: Duration::from_secs_f64(chance.between(0.5, 3.0)),
            memory,
            turns: if chance.happens(0.4) { Turns::Worst } else { Turns::Random },
            ..rules.clone()
        }
    }
}

/// Mostly somebody comes; some of those inside leave or jump.
fn one_event(
    station: &mut Station<'_>,
    rules: &Rules,
    titles: &Kept,
    inside: &mut Vec<(Viewer, Request)>,
    chance: &mut Chance,
) {
    let whom = (!inside.is_empty()).then(|| chance.below(inside.len()));
    let slot = rules.slot.as_secs_f64();
    let costs = rules.facts.costs.as_ref();
    match (chance.part(), whom) {
        (part, Some(whom)) if part < 0.1 => station.leave(inside.swap_remove(whom).0),
        (part, Some(whom)) if part < 0.25 => {
            let (viewer, request) = inside[whom];
            let title = titles.title(request.title);
            let view = View::draw(&title, chance);
            let wanted = Arc::new(Wanted::new(&title, &view, rules.read_size, slot, costs));
            if let Ok(viewer) = station.seek(viewer, wanted) {
                inside[whom] = (viewer, Request { view, ..request });
            }
        }
        _ => {
            let number = chance.below(titles.len());
            let title = titles.title(number);
            let view = View::draw(&title, chance);
            let wanted = Arc::new(Wanted::new(&title, &view, rules.read_size, slot, costs));
            if let Ok(viewer) = station.arrive(wanted) {
                inside.push((viewer, Request { title: number, view }));
            }
        }
    }
}

impl std::ops::AddAssign for Strain {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.worst += other.worst;
        self.broken += other.broken;
        self.broken_worst += other.broken_worst;
        self.tally += other.tally;
    }
}

fn log_between(chance: &mut Chance, low: f64, high: f64) -> f64 {
    chance.between(low.ln(), high.ln()).exp()
}

/// Bytes of the largest read.
const READ_SIZES: [u64; 3] = [256 << 10, 1 << 20, 2 << 20];

/// So many titles of a disk are asked for, from its first to its last zone.
const TITLES: usize = 16;

const RUN_SECONDS: f64 = 900.0;

#[cfg(test)]
mod tests {
    use super::*;
    use scheduler::PolicyKind;

    fn stress(policy: PolicyKind, blocks: Option<u32>) -> Stress {
        Stress::new(&Contender { blocks, ..Contender::long(policy) }, None, 1)
    }

    #[test]
    fn nobody_who_was_let_in_by_disk_time_is_late_in_a_million_reads() {
        let stress = stress(PolicyKind::TimeDomain, None);
        let mut strain = Strain::default();
        for number in 0.. {
            let run = stress.run(number);
            assert_eq!(run.tally.late, 0, "run {number}: {run:?}");
            strain += run;
            if strain.tally.reads >= 1_000_000 {
                break;
            }
        }
        assert!(strain.worst > strain.runs / 4 && strain.worst < strain.runs, "{strain:?}");
        assert!(strain.tally.refused > strain.tally.admitted / 4, "too little load: {strain:?}");
    }

    #[test]
    fn counting_blocks_against_what_was_observed_breaks_under_the_same_stress() {
        // What the smaller disk was seen to read at least, in slots of ordinary use.
        let observed =
            Contender { name: "observed".into(), policy: PolicyKind::VbrSim, blocks: Some(67) };
        let stress = Stress::new(&observed, Some(fits::small()), 1);
        let late = (0..12).map(|number| stress.run(number).tally.late).sum::<u64>();
        assert!(late > 0, "the stress is too weak");
    }
}
