//! The report of a job: one table of all groups, and the report of each.

use super::agents_page;
use super::agents_target::AgentsTarget;
use super::attribution::{Attribution, check_complete, check_valid};
use super::job::about_group;
use super::record::{self, ExperimentReport};
use super::run_report::{RunFigures, Subject};
use super::streams::{self, INTERRUPTED};
use crate::error::MeterError;
use crate::log::Written;
use crate::observer::Observer;
use crate::report::{Block, Page, StreamDemand, TextTable, VerdictKind, late, time};
use crate::streams::{StreamsOutcome, StreamsPlan};
use crate::target::VerifyReport;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use units::show::count;

/// What one group of a job found.
pub(super) struct GroupResult {
    /// The group's number in the job, from 0.
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) subject: Subject,
    pub(super) plan: StreamsPlan,
    pub(super) outcome: StreamsOutcome,
    pub(super) attribution: Option<Attribution>,
    /// The directory of the group's log.
    pub(super) dir: Option<PathBuf>,
    pub(super) written: Result<Option<Written>, MeterError>,
    pub(super) verified: Option<VerifyReport>,
    /// Whether all data was as it was written.
    pub(super) whole: Result<(), MeterError>,
    /// The threshold and its crossings; null without one.
    pub(super) threshold: Value,
    /// Whether the rate stayed above the threshold.
    pub(super) above: Result<(), MeterError>,
}

/// All groups of a job in their order.
pub(super) struct JobReport<'a> {
    /// The job file's name.
    pub(super) job: &'a str,
    pub(super) groups: Vec<GroupResult>,
    /// The machines on which the groups ran; `None` for this one.
    pub(super) agents: Option<&'a AgentsTarget>,
}

impl GroupResult {
    fn figures(&self) -> RunFigures<'_> {
        let demand = StreamDemand { allowed: self.plan.allowed(), rate: self.plan.rate() };
        RunFigures {
            subject: &self.subject,
            demand: Some(demand),
            outcome: &self.outcome,
            attribution: self.attribution.as_ref(),
        }
    }

    /// The content of the group's `summary.json`.
    fn summary(&self) -> Value {
        let mut all = self.figures().summary();
        all["name"] = json!(self.name);
        all["held"] = json!(self.answer() == HELD);
        all["threshold"] = self.threshold.clone();
        record::add_log(&mut all, &self.written);
        if let Some(report) = &self.verified {
            all["verify"] = json!(report);
        }
        all
    }

    /// The result in two words, as in the table.
    fn answer(&self) -> &'static str {
        match &self.outcome {
            outcome if !outcome.complete => "interrupted",
            outcome if !outcome.valid() => "not valid",
            outcome if outcome.is_held() && self.above.is_ok() => HELD,
            _ => "not held",
        }
    }

    fn row(&self) -> Vec<String> {
        let Self { plan, outcome, subject, .. } = self;
        vec![
            self.name.clone(),
            subject.counted(plan.streams.into()),
            subject.target.clone(),
            plan.rate().to_string(),
            outcome.rate().to_string(),
            late(outcome),
            time(outcome.response.quantile(0.99)),
            time(plan.allowed()),
            self.answer().to_owned(),
        ]
    }

    /// Whether the group's figures can be relied on and it was held, as the verdict of a run.
    fn check(&self) -> Result<(), MeterError> {
        self.written.as_ref().map_err(Clone::clone)?;
        self.whole.clone()?;
        if !self.outcome.complete {
            check_complete(&self.outcome)?;
            return Err(MeterError::interrupted(INTERRUPTED));
        }
        check_valid(&self.outcome, self.attribution.as_ref())?;
        record::check_log(self.written.as_ref().ok().and_then(Option::as_ref))
    }
}

/// The answer of a group whose streams and threshold are held.
const HELD: &str = "held";

const HEAD: [&str; 9] = [
    "group",
    "streams",
    "target",
    ">asked",
    ">delivered",
    "frames",
    ">99 % within",
    ">in time",
    "answer",
];

impl JobReport<'_> {
    /// Writes the files and returns the report, whose verdict is that of all groups.
    pub(super) fn finish(
        &self,
        dir: Option<&Path>,
        observer: &dyn Observer,
    ) -> Result<ExperimentReport, MeterError> {
        let summary = self.summary();
        let saved = self.save(dir, &summary, observer);
        let there = self.agents.map_or(Ok(()), AgentsTarget::check);
        let verdict = saved.and(there).and_then(|()| self.verdict());
        Ok(ExperimentReport { text: self.text(), summary, verdict })
    }

    fn save(
        &self,
        dir: Option<&Path>,
        summary: &Value,
        observer: &dyn Observer,
    ) -> Result<(), MeterError> {
        for (group, summary) in
            self.groups.iter().zip(summary["groups"].as_array().into_iter().flatten())
        {
            let Some(dir) = &group.dir else { continue };
            record::write_seconds(Some(dir), &group.outcome)?;
            record::write_summary(dir, summary)?;
        }
        record::save(dir, summary, || self.page(), observer)
    }

    fn summary(&self) -> Value {
        let groups: Vec<Value> = self.groups.iter().map(GroupResult::summary).collect();
        let all = |name: &str| groups.iter().all(|group| group[name] == json!(true));
        let sum = |name: &str| groups.iter().filter_map(|group| group[name].as_u64()).sum::<u64>();
        let scenarios = groups.iter().map(|group| {
            json!({ "name": group["name"], "streams": group["streams"], "scenario": group["scenario"] })
        });
        let first = groups.first().map(|group| group["scenario"]["target"].clone());
        let mut summary = json!({
            "scenario": {
                "job": self.job,
                "target": first,
                "agents": groups.first().map(|group| group["scenario"]["agents"].clone()),
                "groups": scenarios.collect::<Vec<_>>(),
            },
            "complete": all("complete"),
            "valid": all("valid"),
            "held": all("held"),
            "streams": sum("streams"),
            "frames": sum("frames"),
            "late_by_storage": sum("late_by_storage"),
            "late_by_meter": sum("late_by_meter"),
            "bytes_read": sum("bytes_read"),
            "bytes_written": sum("bytes_written"),
            "bits_per_s": sum("bits_per_s"),
            "groups": groups,
        });
        self.agents.into_iter().for_each(|agents| agents.describe(&mut summary));
        summary
    }

    fn text(&self) -> String {
        let rows = self.groups.iter().map(GroupResult::row).collect();
        let table = TextTable::with_rows(&HEAD, rows).show();
        let details = self.groups.iter().filter(|group| group.answer() != HELD).map(|group| {
            let below = group.above.as_ref().err().map(|error| format!("{}\n", error.message));
            let text = streams::text(&group.figures(), &group.plan);
            format!("\n{}\n{}{text}", group.name, below.unwrap_or_default())
        });
        let agents = self.agents.map(|agents| agents_page::text(&agents.last()) + "\n");
        let (agents, details) = (agents.unwrap_or_default(), details.collect::<String>());
        format!("{agents}{table}\n{}\n{details}", self.sentence())
    }

    /// The result of the job in a sentence.
    fn sentence(&self) -> String {
        let named = |answer: &str| {
            let names = self.groups.iter().filter(|group| group.answer() == answer);
            names.map(|group| &*group.name).collect::<Vec<_>>().join(", ")
        };
        let groups = count(self.groups.len(), "group");
        ["interrupted", "not valid", "not held"]
            .into_iter()
            .map(|answer| (answer, named(answer)))
            .find(|(_, names)| !names.is_empty())
            .map_or_else(
                || format!("held: all of {groups}"),
                |(answer, names)| format!("{answer}: {names}, of {groups}"),
            )
    }

    fn verdict(&self) -> Result<(), MeterError> {
        for group in &self.groups {
            group.check().map_err(|error| about_group(&group.name, error))?;
        }
        match self.groups.iter().all(|group| group.answer() == HELD) {
            true => Ok(()),
            false => Err(MeterError::not_held(self.sentence())),
        }
    }

    fn page(&self) -> Result<Page, MeterError> {
        let held = self.groups.iter().all(|group| group.answer() == HELD);
        let known =
            !self.groups.iter().any(|group| matches!(group.answer(), "interrupted" | "not valid"));
        let kind = match (known, held) {
            (false, _) => VerdictKind::Unknown,
            (true, true) => VerdictKind::Held,
            (true, false) => VerdictKind::NotHeld,
        };
        let rows = self.groups.iter().map(GroupResult::row).collect();
        let heads = HEAD.map(|head| head.trim_start_matches('>'));
        let mut blocks =
            vec![Block::Verdict(kind, format!("{}.", self.sentence())), Block::table(&heads, rows)];
        for group in &self.groups {
            blocks.push(Block::Heading(format!("Group {}", group.name)));
            blocks.extend(group.figures().page(&group.summary())?.blocks);
        }
        let page = Page {
            title: format!("{} of {}", count(self.groups.len(), "group"), self.job),
            summary: "Groups of streams that ran at the same time, from one start.".into(),
            blocks,
        };
        self.agents.map_or(Ok(page.clone()), |agents| agents.extend(page.clone()))
    }
}
