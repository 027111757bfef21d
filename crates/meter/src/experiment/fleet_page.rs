//! The results of a fleet's run: the summary, the text and the page.
//!
//! Each agent has its own clock. The seconds of an agent count from the moment at which it started
//! its workers. These moments differ by the delay of each agent (in the table) and by the
//! uncertainty of its clock.

use crate::error::MeterError;
use crate::fleet::{AgentOutcome, Fleet};
use crate::report::{Block, LineShape, Page, Plot, Series, TextTable, facts};
use serde_json::{Value, json};
use units::{BitRate, Hinted, float, show};

/// The reasons why the measurement is not the one that was requested.
pub(super) fn why_invalid(fleet: &Fleet, interrupted: bool) -> Vec<String> {
    let lost = |agent: &AgentOutcome| {
        let why = agent.lost.as_ref()?;
        Some(format!("agent {} was lost: {}", agent.name, why.one_line()))
    };
    let mut why: Vec<String> = fleet.agents.iter().filter_map(lost).collect();
    // After the lost agents: their loss may be why the user interrupted.
    if interrupted {
        why.push("interrupted".to_owned());
    }
    // A lost agent is named above; what its workers did not report follows from that.
    for agent in fleet.agents.iter().filter(|agent| agent.lost.is_none()) {
        for (number, worker) in (1..).zip(&agent.workers) {
            let said = match worker {
                None => Some("said nothing".to_owned()),
                Some(worker) if worker.code == Some(0) && worker.summary.is_some() => None,
                Some(worker) => Some(match worker.said.trim() {
                    "" => "ended without a word".to_owned(),
                    said => said.replace('\n', "; "),
                }),
            };
            why.extend(said.map(|said| format!("agent {}, worker {number}: {said}", agent.name)));
        }
    }
    why
}

fn summaries(agent: &AgentOutcome) -> impl Iterator<Item = &Value> {
    agent.workers.iter().flatten().filter_map(|worker| worker.summary.as_ref())
}

fn sum(fleet: &Fleet, name: &str) -> u64 {
    fleet.agents.iter().flat_map(summaries).filter_map(|one| one[name].as_u64()).sum()
}

pub(super) fn summary(fleet: &Fleet, why: &[String]) -> Value {
    let agents = fleet.agents.iter().map(|agent| {
        json!({
            "name": agent.name,
            "host": agent.about.host,
            "processors": agent.about.processors,
            "kernel": agent.about.kernel,
            "clock": agent.clock,
            "begun_late_ns": agent.begun_late_ns,
            "lost": agent.lost.as_ref().map(Hinted::one_line),
            "workers": summaries(agent).collect::<Vec<_>>(),
        })
    });
    let mut all = json!({
        "valid": why.is_empty(),
        "why_not": why,
        "agents": agents.collect::<Vec<_>>(),
    });
    let counts = [
        "frames",
        "late",
        "late_by_storage",
        "late_by_meter",
        "failed",
        "never_came",
        "bytes",
        "bits_per_s",
    ];
    for name in counts {
        all[name] = json!(sum(fleet, name));
    }
    // A backlog at one agent is enough: its streams are not held.
    let growing = fleet.agents.iter().flat_map(summaries).any(|one| one["backlog_grows"] == true);
    all["backlog_grows"] = json!(growing);
    all
}

pub(super) fn text(fleet: &Fleet, summary: &Value) -> String {
    let mut table = TextTable::new(&[
        "agent",
        "host",
        ">frames",
        ">late",
        ">rate",
        ">clock known to",
        ">began late",
    ]);
    for agent in &fleet.agents {
        let of = |name: &str| summaries(agent).filter_map(|one| one[name].as_u64()).sum::<u64>();
        table.row(vec![
            agent.name.clone(),
            agent.about.host.clone(),
            of("frames").to_string(),
            of("late_by_storage").to_string(),
            BitRate(of("bits_per_s")).to_string(),
            format!("{} us", agent.clock.wrong_by_at_most_ns.div_ceil(1000)),
            agent.begun_late_ns.map_or("-".to_owned(), |late| format!("{} us", late / 1000)),
        ]);
    }
    let count = |name: &str| summary[name].as_u64().unwrap_or_default();
    let grows = summary["backlog_grows"] == true;
    let backlog = if grows { "grows at one agent or more" } else { "does not grow" };
    let lines = facts(&[
        ("frames", format!("{}, {} late", count("frames"), count("late_by_storage"))),
        ("late by agents", count("late_by_meter").to_string()),
        ("backlog", backlog.to_owned()),
        ("together", BitRate(count("bits_per_s")).to_string()),
    ]);
    format!("{}\n{lines}", table.show())
}

/// Sums `of` over the seconds in the summaries of an agent's workers, second by second.
fn by_second(agent: &AgentOutcome, of: impl Fn(&Value) -> u64) -> Vec<u64> {
    let mut all: Vec<u64> = Vec::new();
    for second in summaries(agent).filter_map(|one| one["seconds"].as_array()) {
        // Workers that ended earlier have fewer seconds.
        all.resize(all.len().max(second.len()), 0);
        all.iter_mut().zip(second).for_each(|(sum, second)| *sum += of(second));
    }
    all
}

fn late(second: &Value) -> u64 {
    let count = |name: &str| second[name].as_u64().unwrap_or_default();
    // The summary comes from another program; a wrong count must not end this one.
    count("late").saturating_sub(count("late_by_meter"))
}

fn bytes(second: &Value) -> u64 {
    ["bytes_read", "bytes_written"].iter().filter_map(|name| second[*name].as_u64()).sum()
}

/// The agents in the order in which they were first late, with the cause of each; one sentence for
/// each.
fn broke_first(fleet: &Fleet) -> Vec<String> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for agent in &fleet.agents {
        let Some(second) = by_second(agent, late).iter().position(|late| *late > 0) else {
            continue;
        };
        let cause =
            summaries(agent).find_map(|one| one["blame"]["broke_first"]["sentence"].as_str());
        let why = cause.map_or(String::new(), |cause| format!(": {cause}"));
        found.push((second, format!("{}, from second {second}{why}", agent.name)));
    }
    // By second, and by name where several were late in the same one.
    found.sort();
    if found.is_empty() {
        return vec!["Nothing: no frame was late for the storage, at no agent.".to_owned()];
    }
    // With one agent "all" says nothing of what is shared.
    let all = found.len() == fleet.agents.len() && found.len() > 1;
    let shared = all.then(|| {
        "All were late: what they share (the storage, its network) is likelier than one of them."
            .to_owned()
    });
    found.into_iter().map(|(_, sentence)| sentence).chain(shared).collect()
}

/// The report as a page.
pub(super) fn page(fleet: &Fleet, summary: &Value) -> Result<Page, MeterError> {
    let count = |name: &str| summary[name].as_u64().unwrap_or_default();
    let mut blocks = Vec::new();
    // First, because nothing below can be relied on then.
    if let Some(why) = summary["why_not"].as_array().filter(|why| !why.is_empty()) {
        blocks.push(Block::Heading("Why it is not valid".into()));
        blocks.extend(why.iter().filter_map(Value::as_str).map(|why| Block::Text(why.to_owned())));
    }
    blocks.push(Block::Heading("What broke first".into()));
    blocks.extend(broke_first(fleet).into_iter().map(Block::Text));
    blocks.push(together(fleet).block("What all agents moved together, and each by itself.")?);
    blocks.push(late_ones(fleet).block(
        "Frames that were late for the storage, by agent. Peaks of all at the same second are \
         something that they share.",
    )?);
    blocks.push(Block::Heading("Agents".into()));
    let head = [
        "agent",
        "host",
        "processors",
        "kernel",
        "streams",
        "frames",
        "late",
        "late by the agent",
        "rate",
        "clock ahead, us",
        "known to, us",
        "began late, us",
        "lost",
    ];
    let rows = fleet.agents.iter().map(row).collect();
    blocks.push(Block::table(&head, rows));
    // The columns on clocks need an explanation: they bound how exactly agents begin together.
    blocks.push(Block::Text(CLOCKS.to_owned()));
    let late = count("late_by_storage");
    let valid = if summary["valid"] == true { "" } else { "Not valid. " };
    Ok(Page {
        title: format!("{} on {}", show::count(fleet.agents.len(), "agent"), target(summary)),
        summary: format!(
            "{valid}{} of {}, {late} late; {} together.",
            show::count(count("frames"), "frame"),
            show::count(summary["scenario"]["streams"].as_u64().unwrap_or_default(), "stream"),
            BitRate(count("bits_per_s"))
        ),
        blocks,
    })
}

const CLOCKS: &str = "How far a clock is ahead of the controller's counts from when each program began, \
    so that it is no error; how closely it is known is half of the shortest exchange. An agent's frames \
    are counted by its own clock only.";

fn target(summary: &Value) -> &str {
    summary["scenario"]["target"].as_str().unwrap_or_default()
}

fn row(agent: &AgentOutcome) -> Vec<String> {
    let of = |name: &str| summaries(agent).filter_map(|one| one[name].as_u64()).sum::<u64>();
    let late = agent.begun_late_ns;
    vec![
        agent.name.clone(),
        agent.about.host.clone(),
        agent.about.processors.to_string(),
        agent.about.kernel.clone(),
        of("streams").to_string(),
        of("frames").to_string(),
        of("late_by_storage").to_string(),
        of("late_by_meter").to_string(),
        BitRate(of("bits_per_s")).to_string(),
        (agent.clock.offset_ns / 1000).to_string(),
        agent.clock.wrong_by_at_most_ns.div_ceil(1000).to_string(),
        late.map_or("-".to_owned(), |late| (late / 1000).to_string()),
        agent.lost.as_ref().map_or("no".to_owned(), Hinted::one_line),
    ]
}

fn together(fleet: &Fleet) -> Plot {
    let each: Vec<(String, Vec<u64>)> =
        fleet.agents.iter().map(|agent| (agent.name.clone(), by_second(agent, bytes))).collect();
    let longest = each.iter().map(|(_, seconds)| seconds.len()).max().unwrap_or_default();
    let sum = |second: usize| each.iter().filter_map(|(_, seconds)| seconds.get(second)).sum();
    let all = ("all".to_owned(), (0..longest).map(sum).collect());
    // With more lines than these no reader can distinguish them.
    let some = each.into_iter().take(LINES);
    drawn("Moved in each second", "MB", 1e6, std::iter::once(all).chain(some))
}

fn late_ones(fleet: &Fleet) -> Plot {
    let of = |agent: &AgentOutcome| (agent.name.clone(), by_second(agent, late));
    let mut each: Vec<_> = fleet.agents.iter().map(of).collect();
    // The agents with the most late frames.
    each.sort_by_key(|(_, seconds)| std::cmp::Reverse(seconds.iter().sum::<u64>()));
    drawn("Late frames in each second", "frames", 1.0, each.into_iter().take(LINES))
}

fn drawn(
    title: &str,
    unit: &str,
    scale: f64,
    lines: impl Iterator<Item = (String, Vec<u64>)>,
) -> Plot {
    let line = |(name, seconds): (String, Vec<u64>)| {
        let values = seconds.into_iter().map(|value| float(value) / scale);
        Series::new(name, LineShape::Step, (0u32..).map(f64::from).zip(values).collect())
    };
    Plot::by_second(title, unit, lines.map(line).collect())
}

const LINES: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::WorkerOutcome;

    fn agent(name: &str, late: &[u64], lost: Option<&str>) -> AgentOutcome {
        let seconds: Vec<Value> = late
            .iter()
            .map(|late| json!({"frames": 25, "late": late, "late_by_meter": 0, "bytes_read": 2_000_000}))
            .collect();
        let summary = json!({
            "streams": 1,
            "frames": 25 * late.len(),
            "late_by_storage": late.iter().sum::<u64>(),
            "late_by_meter": 0,
            "bits_per_s": 16_000_000,
            "seconds": seconds,
            "blame": {"broke_first": {"sentence": format!("the disk of {name} was busy")}},
        });
        let worker = WorkerOutcome { code: Some(0), summary: Some(summary), said: String::new() };
        let workers = vec![lost.is_none().then_some(worker)];
        let lost = lost.map(Into::into);
        AgentOutcome { name: name.to_owned(), workers, lost, ..AgentOutcome::default() }
    }

    fn html(agents: Vec<AgentOutcome>) -> String {
        let fleet = Fleet { agents };
        let why = why_invalid(&fleet, false);
        let mut summary = summary(&fleet, &why);
        summary["scenario"] = json!({"target": "/mnt/films", "streams": 3});
        super::page(&fleet, &summary).unwrap().html()
    }

    #[test]
    fn the_report_names_the_first_late_agent_the_lost_one_and_the_total() {
        let html = html(vec![
            agent("edit1", &[0, 0, 3], None),
            agent("edit2", &[0, 2, 0], None),
            agent("edit3", &[], Some("nothing heard for 10 s")),
        ]);
        let first = html.find("edit2, from second 1: the disk of edit2 was busy").unwrap();
        let second = html.find("edit1, from second 2: the disk of edit1 was busy").unwrap();
        assert!(first < second);
        for wanted in [
            "Not valid. 150 frames of 3 streams, 5 late; 32 Mb/s together.",
            "agent edit3 was lost: nothing heard for 10 s",
            "<td>edit3</td>",
            "3 agents on /mnt/films",
            "Moved in each second",
            "Late frames in each second",
        ] {
            assert!(html.contains(wanted), "{wanted}: {html}");
        }
        assert!(!html.contains("All were late"));
    }

    #[test]
    fn lateness_at_all_agents_is_put_down_to_what_they_share() {
        let both = html(vec![agent("a", &[1], None), agent("b", &[0, 1], None)]);
        assert!(both.contains("All were late: what they share"), "{both}");
        let none = html(vec![agent("a", &[0], None)]);
        assert!(none.contains("no frame was late for the storage") && !none.contains("Not valid"));
    }

    #[test]
    fn a_backlog_at_one_agent_is_one_of_all() {
        let grows = |second: bool| {
            let mut agents = vec![agent("a", &[0], None), agent("b", &[0], None)];
            let worker = agents[1].workers[0].as_mut().unwrap();
            worker.summary.as_mut().unwrap()["backlog_grows"] = json!(second);
            let fleet = Fleet { agents };
            let summary = summary(&fleet, &[]);
            (
                summary["backlog_grows"] == true,
                text(&fleet, &summary).contains("grows at one agent"),
            )
        };
        assert_eq!((grows(true), grows(false)), ((true, true), (false, false)));
    }
}
