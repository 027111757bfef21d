//! Reproductions of published results about media storage, on simulated disks in virtual time: our
//! results beside those of the paper.
//!
//! To add one: a file with its `run`, its texts in `reports.toml`, a line in [`ALL`]. It reads no
//! clock and draws random numbers from fixed seeds, so that its result is the same on every
//! machine, and takes less than a minute. How a [`Report`] is shown or written is up to the caller.

mod alderman;
mod alderman_bounds;
mod alderman_rounds;
mod alderman_table1;
mod claims;
mod ebu;
mod lee;
mod lee_drift;
mod lee_rate_vs_unit;
mod lee_streams;
mod makaroff;
mod meter_capacity;
mod meter_compare;
mod meter_msmeter;
mod park;
mod scheduled;
mod texts;

pub use meter::report::{Cell, Figure, Report, Table};
pub use park::make_titles;

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
    entry(
        "alderman-bounds",
        "Streams a disk holds by arithmetic: 70, 68 and 44",
        alderman_bounds::run,
    ),
    entry(
        "alderman-table1",
        "Streams a disk holds by each way of reading it",
        alderman_table1::run,
    ),
    entry(
        "alderman-rounds",
        "How long each of a hundred rounds takes, in charts",
        alderman_rounds::run,
    ),
    entry("lee-rate-vs-unit", "The rate of reading by the size of the unit", lee_rate_vs_unit::run),
    entry("lee-streams", "Streams of a raw disk by service cycle and buffer: 23", lee_streams::run),
    entry("lee-drift", "How late frames are shown, with 1 to 20 streams", lee_drift::run),
    entry(
        "park-figures",
        "Files read side by side as fast as possible, by the number of streams",
        park::run,
    ),
    entry(
        "makaroff-table2",
        "Blocks that two disks read in a slot, in the worst case and in use",
        makaroff::table2,
    ),
    entry("makaroff-figure1", "Scenarios admitted on the smaller disk, by load", makaroff::figure1),
    entry("makaroff-figure2", "Scenarios admitted on the larger disk, by load", makaroff::figure2),
    entry("ebu-profile", "Data length, random access, block size: figures 19 to 22", ebu::profile),
    entry("ebu-cache", "One file that is cached, or cold, and many: figures 23 to 28", ebu::single),
    entry("ebu-fragments", "Files after days of use: figures 35 and 36", ebu::fragments),
    entry("ebu-sas", "23 SAS disks and 68 Near Line SAS: figures 39 to 42", ebu::kinds),
    entry("ebu-link", "1 and 10 GbE between node and switch: figures 43 to 50", ebu::link),
    entry("ebu-peaks", "The longest latency by clients: figures 51, 52, 75, 76", ebu::peaks),
    entry("ebu-disks", "One file and many without a cache: figures 56 to 59", ebu::multi),
    entry("ebu-clients", "28 and 36 clients by the second: figures 64 to 66", ebu::clients),
    entry("ebu-writes", "Reads, edit writes, complete files: figures 67 to 70", ebu::writes),
    entry("ebu-nodes", "One storage node and two: figures 71 to 74", ebu::nodes),
    entry("ebu-generic", "Generic storage of eight disks: figures 77 to 80", ebu::generic),
    entry(
        "meter-capacity",
        "How often the meter's search finds a known capacity",
        meter_capacity::run,
    ),
    entry(
        "meter-compare",
        "False positives and negatives of the comparison of two runs",
        meter_compare::run,
    ),
    entry(
        "meter-msmeter",
        "Transfers that the paper's tool draws: 58.6 and 11.7 % instead of 50 and 10",
        meter_msmeter::run,
    ),
];

const fn entry(
    name: &'static str,
    about: &'static str,
    run: fn(&mut dyn FnMut(f64)) -> Report,
) -> Reproduction {
    Reproduction { name, about, run }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_told_apart() {
        for (i, one) in ALL.iter().enumerate() {
            assert!(one.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{one:?}");
            assert!(ALL[..i].iter().all(|other| other.name != one.name), "{one:?} comes twice");
        }
    }
}
