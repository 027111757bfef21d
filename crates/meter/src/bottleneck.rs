//! The bottleneck on the path to a storage: the same streams over longer and longer parts of the
//! path, to find the part that limits them.
//!
//! ```text
//!   client    the meter alone, with nothing behind it            this program, this processor
//!   cached    the memory of this machine                         + kernel, file system, copying
//!   network   the memory of the server                           + the network, and the server
//!   cold      data that is in no memory                          + the storage
//! ```
//!
//! Each stage is a search for the largest number of streams ([`capacity`](crate::capacity)). The
//! bottleneck is the first stage that holds no more than the last; [`First`] names the resource
//! that was full there. This module runs nothing and does not know how a stage is set up.

use crate::blame::First;
use serde::Serialize;
use units::show::count;

/// A stage of the path to a storage; each includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PathStage {
    /// The meter alone.
    Client,
    /// Answers from this machine's memory.
    Cached,
    /// Answers from the server's memory.
    Network,
    /// The whole path, with data that is in no memory.
    Cold,
}

/// The number of streams that a stage of the path holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct StageCapacity {
    /// The stage.
    pub(crate) stage: PathStage,
    /// The largest number of streams.
    pub(crate) streams: u32,
    /// Whether that number held again for longer.
    pub(crate) confirmed: bool,
    /// The stage may hold more: the search was at its upper limit, or the meter at its own.
    pub(crate) at_least: bool,
    /// The resource that was full in the smallest run that failed.
    pub(crate) first: Option<First>,
}

/// The result of the search at each stage of the path, and which stage limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Bottleneck {
    /// The stage that limits; `None` where no stage reached its limit.
    pub(crate) stage: Option<PathStage>,
    /// The finding in words.
    pub(crate) sentence: String,
}

impl PathStage {
    /// The stage in one word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Cached => "cached",
            Self::Network => "network",
            Self::Cold => "cold",
        }
    }

    /// The part of the path that this stage adds to the one before.
    pub(crate) fn adds(self) -> &'static str {
        match self {
            Self::Client => "the meter alone, with nothing behind it",
            Self::Cached => "this machine's kernel and memory",
            Self::Network => "the way to the server, and its memory",
            Self::Cold => "the storage itself",
        }
    }
}

/// The stage that limits the path. `held` is in the order of the path; `is_whole`: to its end.
pub(crate) fn bottleneck(held: &[StageCapacity], is_whole: bool) -> Bottleneck {
    let Some(last) = held.last() else {
        return Bottleneck { stage: None, sentence: "nothing was measured".to_owned() };
    };
    if !is_whole {
        let held = count(last.streams, "stream");
        let sentence = format!(
            "not known: it was stopped before the whole path was measured; {} holds {held}",
            last.stage.adds()
        );
        return Bottleneck { stage: None, sentence };
    }
    let enough = f64::from(last.streams) * NO_MORE;
    let ends = |held: &&StageCapacity| !held.at_least && f64::from(held.streams) <= enough;
    let Some(end) = held.iter().find(ends) else {
        let sentence = match last.at_least {
            true => format!(
                "no stage was full with {}: the search could not request more",
                count(last.streams, "stream")
            ),
            false => format!("{} holds {}", last.stage.adds(), count(last.streams, "stream")),
        };
        return Bottleneck { stage: None, sentence };
    };
    // The stage before the limit shows what the path would hold without it.
    let more = held.iter().take_while(|held| held.stage != end.stage).last();
    let streams = count(end.streams, "stream");
    let mut sentence = format!("{} is full first, at {streams}", end.stage.adds());
    if let Some(before) = more {
        let least = if before.at_least { "at least " } else { "" };
        sentence += &format!("; without it there would be {least}{}", before.streams);
    }
    if let Some(first) = &end.first {
        sentence += &format!(". When it was too much, {}", first.sentence);
    }
    Bottleneck { stage: Some(end.stage), sentence }
}

/// Two stages count as equal when their numbers differ by less than this factor: on a busy machine
/// a search is not more precise.
const NO_MORE: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::*;

    /// Stages with their number of streams and whether they may hold more.
    type Counts<'a> = &'a [(PathStage, u32, bool)];

    fn ladder(counts: Counts<'_>, is_whole: bool) -> Bottleneck {
        let held = |(stage, streams, at_least): &(PathStage, u32, bool)| StageCapacity {
            stage: *stage,
            streams: *streams,
            confirmed: true,
            at_least: *at_least,
            first: None,
        };
        bottleneck(&counts.iter().map(held).collect::<Vec<_>>(), is_whole)
    }

    #[test]
    fn the_first_stage_that_holds_no_more_than_the_last_is_the_limit() {
        use PathStage::{Cached, Client, Cold, Network};
        let cases: [(Counts<'_>, Option<PathStage>); 7] = [
            (&[(Client, 4096, true), (Cached, 900, false), (Cold, 30, false)], Some(Cold)),
            (&[(Client, 4096, true), (Cached, 32, false), (Cold, 30, false)], Some(Cached)),
            (&[(Client, 31, false), (Cached, 31, false), (Cold, 30, false)], Some(Client)),
            (
                &[
                    (Client, 4096, true),
                    (Cached, 900, false),
                    (Network, 30, false),
                    (Cold, 29, false),
                ],
                Some(Network),
            ),
            // A stage that may hold more is no limit, however low its number.
            (&[(Client, 4096, true), (Cached, 7, true), (Cold, 7, false)], Some(Cold)),
            (&[(Client, 4096, true), (Cached, 7, true), (Cold, 7, true)], None),
            (&[], None),
        ];
        for (counts, limit) in cases {
            let found = ladder(counts, true);
            assert_eq!(found.stage, limit, "{counts:?}: {}", found.sentence);
            assert_eq!(ladder(counts, false).stage, None, "{counts:?}: stopped");
        }
        let found = ladder(&[(Client, 4096, true), (Cached, 900, false), (Cold, 30, false)], true);
        let wanted =
            "the storage itself is full first, at 30 streams; without it there would be 900";
        assert_eq!(found.sentence, wanted);
    }
}
