//! What each agent measured in a step: in the summary, as text, and on the page.
//!
//! Each agent has its own clock. The seconds of an agent count from the moment at which it started
//! its workers. These moments differ by the delay of each agent (in the table) and by the
//! uncertainty of its clock.

use crate::error::MeterError;
use crate::fleet::AgentState;
use crate::report::{Block, LineShape, Plot, Series, TextTable};
use serde_json::{Value, json};
use units::grown;
use units::{BitRate, Hinted, float};

/// The figures of an agent in one step.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentFigures {
    state: AgentState,
    /// Streams or clients.
    pub(super) streams: u64,
    /// Judged frames, or transfers.
    pub(super) frames: u64,
    /// Frames that were late because of the storage, and because of the agent.
    pub(super) late: u64,
    pub(super) late_by_agent: u64,
    pub(super) rate: BitRate,
    /// The results of its workers.
    pub(super) workers: Vec<Value>,
    /// The resource that was full first, in a sentence.
    pub(super) broke_first: Option<String>,
    seconds: Vec<SecondFigures>,
}

/// Bytes that were moved, and frames that were late, in a second.
#[derive(Clone, Copy, Debug, Default)]
struct SecondFigures {
    bytes: u64,
    late: u64,
}

impl AgentFigures {
    pub(super) fn of(state: &AgentState) -> Self {
        Self { state: AgentState { workers: Vec::new(), ..state.clone() }, ..Self::default() }
    }

    /// Adds a second of a worker.
    pub(super) fn second(&mut self, number: usize, bytes: u64, late: u64) {
        let second = grown(&mut self.seconds, number);
        second.bytes += bytes;
        second.late += late;
    }

    pub(super) fn json(&self) -> Value {
        let AgentState { name, about, clock, begun_late_ns, lost, .. } = &self.state;
        json!({
            "name": name,
            "host": about.host,
            "processors": about.processors,
            "kernel": about.kernel,
            "clock": clock,
            "begun_late_ns": begun_late_ns,
            "lost": lost.as_ref().map(Hinted::one_line),
            "workers": self.workers,
        })
    }

    fn began_late(&self) -> String {
        self.state.begun_late_ns.map_or("-".to_owned(), |late| (late / 1000).to_string())
    }

    fn known_to(&self) -> String {
        self.state.clock.wrong_by_at_most_ns.div_ceil(1000).to_string()
    }

    fn row(&self) -> Vec<String> {
        let AgentState { name, about, clock, lost, .. } = &self.state;
        vec![
            name.clone(),
            about.host.clone(),
            about.processors.to_string(),
            about.kernel.clone(),
            self.streams.to_string(),
            self.frames.to_string(),
            self.late.to_string(),
            self.late_by_agent.to_string(),
            self.rate.to_string(),
            (clock.offset_ns / 1000).to_string(),
            self.known_to(),
            self.began_late(),
            lost.as_ref().map_or("no".to_owned(), Hinted::one_line),
        ]
    }

    fn name(&self) -> &str {
        &self.state.name
    }
}

/// The table for a terminal.
pub(super) fn text(agents: &[AgentFigures]) -> String {
    let row = |agent: &AgentFigures| {
        // The figures of an agent that is lost are not known.
        let [done, late, rate] = match &agent.state.lost {
            Some(_) => ["lost", "-", "-"].map(str::to_owned),
            None => [agent.frames.to_string(), agent.late.to_string(), agent.rate.to_string()],
        };
        vec![
            agent.name().to_owned(),
            agent.state.about.host.clone(),
            done,
            late,
            rate,
            format!("{} us", agent.known_to()),
            format!("{} us", agent.began_late()),
        ]
    };
    let head = ["agent", "host", ">done", ">late", ">rate", ">clock known to", ">began late"];
    TextTable::with_rows(&head, agents.iter().map(row).collect()).show()
}

/// The section of the report on the agents in the last step.
pub(super) fn blocks(agents: &[AgentFigures]) -> Result<Vec<Block>, MeterError> {
    let mut blocks = vec![Block::Heading("Agents".into())];
    blocks.extend(broke_first(agents).into_iter().map(Block::Text));
    blocks.push(together(agents).block("What all agents moved together, and each by itself.")?);
    blocks.push(late_ones(agents).block(
        "Frames that were late for the storage, by agent. Peaks of all at the same second are \
         something that they share.",
    )?);
    let head = [
        "agent",
        "host",
        "processors",
        "kernel",
        "streams",
        "done",
        "late",
        "late by the agent",
        "rate",
        "clock ahead, us",
        "known to, us",
        "began late, us",
        "lost",
    ];
    blocks.push(Block::table(&head, agents.iter().map(AgentFigures::row).collect()));
    // The columns on clocks need an explanation: they bound how exactly agents begin together.
    blocks.push(Block::Text(CLOCKS.to_owned()));
    Ok(blocks)
}

/// The agents in the order in which they were first late, with the cause of each; one sentence for
/// each.
fn broke_first(agents: &[AgentFigures]) -> Vec<String> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for agent in agents {
        let Some(second) = agent.seconds.iter().position(|second| second.late > 0) else {
            continue;
        };
        let cause = agent.broke_first.as_ref();
        let why = cause.map_or(String::new(), |cause| format!(": {cause}"));
        found.push((second, format!("{}, from second {second}{why}", agent.name())));
    }
    // By second, and by name where several were late in the same one.
    found.sort();
    if found.is_empty() {
        return vec!["No frame was late for the storage, at no agent.".to_owned()];
    }
    // With one agent "all" says nothing of what is shared.
    let shared = (found.len() == agents.len() && found.len() > 1).then(|| {
        "All were late: what they share (the storage, its network) is likelier than one of them."
            .to_owned()
    });
    found.into_iter().map(|(_, sentence)| sentence).chain(shared).collect()
}

const CLOCKS: &str = "How far a clock is ahead of the controller's counts from when each program began, \
    so that it is no error; how closely it is known is half of the shortest exchange. An agent's frames \
    are counted by its own clock only.";

fn together(agents: &[AgentFigures]) -> Plot {
    let mut all: Vec<u64> = Vec::new();
    for agent in agents {
        for (number, second) in agent.seconds.iter().enumerate() {
            *grown(&mut all, number) += second.bytes;
        }
    }
    let megabytes = |bytes: u64| float(bytes) / 1e6;
    let line = |agent: &AgentFigures| {
        let values = agent.seconds.iter().map(|second| megabytes(second.bytes));
        drawn(agent.name(), values)
    };
    let all = drawn("all", all.iter().map(|bytes| megabytes(*bytes)));
    // With more lines than these no reader can distinguish them.
    let lines = std::iter::once(all).chain(agents.iter().take(LINES).map(line));
    Plot::by_second("Moved in each second", "MB", lines.collect())
}

fn late_ones(agents: &[AgentFigures]) -> Plot {
    let mut each: Vec<&AgentFigures> = agents.iter().collect();
    // The agents with the most late frames.
    each.sort_by_key(|agent| std::cmp::Reverse(agent.late));
    let line = |agent: &AgentFigures| {
        drawn(agent.name(), agent.seconds.iter().map(|second| float(second.late)))
    };
    let lines = each.into_iter().take(LINES).map(line).collect();
    Plot::by_second("Late frames in each second", "frames", lines)
}

fn drawn(name: &str, values: impl Iterator<Item = f64>) -> Series {
    Series::new(name, LineShape::Step, (0u32..).map(f64::from).zip(values).collect())
}

const LINES: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str, late: &[u64]) -> AgentFigures {
        let mut figures = AgentFigures::of(&AgentState { name: name.into(), ..Default::default() });
        figures.broke_first = Some(format!("the disk of {name} was busy"));
        for (number, late) in late.iter().enumerate() {
            figures.second(number, 2_000_000, *late);
        }
        figures
    }

    #[test]
    fn agents_are_named_in_the_order_in_which_they_were_late() {
        let said =
            broke_first(&[agent("edit1", &[0, 0, 3]), agent("edit2", &[0, 2]), agent("c", &[])]);
        let wanted = [
            "edit2, from second 1: the disk of edit2 was busy",
            "edit1, from second 2: the disk of edit1 was busy",
        ];
        assert_eq!(said, wanted);
    }

    #[test]
    fn lateness_at_all_agents_is_put_down_to_what_they_share() {
        let both = broke_first(&[agent("a", &[1]), agent("b", &[0, 1])]);
        assert!(both[2].contains("All were late: what they share"), "{both:?}");
        assert!(broke_first(&[agent("a", &[0])])[0].contains("No frame was late"));
    }

    #[test]
    fn a_lost_agent_has_no_figures() {
        let mut gone = agent("gone", &[]);
        gone.state.lost = Some(units::Reason::new("agent gone was lost", "look at its output"));
        let text = text(&[agent("there", &[0, 1]), gone]);
        let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let lines: Vec<Vec<String>> = text.lines().map(cells).collect();
        let [_, there, gone] = lines.as_slice() else { panic!("{text}") };
        assert!(there.iter().all(|cell| cell != "lost"), "{text}");
        assert!(gone.windows(3).any(|cells| cells == ["lost", "-", "-"]), "{text}");
    }

    #[test]
    fn bytes_of_all_agents_are_added_second_by_second() {
        let plot = together(&[agent("a", &[0]), agent("b", &[0, 0])]);
        assert_eq!(plot.series[0].points, [(0.0, 4.0), (1.0, 2.0)]);
    }
}
