//! Report of a study by bands of load: how many scenarios each policy accepts, with how many
//! buffers, and whether any read was late.

use super::super::disk_server::RunCounters;
use super::super::study::{PolicyResult, ScenarioResult, Study, TitleOrigin};
use super::super::titles::BLOCK;
use crate::reproduce::{Cell, Figure, Report, Table};
use meter::report::{LineShape, NamedCell, Plot, Series, cell};
use std::time::Duration;

/// The scenarios of one arrival rate.
#[derive(Clone, Debug)]
pub struct ArrivalGroup {
    /// What was studied.
    pub study: Study,
    /// Each scenario, judged.
    pub results: Vec<ScenarioResult>,
}

/// Tables and figures of a study at one or more arrival rates.
pub fn study_report(source: &str, groups: &[ArrivalGroup]) -> Report {
    let table = |name, title| Table::new(name, title);
    let mut share = table("share", "What the disk delivers, and how much of it is accepted");
    let mut accepted = table("accepted", "Scenarios accepted, % of each band");
    let mut viewers = table(
        "viewers",
        "Viewers admitted, % of the arrivals in each band; refused viewers leave, the others stay",
    );
    let mut buffers = table(
        "buffers",
        "Buffers of 64 KiB used by accepted scenarios, 99th percentile of each band",
    );
    let mut totals = table("totals", "All bands");
    for group in groups {
        accepted.add(group.row("scenarios", |band| band.len().into()));
        for (name, of) in group.lines() {
            accepted.add(group.row(&name, |band| percent(band, &of)));
        }
        for (number, tested) in group.study.tested.iter().enumerate() {
            let name = tested.name.as_str();
            buffers.add(group.row(name, |band| most_buffers(band, number)));
            totals.add(group.totals(name, number));
            if tested.blocks.is_none() {
                shares(&group.gap(), name, number, std::slice::from_ref(group), &mut share);
                viewers.add(group.viewers(name, |result| result.rows[number].admitted));
            }
        }
        if let Some(number) = group.study.by_windows() {
            let most = |result: &ScenarioResult| result.rows[number].offline.most;
            viewers.add(group.viewers("offline optimum", most));
        }
    }
    // With a single arrival rate, the rows of all rates would repeat its own.
    if let [first, _, ..] = groups {
        for (number, tested) in first.study.tested.iter().enumerate() {
            if tested.blocks.is_none() {
                shares("all", &tested.name, number, groups, &mut share);
            }
        }
    }
    let figures = groups.iter().flat_map(ArrivalGroup::figures).collect();
    let drawn = groups.iter().all(|group| matches!(group.study.titles, TitleOrigin::Clips(_)));
    Report {
        source: source.to_owned(),
        method: method(groups),
        tables: vec![share, accepted, viewers, buffers, totals],
        notes: NOTES.iter().chain(drawn.then_some(&DRAWN)).map(|&note| note.to_owned()).collect(),
        figures,
    }
}

/// Whether a scenario counts, for a line of scenarios.
type Counts = Box<dyn Fn(&ScenarioResult) -> bool>;

impl ArrivalGroup {
    fn gap(&self) -> String {
        units::show_duration(self.study.workload.gap)
    }

    /// Scenarios with loads from `low` up to, but without, `high`, in percent.
    fn band(&self, low: f64, high: f64) -> Vec<&ScenarioResult> {
        let percent = |result: &&ScenarioResult| 100.0 * result.requested / result.achieved;
        self.results.iter().filter(|result| (low..high).contains(&percent(result))).collect()
    }

    fn row(&self, name: &str, value: impl Fn(&[&ScenarioResult]) -> Cell) -> Vec<NamedCell> {
        let bands = BANDS
            .iter()
            .map(|band| cell(band.name, band.heading, value(&self.band(band.low, band.high))));
        let named = [cell("gap", "gap", self.gap()), cell("policy", "policy", name)];
        named.into_iter().chain(bands).collect()
    }

    fn viewers(&self, name: &str, of: impl Fn(&ScenarioResult) -> u64) -> Vec<NamedCell> {
        self.row(name, |band| {
            let arrived: u64 = band.iter().map(|result| result.arrived).sum();
            let admitted: u64 = band.iter().map(|result| of(result)).sum();
            match arrived {
                0 => Cell::Missing,
                _ => Cell::Number(100.0 * admitted as f64 / arrived as f64, 2),
            }
        })
    }

    /// The scenarios that each policy accepts, that each server would have delivered or could have
    /// promised, and that no scheduler could exceed.
    fn lines(&self) -> Vec<(String, Counts)> {
        let mut lines: Vec<(String, Counts)> = Vec::new();
        for (number, tested) in self.study.tested.iter().enumerate() {
            lines.push((tested.name.clone(), Box::new(move |it| it.rows[number].accepted)));
        }
        for (name, number) in self.study.servers() {
            let delivered = move |it: &ScenarioResult| it.rows[number].offline.delivered;
            lines.push((format!("delivered, {name}"), Box::new(delivered)));
            if self.study.by_windows() == Some(number) {
                let promisable = move |it: &ScenarioResult| it.rows[number].offline.promisable;
                lines.push((format!("promisable, {name}"), Box::new(promisable)));
            }
        }
        lines.push(("fluid bound".to_owned(), Box::new(|it| it.fluid)));
        lines
    }

    fn totals(&self, name: &str, number: usize) -> [NamedCell; 9] {
        let mut counters = RunCounters::default();
        let (mut accepted, mut broken) = (0_u64, 0_u64);
        for result in &self.results {
            let row = &result.rows[number];
            accepted += u64::from(row.accepted);
            broken += u64::from(row.accepted && row.counters.late > 0);
            counters += row.counters;
        }
        let decisions = u32::try_from(counters.decisions).unwrap_or(u32::MAX);
        // Without a clock decisions take no time: the column is then empty instead of zero.
        let each = counters.deciding.checked_div(decisions).filter(|each| !each.is_zero());
        let micros = each.map(|each| Cell::Number(each.as_secs_f64() * 1e6, 1));
        [
            cell("gap", "gap", self.gap()),
            cell("policy", "policy", name),
            cell("scenarios", ">scenarios", self.results.len()),
            cell("accepted", ">accepted", accepted),
            cell("broken", ">late though accepted", broken),
            cell("reads", ">reads", counters.reads),
            cell("late", ">late reads", counters.late),
            cell("latest_ms", ">by at most, ms", counters.latest_ms()),
            cell("decision_us", ">decision, us", micros),
        ]
    }

    fn figures(&self) -> [Figure; 2] {
        let (accepted_name, buffers_name) = figure_names(self.study.workload.gap);
        let figure = |name, y_label: &str, series, explanation: &str| {
            let title = format!("A request every {} in the mean", self.gap());
            let x_label = "bandwidth requested, % of bandwidth achieved";
            let plot = Plot::new(title, x_label, y_label, series);
            Figure { name, plot, explanation: explanation.to_owned() }
        };
        let accepted = self.lines().into_iter().map(|(name, of)| {
            Series::new(name, LineShape::Line, self.points(|band| percent(band, &of)))
        });
        let buffers = self.study.tested.iter().enumerate().map(|(number, tested)| {
            let points = self.points(|band| most_buffers(band, number));
            Series::new(&tested.name, LineShape::Line, points)
        });
        let (buffers, unit) = (buffers.collect(), "buffers of 64 KiB, 99th percentile");
        [
            figure(accepted_name, "scenarios accepted, %", accepted.collect(), ACCEPTED),
            figure(buffers_name, unit, buffers, BUFFERS),
        ]
    }

    /// A point in the middle of each band that has one.
    fn points(&self, of: impl Fn(&[&ScenarioResult]) -> Cell) -> Vec<(f64, f64)> {
        let point = |band: &Band| {
            // The first band begins at zero, but no scenario is aimed below 40 %.
            let middle = (band.low.max(40.0) + band.high) / 2.0;
            match of(&self.band(band.low, band.high)) {
                Cell::Number(number, _) => Some((middle, number)),
                Cell::Count(count) => Some((middle, count as f64)),
                _ => None,
            }
        };
        BANDS.iter().filter_map(point).collect()
    }
}

fn shares(gap: &str, name: &str, number: usize, groups: &[ArrivalGroup], table: &mut Table) {
    for (title, low, high) in SHARE_BANDS {
        let band = groups.iter().flat_map(|group| group.band(low, high));
        let rows: Vec<&PolicyResult> = band.map(|result| &result.rows[number]).collect();
        let count = |of: fn(&PolicyResult) -> bool| rows.iter().filter(|row| of(row)).count();
        let delivered = count(|row| row.offline.delivered);
        let accepted = count(|row| row.accepted && row.offline.delivered);
        let promisable = count(|row| row.offline.promisable);
        let promised = count(|row| row.accepted && row.offline.promisable);
        let share = |of: usize, all: usize| match all {
            0 => Cell::Missing,
            _ => Cell::Number(of as f64 / all as f64, 4),
        };
        let by_windows = groups.iter().all(|group| group.study.plans(number));
        table.add([
            cell("gap", "gap", gap),
            cell("policy", "policy", name),
            cell("band", "band", title),
            cell("scenarios", ">scenarios", rows.len()),
            cell("delivered", ">delivered", delivered),
            cell("accepted", ">of those accepted", accepted),
            cell("share", ">share", share(accepted, delivered)),
            cell("promisable", ">promisable", by_windows.then_some(promisable)),
            cell("promised", ">of those accepted", by_windows.then_some(promised)),
            cell("share_promisable", ">share", by_windows.then(|| share(promised, promisable))),
        ]);
    }
}

fn figure_names(gap: Duration) -> (&'static str, &'static str) {
    match gap.as_millis() {
        100 => ("accepted-100ms", "buffers-100ms"),
        250 => ("accepted-250ms", "buffers-250ms"),
        500 => ("accepted-500ms", "buffers-500ms"),
        1000 => ("accepted-1s", "buffers-1s"),
        2000 => ("accepted-2s", "buffers-2s"),
        _ => ("accepted", "buffers"),
    }
}

fn percent(band: &[&ScenarioResult], of: impl Fn(&ScenarioResult) -> bool) -> Cell {
    if band.is_empty() {
        return Cell::Missing;
    }
    let count = band.iter().filter(|result| of(result)).count();
    Cell::Number(100.0 * count as f64 / band.len() as f64, 1)
}

fn most_buffers(band: &[&ScenarioResult], number: usize) -> Cell {
    let rows = band.iter().map(|result| &result.rows[number]).filter(|row| row.accepted);
    let mut used: Vec<u64> = rows.map(|row| row.counters.buffers.div_ceil(BLOCK)).collect();
    used.sort_unstable();
    // Nearest rank: the least number that 99 % do not exceed.
    let at = (used.len() * 99).div_ceil(100).saturating_sub(1);
    used.get(at).copied().into()
}

fn method(groups: &[ArrivalGroup]) -> String {
    let Some(group) = groups.first() else { return String::new() };
    let study = &group.study;
    // A pebibyte stands for no limit: see `UNLIMITED` in `presets`.
    let memory = if study.memory >= 1 << 50 {
        "unlimited buffers".to_owned()
    } else {
        format!("{} of buffers", units::ByteCount(study.memory))
    };
    format!(
        "Disk: {}; {}. Start-up {}, {memory}, slots of {}, long reads of at most {}. A band is the \
         bandwidth requested as a percentage of the bandwidth that a server like the paper's (reads \
         of 64 KiB, minRead {}) achieves on that scenario: {:.1} blocks per slot in the mean.",
        study.model.title(),
        study.titles,
        units::show_duration(study.startup),
        units::show_duration(study.workload.slot),
        units::ByteCount(study.workload.read_size),
        study.min_read,
        study.expected,
    )
}

/// A band of loads, in percent, and its column.
struct Band {
    low: f64,
    high: f64,
    name: &'static str,
    heading: &'static str,
}

/// The first has everything below 50 %.
const BANDS: [Band; 11] = [
    Band { low: 0.0, high: 50.0, name: "to_50", heading: ">to 50" },
    Band { low: 50.0, high: 60.0, name: "to_60", heading: ">to 60" },
    Band { low: 60.0, high: 70.0, name: "to_70", heading: ">to 70" },
    Band { low: 70.0, high: 80.0, name: "to_80", heading: ">to 80" },
    Band { low: 80.0, high: 85.0, name: "to_85", heading: ">to 85" },
    Band { low: 85.0, high: 90.0, name: "to_90", heading: ">to 90" },
    Band { low: 90.0, high: 95.0, name: "to_95", heading: ">to 95" },
    Band { low: 95.0, high: 100.0, name: "to_100", heading: ">to 100" },
    Band { low: 100.0, high: 105.0, name: "to_105", heading: ">to 105" },
    Band { low: 105.0, high: 110.0, name: "to_110", heading: ">to 110" },
    Band { low: 110.0, high: 130.0, name: "to_130", heading: ">to 130 %" },
];

/// Bands in which scenarios are compared with what the disk delivers: name, and limits in percent.
const SHARE_BANDS: [(&str, f64, f64); 5] = [
    ("up to 95 %", 0.0, 95.0),
    ("95 to 100 %", 95.0, 100.0),
    ("100 to 105 %", 100.0, 105.0),
    ("105 to 110 %", 105.0, 110.0),
    ("110 to 130 %", 110.0, 130.0),
];

const ACCEPTED: &str = "Each point is a band of scenarios, drawn at its middle. A scenario counts as accepted only if every \
     request in it was. Between a policy's line and the line of delivered scenarios lie those that \
     the disk could have served and the policy refused.";

const BUFFERS: &str = "99th percentile of the most buffers held at once in an accepted scenario. The scheduler reads ahead \
     while there are free buffers.";

const NOTES: &[&str] = &[
    "A scenario counts as accepted only if every request in it is. Delivered: the same scheduler \
     accepts all viewers, and no read is late. Promisable: no read would be late even if every \
     rotational delay after any arrival were a whole revolution; this scheduler can guarantee no \
     more. Fluid bound: transfers alone, without seeks and rotational delays; no scheduler does more. \
     Offline optimum: the most viewers that the same scheduler could have served, with knowledge of \
     all arrivals and rotational delays.",
    "Policies that count blocks read 64 KiB at a time, at least minRead per slot, as the paper's \
     server does; minRead is the calibrated one, or the least bandwidth achieved on 48 other scenarios.",
];

/// Where titles are not given.
const DRAWN: &str = "The clips are drawn at random to the paper's description, and the simulated disk is fitted to its \
     Table 2. The shapes of the curves can be compared with the paper's, single points cannot.";
