//! What a study knows of its disk from watching it: the bandwidth that a server like the paper's
//! achieves, and how many reads it completes in slots in which it always had some to make.
//!
//! Watched are scenarios apart from those that are judged, in which everybody comes in.

use super::super::disk_server::RunCounters;
use super::super::random::RandomSource;
use super::super::titles::BLOCK;
use super::Study;
use super::runs::{KnownDisk, ReadMode};
use scheduler::{DiskTimings, ServiceCurve};
use std::sync::Arc;
use std::time::Duration;

impl Study {
    /// Watches so many scenarios, and from then on aims at what is achieved in the mean and knows
    /// the fewest reads. Returns the least that was achieved: blocks a slot. `progress` is called
    /// with the part that is done.
    pub(crate) fn learn(&mut self, rounds: u64, progress: &mut dyn FnMut(f64)) -> f64 {
        let (mut achieved, mut blocks, mut long) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..rounds {
            progress(number as f64 / rounds as f64);
            // Seeds apart from those of the scenarios that are judged.
            let seed = RandomSource::new(self.seed ^ TRAINING, number).seed();
            let scenario = self.scenario(number, seed);
            let by_blocks =
                self.together(&scenario, ReadMode::Blocks(self.min_read), &mut [], seed);
            achieved.push(blocks_a_slot(&by_blocks.looked_at, self.workload.slot));
            blocks.extend(by_blocks.stretches);
            long.extend(self.together(&scenario, ReadMode::Long, &mut [], seed).stretches);
        }
        self.expected = achieved.iter().sum::<f64>() / achieved.len().max(1) as f64;
        // `known` distinguishes blocks from long reads only, so that the number of blocks does not
        // matter.
        for (mode, seen) in [(ReadMode::Blocks(0), blocks), (ReadMode::Long, long)] {
            let known = self.known(mode).clone();
            let timings = watched((*known.timings).clone(), &seen);
            *self.known_mut(mode) = KnownDisk { timings: Arc::new(timings), ..known }.into();
        }
        achieved.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// What a server like the paper's achieves on scenario `number` of those that are watched:
    /// blocks a slot.
    pub fn train(&self, number: u64) -> f64 {
        let seed = RandomSource::new(self.seed ^ TRAINING, number).seed();
        let scenario = self.scenario(number, seed);
        let run = self.together(&scenario, ReadMode::Blocks(self.min_read), &mut [], seed);
        blocks_a_slot(&run.looked_at, self.workload.slot)
    }
}

/// BA: the least stable mean, or what was read while the disk worked, if it was never stable.
pub(crate) fn blocks_a_slot(counters: &RunCounters, slot: Duration) -> f64 {
    let slots = counters.busy.as_secs_f64() / slot.as_secs_f64();
    counters.least_mean.unwrap_or(counters.bytes as f64 / slots) / BLOCK as f64
}

/// With what was seen: stretches of slots, the reads completed in each.
fn watched(timings: DiskTimings, stretches: &[Vec<u32>]) -> DiskTimings {
    let curve = ServiceCurve::of_slots(stretches.iter().map(Vec::as_slice));
    let least = stretches.iter().flatten().min().copied();
    DiskTimings { curve, observed_min_read: least, ..timings }
}

// The name of a source of chance.
const TRAINING: u64 = 0x7472_6169_6e00_0000;
