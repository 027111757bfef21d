//! The runs of a fleet as a report: means over seeds, with their intervals.

use super::world::part;
use super::{FleetRun, FleetSetup};
use crate::reproduce::{Cell, Figure, Report, Table};
use meter::report::{LineShape, Plot, Series, cell};
use std::time::Duration;
use units::float;

/// The runs of one setup, from several seeds.
#[derive(Clone, Debug)]
pub struct FleetRow {
    /// The setup, with the first seed.
    pub setup: FleetSetup,
    /// The runs, by seed.
    pub runs: Vec<FleetRun>,
    /// Time that the runs took on one core each, together.
    pub took: Duration,
}

/// A mean, and how far the true one may be from it, with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MeanWithin {
    mean: f64,
    /// Half of the interval; `None` for a single value.
    within: Option<f64>,
}

impl FleetRow {
    fn mean(&self, of: impl Fn(&FleetRun) -> f64) -> MeanWithin {
        let values: Vec<f64> = self.runs.iter().map(of).collect();
        let count = float(values.len() as u64);
        let mean = values.iter().sum::<f64>() / count.max(1.0);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let within = values.len().checked_sub(1).filter(|free| *free > 0).map(|free| {
            let deviation = (squares / float(free as u64)).sqrt();
            student(free) * deviation / count.sqrt()
        });
        MeanWithin { mean, within }
    }
}

/// The rows of a study as a report.
pub fn fleet_report(rows: &[FleetRow]) -> Report {
    let source = rows.first().map_or_else(String::new, |row| {
        let FleetSetup { nodes, disks, streams, rate, .. } = row.setup;
        format!("{nodes} nodes of {disks} disks of {streams} streams of {rate}, simulated")
    });
    let method = rows.first().map_or_else(String::new, |row| method(&row.setup));
    let names = |row: &FleetRow| {
        [
            cell("scenario", "scenario", row.setup.scenario.name()),
            cell("zipf", ">Zipf", Cell::Number(row.setup.zipf, 2)),
            cell("policy", "policy", row.setup.policy.name),
        ]
    };
    let viewers = rows.iter().map(|row| {
        let blocked = row.mean(|run| 100.0 * run.blocked_part());
        let mut cells = names(row).to_vec();
        cells.extend(shown("blocked_percent", ">blocked %", "blocked_within", ">±", blocked, 4));
        let lost = row.runs.iter().any(|run| run.lost > 0);
        let again = lost.then(|| row.mean(|run| 100.0 * run.not_again_part()));
        let no_copy = lost.then(|| row.mean(|run| 100.0 * part(run.without_copy, run.lost)).mean);
        let again = again.map_or([Cell::Missing, Cell::Missing], |mean| numbers(mean, 3));
        let [mean, within] = again;
        cells.push(cell("not_again_percent", ">not again %", mean));
        cells.push(cell("not_again_within", ">±", within));
        let no_copy = no_copy.map_or(Cell::Missing, |percent| Cell::Number(percent, 3));
        cells.push(cell("without_copy_percent", ">no copy %", no_copy));
        let extra = row.mean(|run| 100.0 * run.extra).mean;
        cells.push(cell("extra_copies_percent", ">extra copies %", Cell::Number(extra, 2)));
        cells
    });
    let director = rows.iter().map(|row| {
        let of_admitted = |of: fn(&FleetRun) -> u64| {
            row.mean(|run| float(of(run)) / float(run.director.admitted.max(1))).mean
        };
        let of_attempts = |of: fn(&FleetRun) -> u64| {
            row.mean(|run| 100.0 * part(of(run), run.director.attempts)).mean
        };
        let mut cells = names(row).to_vec();
        let refused = of_admitted(|run| run.director.node_refusals);
        let moved = of_admitted(|run| run.director.moved);
        let content = of_attempts(|run| run.director.content_misses);
        let health = of_attempts(|run| run.director.health_misses);
        let filled = row.mean(|run| float(run.filled)).mean;
        cells.push(cell("refusals_per_admission", ">refusals", Cell::Number(refused, 5)));
        cells.push(cell("moves_per_admission", ">moves", Cell::Number(moved, 5)));
        cells.push(cell("content_miss_percent", ">content misses %", Cell::Number(content, 4)));
        cells.push(cell("health_miss_percent", ">health misses %", Cell::Number(health, 4)));
        let headroom = row.mean(|run| 100.0 * part(run.headroom, run.offered)).mean;
        cells.push(cell("headroom_percent", ">headroom %", Cell::Number(headroom, 4)));
        cells.push(cell("fills", ">fills", Cell::Number(filled, 1)));
        cells
    });
    let speed = rows.iter().map(|row| {
        let events: u64 = row.runs.iter().map(|run| run.events).sum();
        let seconds = row.took.as_secs_f64();
        let each = seconds / float(row.runs.len().max(1) as u64);
        let active = row.mean(|run| float(run.active)).mean;
        let mut cells = names(row).to_vec();
        cells.push(cell("runs", ">seeds", row.runs.len()));
        cells.push(cell("viewers", ">viewers at the end", Cell::Number(active, 0)));
        cells.push(cell("events", ">events", events));
        cells.push(cell("seconds_per_run", ">s for a run", Cell::Number(each, 2)));
        let rate = float(events) / seconds.max(f64::MIN_POSITIVE);
        cells.push(cell("events_per_second", ">events/s", Cell::Number(rate, 0)));
        cells
    });
    Report {
        source,
        method,
        tables: vec![
            Table::of("viewers", "Viewers", viewers),
            Table::of("director", "The director", director),
            Table::of("speed", "The simulation", speed),
        ],
        notes: vec![NOTE.to_owned()],
        figures: vec![figure(rows)],
    }
}

fn method(setup: &FleetSetup) -> String {
    let FleetSetup { titles, load, hold, time, digests, rack, .. } = setup;
    let show = |time: &Duration| units::show_duration(*time);
    let viewers = units::rounded(load * float(setup.capacity()));
    format!(
        "{viewers} viewers at a time, {:.0} % of what is guaranteed, ask for {titles} titles and stay \
         for {} on average; {} of a fleet that was full at the beginning. {rack} nodes are a rack. \
         The director sees digests that are up to {} old. Blocked: viewers refused. Not again: \
         viewers of lost nodes who were not admitted at once; no copy: those among them whose title \
         had no copy left. Extra copies: beyond two for each title. Headroom: viewers refused to keep \
         room for the streams of one node. Refusals and moves: for each \
         viewer admitted. ±: the interval of 95 % confidence.",
        100.0 * load,
        show(hold),
        show(time),
        show(digests),
    )
}

fn numbers(mean: MeanWithin, decimals: usize) -> [Cell; 2] {
    let within = mean.within.map_or(Cell::Missing, |within| Cell::Number(within, decimals));
    [Cell::Number(mean.mean, decimals), within]
}

fn shown(
    name: &'static str,
    heading: &'static str,
    within_name: &'static str,
    within_heading: &'static str,
    mean: MeanWithin,
    decimals: usize,
) -> [meter::report::NamedCell; 2] {
    let [mean, within] = numbers(mean, decimals);
    [cell(name, heading, mean), cell(within_name, within_heading, within)]
}

/// What each seed gave: the spread that a mean hides.
fn figure(rows: &[FleetRow]) -> Figure {
    let series = rows.iter().map(|row| {
        let FleetSetup { scenario, policy, zipf, seed, .. } = row.setup;
        let points = row.runs.iter().zip(seed..).map(|(run, seed)| {
            let refused = if run.lost > 0 { run.not_again_part() } else { run.blocked_part() };
            (float(seed), 100.0 * refused)
        });
        let name = format!("{}, {}, Zipf {zipf}", scenario.name(), policy.name);
        Series::new(&name, LineShape::Dots, points.collect())
    });
    Figure {
        name: "seeds",
        plot: Plot {
            title: "Refused, by seed".to_owned(),
            x_label: "seed".to_owned(),
            y_label: "% of viewers".to_owned(),
            series: series.collect(),
            least_top: 0.1,
        },
        explanation: "A point is a run: the part of the viewers that was blocked, and in scenarios \
                      with a loss the part of those who lost their node that was not admitted again."
            .to_owned(),
    }
}

/// The two-sided 95 % quantile of Student's distribution with so many degrees of freedom.
fn student(free: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    TABLE.get(free.max(1) - 1).copied().unwrap_or(1.96)
}

const NOTE: &str = "Every run was checked from its events alone: no disk ever had more streams than \
                    its guarantee, no stream was on a lost node, and no viewer was lost from the \
                    books.";

#[cfg(test)]
mod tests {
    use super::super::{FleetPolicy, FleetScenario};
    use super::*;
    use units::BitRate;

    #[test]
    fn means_have_the_interval_of_their_seeds() {
        let setup = FleetSetup {
            nodes: 1,
            rack: 1,
            disks: 1,
            streams: 1,
            rate: BitRate(1),
            titles: 1,
            zipf: 1.0,
            load: 1.0,
            hold: Duration::from_secs(1),
            time: Duration::from_secs(1),
            digests: Duration::from_secs(1),
            policy: FleetPolicy::ALL[0],
            scenario: FleetScenario::Steady,
            seed: 1,
        };
        let run = |blocked| FleetRun { offered: 100, blocked, ..FleetRun::default() };
        let mut row =
            FleetRow { setup, runs: [1, 2, 3].map(run).to_vec(), took: Duration::from_secs(1) };
        let blocked = |row: &FleetRow| row.mean(|run| 100.0 * run.blocked_part());
        let MeanWithin { mean, within } = blocked(&row);
        // Standard deviation 1, three values: 4.303 / sqrt(3).
        assert!((mean - 2.0).abs() < 1e-9 && (within.unwrap() - 2.4843).abs() < 1e-3, "{within:?}");
        row.runs.truncate(1);
        assert_eq!(blocked(&row), MeanWithin { mean: 1.0, within: None });
        assert_eq!(fleet_report(&[row]).tables.len(), 3);
    }
}
