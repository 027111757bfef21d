//! Judged scenarios by bands of load: who accepts how many, with how many buffers, and was anybody
//! late.

use super::super::hindsight::Hindsight;
use super::super::station::Tally;
use super::super::study::{Contender, Judged, Row, Study, Titles};
use super::super::titles::BLOCK;
use crate::reproduce::{Cell, Figure, Report, Table};
use meter::report::{Plot, Series, Shape};
use std::time::Duration;

/// The scenarios of one arrival rate.
#[derive(Clone, Debug)]
pub struct Group {
    /// What was studied.
    pub study: Study,
    /// Each scenario, judged.
    pub judged: Vec<Judged>,
}

/// Tables and figures of a study at one or more arrival rates.
pub fn study_report(source: &'static str, groups: &[Group]) -> Report {
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
        "Viewers let in, % of those who came in each band; who is refused goes, the others stay",
        BY_BAND,
    );
    for group in groups {
        let gap = units::show_duration(group.study.habits.gap);
        accepted.rows.push(group.row(&gap, "scenarios", |band| Cell::Count(band.len() as u64)));
        for (number, contender) in group.study.contenders.iter().enumerate() {
            let name = contender.name.as_str();
            accepted.rows.push(
                group.row(&gap, name, |band| percent(band, |judged| judged.rows[number].accepted)),
            );
            buffers.rows.push(group.row(&gap, name, |band| most_buffers(band, number)));
            totals.rows.push(group.totals(&gap, name, number));
            if contender.blocks.is_none() {
                shares(&gap, name, number, std::slice::from_ref(group), &mut share);
                viewers.rows.push(group.viewers(&gap, name, |j| j.rows[number].let_in));
            }
        }
        for (name, of) in group.in_hindsight() {
            accepted.rows.push(group.row(&gap, &name, |band| percent(band, &of)));
        }
        if let Some(number) = group.study.by_windows() {
            let most = |judged: &Judged| judged.rows[number].hindsight.most;
            viewers.rows.push(group.viewers(&gap, "offline optimum", most));
        }
        accepted.rows.push(group.row(&gap, "fluid bound", |band| percent(band, |j| j.fluid)));
    }
    if let [first, _, ..] = groups {
        for (number, contender) in first.study.contenders.iter().enumerate() {
            if contender.blocks.is_none() {
                shares("all", &contender.name, number, groups, &mut share);
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

impl Group {
    fn band(&self, (low, high): (f64, f64)) -> Vec<&Judged> {
        let percent = |judged: &&Judged| 100.0 * judged.requested / judged.achieved;
        self.judged.iter().filter(|j| (low..high).contains(&percent(j))).collect()
    }

    fn row(&self, gap: &str, name: &str, cell: impl Fn(&[&Judged]) -> Cell) -> Vec<Cell> {
        let bands = BANDS.iter().map(|band| cell(&self.band(*band)));
        [gap.into(), name.into()].into_iter().chain(bands).collect()
    }

    fn viewers(&self, gap: &str, name: &str, of: impl Fn(&Judged) -> u64) -> Vec<Cell> {
        self.row(gap, name, |band| {
            let came: u64 = band.iter().map(|judged| judged.came).sum();
            let let_in: u64 = band.iter().map(|judged| of(judged)).sum();
            if came == 0 {
                return Cell::Missing;
            }
            Cell::Number(100.0 * let_in as f64 / came as f64, 2)
        })
    }

    /// What each server would have delivered, and what could have been promised of it.
    fn in_hindsight(&self) -> Vec<(String, impl Fn(&Judged) -> bool + use<>)> {
        let mut rows: Vec<(String, usize, bool)> = Vec::new();
        for (name, number) in self.study.servers() {
            rows.push((format!("delivered, {name}"), number, false));
            if self.study.by_windows() == Some(number) {
                rows.push((format!("promisable, {name}"), number, true));
            }
        }
        let of = |number: usize, promised: bool| {
            move |judged: &Judged| {
                let Hindsight { delivered, promisable, .. } = judged.rows[number].hindsight;
                if promised { promisable } else { delivered }
            }
        };
        rows.into_iter().map(|(name, number, promised)| (name, of(number, promised))).collect()
    }

    fn totals(&self, gap: &str, name: &str, number: usize) -> Vec<Cell> {
        let mut tally = Tally::default();
        let (mut accepted, mut broken) = (0, 0);
        for judged in &self.judged {
            let row = &judged.rows[number];
            accepted += u64::from(row.accepted);
            broken += u64::from(row.accepted && row.tally.late > 0);
            tally += row.tally;
        }
        let decisions = u32::try_from(tally.decisions).unwrap_or(u32::MAX);
        let each = tally.deciding.checked_div(decisions).filter(|each| !each.is_zero());
        vec![
            gap.into(),
            name.into(),
            Cell::Count(self.judged.len() as u64),
            Cell::Count(accepted),
            Cell::Count(broken),
            Cell::Count(tally.reads),
            Cell::Count(tally.late),
            Cell::Number(tally.latest.as_secs_f64() * 1e3, 1),
            each.map_or(Cell::Missing, |each| Cell::Number(each.as_secs_f64() * 1e6, 1)),
        ]
    }

    fn accepted(&self) -> Figure {
        let gap = self.study.habits.gap;
        let line = |name: &str, of: &dyn Fn(&Judged) -> bool| Series {
            name: name.to_owned(),
            shape: Shape::Line,
            points: self.points(|band| percent(band, of)),
        };
        let contenders = self.study.contenders.iter().enumerate();
        let mut series: Vec<Series> = contenders
            .map(|(i, contender)| line(&contender.name, &|judged| judged.rows[i].accepted))
            .collect();
        for (name, of) in self.in_hindsight() {
            series.push(line(&name, &of));
        }
        series.push(line("fluid bound", &|judged| judged.fluid));
        Figure {
            name: figure_names(gap).0,
            plot: Plot {
                title: format!("A request every {} in the mean", units::show_duration(gap)),
                x_label: "bandwidth requested, % of bandwidth achieved".into(),
                y_label: "scenarios accepted, %".into(),
                series,
            },
            explanation:
                "Each point is a band of scenarios, drawn at its middle; a scenario counts \
                          as accepted only if every request in it was. What lies above a policy's \
                          line and below the line of what was delivered, the disk would have done \
                          and the policy refused."
                    .into(),
        }
    }

    fn buffers(&self) -> Figure {
        let gap = self.study.habits.gap;
        let line = |(number, contender): (usize, &Contender)| Series {
            name: contender.name.clone(),
            shape: Shape::Line,
            points: self.points(|band| most_buffers(band, number)),
        };
        Figure {
            name: figure_names(gap).1,
            plot: Plot {
                title: format!("A request every {} in the mean", units::show_duration(gap)),
                x_label: "bandwidth requested, % of bandwidth achieved".into(),
                y_label: "buffers of 64 KiB, 99th percentile".into(),
                series: self.study.contenders.iter().enumerate().map(line).collect(),
            },
            explanation: "Of the scenarios that were accepted, the most buffers held at once, in 99 of                           100 no more than this. A disk that is ahead reads on for as long as there                           are buffers."
                .into(),
        }
    }

    /// A point in the middle of each band that has one.
    fn points(&self, of: impl Fn(&[&Judged]) -> Cell) -> Vec<(f64, f64)> {
        let point = |band: &(f64, f64)| {
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

fn shares(gap: &str, name: &str, number: usize, groups: &[Group], table: &mut Table) {
    for (title, band) in SHARE_BANDS {
        let band: Vec<&Judged> = groups.iter().flat_map(|group| group.band(*band)).collect();
        let rows: Vec<&Row> = band.iter().map(|judged| &judged.rows[number]).collect();
        let count = |of: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| of(row)).count();
        let delivered = count(&|row| row.hindsight.delivered);
        let accepted = count(&|row| row.accepted && row.hindsight.delivered);
        let promisable = count(&|row| row.hindsight.promisable);
        let promised = count(&|row| row.accepted && row.hindsight.promisable);
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

fn percent(band: &[&Judged], of: impl Fn(&Judged) -> bool) -> Cell {
    if band.is_empty() {
        return Cell::Missing;
    }
    let count = band.iter().filter(|judged| of(judged)).count();
    Cell::Number(100.0 * count as f64 / band.len() as f64, 1)
}

fn most_buffers(band: &[&Judged], number: usize) -> Cell {
    let rows = band.iter().map(|judged| &judged.rows[number]).filter(|row| row.accepted);
    let mut used: Vec<u64> = rows.map(|row| row.tally.buffers.div_ceil(BLOCK)).collect();
    used.sort_unstable();
    let at = (used.len() * 99).div_ceil(100).saturating_sub(1);
    used.get(at).copied().into()
}

fn method(groups: &[Group]) -> String {
    let Some(group) = groups.first() else { return String::new() };
    let study = &group.study;
    let memory = if study.memory >= 1 << 50 {
        "unlimited buffers".to_owned()
    } else {
        format!("{} of buffers", units::ByteCount(study.memory))
    };
    format!(
        "Disk: {}; {}. Start-up {}, {memory}, slots of {}, long reads of at most {}. A band is the \
         bandwidth requested as a percentage of what a server like the paper's (reads of 64 KiB, \
         minRead {}) achieves on that scenario; {:.1} blocks a slot in the mean.",
        study.model.title(),
        study.titles,
        units::show_duration(study.startup),
        units::show_duration(study.habits.slot),
        units::ByteCount(study.habits.read_size),
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
    "A scenario counts as accepted only if every request in it is. Delivered: the same scheduler lets \
     everybody in, and no read is late. Promisable: nor would one be, if from any arrival on every \
     rotation were a whole one; more than that cannot be promised of this scheduler. Fluid bound: \
     transfers alone, no time for arm or platter; no scheduler does more. Offline optimum: the most \
     viewers that could be let in before the same scheduler, knowing who comes and how the platter \
     turns, at most.",
    "Policies that count blocks read 64 KiB at a time, at least minRead a slot, as the paper's server \
     does; minRead as calibrated, or the least bandwidth achieved on 48 scenarios apart from these.",
];

/// Where titles are not given.
const DRAWN: &str = "The clips are drawn by chance to the paper's description, and the disk is arithmetic fitted to its \
     Table 2: shapes compare with the paper's, single points do not.";
