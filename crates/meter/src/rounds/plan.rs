//! The plan of rounds: streams, their positions, rounds, and the order within a round.

use std::time::Duration;
use units::{BitRate, ByteCount, Moment};

/// The streams of an experiment in rounds: positions, block size, and order within a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundsPlan {
    /// The position at which each stream starts to read.
    pub starts: Vec<u64>,
    /// The length of the range that is read; a stream that reaches its end continues at the
    /// beginning.
    pub size: ByteCount,
    /// The bytes that a stream reads in a round (d).
    pub block: ByteCount,
    /// The rate at which a stream plays (r).
    pub rate: BitRate,
    /// The number of rounds.
    pub rounds: u32,
    /// The order of a round's reads.
    pub order: Order,
    /// The queue depth; 1 is one read after another.
    pub at_once: u32,
    /// The start of rounds.
    pub pace: RoundPace,
}

/// The order of a round's reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// SCAN order: by position, every other round from the far end.
    Scan,
    /// By number of the stream, whatever the positions: the order of a program that knows only
    /// files.
    Streams,
    /// As requests would arrive: a new random order in each round, from this seed.
    Arrival(u64),
}

/// The rule for when rounds begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoundPace {
    /// One round time after the round before, or at its end if it took longer.
    #[default]
    Rounds,
    /// At the end of the round before: as fast as possible.
    Free,
}

impl RoundsPlan {
    /// The paper's plan: starts spread over all of `size`, a hundred rounds, SCAN order, one read
    /// at a time.
    pub fn spread(streams: u32, size: ByteCount, block: ByteCount, rate: BitRate) -> Self {
        let rounds = ROUNDS;
        // The last stream must reach the end of its reads before the end of the disk.
        let way = block.0.saturating_mul(rounds.into());
        let room = size.0.checked_sub(way).unwrap_or(size.0.saturating_sub(block.0));
        let start = |stream: u32| {
            let part = u128::from(room) * u128::from(stream) / u128::from(streams.max(2));
            units::align_down(u64::try_from(part).expect("within the size"), GRAIN)
        };
        Self {
            starts: (0..streams).map(start).collect(),
            size,
            block,
            rate,
            rounds,
            order: Order::Scan,
            at_once: 1,
            pace: RoundPace::Rounds,
        }
    }

    /// The time of a round: d / r.
    pub fn round(&self) -> Duration {
        self.block.time_at(self.rate)
    }

    /// The memory that a server needs: the blocks that are being read, and those of the round
    /// before, which are being sent.
    pub fn memory(&self) -> ByteCount {
        let blocks = self.starts.len() as u64 * 2;
        ByteCount(self.block.0.saturating_mul(blocks))
    }

    /// The planned start of a round. Exact over thousands of rounds.
    pub(crate) fn moment(&self, origin: Moment, round: u32) -> Moment {
        let bytes = ByteCount(self.block.0.saturating_mul(round.into()));
        origin + bytes.time_at(self.rate)
    }

    pub(crate) fn places(&self) -> Vec<u64> {
        self.starts.clone()
    }

    /// The position of the block after the one at `place`.
    pub fn after(&self, place: u64) -> u64 {
        let next = place + self.block.0;
        if next.saturating_add(self.block.0) <= self.size.0 { next } else { 0 }
    }

    pub(crate) fn ordering(&self) -> Ordering {
        let seed = if let Order::Arrival(seed) = self.order { seed } else { 0 };
        Ordering { order: self.order, chance: fastrand::Rng::with_seed(seed), outward: true }
    }
}

/// The order of each round.
pub(crate) struct Ordering {
    order: Order,
    chance: fastrand::Rng,
    outward: bool,
}

impl Ordering {
    /// The streams in the order in which their blocks at `places` are read.
    pub(crate) fn next(&mut self, places: &[u64]) -> Vec<usize> {
        let mut streams: Vec<usize> = (0..places.len()).collect();
        match self.order {
            Order::Scan => {
                streams.sort_by_key(|stream| places[*stream]);
                if !self.outward {
                    streams.reverse();
                }
                self.outward = !self.outward;
            }
            Order::Streams => {}
            Order::Arrival(_) => self.chance.shuffle(&mut streams),
        }
        streams
    }
}

/// The paper's number of rounds.
const ROUNDS: u32 = 100;

/// The alignment of starts: whole pages, so that reads past the page cache add little.
const GRAIN: u64 = 4096;
