//! The meter's search for a capacity, on storages of known capacity of which some runs give a wrong
//! result: how often the search is exact, how often too high, and its number of runs.

use super::{Cell, Report, Table, texts};
use meter::SimulatedCapacity;
use meter::report::{NamedCell, cell};

/// Storages of each row.
const TRIALS: u64 = 1000;
/// Capacities are drawn from 1 to this.
const MOST: u32 = 4096;
/// The most runs of one search.
const PROBES: u32 = 20;
/// Shares of runs with a wrong result; the requirement is stated for 0.01.
const NOISES: [f64; 4] = [0.0, 0.005, 0.01, 0.02];

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let rows = (1_u32..).zip(NOISES).map(|(number, noise)| {
        let cells = searches(noise);
        progress(f64::from(number) / 4.0);
        cells
    });
    let table = Table::of("searches", "1,000 storages each, capacities from 1 to 4,096", rows);
    texts::report("meter-capacity", vec![table], Vec::new())
}

fn searches(noise: f64) -> [NamedCell; 7] {
    let (mut exact, mut low, mut high, mut confirmed) = (0u64, 0u64, 0u64, 0u64);
    let (mut all, mut most) = (0u32, 0u32);
    for seed in 0..TRIALS {
        let mut storage = SimulatedCapacity::drawn(MOST, noise, seed);
        let capacity = storage.capacity;
        let (verdict, _) = storage.searched(MOST, PROBES);
        exact += u64::from(verdict.streams == capacity);
        low += u64::from(verdict.streams < capacity);
        high += u64::from(verdict.streams > capacity);
        confirmed += u64::from(verdict.confirmed);
        all += verdict.probes;
        most = most.max(verdict.probes);
    }
    [
        cell("noise_percent", ">wrong runs, %", Cell::Number(noise * 100.0, 1)),
        cell("exact", ">exact", exact),
        cell("too_low", ">too low", low),
        cell("too_high", ">too high", high),
        cell("confirmed", ">confirmed", confirmed),
        cell("probes_mean", ">runs, mean", Cell::Number(f64::from(all) / 1000.0, 1)),
        cell("probes_most", ">most", most),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requirement_is_met_at_its_noise() {
        let table = Table::of("searches", "", [searches(0.01)]);
        let row = &table.rows[0];
        let count = |cell: &Cell| match cell {
            Cell::Count(count) => *count,
            other => panic!("{other:?}"),
        };
        assert!(count(&row[1]) >= 950 && count(&row[3]) <= 1 && count(&row[6]) <= 20, "{row:?}");
    }
}
