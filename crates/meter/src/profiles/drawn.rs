//! Operations drawn at random from a trace's mix.
//!
//! ```text
//!   [drawn]
//!   operations_per_1000_s = 321_500        omitted: as fast as possible
//!   reads_per_million = 720_000
//!   [drawn.reads]                          omitted where there are none
//!   sequential_per_million = 900_000       begin where an earlier one of their kind ended
//!   sizes = [[65536, 250_000], [1048576, 750_000]]     bytes, of a million
//!   [drawn.writes]
//!   ...
//! ```
//! Each operation is drawn independently: kind, then position, then size. Correlations of a real
//! program, such as writes after reads or runs of large reads, are not modelled.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;
use units::Reason;

/// A mix of operations, as found in a trace, from which operations are drawn.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Drawn {
    /// The mean rate; `None` for as fast as possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations_per_1000_s: Option<u64>,
    /// The share of reads; the rest are writes.
    pub reads_per_million: u32,
    /// The reads; `None` only where nothing is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<OperationMix>,
    /// The writes; `None` only where nothing is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<OperationMix>,
}

/// The sizes and positions of reads, or of writes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OperationMix {
    /// The share that begins where an earlier one ended.
    pub sequential_per_million: u32,
    /// Operation sizes in bytes, with their share in parts per million.
    pub sizes: Vec<(u64, u32)>,
}

/// The denominator of all shares.
pub const MILLION: u32 = 1_000_000;

/// An operation to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnOperation {
    /// The time from the start; `None`: as soon as possible.
    pub at: Option<Duration>,
    /// Whether it writes.
    pub write: bool,
    /// Whether it begins where the one before of its kind ended.
    pub sequential: bool,
    /// The position in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub bytes: u64,
}

impl Drawn {
    /// The first impossible setting, as a sentence; `None` if there is none.
    pub fn wrong(&self) -> Option<Reason> {
        if self.reads_per_million > MILLION {
            return Some("reads_per_million is more than a million".into());
        }
        if self.operations_per_1000_s == Some(0) {
            let hint = "leave it out for as fast as it goes";
            return Some(Reason::new("operations_per_1000_s = 0", hint));
        }
        let parts = [
            ("reads", &self.reads, self.reads_per_million > 0),
            ("writes", &self.writes, self.reads_per_million < MILLION),
        ];
        parts.into_iter().find_map(|(name, mix, needed)| match mix {
            None if needed => Some(format!("[drawn.{name}] is missing").into()),
            Some(mix) => mix.wrong().map(|what| format!("[drawn.{name}]: {what}").into()),
            None => None,
        })
    }

    /// All sizes that an operation may have, in bytes.
    pub fn sizes(&self) -> BTreeSet<u64> {
        let all = [&self.reads, &self.writes].into_iter().flatten().flat_map(|mix| &mix.sizes);
        all.map(|(bytes, _)| *bytes).collect()
    }

    /// Whether any operation writes.
    pub fn writes(&self) -> bool {
        self.reads_per_million < MILLION
    }

    /// The mean size of an operation in bytes.
    pub fn mean_bytes(&self) -> u64 {
        let of = |mix: &Option<OperationMix>| mix.as_ref().map_or(0, OperationMix::mean_bytes);
        let reads = u128::from(self.reads_per_million);
        let writes = u128::from(MILLION) - reads;
        let sum = reads * u128::from(of(&self.reads)) + writes * u128::from(of(&self.writes));
        u64::try_from(sum / u128::from(MILLION)).unwrap_or(u64::MAX)
    }

    /// A sequence of operations in an area of a given length; determined by the seed.
    pub fn draws(&self, area: u64, seed: u64) -> Draws {
        Draws {
            of: self.clone(),
            area,
            chance: fastrand::Rng::with_seed(seed),
            count: 0,
            ends: [0, area / 2],
        }
    }
}

impl OperationMix {
    fn wrong(&self) -> Option<String> {
        if self.sequential_per_million > MILLION {
            return Some("sequential_per_million is more than a million".to_owned());
        }
        if self.sizes.iter().any(|(bytes, _)| *bytes == 0) {
            return Some("a size of 0 bytes".to_owned());
        }
        let all: u64 = self.sizes.iter().map(|(_, of)| u64::from(*of)).sum();
        (all != u64::from(MILLION)).then(|| format!("sizes add up to {all} of a million"))
    }

    fn mean_bytes(&self) -> u64 {
        let sum: u128 =
            self.sizes.iter().map(|(bytes, of)| u128::from(*bytes) * u128::from(*of)).sum();
        u64::try_from(sum / u128::from(MILLION)).unwrap_or(u64::MAX)
    }
}

/// The operations of [`Drawn::draws`], an endless sequence.
#[derive(Clone, Debug)]
pub struct Draws {
    of: Drawn,
    area: u64,
    chance: fastrand::Rng,
    count: u64,
    /// The ends of the last read and the last write.
    ends: [u64; 2],
}

impl Iterator for Draws {
    type Item = DrawnOperation;

    fn next(&mut self) -> Option<DrawnOperation> {
        let mut below = |of: u32| self.chance.u32(..MILLION) < of;
        let write = !below(self.of.reads_per_million);
        let mix = if write { &self.of.writes } else { &self.of.reads }.as_ref()?;
        let sequential = below(mix.sequential_per_million);
        let mut left = self.chance.u32(..MILLION);
        // The shares add up to a million, so that the draw always meets a size.
        let size = mix.sizes.iter().find(|(_, of)| {
            let here = left < *of;
            left = left.saturating_sub(*of);
            here
        });
        let bytes = size.or(mix.sizes.last())?.0;
        let end = &mut self.ends[usize::from(write)];
        let room = self.area.checked_sub(bytes)?;
        let sequential = sequential && *end <= room;
        let offset = if sequential {
            *end
        } else {
            // Programs mostly read and write at multiples of the size.
            self.chance.u64(0..=room / bytes) * bytes
        };
        *end = offset + bytes;
        let at = self.of.operations_per_1000_s.map(|rate| {
            let nanos = u128::from(self.count) * 1_000_000_000_000 / u128::from(rate);
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        });
        self.count += 1;
        Some(DrawnOperation { at, write, sequential, offset, bytes })
    }
}
