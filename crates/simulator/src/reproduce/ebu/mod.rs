//! EBU TECH 3362 ("Media storage performance", 2013) again: the tests that need no network of its
//! own to be understood, on two simulated nodes, with the meter's own transfers.
//!
//! ```text
//!   approach 1 (section 4.1)    21 + 2 disks, RAID-DP; large cache; writes gathered
//!   approach 2 (section 4.2)    RAID 5 of 4 + 1, five groups; no cache to speak of; writes in place
//! ```
//!
//! The paper's plots are pictures: of their values only those that its text repeats are known. What is
//! compared is what it says of them: claim by claim, computed from ours ([`Claims`]). Where the paper
//! does not say what its storage is made of, [`approach_1`] and [`approach_2`] assume it, and [`ASSUMED`]
//! says so in every report. Capacities are a fiftieth, of files, caches and disks alike, so that an hour
//! of warming takes a minute.
//!
//! Not here: what is about the network itself (flow control, jumbo frames, TCP windows, figures 29
//! to 34, 53 to 55, 60 to 63). `meter study network` makes those between real network stacks.

mod array;
mod files;
mod fragments;
mod link;
mod memory;
mod node;
mod nodes;
mod profile;
mod writes;

pub(super) use files::{multi, single};
pub(super) use fragments::run as fragments;
pub(super) use link::run as link;
pub(super) use nodes::run as nodes;
pub(super) use profile::run as profile;
pub(super) use writes::run as writes;

use super::{Cell, Figure, Table};
use array::Raid;
use disk::{DiskModel, Parameters};
use meter::log::{Kind, Sink};
use meter::profiles;
use meter::report::{Plot, Series, Shape};
use meter::transfers::{self, Mix, Outcome, Plan, Row};
use node::{Build, Landing, Node};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// A fiftieth of the paper's 100 GB.
const FILE: ByteCount = ByteCount(2_000_000_000);

/// A fiftieth of 512 GB.
const CACHE: u64 = 10_240_000_000;

/// What every report says of the nodes.
const ASSUMED: &str = "From the paper: kinds and numbers of disks of approach 1 (23 SAS disks of 15,000 \
    rpm, RAID with two parities), RAID 5 of 4 + 1 in approach 2, a cache of 512 GB in the one, links of 1 \
    and 10 Gb/s, ten clients' machines, files of 100 GB; all capacities here are a fiftieth. Assumed: what \
    is not said of a disk (sas-15k.toml), five groups in approach 2, units of 256 KiB, read-ahead of up to \
    8 MiB a stream, 64 MiB of room for writes on their way, 0.3 ms for a round trip, disks that serve in \
    the order of asking. Of latency as the paper defines it a simulated client has the opening of files \
    only, and none of the time that msMeter took itself.";

fn gigabit(count: u64) -> BitRate {
    BitRate(count * 1_000_000_000)
}

/// Large cache, writes gathered.
fn approach_1() -> Build {
    Build {
        disk: disk(),
        raid: Raid { groups: 1, data: 21, parity: 2, unit: 256 << 10 },
        landing: Landing::Gathered,
        read_ahead: 8 << 20,
        cache: CACHE,
        write_room: 64 << 20,
        link: gigabit(10),
        client_link: gigabit(1),
        round_trip: Duration::from_micros(300),
    }
}

/// Fast disks, writes in place.
fn approach_2() -> Build {
    Build {
        raid: Raid { groups: 5, data: 4, parity: 1, unit: 256 << 10 },
        landing: Landing::InPlace,
        cache: 0,
        ..approach_1()
    }
}

/// A fiftieth of it, all over its stroke.
fn disk() -> DiskModel {
    let parameters = Parameters::parse(include_str!("sas-15k.toml")).expect("a test reads it");
    let whole = DiskModel::new(parameters).expect("a test makes it");
    whole.scaled_to(ByteCount(whole.capacity().0 / 50))
}

/// A profile that comes along, on so many files.
fn mix(profile: &str, files: u32, own: bool) -> Mix {
    let profile = profiles::named(profile).expect("it comes along");
    Mix { own_file: own, ..Mix::of(&profile, files, FILE) }
}

/// So many clients on a node, for so long.
fn step(node: &mut Node, mix: &Mix, clients: u32, length: Duration) -> Outcome {
    let plan =
        Plan { mix: mix.clone(), clients, duration: length, most: None, seed: clients.into() };
    mix.check(clients).expect("files are large enough");
    transfers::run(&plan, node, &mut Sink::none(), &mut |_| true).expect("nothing fails")
}

/// Of 1 MiB, as the paper plots it.
fn row(outcome: &Outcome, kind: Kind, random: bool) -> Row {
    outcome.sum(|key| key.kind == kind && key.random == random && key.block == MIB)
}

const MIB: u32 = 1 << 20;

/// The rate of a client, in MB/s.
fn rate(row: &Row) -> f64 {
    row.bytes.0 as f64 / row.data.as_secs_f64() / 1e6
}

/// The mean latency, in ms.
fn latency(row: &Row) -> f64 {
    row.mean_latency().as_secs_f64() * 1e3
}

/// What all clients moved, in MB/s.
fn total(outcome: &Outcome) -> f64 {
    outcome.sum(|_| true).bytes.0 as f64 / outcome.took.as_secs_f64() / 1e6
}

/// Of those that are numbers: a step may have none of a kind.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let there: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    there.iter().sum::<f64>() / there.len() as f64
}

/// A plot's line.
fn line(name: &str, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.to_owned(), shape: Shape::Line, points }
}

/// A figure of the report.
fn figure(
    name: &'static str,
    title: &str,
    (x, y): (&str, &str),
    series: Vec<Series>,
    explanation: &str,
) -> Figure {
    let plot =
        Plot { title: title.to_owned(), x_label: x.to_owned(), y_label: y.to_owned(), series };
    Figure { name, plot, explanation: explanation.to_owned() }
}

/// What the paper says, and whether it is so here.
struct Claims(Table);

impl Claims {
    fn new() -> Self {
        Self(Table::new(
            "claims",
            "What the paper says, and whether it is so here",
            &[("figure", "figure"), ("says", "there"), ("ours", "here"), ("so", "so here?")],
        ))
    }

    fn add(&mut self, figure: &str, says: &str, ours: String, so: bool) {
        let so: Cell = if so { "yes" } else { "no" }.into();
        self.0.row([figure.into(), says.into(), ours.into(), so]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Report;

    // Each a test of its own, so that they run side by side.
    macro_rules! verdicts {
        ($($name:ident: $run:path, $verdicts:literal;)*) => {$(
            #[test]
            fn $name() {
                check($run, $verdicts);
            }
        )*};
    }

    verdicts! {
        profile: super::profile, "19 yes; 19 yes; 20 yes; 20 yes; 20 no; 21 yes; 22 yes; 22 yes";
        cache: super::single, "23, 25 yes; 26 no; 27 yes; 27 yes; 27 yes; 23, 27 yes";
        fragments: super::fragments, "35, 36 yes; 36 yes";
        link: super::link, "47 yes; 47 no; 48 yes; 49 yes; 49 no; 48, 50 yes";
        disks: super::multi, "56 no; 56 yes; 58 no; 58 yes; 56, 58 yes; 57, 59 yes";
        writes: super::writes, "67 no; 68 no; 69, 70 yes";
        nodes: super::nodes, "71 yes; 71 yes; 72 yes; 73 yes; 73 yes; 74 no";
    }

    /// The figures that the claims are about, and what became of them, in order.
    fn check(run: fn(&mut dyn FnMut(f64)) -> Report, verdicts: &str) {
        let report = run(&mut |_| {});
        let rows = report.tables[0].rows.iter();
        let found: Vec<String> = rows.map(|row| format!("{} {}", row[0], row[3])).collect();
        assert_eq!(found.join("; "), verdicts, "{:#?}", report.tables);
    }
}
