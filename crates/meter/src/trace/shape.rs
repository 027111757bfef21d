//! The statistics of a trace (mix, sequential share, sizes, rate) and the profile made of them.

use super::{DeviceRates, Operation, Trace};
use crate::profiles::{Definition, Drawn, Fps, MILLION, OperationMix, Pattern, Profile, Status};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;
use units::rounded;
use units::show::count;

/// The statistics of a trace that its profile reproduces.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TraceShape {
    /// The number of operations.
    pub operations: u64,
    /// Time from the first operation to the last; `None` if the trace has no times.
    pub took: Option<Duration>,
    /// The mix of the profile.
    pub drawn: Drawn,
    /// Whether the trace has positions; without them all operations count as sequential.
    pub places_known: bool,
}

/// Calculates the statistics of a trace.
pub(crate) fn shape(trace: &Trace) -> TraceShape {
    match trace.rates {
        Some(rates) if trace.operations.is_empty() => of_rates(rates),
        _ => of_operations(&trace.operations),
    }
}

/// The profile with these statistics. `source` names the origin.
pub(crate) fn profile(name: &str, source: &str, shape: &TraceShape) -> Profile {
    let drawn = &shape.drawn;
    let percent = |of: u64| u8::try_from((of * 100 + 500_000) / 1_000_000).unwrap_or(100);
    let sequential = |mix: &Option<OperationMix>, of: u32| {
        u64::from(of) * mix.as_ref().map_or(0, |mix| u64::from(mix.sequential_per_million))
    };
    let reads = drawn.reads_per_million;
    let all = (sequential(&drawn.reads, reads) + sequential(&drawn.writes, MILLION - reads))
        / u64::from(MILLION);
    let random = percent(u64::from(MILLION).saturating_sub(all));
    Profile {
        transfers: None,
        name: name.to_owned(),
        title: format!("As in a trace of {}", count(shape.operations, "operation")),
        bytes: drawn.mean_bytes().max(1),
        fps: drawn.operations_per_1000_s.and_then(|rate| Fps::reduced(rate.into(), 1000)),
        read_frames: 1,
        read_percent: percent(reads.into()),
        random_percent: random,
        pattern: if random == 0 { Pattern::Sequential } else { Pattern::Mixed },
        bits_per_s: None,
        definition: Definition::Table,
        source: source.to_owned(),
        status: Status::House,
        drawn: Some(drawn.clone()),
    }
}

fn of_rates(rates: DeviceRates) -> TraceShape {
    let bytes = rates.bytes_read + rates.bytes_written;
    let size = rounded(bytes / rates.operations).max(1);
    // Totals tell nothing of order: sequential reads are assumed.
    let mix =
        || Some(OperationMix { sequential_per_million: MILLION, sizes: vec![(size, MILLION)] });
    let reads = per_million(rates.bytes_read, bytes);
    TraceShape {
        operations: rounded(rates.operations),
        took: Some(Duration::from_secs(1)),
        drawn: Drawn {
            operations_per_1000_s: Some(rounded(rates.operations * 1000.0).max(1)),
            reads_per_million: reads,
            reads: if reads > 0 { mix() } else { None },
            writes: if reads < MILLION { mix() } else { None },
        },
        places_known: false,
    }
}

fn of_operations(operations: &[Operation]) -> TraceShape {
    let sequential = sequential(operations);
    let mix = |write: bool| {
        let of = || operations.iter().zip(&sequential).filter(move |(op, _)| op.write == write);
        let count = of().count();
        (count > 0).then(|| OperationMix {
            sequential_per_million: share(of().filter(|(_, is)| **is).count(), count),
            sizes: sizes(of().map(|(op, _)| op.bytes)),
        })
    };
    let reads = operations.iter().filter(|op| !op.write).count();
    let first = operations.iter().filter_map(|op| op.at).min();
    let last = operations.iter().filter_map(|op| op.at).max();
    let took = first.zip(last).map(|(first, last)| last - first);
    // There is one gap less than there are operations.
    let rate = took.filter(|took| !took.is_zero() && operations.len() > 1).map(|took| {
        let gaps = u128::try_from(operations.len() - 1).unwrap_or(u128::MAX);
        let rate = gaps * 1_000_000_000_000 / took.as_nanos();
        u64::try_from(rate).unwrap_or(u64::MAX).max(1)
    });
    TraceShape {
        operations: operations.len() as u64,
        took,
        drawn: Drawn {
            operations_per_1000_s: rate,
            reads_per_million: share(reads, operations.len()),
            reads: mix(false),
            writes: mix(true),
        },
        places_known: true,
    }
}

/// The largest number of players in one file that are recognised as sequential.
const RECENT: usize = 16;

/// For each operation: whether it begins where a recent one of its kind in its file ended.
fn sequential(operations: &[Operation]) -> Vec<bool> {
    let mut ends: HashMap<(u32, bool), VecDeque<u64>> = HashMap::new();
    let one = |operation: &Operation| {
        let first = operation.offset == 0;
        let ends = ends.entry((operation.file, operation.write)).or_insert_with(|| {
            // A read at the beginning of a file counts as sequential.
            VecDeque::from(if first { vec![0] } else { Vec::new() })
        });
        let goes_on = ends.iter().position(|end| *end == operation.offset);
        if let Some(position) = goes_on {
            ends.remove(position);
        } else if ends.len() == RECENT {
            // The oldest end is forgotten, so that memory stays bounded.
            ends.pop_front();
        }
        ends.push_back(operation.offset.saturating_add(operation.bytes));
        goes_on.is_some()
    };
    operations.iter().map(one).collect()
}

/// The largest number of different sizes; more are grouped, eight to a doubling.
const MOST_SIZES: usize = 48;

fn sizes(all: impl Iterator<Item = u64>) -> Vec<(u64, u32)> {
    let mut exact: BTreeMap<u64, u64> = BTreeMap::new();
    for bytes in all {
        *exact.entry(bytes).or_default() += 1;
    }
    let total: u64 = exact.values().sum();
    let groups: Vec<(u64, u64)> = if exact.len() <= MOST_SIZES {
        exact.into_iter().collect()
    } else {
        // The number and the bytes of each group.
        let mut groups: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for (bytes, count) in exact {
            let group = groups.entry(eighth(bytes)).or_default();
            group.0 += count;
            group.1 = group.1.saturating_add(bytes.saturating_mul(count));
        }
        groups.into_values().map(|(count, bytes)| (bytes / count, count)).collect()
    };
    in_millionths(&groups, total)
}

/// The group of a size, of eight in each doubling.
fn eighth(bytes: u64) -> u32 {
    let octave = bytes.max(1).ilog2();
    let within = if octave >= 3 { (bytes >> (octave - 3)) & 7 } else { 0 };
    octave * 8 + u32::try_from(within).unwrap_or(7)
}

/// Counts as parts of a million that add up to it: the rounding error goes to the largest.
fn in_millionths(groups: &[(u64, u64)], total: u64) -> Vec<(u64, u32)> {
    let part = |count: u64| {
        let part = u128::from(count) * u128::from(MILLION) / u128::from(total.max(1));
        u32::try_from(part).unwrap_or(MILLION)
    };
    let mut sizes: Vec<(u64, u32)> = groups.iter().map(|(bytes, n)| (*bytes, part(*n))).collect();
    let rest = MILLION - sizes.iter().map(|(_, of)| *of).sum::<u32>();
    if let Some(largest) = sizes.iter_mut().max_by_key(|(_, of)| *of) {
        largest.1 += rest;
    }
    sizes.retain(|(_, of)| *of > 0);
    sizes
}

fn share(part: usize, of: usize) -> u32 {
    let millionths = part as u128 * u128::from(MILLION) / (of.max(1) as u128);
    u32::try_from(millionths).unwrap_or(MILLION)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to a million")]
fn per_million(part: f64, of: f64) -> u32 {
    (part / of * f64::from(MILLION)).round() as u32
}
