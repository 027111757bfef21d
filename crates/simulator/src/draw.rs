//! Random scenarios: each seed gives a different server, library, audience and set of faults.

use crate::scenario::{BackgroundWork, DiskSpec, Scenario, Timing, Titles, Viewers};
use scheduler::PolicyKind;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The kind of faults in a drawn world, and with it the rules that must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultClass {
    /// Every disk keeps its guarantee, and the policy guarantees deadlines: no deadline miss and no
    /// stall is allowed.
    FaultFree,
    /// A fault-free world with two to four disks and every title on two of them; one disk dies at
    /// some time. Admitted sessions survive: no deadline miss and no stall is allowed.
    DiskLoss,
    /// Disks fail, stall and complete less than they guarantee, under any policy. All rules except
    /// those about deadlines must hold.
    AnyFault,
}

/// Draws the scenario of a seed.
///
/// Features that were added later are drawn from a random stream of their own, for one seed in
/// five, so that all other seeds keep their worlds.
pub fn draw(class: FaultClass, seed: u64) -> Scenario {
    let mut scenario = draw_first(class, seed);
    if seed % ADDED_EVERY == ADDED_AT {
        add_features(class, &mut scenario, &mut fastrand::Rng::with_seed(seed ^ ADDED_SALT));
    }
    if seed % CROWD_EVERY == CROWD_AT && class != FaultClass::DiskLoss {
        make_crowd(&mut scenario, &mut fastrand::Rng::with_seed(seed ^ CROWD_SALT));
    }
    if seed % PACED_EVERY == PACED_AT && scenario.background.calibrated_at.is_zero() {
        let paced = |disk: &mut DiskSpec| disk.kind = crate::scenario::PACED.to_owned();
        scenario.disks.iter_mut().filter(|disk| disk.kind != crate::scenario::SLOW).for_each(paced);
        scenario.policy = PolicyKind::TimeDomain;
    }
    if MEMORY_AT.contains(&(seed % MEMORY_EVERY)) {
        let rng = &mut fastrand::Rng::with_seed(seed ^ MEMORY_SALT);
        let background = &mut scenario.background;
        background.memory_changes_every = Duration::from_millis(rng.u64(100..20_000));
        background.least_memory = [0, 20, 60][rng.usize(..3)];
    }
    if PRIORITIES_AT.contains(&(seed % PRIORITIES_EVERY)) {
        let rng = &mut fastrand::Rng::with_seed(seed ^ PRIORITIES_SALT);
        let viewers = &mut scenario.viewers;
        (viewers.low, viewers.high) = (share(rng).max(0.1), share(rng).max(0.1));
    }
    if RECORDINGS_AT.contains(&(seed % RECORDINGS_EVERY)) {
        let rng = &mut fastrand::Rng::with_seed(seed ^ RECORDINGS_SALT);
        let background = &mut scenario.background;
        background.recordings = rng.u32(1..6);
        background.recording_period = pick(rng, &[100, 300, 1000]);
        background.recording_round = ByteCount(rng.u64(1..=64) << 13);
        make_house(&mut scenario, rng);
    }
    if GROWING_AT.contains(&(seed % GROWING_EVERY)) && !scenario.survive_loss {
        let rng = &mut fastrand::Rng::with_seed(seed ^ GROWING_SALT);
        scenario.titles.growing = [0.3, 0.7, 1.0][rng.usize(..3)];
        let background = &mut scenario.background;
        background.recordings = rng.u32(1..4);
        background.recording_period = Duration::from_millis(400);
        background.recording_round = ByteCount(rng.u64(1..=32) << 13);
        make_house(&mut scenario, rng);
        // In a stream of its own, so that what is drawn above stays.
        let rng = &mut fastrand::Rng::with_seed(seed ^ SERIES_SALT);
        let background = &mut scenario.background;
        if rng.bool() {
            background.keep = Duration::from_millis(rng.u64(2_000..60_000));
            background.most_parts = [0, 1, 3][rng.usize(..3)];
        }
    }
    if READ_AHEAD_AT.contains(&(seed % READ_AHEAD_EVERY)) {
        let rng = &mut fastrand::Rng::with_seed(seed ^ READ_AHEAD_SALT);
        let viewers = &mut scenario.viewers;
        let read_ahead = share(rng);
        viewers.reads_per_request = [0, 1, 2, 3, 8][rng.usize(..5)];
        // Without admission no memory is reserved: what is read later may take all of it, until the
        // time limit of the sockets, which worlds do not have.
        if scenario.policy != PolicyKind::None {
            viewers.read_ahead = read_ahead;
        }
    }
    // Draws nothing, so that all else in these worlds is as it was without leads.
    scenario.titles.leads = LEADS_AT.contains(&(seed % LEADS_EVERY));
    scenario
}

/// Recordings of constant and of variable rate, beside best-effort work; the power may fail.
fn make_house(scenario: &mut Scenario, rng: &mut fastrand::Rng) {
    let arrivals = scenario.viewers.every * scenario.viewers.count;
    let background = &mut scenario.background;
    background.recordings_vary = share(rng);
    // In a stream of its own, so that what is drawn below stays.
    let series = &mut fastrand::Rng::with_seed(scenario.seed ^ SERIES_SALT);
    background.part_rounds = [0, 5, 20, 100][series.usize(..4)];
    background.best_effort_reads = [1, 2, 8][series.usize(..3)];
    if background.best_effort_every.is_zero() && rng.bool() {
        background.best_effort_every = Duration::from_millis(rng.u64(10..2000));
    }
    if rng.u8(..6) == 0 {
        let at = arrivals.mul_f64(0.2 + 0.8 * rng.f64());
        background.power_fails_at = at.max(Duration::from_secs(1));
    }
}

/// A crowd on few titles, whose viewers follow each other at short intervals; some seek again and
/// again.
fn make_crowd(scenario: &mut Scenario, rng: &mut fastrand::Rng) {
    scenario.titles.count = rng.u32(1..5);
    let viewers = &mut scenario.viewers;
    viewers.zipf = [0.7, 1.0, 1.5][rng.usize(..3)];
    viewers.count = rng.u32(20..100);
    viewers.every = Duration::from_millis(rng.u64(1..700));
    viewers.most_seeks = [3, 3, 40, 200][rng.usize(..4)];
    viewers.seek = [0.0, 0.05, 0.3][rng.usize(..3)];
    viewers.resume = [0.0, 0.1, 0.5][rng.usize(..3)];
    viewers.pause = share(rng) / 2.0;
    viewers.quit = share(rng) / 2.0;
    scenario.background.removals = u32::from(rng.u8(..4) == 0);
}

/// Adds patient viewers, replaced sessions, viewers whose connections come and go, and the policies
/// that `policy` does not draw.
fn add_features(class: FaultClass, scenario: &mut Scenario, rng: &mut fastrand::Rng) {
    use PolicyKind::{GroupedSweeps, Rates, Scan, ServiceCurve};
    let viewers = &mut scenario.viewers;
    (viewers.patient, viewers.replace) = (share(rng), share(rng) / 2.0);
    viewers.patience = Duration::from_millis(rng.u64(500..20_000));
    if class == FaultClass::AnyFault || rng.u8(..4) > 0 {
        scenario.policy = [Rates, Scan, GroupedSweeps, ServiceCurve][rng.usize(..4)];
    }
    let viewers = &mut scenario.viewers;
    (viewers.reconnect, viewers.away) = (share(rng), share(rng));
    (viewers.hang_up, viewers.end) = (share(rng), share(rng) / 2.0);
}

fn draw_first(class: FaultClass, seed: u64) -> Scenario {
    if class == FaultClass::DiskLoss {
        return with_disk_loss(draw_first(FaultClass::FaultFree, seed), seed);
    }
    let mut rng = fastrand::Rng::with_seed(seed ^ SALT);
    let slot = pick(&mut rng, &[250, 500, 500, 1000]);
    let disks: Vec<DiskSpec> = (0..rng.usize(1..3)).map(|_| disk(class, slot, &mut rng)).collect();
    let largest = disks.iter().map(|disk| disk.read_size.0).max().unwrap_or(0);
    let longest = Duration::from_secs(rng.u64(4..90));
    let segment = pick(&mut rng, &[500, 2000, 4000, 4000, 10_000]);
    // A shorter time would end sessions of well-behaved viewers.
    let hold = segment * 2 + Duration::from_secs(rng.u64(1..20));
    let mut scenario = Scenario {
        seed,
        policy: policy(class, &mut rng),
        slot,
        startup: slot * rng.u32(2..8),
        memory: memory(largest, &mut rng),
        network: (rng.u8(..4) == 0).then(|| BitRate(rng.u64(5_000_000..200_000_000))),
        reservation_hold: hold,
        idle_after: hold,
        ended_after: hold * rng.u32(2..5),
        survive_loss: class == FaultClass::AnyFault && rng.bool(),
        titles: Titles {
            count: rng.u32(1..8),
            shortest: longest / 4,
            longest,
            segment,
            progressive: share(&mut rng),
            ladders: share(&mut rng),
            tiny: if rng.u8(..4) == 0 { 0.3 } else { 0.0 },
            partial: if rng.bool() { 0.5 } else { 0.0 },
            copies: if class == FaultClass::AnyFault && disks.len() > 1 { 0.5 } else { 0.0 },
            ..Titles::default()
        },
        viewers: viewers(class, &mut rng),
        background: background(class, &disks, &mut rng),
        disks,
    };
    if scenario.survive_loss {
        // The engine raises a shorter start-up to three slots where a loss must be survived. The
        // checkers compute deadlines from the scenario, so it must have the same value.
        scenario.startup = scenario.startup.max(slot * 3);
    }
    scenario
}

/// Gives a fault-free world several disks, of which one dies.
fn with_disk_loss(world: Scenario, seed: u64) -> Scenario {
    let mut rng = fastrand::Rng::with_seed(seed ^ LOSS_SALT);
    let count = rng.usize(2..=4);
    let mut disks: Vec<DiskSpec> =
        (0..count).map(|_| disk(FaultClass::FaultFree, world.slot, &mut rng)).collect();
    // Half of the worlds have equal disks, as a server usually has.
    if rng.bool() {
        disks = vec![disks.swap_remove(0); count];
    }
    let viewers = &world.viewers;
    let span = viewers.every * viewers.count + world.titles.longest;
    // At least a millisecond, because zero stands for a disk that does not die.
    let dies_at = span.mul_f64(rng.f64()).max(Duration::from_millis(1));
    disks[rng.usize(..count)].dies_at = dies_at;
    let largest = disks.iter().map(|disk| disk.read_size.0).max().unwrap_or(0);
    Scenario {
        survive_loss: true,
        memory: memory(largest, &mut rng),
        startup: world.slot * rng.u32(3..9),
        titles: Titles { copies: 1.0, ..world.titles },
        // The recalibration, if any, was drawn for the first disk of the fault-free world, which is
        // not among these disks.
        background: BackgroundWork { calibrated_at: Duration::ZERO, ..world.background },
        disks,
        ..world
    }
}

fn policy(class: FaultClass, rng: &mut fastrand::Rng) -> PolicyKind {
    use PolicyKind::{Average, InstantaneousMaximum, None, SimpleMaximum, TimeDomain, VbrSim};
    match class {
        FaultClass::FaultFree | FaultClass::DiskLoss => {
            [TimeDomain, TimeDomain, VbrSim, VbrSim, SimpleMaximum, InstantaneousMaximum]
                [rng.usize(..6)]
        }
        FaultClass::AnyFault => {
            [TimeDomain, TimeDomain, VbrSim, VbrSim, Average, None][rng.usize(..6)]
        }
    }
}

/// Draws the buffer memory: from hardly enough for one stream to more than all titles.
fn memory(largest_read: u64, rng: &mut fastrand::Rng) -> ByteCount {
    // The blocks of 4 KiB on top make the budget a number that is usually no multiple of the read
    // size, as with a budget that a user configures.
    ByteCount(largest_read * (1 << rng.u64(1..10)) + (rng.u64(..16) << 12))
}

fn disk(class: FaultClass, slot: Duration, rng: &mut fastrand::Rng) -> DiskSpec {
    let min_read = rng.u32(1..40);
    let queue_depth = [1, 2, 4, 8][rng.usize(..4)];
    // One to three times the mean time of a guaranteed read, and at most one slot.
    let longest_read = (slot / min_read).mul_f64(1.0 + 2.0 * rng.f64()).min(slot);
    let mut disk = DiskSpec {
        min_read,
        actual_reads: min_read,
        read_size: ByteCount(1 << rng.u32(18..22)),
        longest_read,
        queue_depth,
        timing: [Timing::Late, Timing::Even, Timing::Early, Timing::Mixed][rng.usize(..4)],
        ..DiskSpec::default()
    };
    if rng.u8(..2) == 0 {
        let models = ["st39183w", "st318406lw", "atlas-iv", "hdd-20tb", "ssd-sata"];
        disk.kind = models[rng.usize(..models.len())].to_owned();
        disk.queue_depth = disk.queue_depth.min(4);
        // The slowest of these models needs more than the shortest slot (250 ms) for a read of 2
        // MiB, so that it could guarantee no read at all.
        disk.read_size = ByteCount(disk.read_size.0.min(1 << 20));
    }
    if class == FaultClass::AnyFault {
        add_fault(&mut disk, rng);
    }
    disk
}

fn add_fault(disk: &mut DiskSpec, rng: &mut fastrand::Rng) {
    match rng.u8(..8) {
        0 => disk.failing = 0.05,
        1 => disk.damaged = 0.02,
        2 => {
            disk.stalls_at = Duration::from_secs(rng.u64(1..30));
            disk.stalls_for = Duration::from_millis(rng.u64(100..8000));
        }
        3 => {
            disk.kind = crate::scenario::SLOW.to_owned();
            disk.actual_reads = (disk.min_read / 2).max(1);
        }
        5 => disk.dies_at = Duration::from_secs(rng.u64(1..30)),
        4 => (disk.failing, disk.damaged) = (0.5, 0.3),
        // Sound disks belong to this class as well: a fault of one disk must not excuse a late read
        // on another.
        6 => {}
        _ => {
            disk.slows_at = Duration::from_secs(rng.u64(1..30));
            disk.slows_for = Duration::from_secs(rng.u64(1..60));
            disk.slow_factor = 1.0 + 6.0 * rng.f64();
        }
    }
}

fn viewers(class: FaultClass, rng: &mut fastrand::Rng) -> Viewers {
    let rare = |rng: &mut fastrand::Rng| if rng.bool() { 0.0 } else { 0.25 };
    Viewers {
        count: rng.u32(1..60),
        every: Duration::from_millis(rng.u64(10..3000)),
        buffer: Duration::from_secs(rng.u64(2..40)),
        resume: share(rng) / 2.0,
        seek: share(rng) / 2.0,
        pause: share(rng) / 2.0,
        quit: share(rng) / 2.0,
        slow: rare(rng),
        silent: rare(rng),
        stalled_socket: if class == FaultClass::AnyFault { rare(rng) } else { rare(rng) / 2.0 },
        close: share(rng),
        ..Viewers::default()
    }
}

fn background(class: FaultClass, disks: &[DiskSpec], rng: &mut fastrand::Rng) -> BackgroundWork {
    let has_best_effort = rng.bool();
    // Only a guaranteed disk follows its calibration. For a model, a higher number would be a
    // promise that the disk cannot keep.
    let recalibrated = rng.u8(..5) == 0 && disks[0].kind == crate::scenario::GUARANTEED;
    let before = disks[0].min_read;
    // With fewer reads than before, the disk could not carry what is admitted: that is a fault.
    let least = if class == FaultClass::FaultFree { before } else { 1 };
    BackgroundWork {
        best_effort_every: Duration::from_millis(if has_best_effort {
            rng.u64(10..2000)
        } else {
            0
        }),
        removals: if rng.u8(..4) == 0 { 2 } else { 0 },
        calibrated_at: Duration::from_secs(if recalibrated { rng.u64(1..30) } else { 0 }),
        new_min_read: rng.u32(least..=before * 2),
        ..BackgroundWork::default()
    }
}

fn share(rng: &mut fastrand::Rng) -> f64 {
    [0.0, 0.2, 0.5, 1.0][rng.usize(..4)]
}

fn pick(rng: &mut fastrand::Rng, millis: &[u64]) -> Duration {
    Duration::from_millis(millis[rng.usize(..millis.len())])
}

/// Titles have leads in worlds with these seeds, modulo the number below.
const LEADS_AT: [u64; 3] = [0, 3, 6];
const LEADS_EVERY: u64 = 7;

/// One seed in this many draws the added features.
const ADDED_EVERY: u64 = 5;
/// Remainder of the seeds that draw the added features; no seed of `ONCE_BROKEN` has it.
const ADDED_AT: u64 = 3;

/// One seed in this many draws a crowd.
const CROWD_EVERY: u64 = 10;
/// Remainder of the seeds that draw a crowd; no seed of `ONCE_BROKEN` has it.
const CROWD_AT: u64 = 2;

/// One seed in this many has disks that are known by their pace.
const PACED_EVERY: u64 = 10;
/// Remainder of the seeds with such disks.
const PACED_AT: u64 = 9;

/// The memory of worlds with these seeds shrinks and grows, modulo the number below; no seed of
/// `ONCE_BROKEN` is one of them.
const MEMORY_AT: [u64; 12] = [0, 1, 2, 5, 9, 12, 14, 20, 28, 33, 38, 58];
const MEMORY_EVERY: u64 = 60;

/// The viewers of worlds with these seeds have priorities, modulo the number below; no seed of
/// `ONCE_BROKEN` is one of them.
const PRIORITIES_AT: [u64; 12] = [6, 10, 11, 25, 27, 29, 30, 31, 34, 36, 37, 50];
const PRIORITIES_EVERY: u64 = 60;

/// Recordings are made beside the viewers in worlds with these seeds, modulo the number below; no
/// seed of `ONCE_BROKEN` is one of them.
const RECORDINGS_AT: [u64; 12] = [3, 4, 7, 8, 13, 16, 19, 21, 22, 39, 43, 49];
const RECORDINGS_EVERY: u64 = 60;

/// Titles grow in worlds with these seeds, modulo the number below; no seed of `ONCE_BROKEN` is one
/// of them.
const GROWING_AT: [u64; 12] = [0, 5, 6, 11, 14, 28, 31, 36, 51, 55, 57, 58];
const GROWING_EVERY: u64 = 60;

/// Viewers read ahead, and responses are made of several requests, in worlds with these seeds,
/// modulo the number below; no seed of `ONCE_BROKEN` is one of them.
const READ_AHEAD_AT: [u64; 32] = [
    1, 9, 11, 12, 16, 24, 26, 28, 30, 35, 45, 49, 52, 56, 60, 63, 64, 67, 71, 72, 75, 80, 83, 87,
    90, 97, 98, 101, 102, 107, 110, 115,
];
const READ_AHEAD_EVERY: u64 = 120;

/// Separates the random stream of reading ahead.
const READ_AHEAD_SALT: u64 = 0x04ea_da4e;

/// Separates the random stream of titles that grow.
const GROWING_SALT: u64 = 0x0006_2030;

/// Separates the random stream of series of recordings.
const SERIES_SALT: u64 = 0x0005_e71e;

/// Separates the random stream of recordings.
const RECORDINGS_SALT: u64 = 0x0002_ec02;

/// Separates the random stream of priorities.
const PRIORITIES_SALT: u64 = 0x0051_0e57;

/// Separates the random stream of memory that changes.
const MEMORY_SALT: u64 = 0x3e30_3e30;

/// Separates the random stream of crowds.
const CROWD_SALT: u64 = 0x0c20_3d00;

/// Separates the random stream of the added features.
const ADDED_SALT: u64 = 0x0add_ed00;

/// Separates the random stream of the disk-loss options.
const LOSS_SALT: u64 = 0x0dea_dd15;

/// Separates the random stream that draws a world from the one that runs it.
const SALT: u64 = 0x7e57_5eed;
