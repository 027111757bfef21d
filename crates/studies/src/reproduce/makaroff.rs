//! Makaroff, Coutu and Liu, *Disk Performance and VBR Admission Control for Media Servers*: their
//! Table 2 and Figures 1 and 2, on disks fitted to that table.
//!
//! The paper's figures are not public as numbers; what its text says of them stands beside ours.

use super::claims::Claims;
use super::{Report, Table, texts};
use crate::admission::{
    ArrivalGroup, BLOCK, PolicyUnderTest, Preset, ScenarioResult, Setup, fitted, study_report,
};
use disk::DiskModel;
use meter::report::cell;
use scheduler::PolicyKind;
use std::time::Duration;

/// Table 2: what the disks read at worst and in use.
pub(super) fn table2(progress: &mut dyn FnMut(f64)) -> Report {
    // Each disk with its share of the work: the larger one reads four times as much in a scenario.
    let disks = [
        ("smaller", 0.0..0.2, Preset::Paper, fitted::small(), ["46", "50", "54 to 73", "60 to 82"]),
        (
            "larger",
            0.2..1.0,
            Preset::Large,
            fitted::large(),
            ["91", "78", "161 to 206", "172 to 205"],
        ),
    ];
    let rows = disks.into_iter().map(|(name, work, preset, model, paper)| {
        let [solaris, freebsd, used_solaris, used_freebsd] = paper;
        let mut done = |part: f64| progress(work.start + part * (work.end - work.start));
        let setup = Setup::new(preset, Duration::from_millis(500));
        let study = setup.study_telling(None, &mut |part| done(part * LEARNING));
        let (mut least, mut most) = (f64::INFINITY, 0.0f64);
        for scenario in 0..SEEN {
            done(LEARNING + (1.0 - LEARNING) * scenario as f64 / SEEN as f64);
            // Scenarios that the study was not trained with.
            let seen = study.train(TRAINED + scenario);
            (least, most) = (least.min(seen), most.max(seen));
        }
        [
            cell("disk", "disk", name),
            cell("paper_solaris", ">Solaris, at worst", solaris),
            cell("paper_freebsd", ">FreeBSD, at worst", freebsd),
            cell("ours", ">ours (fitted)", calibrated(&model, 0.5)),
            cell("ours_worst_rotation", ">at worst rotation", calibrated(&model, 1.0)),
            cell("paper_solaris_used", ">Solaris, in use", used_solaris),
            cell("paper_freebsd_used", ">FreeBSD, in use", used_freebsd),
            cell("ours_used", ">ours, in use", format!("{least:.0} to {most:.0}")),
        ]
    });
    let table = Table::of("blocks", "Blocks of 64 KiB in a slot of 500 ms", rows);
    Report {
        source: texts::of("makaroff-table2").source,
        method: format!(
            "At worst: blocks spread evenly over the disk and read in one sweep, each with half \
             of the longest rotational delay, or all of it. In use: the least stable mean of \
             {SEEN} scenarios (after 10 s), read by a server like theirs that accepts all viewers."
        ),
        tables: vec![table],
        notes: notes(&["makaroff", "makaroff-table2"]),
        figures: Vec::new(),
    }
}

/// Figure 1: scenarios accepted on the smaller disk.
pub(super) fn figure1(progress: &mut dyn FnMut(f64)) -> Report {
    let setup = |gap| Setup::new(Preset::Paper, gap);
    let groups = GAPS.map(setup).map(|setup| Judged { setup, rows: 3, scenarios: SCENARIOS });
    let repeated = groups.clone().map(|group| {
        let setup = Setup { repeated: true, ..group.setup };
        Judged { setup, rows: 2, ..group }
    });
    let all = judge_all(groups.into_iter().chain(repeated), progress);
    let (groups, repeated) = all.split_at(GAPS.len());
    let mut report = study_report(&texts::of("makaroff-figure1").source, groups);
    let mut claims = Claims::titled("makaroff-figure1", TITLE);
    for (group, repeated) in groups.iter().zip(repeated) {
        let [calibrated, observed] = [CALIBRATED, OBSERVED].map(|row| TestedPolicy { group, row });
        claims.few_above("1", 85.0, calibrated);
        claims.nearly_all_below("1", 92.0, observed);
        let buffers = calibrated.buffers();
        claims.size("4.2", calibrated, at_part(&buffers, 1.0));
        claims.size("4.2", calibrated, at_part(&buffers, 0.99));
        let again = TestedPolicy { group: repeated, row: CALIBRATED };
        let parts = [calibrated, again].map(|policy| policy.accepted(|_| true).unwrap_or_default());
        let [once, again] = parts;
        let gap = calibrated.gap();
        let ours = format!("{gap}: {once:.1} % of all accepted, {again:.1} % where repeated");
        claims.add("4.2", ours, (once - again).abs() <= SIMILAR, None);
    }
    report.tables.insert(0, claims.into_table());
    report.notes.extend(notes(&["makaroff", "makaroff-figures", "makaroff-figure1"]));
    report
}

/// Figure 2: scenarios accepted on the larger disk.
pub(super) fn figure2(progress: &mut dyn FnMut(f64)) -> Report {
    // Where `minRead` is what was calibrated, with all gaps that the text names.
    let calibrated = [500, 1000, 1500, 2000].map(|millis| {
        let setup = Setup::new(Preset::Large, Duration::from_millis(millis));
        Judged { setup, rows: 1, scenarios: SCENARIOS / 2 }
    });
    // What the figure draws: with the observed one, relative to what that server delivers.
    let observed = GAPS.map(|gap| {
        let setup = Setup { min_read: Some(PAPER_OBSERVED), ..Setup::new(Preset::Large, gap) };
        Judged { setup, rows: 3, scenarios: SCENARIOS / 2 }
    });
    let all = judge_all(calibrated.clone().into_iter().chain(observed), progress);
    let (calibrated, observed) = all.split_at(calibrated.len());
    let mut report = study_report(&texts::of("makaroff-figure2").source, observed);
    let mut claims = Claims::titled("makaroff-figure2", TITLE);
    for group in calibrated {
        let policy = TestedPolicy { group, row: CALIBRATED };
        claims.go_on_at("most below 50 %");
        let most = policy.accepted(|load| load < 50.0).map(|part| part > 50.0);
        claims.add("4.3", policy.text(50.0), most, None);
        claims.few_above("4.3", 60.0, policy);
        let buffers = policy.buffers();
        for part in [0.05, 0.5, 0.95] {
            claims.size("4.3", policy, at_part(&buffers, part));
        }
    }
    for group in observed {
        let policy = TestedPolicy { group, row: CALIBRATED };
        claims.go_on_at("nearly all below 92 %");
        claims.nearly_all_below("2", 92.0, policy);
        claims.few_above("2", 100.0, policy);
    }
    report.tables.insert(0, claims.into_table());
    report.notes.extend(notes(&["makaroff", "makaroff-figures", "makaroff-figure2"]));
    report
}

/// Scenarios that are to be judged, and by which policies.
#[derive(Clone)]
struct Judged {
    setup: Setup,
    /// How many of the policies, in this order: vbrSim with `minRead`, vbrSim with the bandwidth
    /// observed, disk time.
    rows: usize,
    scenarios: u64,
}

impl Judged {
    /// For progress: scenarios, and more of them where disk time is judged too.
    fn work(&self) -> u64 {
        self.scenarios * if self.rows == 3 { 4 } else { 1 }
    }
}

/// The scenarios of one arrival rate, as one policy decides on them.
#[derive(Clone, Copy)]
struct TestedPolicy<'a> {
    group: &'a ArrivalGroup,
    /// Number of the policy among those that were tested.
    row: usize,
}

impl TestedPolicy<'_> {
    /// Loads in percent of the bandwidth achieved, and whether the scenario was accepted.
    fn scenarios(&self) -> impl Iterator<Item = (f64, bool)> + '_ {
        let row = self.row;
        let load = |result: &ScenarioResult| 100.0 * result.requested / result.achieved;
        self.group.results.iter().map(move |result| (load(result), result.rows[row].accepted))
    }

    /// Percentage of scenarios accepted, of those with such a load; `None` if there are none.
    fn accepted(&self, of: impl Fn(f64) -> bool) -> Option<f64> {
        let inside = self.scenarios().filter(|(load, _)| of(*load));
        let (all, accepted) = inside
            .fold((0_u32, 0_u32), |(all, yes), (_, accepted)| (all + 1, yes + u32::from(accepted)));
        (all > 0).then(|| 100.0 * f64::from(accepted) / f64::from(all))
    }

    /// Percentage of scenarios accepted, of those with loads from `low` up to `high`.
    fn around(&self, low: f64, high: f64) -> Option<f64> {
        self.accepted(|load| (low..high).contains(&load))
    }

    /// The whole loads at which a size is looked for.
    fn loads() -> impl DoubleEndedIterator<Item = f64> {
        // Up to the end of the last band of the report.
        (1..=130_u32).map(f64::from)
    }

    /// Buffers of the accepted scenarios, in ascending order.
    fn buffers(&self) -> Vec<u64> {
        let rows = self.group.results.iter().map(|result| &result.rows[self.row]);
        let accepted = rows.filter(|row| row.accepted);
        let mut buffers: Vec<u64> =
            accepted.map(|row| row.counters.buffers.div_ceil(BLOCK)).collect();
        buffers.sort_unstable();
        buffers
    }

    fn gap(&self) -> String {
        units::show_duration(self.group.study.workload.gap)
    }

    fn text(&self, load: f64) -> String {
        let (gap, name) = (self.gap(), &self.group.study.tested[self.row].name);
        let percent = |part: Option<f64>| {
            part.map_or_else(|| "none drawn".to_owned(), |part| format!("{part:.1} %"))
        };
        let below = percent(self.accepted(|at| at < load));
        let above = percent(self.accepted(|at| at > load));
        format!("{gap}, {name}: {below} accepted below {load} %, {above} above")
    }
}

impl Claims {
    fn few_above(&mut self, figure: &str, load: f64, policy: TestedPolicy<'_>) {
        let few = |from: &f64| policy.around(*from, *from + BAND).is_none_or(|part| part <= FEW);
        let least_load = TestedPolicy::loads().rev().take_while(few).last();
        let above = policy.accepted(|at| at > load).map(|part| part <= FEW);
        self.add(figure, policy.text(load), above, least_load);
    }

    fn nearly_all_below(&mut self, figure: &str, load: f64, policy: TestedPolicy<'_>) {
        let all = |to: &f64| policy.around(*to - BAND, *to).is_none_or(|part| part >= ALL);
        let highest_load = TestedPolicy::loads().take_while(all).last();
        let below = policy.accepted(|at| at < load).map(|part| part >= ALL);
        self.add(figure, policy.text(load), below, highest_load);
    }

    fn size(&mut self, figure: &str, policy: TestedPolicy<'_>, size: f64) {
        self.add(figure, policy.gap(), None, size);
    }
}

/// The number that this part of the sorted numbers does not exceed; zero without numbers.
fn at_part(sorted: &[u64], part: f64) -> f64 {
    let number = units::rounded((sorted.len() as f64 * part).ceil()).saturating_sub(1);
    sorted.get(usize::try_from(number).unwrap_or(usize::MAX)).map_or(0.0, |number| *number as f64)
}

fn judge_all(
    groups: impl Iterator<Item = Judged>,
    progress: &mut dyn FnMut(f64),
) -> Vec<ArrivalGroup> {
    let groups: Vec<Judged> = groups.collect();
    let all: u64 = groups.iter().map(Judged::work).sum();
    let mut done = 0;
    let mut judged = Vec::new();
    for group in groups {
        let mut study = group.setup.study(None);
        // vbrSim both ways, and what the disk's time says.
        study.tested.retain(|tested: &PolicyUnderTest| {
            matches!(tested.policy, PolicyKind::VbrSim | PolicyKind::TimeDomain)
        });
        study.tested.truncate(group.rows);
        let each = group.work() as f64 / group.scenarios as f64;
        let judge = |scenario| {
            progress((done as f64 + each * scenario as f64) / all as f64);
            study.judge(scenario)
        };
        let results = (0..group.scenarios).map(judge).collect();
        done += group.work();
        judged.push(ArrivalGroup { study, results });
    }
    judged
}

/// The notes of these parts of `reports.toml`, in order.
fn notes(parts: &[&str]) -> Vec<String> {
    parts.iter().flat_map(|part| texts::of(part).notes).collect()
}

fn calibrated(model: &DiskModel, turn: f64) -> u32 {
    fitted::pathological(model, BLOCK, Duration::from_millis(500), turn)
}

const TITLE: &str = "Claims of the paper, and our results on a disk fitted to its table 2";

/// Rows of the study: vbrSim with the paper's minRead, and with the least bandwidth observed.
const CALIBRATED: usize = 0;
const OBSERVED: usize = 1;

/// Blocks of the larger disk in the slowest slot that the paper observed (section 4.3).
const PAPER_OBSERVED: u32 = 149;

/// Mean times between arrivals in both figures.
const GAPS: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(1000)];

/// Percentages of all scenarios that may lie between results called similar.
const SIMILAR: f64 = 5.0;

/// Percentages of scenarios that the paper's words are taken to mean.
const FEW: f64 = 10.0;
const ALL: f64 = 95.0;

/// Percentage points of load in which a part of the scenarios is counted.
const BAND: f64 = 10.0;

/// Scenarios looked at for the bandwidth in use; others than those that were trained on.
const SEEN: u64 = 64;

/// The share of a disk's work in which the study learns its rate: two runs of each of 48 scenarios,
/// where each of [`SEEN`] has one.
const LEARNING: f64 = 0.6;
const TRAINED: u64 = 1000;

/// For each arrival rate: about half a minute in all.
const SCENARIOS: u64 = 192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disks_do_in_use_no_less_than_those_of_the_paper_and_not_half_as_much_again() {
        let mut steps = vec![0.0];
        let report = table2(&mut |done| steps.push(done));
        let widest = steps.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        assert!(steps.is_sorted() && widest < 0.02, "the bar moves in small steps: {widest}");
        let used = |disk| report.tables[0].cell(disk, "ours_used").unwrap().to_string();
        let range = |text: &str| {
            let (least, most) = text.split_once(" to ").unwrap();
            (least.parse::<f64>().unwrap(), most.parse::<f64>().unwrap())
        };
        let (small, large) = (range(&used("smaller")), range(&used("larger")));
        assert!(small.0 > 54.0 && small.1 < 1.5 * 82.0, "54 to 82 in the paper: {small:?}");
        assert!(large.0 > 161.0 && large.1 < 1.5 * 206.0, "161 to 206 in the paper: {large:?}");
    }
}
