//! What is to be played: everything drawn or chosen before the first event. A scenario and its
//! seed say all; printing one says how to play it again.

use scheduler::PolicyKind;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// A world to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// All chance comes from this.
    pub seed: u64,
    /// Viewers arrive during this time; then the last ones are waited for.
    pub duration: Duration,
    /// Whom the engine lets in.
    pub policy: PolicyKind,
    /// The scheduling period.
    pub slot: Duration,
    /// From admission to the first piece in memory.
    pub startup: Duration,
    /// Memory for pieces.
    pub buffers: ByteCount,
    /// What the server's network carries; `None`: enough.
    pub network: Option<BitRate>,
    /// The disks, each with its own titles.
    pub disks: Vec<DiskKind>,
    /// Bytes of a video piece; sound has pieces of a quarter of it, pictures read whole pieces.
    pub piece: u32,
    /// Titles on each disk.
    pub titles: usize,
    /// Play-out time of a title; each is drawn between half of it and all of it.
    pub length: Duration,
    /// Play-out time of a segment.
    pub segment: Duration,
    /// Mean rate of the pictures; each title is drawn between half of it and all of it.
    pub rate: BitRate,
    /// Mean time between arrivals (Poisson).
    pub arrivals: Duration,
    /// Who comes.
    pub people: People,
    /// One read of so many fails; zero: none does.
    pub faults: u32,
    /// Best-effort pieces of work that are always waiting, on the first disk.
    pub best_effort: usize,
    /// Titles removed while they may be playing.
    pub removals: usize,
}

/// What a disk does in a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DiskKind {
    /// Exactly what it guarantees, at times that suit nobody.
    Guaranteed {
        /// Reads per slot that it promises.
        promised: u32,
        /// Reads per slot that it does.
        kept: u32,
        /// When, within the slot.
        timing: Timing,
    },
    /// A modelled disk, by the name of its preset; promises what its model can prove.
    Model(&'static str),
}

/// When a guaranteed disk completes the reads of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// All of them just before the slot ends.
    Last,
    /// Evenly over the slot.
    Even,
    /// Drawn.
    Random,
    /// Evenly over the first half: room for read-ahead.
    Early,
}

/// Parts of a hundred viewers. What is left watches from start to end over a good network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct People {
    /// Seek once or twice.
    pub seek: u32,
    /// Pause once, for up to a minute.
    pub pause: u32,
    /// Leave before the end.
    pub quit: u32,
    /// Sit behind a network slower than the title.
    pub slow: u32,
    /// Play one long response body with backpressure, not segments.
    pub progressive: u32,
}

impl Scenario {
    /// A small world that keeps its promises: for checking by the thousand.
    pub fn random(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed);
        let promised = random.u32(3..14);
        let timing = *random
            .choice(&[Timing::Last, Timing::Even, Timing::Random, Timing::Early])
            .expect("some");
        let disk = DiskKind::Guaranteed { promised, kept: promised, timing };
        let piece = 65_536 * random.u32(1..5);
        // As many readers as the disk can carry, and from not nearly enough memory to plenty.
        let pieces = u64::from(promised) * random.u64(4..60);
        Self {
            seed,
            duration: Duration::from_secs(random.u64(20..70)),
            policy: PolicyKind::VbrSim,
            slot: Duration::from_millis(*random.choice(&[250, 500, 1000]).expect("some")),
            startup: Duration::from_millis(random.u64(1000..3500)),
            buffers: ByteCount(pieces * u64::from(piece)),
            network: random.bool().then(|| BitRate(random.u64(20..80) * 1_000_000)),
            disks: vec![disk; random.usize(1..3)],
            piece,
            titles: random.usize(1..6),
            length: Duration::from_secs(random.u64(20..90)),
            segment: Duration::from_millis(random.u64(3600..6000)),
            rate: BitRate(random.u64(500..3000) * 1000),
            arrivals: Duration::from_millis(random.u64(100..2500)),
            people: People {
                seek: random.u32(0..20),
                pause: random.u32(0..20),
                quit: random.u32(0..30),
                slow: random.u32(0..15),
                progressive: random.u32(0..20),
            },
            faults: 0,
            best_effort: random.usize(0..3),
            removals: random.usize(0..2),
        }
    }

    /// The same viewers on a modelled disk.
    #[must_use]
    pub fn on_model(mut self, name: &'static str) -> Self {
        self.disks = vec![DiskKind::Model(name)];
        self.slot = Duration::from_millis(500);
        self
    }

    /// The same, with all guaranteed disks doing only `percent` of what they promise.
    #[must_use]
    pub fn keeping(mut self, percent: u32) -> Self {
        for disk in &mut self.disks {
            if let DiskKind::Guaranteed { promised, kept, .. } = disk {
                *kept = *promised * percent / 100;
            }
        }
        self
    }

    /// The same, under another policy.
    #[must_use]
    pub fn under(mut self, policy: PolicyKind) -> Self {
        self.policy = policy;
        self
    }
}
