//! Reproductions of EBU TECH 3362 ("Media storage performance", 2013): its tests of storage, on
//! three simulated nodes, with the transfers of `meter`.
//!
//! ```text
//!   approach 1 (section 4.1)    21 + 2 disks, RAID-DP; large cache; writes gathered
//!   approach 2 (section 4.2)    RAID 5 of 4 + 1, five groups; hardly any cache; writes in place
//!   generic (section 8)         RAID 6 of 8 SATA disks behind one link of 1 Gb/s
//! ```
//!
//! The paper prints plots; only the values that its text repeats are known. So its statements are
//! compared with our results, claim by claim ([`Claims`]). Where the paper does not state the
//! storage's components, [`approach_1`] and [`approach_2`] assume them, and every report lists the
//! assumptions. Files, caches and disks have a fiftieth of the paper's capacities, so that an hour
//! of warm-up takes a minute.
//!
//! Tests of the network itself (flow control, jumbo frames, TCP windows, figures 29 to 34, 53 to
//! 55, 60 to 63) are not reproduced here. `meter study network` runs them between real network
//! stacks.

mod array;
mod clients;
mod files;
mod fragments;
mod generic;
mod kinds;
mod link;
mod memory;
mod node;
mod nodes;
mod peaks;
mod profile;
mod writes;

pub(super) use clients::run as clients;
pub(super) use files::{multi, single};
pub(super) use fragments::run as fragments;
pub(super) use generic::run as generic;
pub(super) use kinds::run as kinds;
pub(super) use link::run as link;
pub(super) use nodes::run as nodes;
pub(super) use peaks::run as peaks;
pub(super) use profile::run as profile;
pub(super) use writes::run as writes;

use super::claims::Claims;
use super::texts::{self, figure};
use super::{Figure, Report};
use array::Raid;
use disk::{DiskModel, Parameters};
use meter::operations::{LogSink, OperationKind};
use meter::profiles;
use meter::report::{LineShape, Series};
use meter::transfers::{self, TransferMix, TransferRow, TransfersOutcome, TransfersPlan};
use node::{Build, Landing, Node};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// A fiftieth of the paper's 100 GB.
const FILE: ByteCount = ByteCount(2_000_000_000);

/// A fiftieth of 512 GB.
const CACHE: u64 = 10_240_000_000;

fn gigabit(count: u64) -> BitRate {
    BitRate(count * 1_000_000_000)
}

/// Large cache, writes gathered.
fn approach_1() -> Build {
    Build {
        disk: scaled(include_str!("sas-15k.toml"), 50),
        raid: Raid { groups: 1, data: 21, parity: 2, unit: 256 << 10 },
        landing: Landing::Gathered,
        read_ahead: 8 << 20,
        cache: CACHE,
        write_room: 64 << 20,
        link: gigabit(10),
        client_link: gigabit(1),
        round_trip: Duration::from_micros(300),
        largest: None,
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

/// Approach 2 without memory for writes: each waits until data and parity are on the disks.
fn written_through() -> Build {
    Build { write_room: 0, ..approach_2() }
}

/// Eight SATA disks, and a server with some memory.
fn generic_build() -> Build {
    Build {
        // At a twentieth, so that the same files fit as on more disks.
        disk: scaled(include_str!("nl-sas.toml"), 20),
        raid: Raid { groups: 1, data: 6, parity: 2, unit: 256 << 10 },
        landing: Landing::InPlace,
        // 16 GB: the memory of a server of those years.
        cache: CACHE / 32,
        link: gigabit(1),
        ..approach_1()
    }
}

/// A disk at a part of its capacity, spread over its whole stroke.
fn scaled(parameters: &str, part: u64) -> DiskModel {
    let parameters = Parameters::parse(parameters).expect("a test reads it");
    let whole = DiskModel::new(parameters).expect("a test makes it");
    whole.scaled_to(ByteCount(whole.capacity().0 / part))
}

/// A built-in profile, on `files` files.
fn mix(profile: &str, files: u32, own: bool) -> TransferMix {
    let profile = profiles::named(profile).expect("a built-in profile");
    TransferMix { own_file: own, ..TransferMix::of(&profile, files, FILE) }
}

/// Runs `clients` clients on a node for `length`.
fn step(node: &mut Node, mix: &TransferMix, clients: u32, length: Duration) -> TransfersOutcome {
    // The number of clients is also the seed: each step has other random places, and every run the
    // same.
    let plan = TransfersPlan {
        mix: mix.clone(),
        clients,
        duration: length,
        most: None,
        seed: clients.into(),
        rate: None,
    };
    mix.check(clients).expect("files are large enough");
    transfers::run(&plan, node, &mut LogSink::none(), &mut |_| true).expect("nothing fails")
}

/// What a node moved, for each of several numbers of clients.
#[derive(Clone)]
struct Ramp(Arc<[RampStep]>);

struct RampStep {
    clients: u32,
    outcome: TransfersOutcome,
}

/// What a ramp follows from.
#[derive(PartialEq)]
struct RampKey {
    build: Build,
    profile: String,
    /// One file, and whether it is in memory before; `None`: a file for each client.
    one_file: Option<bool>,
    length: Duration,
}

impl RampKey {
    fn new(build: &Build, profile: &str, one_file: Option<bool>, length: Duration) -> Self {
        Self { build: build.clone(), profile: profile.to_owned(), one_file, length }
    }
}

impl Ramp {
    /// Runs each of these numbers of clients for `length`, one after another on the same node.
    fn new(
        mut node: Node,
        mix: &TransferMix,
        clients: impl IntoIterator<Item = u32>,
        length: Duration,
    ) -> Self {
        // The node keeps its cache between the steps, as in the paper.
        let run = |clients| RampStep { clients, outcome: step(&mut node, mix, clients, length) };
        Self(clients.into_iter().map(run).collect())
    }

    /// One to ten clients on one file. `warm`: all of it is in memory before.
    fn one_file(build: &Build, profile: &str, warm: bool, length: Duration) -> Self {
        // Without a cache nothing is in memory, whatever was there before.
        let warm = warm && build.cache > 0;
        Self::shared(RampKey::new(build, profile, Some(warm), length), || {
            let mut node = Node::new(build, 1, FILE);
            if warm {
                node.warm(0);
            }
            Self::new(node, &mix(profile, 1, false), 1..=10, length)
        })
    }

    /// Four to forty clients, each with a file of its own.
    fn own_files(build: &Build, profile: &str, length: Duration) -> Self {
        Self::shared(RampKey::new(build, profile, None, length), || {
            let (node, mix) = (Node::new(build, FILES, FILE), mix(profile, FILES, true));
            Self::new(node, &mix, (4..=FILES).step_by(4), length)
        })
    }

    /// The ramp of this key, which is simulated once in a process: several figures are drawn from
    /// the same ramp, and it is the same each time.
    fn shared(key: RampKey, run: impl FnOnce() -> Self) -> Self {
        static RAMPS: Mutex<Vec<(RampKey, Arc<OnceLock<Ramp>>)>> = Mutex::new(Vec::new());
        let place = {
            let mut ramps = RAMPS.lock().unwrap_or_else(PoisonError::into_inner);
            match ramps.iter().find(|(known, _)| *known == key) {
                Some((_, place)) => Arc::clone(place),
                None => {
                    let place = Arc::default();
                    ramps.push((key, Arc::clone(&place)));
                    place
                }
            }
        };
        // Another thread that asks for it meanwhile waits.
        place.get_or_init(run).clone()
    }

    /// A value of each step.
    fn values(&self, of: impl Fn(&TransfersOutcome) -> f64) -> Vec<f64> {
        self.0.iter().map(|step| of(&step.outcome)).collect()
    }

    /// A value of the first step.
    fn first(&self, of: fn(&TransfersOutcome) -> f64) -> f64 {
        of(&self.0[0].outcome)
    }

    /// A value of the last step.
    fn last(&self, of: fn(&TransfersOutcome) -> f64) -> f64 {
        of(&self.0[self.0.len() - 1].outcome)
    }

    /// A plot's line of a value by the number of clients.
    fn line(&self, name: &str, of: impl Fn(&TransfersOutcome) -> f64) -> Series {
        let point = |step: &RampStep| (f64::from(step.clients), of(&step.outcome));
        line(name, self.0.iter().map(point).collect())
    }
}

/// Files of their own for the most clients.
const FILES: u32 = 40;

/// Sum of the transfers of 1 MiB, the size that the paper plots.
fn row(outcome: &TransfersOutcome, kind: OperationKind, random: bool) -> TransferRow {
    outcome.sum(|key| key.kind == kind && key.random == random && key.block == MIB)
}

const MIB: u32 = 1 << 20;

/// The rate of a client, in MB/s.
fn rate(row: &TransferRow) -> f64 {
    row.bytes.0 as f64 / row.data.as_secs_f64() / 1e6
}

/// The mean latency, in ms.
fn latency(row: &TransferRow) -> f64 {
    row.mean_latency().as_secs_f64() * 1e3
}

/// The mean latency of all transfers, in ms.
fn mean_latency(outcome: &TransfersOutcome) -> f64 {
    latency(&outcome.sum(|_| true))
}

/// Total rate of all clients, in MB/s.
fn total(outcome: &TransfersOutcome) -> f64 {
    outcome.sum(|_| true).bytes.0 as f64 / outcome.took.as_secs_f64() / 1e6
}

/// Mean of the finite values: a step may have no transfer of a kind.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let there: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    there.iter().sum::<f64>() / there.len() as f64
}

/// A plot's line.
fn line(name: &str, points: Vec<(f64, f64)>) -> Series {
    Series::new(name, LineShape::Line, points)
}

/// The report of a reproduction, with the assumptions.
fn report(name: &str, claims: Claims, figures: Vec<Figure>) -> Report {
    let report = texts::report(name, vec![claims.into_table()], figures);
    Report { method: format!("{} {}", report.method, texts::of("ebu").method), ..report }
}

/// The labels of a plot's axes.
const RATES: [&str; 2] = ["clients", "MB/s"];
const TIMES: [&str; 2] = ["clients", "ms"];

#[cfg(test)]
mod tests {
    use super::super::Report;

    // One test per reproduction, so that they run in parallel.
    macro_rules! verdicts {
        ($($name:ident: $run:path, $verdicts:literal;)*) => {$(
            #[test]
            fn $name() {
                check($run, $verdicts);
            }
        )*};
    }

    verdicts! {
        profile: super::profile,
            "19 yes/-; 19 yes/-; 20 yes/-; 20 yes/-; 20 no/-; 21 yes/-; 22 yes/-; 22 built in/-";
        cache: super::single, "23, 25 yes/-; 26 no/-; 27 yes/-; 27 yes/-; 27 -/yes; 23, 27 -/yes";
        fragments: super::fragments, "35, 36 built in/no; 36 built in/-";
        link: super::link,
            "43, 44 yes/-; 43, 44 yes/-; 45, 46 no/-; 47 yes/no; 47 -/no; 48 yes/-; \
             48 yes/no; 49 yes/no; 49 no/-; 48, 50 yes/yes";
        disks: super::multi,
            "56 no/-; 56 yes/-; 56 yes/-; 58 no/-; 58 yes/-; 58 yes/-; 56, 58 yes/-; 57, 59 yes/-; \
             57, 59 -/no";
        writes: super::writes, "67 no/-; 67 yes/-; 68 no/-; 69, 70 yes/-";
        kinds: super::kinds, "39, 41 yes/-; 40, 42 yes/-; 39, 41 yes/-";
        peaks: super::peaks,
            "51 yes/-; 52 yes/-; 75 yes/-; 76 yes/-; 75 -/no; 76 -/no; 75, 76 yes/-";
        clients: super::clients, "64 -/no; 64, 65 yes/-; 64, 65 no/-; 66 yes/-";
        generic: super::generic, "77 yes/no; 77 yes/yes; 79 yes/-; 79 yes/-; 80 no/-; 79 yes/-";
        nodes: super::nodes, "71 yes/no; 71 yes/-; 72 yes/no; 73 yes/no; 73 yes/-; 74 no/no";
    }

    /// The figures that the claims are about, and their verdicts: direction and size, in order.
    fn check(run: fn(&mut dyn FnMut(f64)) -> Report, verdicts: &str) {
        let report = run(&mut |_| {});
        let rows = report.tables[0].rows.iter();
        let found: Vec<String> =
            rows.map(|row| format!("{} {}/{}", row[0], row[3], row[7])).collect();
        assert_eq!(found.join("; "), verdicts, "{:#?}", report.tables);
    }
}
