//! Report of a study by bands of load: how many scenarios each policy accepts, with how many
//! buffers, and whether any read was late.

use super::super::disk_server::RunCounters;
use super::super::study::{
    OfflineResult, PolicyResult, PolicyUnderTest, ScenarioResult, Study, Titles,
};
use super::super::titles::BLOCK;
use crate::reproduce::{Cell, Figure, Report, Table};
use meter::report::{LineShape, Plot, Series};
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
pub fn study_report(source: &'static str, groups: &[ArrivalGroup]) -> Report {
    let mut share =
        Table::new("share", "What the disk delivers, and how much of it is accepted", SHARE);
    let mut accepted = Table::new("accepted", "Scenarios accepted, % of each band", BY_BAND);
    let mut buffers = Table::new(
        "buffers",
        "Buffers of 64 KiB used by accepted scenarios, 99th percentile of each band",
        BY_BAND,
    );
    let mut totals = Table::new("totals", "All bands", TOTALS);
    let mut viewers = Table::new(
        "viewers",
        "Viewers admitted, % of the arrivals in each band; refused viewers leave, the others stay",
        BY_BAND,
    );
    for group in groups {
        let gap = units::show_duration(group.study.workload.gap);
        accepted.rows.push(group.row(&gap, "scenarios", |band| Cell::Count(band.len() as u64)));
        for (number, tested) in group.study.tested.iter().enumerate() {
            let name = tested.name.as_str();
            accepted.rows.push(
                group.row(&gap, name, |band| percent(band, |result| result.rows[number].accepted)),
            );
            buffers.rows.push(group.row(&gap, name, |band| most_buffers(band, number)));
            totals.rows.push(group.totals(&gap, name, number));
            if tested.blocks.is_none() {
                shares(&gap, name, number, std::slice::from_ref(group), &mut share);
                viewers.rows.push(group.viewers(&gap, name, |j| j.rows[number].admitted));
            }
        }
        for (name, of) in group.offline_rows() {
            accepted.rows.push(group.row(&gap, &name, |band| percent(band, &of)));
        }
        if let Some(number) = group.study.by_windows() {
            let most = |result: &ScenarioResult| result.rows[number].offline.most;
            viewers.rows.push(group.viewers(&gap, "offline optimum", most));
        }
        accepted.rows.push(group.row(&gap, "fluid bound", |band| percent(band, |j| j.fluid)));
    }
    if let [first, _, ..] = groups {
        for (number, tested) in first.study.tested.iter().enumerate() {
            if tested.blocks.is_none() {
                shares("all", &tested.name, number, groups, &mut share);
            }
        }
    }
    let figures = groups.iter().flat_map(|group| [group.accepted(), group.buffers()]).collect();
    let drawn = groups.iter().all(|group| matches!(group.study.titles, Titles::Clips(_)));
    Report {
        source,
        method: method(groups),
        tables: vec![share, accepted, viewers, buffers, totals],
        notes: NOTES.iter().chain(drawn.then_some(&DRAWN)).map(|&note| note.to_owned()).collect(),
        figures,
    }
}

impl ArrivalGroup {
    fn band(&self, (low, high): (f64, f64)) -> Vec<&ScenarioResult> {
        let percent = |result: &&ScenarioResult| 100.0 * result.requested / result.achieved;
        self.results.iter().filter(|j| (low..high).contains(&percent(j))).collect()
    }

    fn row(&self, gap: &str, name: &str, cell: impl Fn(&[&ScenarioResult]) -> Cell) -> Vec<Cell> {
        let bands = BANDS.iter().map(|band| cell(&self.band(*band)));
        [gap.into(), name.into()].into_iter().chain(bands).collect()
    }

    fn viewers(&self, gap: &str, name: &str, of: impl Fn(&ScenarioResult) -> u64) -> Vec<Cell> {
        self.row(gap, name, |band| {
            let arrived: u64 = band.iter().map(|result| result.arrived).sum();
            let admitted: u64 = band.iter().map(|result| of(result)).sum();
            if arrived == 0 {
                return Cell::Missing;
            }
            Cell::Number(100.0 * admitted as f64 / arrived as f64, 2)
        })
    }

    /// What each server would have delivered, and what could have been promised of it.
    fn offline_rows(&self) -> Vec<(String, impl Fn(&ScenarioResult) -> bool + use<>)> {
        let mut rows: Vec<(String, usize, bool)> = Vec::new();
        for (name, number) in self.study.servers() {
            rows.push((format!("delivered, {name}"), number, false));
            if self.study.by_windows() == Some(number) {
                rows.push((format!("promisable, {name}"), number, true));
            }
        }
        let of = |number: usize, promised: bool| {
            move |result: &ScenarioResult| {
                let OfflineResult { delivered, promisable, .. } = result.rows[number].offline;
                if promised { promisable } else { delivered }
            }
        };
        rows.into_iter().map(|(name, number, promised)| (name, of(number, promised))).collect()
    }

    fn totals(&self, gap: &str, name: &str, number: usize) -> Vec<Cell> {
        let mut counters = RunCounters::default();
        let (mut accepted, mut broken) = (0, 0);
        for result in &self.results {
            let row = &result.rows[number];
            accepted += u64::from(row.accepted);
            broken += u64::from(row.accepted && row.counters.late > 0);
            counters += row.counters;
        }
        let decisions = u32::try_from(counters.decisions).unwrap_or(u32::MAX);
        let each = counters.deciding.checked_div(decisions).filter(|each| !each.is_zero());
        vec![
            gap.into(),
            name.into(),
            Cell::Count(self.results.len() as u64),
            Cell::Count(accepted),
            Cell::Count(broken),
            Cell::Count(counters.reads),
            Cell::Count(counters.late),
            Cell::Number(counters.latest.as_secs_f64() * 1e3, 1),
            each.map_or(Cell::Missing, |each| Cell::Number(each.as_secs_f64() * 1e6, 1)),
        ]
    }

    fn accepted(&self) -> Figure {
        let gap = self.study.workload.gap;
        let line = |name: &str, of: &dyn Fn(&ScenarioResult) -> bool| Series {
            name: name.to_owned(),
            shape: LineShape::Line,
            points: self.points(|band| percent(band, of)),
        };
        let tested = self.study.tested.iter().enumerate();
        let mut series: Vec<Series> = tested
            .map(|(i, tested)| line(&tested.name, &|result| result.rows[i].accepted))
            .collect();
        for (name, of) in self.offline_rows() {
            series.push(line(&name, &of));
        }
        series.push(line("fluid bound", &|result| result.fluid));
        Figure {
            name: figure_names(gap).0,
            plot: Plot {
                title: format!("A request every {} in the mean", units::show_duration(gap)),
                x_label: "bandwidth requested, % of bandwidth achieved".into(),
                y_label: "scenarios accepted, %".into(),
                series,
            },
            explanation:
                "Each point is a band of scenarios, drawn at its middle. A scenario counts as \
                          accepted only if every request in it was. Between a policy's line and the \
                          line of delivered scenarios lie those that the disk could have served \
                          and the policy refused."
                    .into(),
        }
    }

    fn buffers(&self) -> Figure {
        let gap = self.study.workload.gap;
        let line = |(number, tested): (usize, &PolicyUnderTest)| Series {
            name: tested.name.clone(),
            shape: LineShape::Line,
            points: self.points(|band| most_buffers(band, number)),
        };
        Figure {
            name: figure_names(gap).1,
            plot: Plot {
                title: format!("A request every {} in the mean", units::show_duration(gap)),
                x_label: "bandwidth requested, % of bandwidth achieved".into(),
                y_label: "buffers of 64 KiB, 99th percentile".into(),
                series: self.study.tested.iter().enumerate().map(line).collect(),
            },
            explanation:
                "99th percentile of the most buffers held at once in an accepted scenario. The \
                          scheduler reads ahead while there are free buffers."
                    .into(),
        }
    }

    /// A point in the middle of each band that has one.
    fn points(&self, of: impl Fn(&[&ScenarioResult]) -> Cell) -> Vec<(f64, f64)> {
        let point = |band: &(f64, f64)| {
            // The first band begins at zero, but no scenario is aimed below 40 %.
            let middle = (band.0.max(40.0) + band.1) / 2.0;
            match of(&self.band(*band)) {
                Cell::Number(number, _) => Some((middle, number)),
                Cell::Count(count) => Some((middle, count as f64)),
                _ => None,
            }
        };
        BANDS.iter().filter_map(point).collect()
    }
}

fn shares(gap: &str, name: &str, number: usize, groups: &[ArrivalGroup], table: &mut Table) {
    for (title, band) in SHARE_BANDS {
        let band: Vec<&ScenarioResult> =
            groups.iter().flat_map(|group| group.band(*band)).collect();
        let rows: Vec<&PolicyResult> = band.iter().map(|result| &result.rows[number]).collect();
        let count = |of: &dyn Fn(&PolicyResult) -> bool| rows.iter().filter(|row| of(row)).count();
        let delivered = count(&|row| row.offline.delivered);
        let accepted = count(&|row| row.accepted && row.offline.delivered);
        let promisable = count(&|row| row.offline.promisable);
        let promised = count(&|row| row.accepted && row.offline.promisable);
        let share = |of: usize, all: usize| match all {
            0 => Cell::Missing,
            _ => Cell::Number(of as f64 / all as f64, 4),
        };
        let by_windows = groups.iter().all(|group| group.study.plans(number));
        let where_known = |cell| if by_windows { cell } else { Cell::Missing };
        table.rows.push(vec![
            gap.into(),
            name.into(),
            (*title).into(),
            Cell::Count(band.len() as u64),
            Cell::Count(delivered as u64),
            Cell::Count(accepted as u64),
            share(accepted, delivered),
            where_known(Cell::Count(promisable as u64)),
            where_known(Cell::Count(promised as u64)),
            where_known(share(promised, promisable)),
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
    let at = (used.len() * 99).div_ceil(100).saturating_sub(1);
    used.get(at).copied().into()
}

fn method(groups: &[ArrivalGroup]) -> String {
    let Some(group) = groups.first() else { return String::new() };
    let study = &group.study;
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

/// In percent. The first has everything below 50.
const BANDS: [(f64, f64); 11] = [
    (0.0, 50.0),
    (50.0, 60.0),
    (60.0, 70.0),
    (70.0, 80.0),
    (80.0, 85.0),
    (85.0, 90.0),
    (90.0, 95.0),
    (95.0, 100.0),
    (100.0, 105.0),
    (105.0, 110.0),
    (110.0, 130.0),
];

const SHARE_BANDS: &[(&str, (f64, f64))] = &[
    ("up to 95 %", (0.0, 95.0)),
    ("95 to 100 %", (95.0, 100.0)),
    ("100 to 105 %", (100.0, 105.0)),
    ("105 to 110 %", (105.0, 110.0)),
    ("110 to 130 %", (110.0, 130.0)),
];

const SHARE: &[(&str, &str)] = &[
    ("gap", "gap"),
    ("policy", "policy"),
    ("band", "band"),
    ("scenarios", ">scenarios"),
    ("delivered", ">delivered"),
    ("accepted", ">of those accepted"),
    ("share", ">share"),
    ("promisable", ">promisable"),
    ("promised", ">of those accepted"),
    ("share_promisable", ">share"),
];

const BY_BAND: &[(&str, &str)] = &[
    ("gap", "gap"),
    ("policy", "policy"),
    ("to_50", ">to 50"),
    ("to_60", ">to 60"),
    ("to_70", ">to 70"),
    ("to_80", ">to 80"),
    ("to_85", ">to 85"),
    ("to_90", ">to 90"),
    ("to_95", ">to 95"),
    ("to_100", ">to 100"),
    ("to_105", ">to 105"),
    ("to_110", ">to 110"),
    ("to_130", ">to 130 %"),
];

const TOTALS: &[(&str, &str)] = &[
    ("gap", "gap"),
    ("policy", "policy"),
    ("scenarios", ">scenarios"),
    ("accepted", ">accepted"),
    ("broken", ">late though accepted"),
    ("reads", ">reads"),
    ("late", ">late reads"),
    ("latest_ms", ">by at most, ms"),
    ("decision_us", ">decision, us"),
];

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
