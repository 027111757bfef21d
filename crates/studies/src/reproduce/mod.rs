//! Reproductions of published results about media storage, on simulated disks in virtual time: our
//! results beside those of the paper.
//!
//! To add one: a file with its `run`, a line in [`ALL`]. A reproduction reads no clock and draws
//! random numbers from fixed seeds, so that its result is the same on every machine. It takes less
//! than a minute. How a [`Report`] is shown or written is up to the caller.

mod alderman;
mod alderman_bounds;
mod alderman_rounds;
mod alderman_table1;
mod claims;
mod ebu;
mod lee;
mod lee_rate_vs_unit;
mod lee_streams;
mod makaroff;
mod meter_capacity;
mod meter_compare;
mod meter_msmeter;
mod scheduled;

pub use meter::report::{Cell, Figure, Report, Table};

/// A published result that can be reproduced.
#[derive(Clone, Copy, Debug)]
pub struct Reproduction {
    /// Name on the command line, such as `alderman-bounds`.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Runs the reproduction; calls `progress` with the part that is done, from 0 to 1.
    pub run: fn(progress: &mut dyn FnMut(f64)) -> Report,
}

/// All reproductions, ordered by paper.
pub const ALL: &[Reproduction] = &[
    Reproduction {
        name: "alderman-bounds",
        about: "Streams a disk holds by arithmetic: 70, 68 and 44",
        run: alderman_bounds::run,
    },
    Reproduction {
        name: "alderman-table1",
        about: "Streams a disk holds by each way of reading it",
        run: alderman_table1::run,
    },
    Reproduction {
        name: "alderman-rounds",
        about: "How long each of a hundred rounds takes, in charts",
        run: alderman_rounds::run,
    },
    Reproduction {
        name: "lee-rate-vs-unit",
        about: "The rate of reading by the size of the unit",
        run: lee_rate_vs_unit::run,
    },
    Reproduction {
        name: "lee-streams",
        about: "23 streams raw against 16 through a file system",
        run: lee_streams::run,
    },
    Reproduction {
        name: "makaroff-table2",
        about: "Blocks that two disks read in a slot, in the worst case and in use",
        run: makaroff::table2,
    },
    Reproduction {
        name: "makaroff-figure1",
        about: "Scenarios admitted on the smaller disk, by load",
        run: makaroff::figure1,
    },
    Reproduction {
        name: "makaroff-figure2",
        about: "Scenarios admitted on the larger disk, by load",
        run: makaroff::figure2,
    },
    Reproduction {
        name: "ebu-profile",
        about: "Data length, random access, block size: figures 19 to 22",
        run: ebu::profile,
    },
    Reproduction {
        name: "ebu-cache",
        about: "One file that is cached, or cold, and many: figures 23 to 28",
        run: ebu::single,
    },
    Reproduction {
        name: "ebu-fragments",
        about: "Files after days of use: figures 35 and 36",
        run: ebu::fragments,
    },
    Reproduction {
        name: "ebu-link",
        about: "1 and 10 GbE between node and switch: figures 47 to 50",
        run: ebu::link,
    },
    Reproduction {
        name: "ebu-disks",
        about: "One file and many without a cache: figures 56 to 59",
        run: ebu::multi,
    },
    Reproduction {
        name: "ebu-writes",
        about: "Reads, edit writes, complete files: figures 67 to 70",
        run: ebu::writes,
    },
    Reproduction {
        name: "ebu-nodes",
        about: "One storage node and two: figures 71 to 74",
        run: ebu::nodes,
    },
    Reproduction {
        name: "meter-capacity",
        about: "How often the meter's search finds a known capacity",
        run: meter_capacity::run,
    },
    Reproduction {
        name: "meter-compare",
        about: "False positives and negatives of the comparison of two runs",
        run: meter_compare::run,
    },
    Reproduction {
        name: "meter-msmeter",
        about: "Transfers that the paper's tool draws: 58.6 and 11.7 % instead of 50 and 10",
        run: meter_msmeter::run,
    },
];

/// Name and description of each reproduction, for a command line's list of words.
pub const WORDS: [(&str, &str); ALL.len()] = {
    let mut words = [("", ""); ALL.len()];
    let mut i = 0;
    while i < ALL.len() {
        words[i] = (ALL[i].name, ALL[i].about);
        i += 1;
    }
    words
};

/// The reproduction of this name.
pub fn named(name: &str) -> Option<&'static Reproduction> {
    ALL.iter().find(|reproduction| reproduction.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_told_apart() {
        for (i, one) in ALL.iter().enumerate() {
            assert!(one.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{one:?}");
            assert!(ALL[..i].iter().all(|other| other.name != one.name), "{one:?} comes twice");
            assert_eq!(named(one.name).map(|found| found.about), Some(one.about));
        }
        assert!(named("alderman").is_none());
    }
}
