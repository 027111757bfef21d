//! The ladder: the same streams on more and more of the way, to see which part of it ends first.
//!
//! ```text
//!   client    the meter alone, with nothing behind it            this program, this processor
//!   cached    what this machine has in its memory                + kernel, file system, copying
//!   network   what the server has in its memory                  + the way there, and the server
//!   cold      what nobody has in memory                          + the storage
//! ```
//!
//! Each rung is a search for the largest number of streams ([`capacity`](crate::capacity)). The limit
//! is the first rung that holds no more than the last does. It says where, and [`First`] says what was
//! full there. It runs nothing, and knows nothing of how a rung is made.

use crate::blame::First;
use serde::Serialize;

/// A part of the way, with all those above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// The meter alone.
    Client,
    /// This machine's memory answers.
    Cached,
    /// The server's memory answers.
    Network,
    /// All of it.
    Cold,
}

/// What a rung holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    /// Which.
    pub rung: Rung,
    /// So many streams.
    pub streams: u32,
    /// Whether that was asked again and held.
    pub confirmed: bool,
    /// It may hold more: there was no room for more, or the meter itself could do no more.
    pub at_least: bool,
    /// What was full in the run that was too much.
    pub first: Option<First>,
}

/// See the head of this file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bottleneck {
    /// The part of the way that ends first; `None` where no rung was at its end.
    pub rung: Option<Rung>,
    /// In words.
    pub sentence: String,
}

impl Rung {
    /// For tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Cached => "cached",
            Self::Network => "network",
            Self::Cold => "cold",
        }
    }

    /// What it has that the rungs before have not.
    pub fn adds(self) -> &'static str {
        match self {
            Self::Client => "the meter alone, with nothing behind it",
            Self::Cached => "this machine's kernel and memory",
            Self::Network => "the way to the server, and its memory",
            Self::Cold => "the storage itself",
        }
    }
}

/// Which part of the way ends first. `held` is in the order of the ladder.
pub fn bottleneck(held: &[Held]) -> Bottleneck {
    let Some(last) = held.last() else {
        return Bottleneck { rung: None, sentence: "nothing was measured".to_owned() };
    };
    let enough = f64::from(last.streams) * NO_MORE;
    let ends = |held: &&Held| !held.at_least && f64::from(held.streams) <= enough;
    let Some(end) = held.iter().find(ends) else {
        let sentence = match last.at_least {
            true => format!(
                "nothing was at its end with {} streams: there was no room to ask for more, or the \
                 meter could not",
                last.streams
            ),
            false => format!("{} holds {} streams", last.rung.adds(), last.streams),
        };
        return Bottleneck { rung: None, sentence };
    };
    let more = held.iter().take_while(|held| held.rung != end.rung).last();
    let mut sentence = format!("{} ends first, at {} streams", end.rung.adds(), end.streams);
    if let Some(before) = more {
        let least = if before.at_least { "at least " } else { "" };
        sentence += &format!("; without it there would be {least}{}", before.streams);
    }
    if let Some(first) = &end.first {
        sentence += &format!(". When it was too much, {}", first.sentence);
    }
    Bottleneck { rung: Some(end.rung), sentence }
}

/// Two rungs that differ by less are alike: a search is no finer on a busy machine.
const NO_MORE: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::*;

    /// Which, how many, and whether it may hold more.
    type Counts<'a> = &'a [(Rung, u32, bool)];

    fn ladder(counts: Counts<'_>) -> Bottleneck {
        let held = |(rung, streams, at_least): &(Rung, u32, bool)| Held {
            rung: *rung,
            streams: *streams,
            confirmed: true,
            at_least: *at_least,
            first: None,
        };
        bottleneck(&counts.iter().map(held).collect::<Vec<_>>())
    }

    #[test]
    fn the_first_rung_that_holds_no_more_than_the_last_is_the_limit() {
        use Rung::{Cached, Client, Cold, Network};
        let cases: [(Counts<'_>, Option<Rung>); 7] = [
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
            // A rung that may hold more is no limit, however few it was asked for.
            (&[(Client, 4096, true), (Cached, 7, true), (Cold, 7, false)], Some(Cold)),
            (&[(Client, 4096, true), (Cached, 7, true), (Cold, 7, true)], None),
            (&[], None),
        ];
        for (counts, limit) in cases {
            let found = ladder(counts);
            assert_eq!(found.rung, limit, "{counts:?}: {}", found.sentence);
        }
        let found = ladder(&[(Client, 4096, true), (Cached, 900, false), (Cold, 30, false)]);
        let wanted = "the storage itself ends first, at 30 streams; without it there would be 900";
        assert_eq!(found.sentence, wanted);
    }
}
