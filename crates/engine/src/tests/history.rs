//! What the engine observes of a disk in use, who uses it, and what a restart keeps of it.

use super::*;
use scheduler::{DiskHistory, DiskTimings};

const DISK: DiskNumber = DiskNumber(0);

/// Guaranteed are four reads in a slot.
fn fixture(policy: PolicyKind) -> Fixture {
    Fixture::new(EngineConfig { policy, ..config(4, 10_000) })
}

impl Fixture {
    /// The disk does so many reads in this slot, if it is given them, and the next slot begins.
    fn slot_of(&mut self, reads: usize) {
        for _ in 0..reads.min(MOST) {
            if self.reads.is_empty() {
                break;
            }
            let read = self.reads.remove(0);
            self.engine.read_done(self.now, read, ReadOutcome::Good);
            self.drain();
        }
        self.now = self.engine.next_wakeup();
        self.engine.tick(self.now);
        self.drain();
    }

    fn observed(&self) -> Option<u32> {
        self.engine.status(self.now).disks[0].observed_slot_reads
    }

    /// How many come in at once, of ever other titles.
    fn come_in(&mut self) -> usize {
        (1000..1100).take_while(|title| self.admit(*title).is_ok()).count()
    }
}

const MOST: usize = 100;

/// Admits patient viewers, so that there is always something to read.
fn seen_busy(policy: PolicyKind, reads: usize) -> (Fixture, u32) {
    let mut fixture = fixture(policy);
    let mut slots = 0;
    while fixture.observed().is_none() && slots < 500 {
        let _ = fixture.admit(slots);
        fixture.slot_of(reads);
        slots += 1;
    }
    (fixture, u32::try_from(slots).unwrap())
}

#[test]
fn observed_reads_are_those_of_busy_slots_only() {
    for policy in [PolicyKind::VbrSim, PolicyKind::Observed] {
        let (mut fixture, slots) = seen_busy(policy, 6);
        assert!(slots > 60, "half a minute of busy slots: {slots}");
        assert_eq!(fixture.observed(), Some(6), "{policy:?}");
        let _ = fixture.admit(999);
        fixture.slot_of(5);
        assert_eq!(fixture.observed(), Some(5), "{policy:?}");
        // Nobody comes any more: what there is to read is read, and then nothing is.
        (0..40).for_each(|_| fixture.slot_of(MOST));
        assert_eq!(fixture.observed(), Some(5), "{policy:?}");
        let status = fixture.engine.status(fixture.now);
        assert_eq!((status.disks[0].slowdown, status.disks[0].min_read), (0, 4), "{policy:?}");
    }
}

#[test]
fn only_the_policy_observed_admits_by_observed_reads() {
    let (before, _) = seen_busy(PolicyKind::Observed, 12);
    let kept = before.engine.disk_history(DISK).unwrap();
    let kept = DiskHistory::decode(&kept.encode()).unwrap();
    let mut came = Vec::new();
    for policy in [PolicyKind::VbrSim, PolicyKind::ServiceCurve, PolicyKind::Observed] {
        let mut fresh = fixture(policy);
        let as_guaranteed = fresh.come_in();
        let mut fixture = fixture(policy);
        assert!(fixture.engine.restore_history(fixture.now, DISK, kept.clone()));
        assert_eq!(fixture.observed(), Some(12));
        came.push((as_guaranteed, fixture.come_in()));
    }
    assert_eq!(came, [(2, 2), (2, 2), (2, 6)]);
}

#[test]
fn history_applies_after_a_restart_and_not_to_reads_of_another_kind() {
    let mut slow = fixture(PolicyKind::VbrSim);
    slow.come_in();
    (0..6).for_each(|_| slow.slot_of(1));
    let kept = slow.engine.disk_history(DISK).unwrap();
    let believed = slow.engine.status(slow.now).disks[0];
    assert!(believed.min_read < 4 && believed.slowdown > 0, "{believed:?}");

    let mut again = fixture(PolicyKind::VbrSim);
    assert!(again.engine.restore_history(again.now, DISK, kept.clone()));
    let status = again.engine.status(again.now).disks[0];
    assert_eq!((status.min_read, status.slowdown), (believed.min_read, believed.slowdown));
    assert_eq!(status.slowest_slot_reads, believed.slowest_slot_reads);
    assert!(again.come_in() < fixture(PolicyKind::VbrSim).come_in());

    let mut other = Fixture::new(config(5, 10_000));
    assert!(!other.engine.restore_history(other.now, DISK, kept.clone()), "another guarantee");
    let slot = Duration::from_secs(1);
    let mut other = Fixture::new(EngineConfig { slot, ..config(4, 10_000) });
    assert!(!other.engine.restore_history(other.now, DISK, kept), "another slot");
    assert_eq!(other.engine.status(other.now).disks[0].min_read, 4);
    assert_eq!(slow.engine.disk_history(DiskNumber(1)), None, "no such disk");
}

/// A disk whose time is counted, at full load: what each read takes, and what passes before the
/// engine is told, are drawn by the test.
struct TimedDisk {
    fixture: Fixture,
    random: fastrand::Rng,
    title: u64,
}

impl TimedDisk {
    fn new() -> Self {
        Self::of_kind("st39183w", 10_000)
    }

    /// The buffers hold so many pieces.
    fn of_kind(name: &str, pieces: u64) -> Self {
        let policy = PolicyKind::TimeDomain;
        let mut fixture = Fixture::new(EngineConfig { policy, ..config(4, pieces) });
        let model = disk::DiskModel::preset(name).expect("a known disk");
        let timings = DiskTimings::of_model(&model, ByteCount(u64::from(PIECE)), 1);
        fixture.engine.set_timings(Moment::ZERO, DISK, timings);
        Self { fixture, random: fastrand::Rng::with_seed(1), title: 0 }
    }

    /// Viewers come one after the other for some seconds, as many as are admitted. A read
    /// takes `micros`; in one of ten the threads are not run for `delay` after it.
    fn pass(&mut self, seconds: u64, micros: u64, delay: Duration) {
        let end = self.fixture.now + Duration::from_secs(seconds);
        while self.fixture.now < end {
            self.title += 1;
            let _ = self.fixture.admit(self.title);
            let Some(read) = self.fixture.reads.first().copied() else {
                self.fixture.pass(100);
                continue;
            };
            self.fixture.reads.remove(0);
            let begun = self.fixture.now;
            let ended = begun + Duration::from_micros(micros);
            let delay = if self.random.u8(..10) == 0 { delay } else { Duration::ZERO };
            self.fixture.now = ended + delay;
            let (now, device) = (self.fixture.now, begun..ended);
            self.fixture.engine.read_done_within(now, read, ReadOutcome::Good, device);
            self.fixture.drain();
            self.fixture.send_all();
        }
    }

    /// A viewer comes every `every` for some seconds. A read takes `micros`; the end of one of a
    /// hundred is seen later by `unseen`, for which no thread is known to have waited.
    fn pass_unseen(&mut self, seconds: u64, every: Duration, micros: u64, unseen: Duration) {
        let end = self.fixture.now + Duration::from_secs(seconds);
        while self.fixture.now < end {
            self.title += 1;
            let _ = self.fixture.admit(self.title);
            while let Some(read) = self.fixture.reads.first().copied() {
                self.fixture.reads.remove(0);
                let begun = self.fixture.now;
                let late = if self.random.u8(..100) == 0 { unseen } else { Duration::ZERO };
                self.fixture.now = begun + Duration::from_micros(micros) + late;
                let (now, device) = (self.fixture.now, begun..self.fixture.now);
                self.fixture.engine.read_done_within(now, read, ReadOutcome::Good, device);
                self.fixture.drain();
                self.fixture.send_all();
            }
            self.fixture.now = self.fixture.now + every;
            self.fixture.engine.tick(self.fixture.now);
            self.fixture.drain();
        }
    }

    fn slowdown(&self) -> u64 {
        self.fixture.engine.status(self.fixture.now).disks[0].slowdown
    }
}

#[test]
fn threads_that_are_not_run_make_no_disk_slow() {
    let mut disk = TimedDisk::new();
    disk.pass(60, 5_000, Duration::from_millis(100));
    assert_eq!(disk.slowdown(), 0, "the disk was as fast as calibrated");
    disk.pass(20, 40_000, Duration::ZERO);
    assert!(disk.slowdown() > 500, "believed at once: {}", disk.slowdown());
    disk.pass(40, 5_000, Duration::from_millis(100));
    assert_eq!(disk.slowdown(), 0, "under full load, within 40 s");
}

/// A kernel without a free processor handles the end of a read a tick of 4 ms late, and no thread
/// knows of it. A read of 4 KiB is charged 0.1 ms.
#[test]
fn ends_of_reads_that_are_handled_a_tick_late_make_no_fast_disk_slow() {
    let (few, many) = (Duration::from_millis(200), Duration::from_millis(20));
    let seen = [(60, 20, few, 80, 4), (2000, 1, many, 450, 0)].map(
        |(pieces, seconds, every, micros, unseen)| {
            let mut disk = TimedDisk::of_kind("ssd-nvme", pieces);
            disk.pass_unseen(seconds, every, micros, Duration::from_millis(unseen));
            disk.slowdown()
        },
    );
    assert!(seen[0] < 512, "seen late: {seen:?}");
    assert!(seen[1] > 1024, "slow: {seen:?}");
}

#[test]
fn what_a_restart_keeps_of_a_slow_disk_is_contradicted_by_good_reads() {
    let mut before = TimedDisk::new();
    before.pass(20, 40_000, Duration::ZERO);
    let kept = before.fixture.engine.disk_history(DISK).unwrap();
    let kept = DiskHistory::decode(&kept.encode()).unwrap();
    let mut after = TimedDisk::new();
    assert!(after.fixture.engine.restore_history(Moment::ZERO, DISK, kept));
    assert_eq!(after.slowdown(), before.slowdown());
    after.pass(15, 5_000, Duration::ZERO);
    assert_eq!(after.slowdown(), 0);
}
