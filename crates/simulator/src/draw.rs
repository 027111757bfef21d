//! Random scenarios: each seed gives another server, library, audience and set of faults.

use crate::scenario::{BackgroundWork, DiskSpec, Scenario, Timing, Titles, Viewers};
use scheduler::PolicyKind;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// What kind of world is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultClass {
    /// Every disk keeps its guarantee, and the policy guarantees deadlines: no deadline miss and no
    /// stall is allowed.
    FaultFree,
    /// A fault-free world with two to four disks, each title on two of them, of which one disk dies
    /// at any time. Admitted sessions survive it: no deadline miss and no stall is allowed.
    DiskLoss,
    /// Disks fail, stall and do less than they guarantee; any policy. All rules except those of
    /// deadlines must hold.
    AnyFault,
}

/// Draws the scenario of a seed.
///
/// Features that were added later are drawn from a random stream of their own, for one seed in
/// five, so that all other seeds keep their worlds.
pub fn draw(class: FaultClass, seed: u64) -> Scenario {
    let mut scenario = draw_first(class, seed);
    if seed % ADDED_EVERY == ADDED_AT {
        add(class, &mut scenario, &mut fastrand::Rng::with_seed(seed ^ ADDED_SALT));
    }
    scenario
}

/// Adds patient viewers, replaced sessions, and the guaranteeing policies that no other world has.
fn add(class: FaultClass, scenario: &mut Scenario, chance: &mut fastrand::Rng) {
    use PolicyKind::{GroupedSweeps, Rates, Scan, ServiceCurve};
    let viewers = &mut scenario.viewers;
    (viewers.patient, viewers.replace) = (share(chance), share(chance) / 2.0);
    viewers.patience = Duration::from_millis(chance.u64(500..20_000));
    if class == FaultClass::AnyFault || chance.u8(..4) > 0 {
        scenario.policy = [Rates, Scan, GroupedSweeps, ServiceCurve][chance.usize(..4)];
    }
}

fn draw_first(class: FaultClass, seed: u64) -> Scenario {
    if class == FaultClass::DiskLoss {
        return lossy(draw_first(FaultClass::FaultFree, seed), seed);
    }
    let mut chance = fastrand::Rng::with_seed(seed ^ SALT);
    let slot = pick(&mut chance, &[250, 500, 500, 1000]);
    let disks: Vec<DiskSpec> =
        (0..chance.usize(1..3)).map(|_| disk(class, slot, &mut chance)).collect();
    let largest = disks.iter().map(|disk| disk.read_size.0).max().unwrap_or(0);
    let longest = Duration::from_secs(chance.u64(4..90));
    let segment = pick(&mut chance, &[500, 2000, 4000, 4000, 10_000]);
    // A shorter time would end sessions of viewers who play without a fault.
    let hold = segment * 2 + Duration::from_secs(chance.u64(1..20));
    let mut scenario = Scenario {
        seed,
        policy: policy(class, &mut chance),
        slot,
        startup: slot * chance.u32(2..8),
        memory: memory(largest, &mut chance),
        network: (chance.u8(..4) == 0).then(|| BitRate(chance.u64(5_000_000..200_000_000))),
        reservation_hold: hold,
        idle_after: hold,
        ended_after: hold * chance.u32(2..5),
        survive_loss: class == FaultClass::AnyFault && chance.bool(),
        titles: Titles {
            count: chance.u32(1..8),
            shortest: longest / 4,
            longest,
            segment,
            progressive: share(&mut chance),
            ladders: share(&mut chance),
            tiny: if chance.u8(..4) == 0 { 0.3 } else { 0.0 },
            parts: if chance.bool() { 0.5 } else { 0.0 },
            copies: if class == FaultClass::AnyFault && disks.len() > 1 { 0.5 } else { 0.0 },
            ..Titles::default()
        },
        viewers: viewers(class, &mut chance),
        background: background(class, &disks, &mut chance),
        disks,
    };
    if scenario.survive_loss {
        scenario.startup = scenario.startup.max(slot * 3);
    }
    scenario
}

/// Makes a fault-free world one of several disks, of which one dies.
fn lossy(world: Scenario, seed: u64) -> Scenario {
    let mut chance = fastrand::Rng::with_seed(seed ^ LOSS_SALT);
    let count = chance.usize(2..=4);
    let mut disks: Vec<DiskSpec> =
        (0..count).map(|_| disk(FaultClass::FaultFree, world.slot, &mut chance)).collect();
    if chance.bool() {
        disks = vec![disks.swap_remove(0); count];
    }
    let viewers = &world.viewers;
    let span = viewers.every * viewers.count + world.titles.longest;
    let dies_at = span.mul_f64(chance.f64()).max(Duration::from_millis(1));
    disks[chance.usize(..count)].dies_at = dies_at;
    let largest = disks.iter().map(|disk| disk.read_size.0).max().unwrap_or(0);
    Scenario {
        survive_loss: true,
        memory: memory(largest, &mut chance),
        startup: world.slot * chance.u32(3..9),
        titles: Titles { copies: 1.0, ..world.titles },
        background: BackgroundWork { calibrated_at: Duration::ZERO, ..world.background },
        disks,
        ..world
    }
}

fn policy(class: FaultClass, chance: &mut fastrand::Rng) -> PolicyKind {
    use PolicyKind::{Average, InstantaneousMaximum, None, SimpleMaximum, TimeDomain, VbrSim};
    match class {
        FaultClass::FaultFree | FaultClass::DiskLoss => {
            [TimeDomain, TimeDomain, VbrSim, VbrSim, SimpleMaximum, InstantaneousMaximum]
                [chance.usize(..6)]
        }
        FaultClass::AnyFault => {
            [TimeDomain, TimeDomain, VbrSim, VbrSim, Average, None][chance.usize(..6)]
        }
    }
}

/// Draws the buffer memory: from hardly enough for one stream to more than all titles.
fn memory(largest_read: u64, chance: &mut fastrand::Rng) -> ByteCount {
    ByteCount(largest_read * (1 << chance.u64(1..10)) + (chance.u64(..16) << 12))
}

fn disk(class: FaultClass, slot: Duration, chance: &mut fastrand::Rng) -> DiskSpec {
    let min_read = chance.u32(1..40);
    let queue_depth = [1, 2, 4, 8][chance.usize(..4)];
    // Never faster than the guarantee, never slower than one read in a slot.
    let longest_read = (slot / min_read).mul_f64(1.0 + 2.0 * chance.f64()).min(slot);
    let mut disk = DiskSpec {
        min_read,
        really: min_read,
        read_size: ByteCount(1 << chance.u32(18..22)),
        longest_read,
        queue_depth,
        timing: [Timing::Late, Timing::Even, Timing::Early, Timing::Mixed][chance.usize(..4)],
        ..DiskSpec::default()
    };
    if chance.u8(..2) == 0 {
        let models = ["st39183w", "st318406lw", "atlas-iv", "hdd-20tb", "ssd-sata"];
        disk.kind = models[chance.usize(..models.len())].to_owned();
        disk.queue_depth = disk.queue_depth.min(4);
        disk.read_size = ByteCount(disk.read_size.0.min(1 << 20));
    }
    if class == FaultClass::AnyFault {
        trouble(&mut disk, chance);
    }
    disk
}

fn trouble(disk: &mut DiskSpec, chance: &mut fastrand::Rng) {
    match chance.u8(..8) {
        0 => disk.failing = 0.05,
        1 => disk.damaged = 0.02,
        2 => {
            disk.stalls_at = Duration::from_secs(chance.u64(1..30));
            disk.stalls_for = Duration::from_millis(chance.u64(100..8000));
        }
        3 => {
            disk.kind = crate::scenario::SLOW.to_owned();
            disk.really = (disk.min_read / 2).max(1);
        }
        5 => disk.dies_at = Duration::from_secs(chance.u64(1..30)),
        4 => (disk.failing, disk.damaged) = (0.5, 0.3),
        6 => {}
        _ => {
            disk.slows_at = Duration::from_secs(chance.u64(1..30));
            disk.slows_for = Duration::from_secs(chance.u64(1..60));
            disk.slows_times = 1.0 + 6.0 * chance.f64();
        }
    }
}

fn viewers(class: FaultClass, chance: &mut fastrand::Rng) -> Viewers {
    let odd = |chance: &mut fastrand::Rng| if chance.bool() { 0.0 } else { 0.25 };
    Viewers {
        count: chance.u32(1..60),
        every: Duration::from_millis(chance.u64(10..3000)),
        buffer: Duration::from_secs(chance.u64(2..40)),
        resume: share(chance) / 2.0,
        seek: share(chance) / 2.0,
        pause: share(chance) / 2.0,
        quit: share(chance) / 2.0,
        slow: odd(chance),
        silent: odd(chance),
        stuck: if class == FaultClass::AnyFault { odd(chance) } else { odd(chance) / 2.0 },
        polite: share(chance),
        ..Viewers::default()
    }
}

fn background(class: FaultClass, disks: &[DiskSpec], chance: &mut fastrand::Rng) -> BackgroundWork {
    let some = chance.bool();
    let recalibrated = chance.u8(..5) == 0 && disks[0].kind == crate::scenario::GUARANTEED;
    let before = disks[0].min_read;
    let least = if class == FaultClass::FaultFree { before } else { 1 };
    BackgroundWork {
        best_effort_every: Duration::from_millis(if some { chance.u64(10..2000) } else { 0 }),
        removals: if chance.u8(..4) == 0 { 2 } else { 0 },
        calibrated_at: Duration::from_secs(if recalibrated { chance.u64(1..30) } else { 0 }),
        new_min_read: chance.u32(least..=before * 2),
    }
}

fn share(chance: &mut fastrand::Rng) -> f64 {
    [0.0, 0.2, 0.5, 1.0][chance.usize(..4)]
}

fn pick(chance: &mut fastrand::Rng, millis: &[u64]) -> Duration {
    Duration::from_millis(millis[chance.usize(..millis.len())])
}

/// One seed of this many draws the added features.
const ADDED_EVERY: u64 = 5;
/// Remainder of the seeds that draw the added features; no seed of `ONCE_BROKEN` has it.
const ADDED_AT: u64 = 3;

/// Separates the random stream of the added features.
const ADDED_SALT: u64 = 0x0add_ed00;

/// Separates the random stream of the disk-loss options.
const LOSS_SALT: u64 = 0x0dea_dd15;

/// Separates the drawing of a world from the events in it.
const SALT: u64 = 0x7e57_5eed;
