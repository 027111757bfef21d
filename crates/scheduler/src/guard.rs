//! A second guard beside calibration: what the disk did lately. It can only tighten.
//!
//! A drive that retries, rebuilds or wears out keeps working, slower ("fail-stutter"). A batch
//! that was not complete when its slot ended, or a sweep that took longer than it was charged,
//! lowers at once what is promised. Half a minute without either restores the calibration.
//!
//! ```text
//!   reads are counted    Guard       reads done of a batch, slot by slot    ─▶ min_read
//!                                                                           └▶ behind, for curves
//!   time is counted      TimeGuard   sweeps' time over their charge         ─▶ behind
//! ```
//!
//! What was observed before a restart is believed until a few seconds of reads contradict it: the
//! machine may have been busy then.
//!
//! Neither learns that a disk is better than it was known to be: that is calibration's to find out.

use std::time::Duration;
use units::nanos;

/// The guaranteed reads per slot of one disk, as believed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    calibrated: u32,
    effective: u32,
    good_slots: u32,
}

impl Guard {
    /// Believes the calibration. `calibrated` is reads per slot.
    pub fn new(calibrated: u32) -> Self {
        Self { calibrated, effective: calibrated, good_slots: 0 }
    }

    /// Reads per slot to promise and to ask for now.
    pub fn min_read(&self) -> u32 {
        self.effective
    }

    /// How much less that is than calibrated, as
    /// [`DiskTimings::slowdown`](crate::DiskTimings::slowdown) counts it: for policies that have
    /// another number of reads than `min_read`. What is left of their number is the same part as of
    /// the calibration, or less.
    pub fn slowdown(&self) -> u64 {
        let calibrated = u64::from(self.calibrated) * 1024;
        calibrated.div_ceil(u64::from(self.effective.max(1))).saturating_sub(1024)
    }

    /// A new calibration: begins anew.
    pub fn recalibrate(&mut self, calibrated: u32) {
        *self = Self::new(calibrated);
    }

    /// A slot has ended in which a batch of `asked` reads was given to the disk at its start and
    /// `done` of them completed.
    pub fn slot_ended(&mut self, asked: u32, done: u32) {
        if done < asked {
            self.good_slots = 0;
            let gentle = self.effective - self.effective.div_ceil(SHRINK_PART);
            // A small batch may miss its slot with more reads done than are guaranteed now: min()
            // keeps a late slot from raising the guarantee.
            self.effective = done.max(gentle).max(self.floor()).min(self.effective);
        } else if self.effective < self.calibrated {
            self.good_slots += 1;
            if self.good_slots.is_multiple_of(EASE_SLOTS) {
                // 1, 2, 4, ... reads: a disk that is slow is tried with one read more, and one that
                // no longer is needs half a minute for any number.
                let step = 1 << (self.good_slots / EASE_SLOTS - 1).min(MOST_STEPS);
                self.effective = self.calibrated.min(self.effective.saturating_add(step));
            }
            if self.effective == self.calibrated {
                self.good_slots = 0;
            }
        }
    }

    /// `slots` have passed in which nothing was booked on the disk. They count as good ones: a disk
    /// that is believed too slow for anybody is not read any more, and would stay so for ever.
    pub fn idle(&mut self, slots: u64) {
        // Nothing changes any more after so many slots.
        let most = u64::from(EASE_SLOTS * (MOST_STEPS + 1));
        (0..slots.min(most)).for_each(|_| self.slot_ended(0, 0));
    }

    /// What is kept of it over a restart, beside the calibration.
    pub(crate) fn word(&self) -> u64 {
        self.effective.into()
    }

    /// The guard that begins with a kept word, which the next good slots contradict; `None` if it
    /// is no such word.
    pub(crate) fn of_word(calibrated: u32, effective: u64) -> Option<Self> {
        let effective = u32::try_from(effective).ok().filter(|reads| *reads <= calibrated)?;
        let good_slots = if effective < calibrated { EASE_SLOTS * MOST_STEPS } else { 0 };
        Some(Self { calibrated, effective, good_slots })
    }

    fn floor(&self) -> u32 {
        (self.calibrated / FLOOR_PART).max(1).min(self.calibrated)
    }
}

/// The slowdown of a disk whose time is counted: by how much its slowest sweep of the last half
/// minute exceeded its charge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeGuard {
    // The largest excess over the charge in each block of time, latest first, in 1,024ths.
    worst: [u64; BLOCKS],
    // Nanoseconds of the latest block that have passed; zero while no block has an excess.
    filled: u64,
    // Excess of the sweep under way so far.
    under_way: u64,
}

impl TimeGuard {
    /// In 1,024ths of the charge: what [`DiskTimings::slowdown`](crate::DiskTimings::slowdown)
    /// wants to know.
    pub fn slowdown(&self) -> u64 {
        self.worst.iter().copied().max().unwrap_or(0).max(self.under_way)
    }

    /// A sweep that was charged `charged` nanoseconds (by the disk's model) took `took`. The time
    /// that has passed until its end is to be told first.
    pub fn swept(&mut self, charged: u64, took: u64) {
        let over = self.believable(charged, took);
        // It may have seemed longer before it had ended.
        self.under_way = 0;
        self.worst[0] = self.worst[0].max(over);
    }

    /// So much time has passed in which sweeps have ended, whatever they took, or nothing was
    /// booked: what was observed before it is older by that.
    pub fn passed(&mut self, time: Duration) {
        if self.worst == [0; BLOCKS] {
            self.filled = 0;
            return;
        }
        self.filled = self.filled.saturating_add(nanos(time));
        // Blocks whose time is over are forgotten.
        let over = usize::try_from(self.filled / BLOCK).unwrap_or(BLOCKS).min(BLOCKS);
        self.filled %= BLOCK;
        self.worst.rotate_right(over % BLOCKS);
        self.worst[..over].fill(0);
    }

    /// A sweep that was charged so much is under way for so long: what is known of it before it
    /// ends, if it ever does. To be told once a slot.
    pub fn under_way(&mut self, charged: u64, so_far: u64) {
        self.under_way = self.under_way.max(self.believable(charged, so_far));
    }

    /// As [`Guard::word`].
    pub(crate) fn word(&self) -> u64 {
        self.slowdown()
    }

    /// As [`Guard::of_word`].
    pub(crate) fn of_word(slowdown: u64) -> Option<Self> {
        let mut guard = Self::default();
        // In the block that is forgotten first.
        guard.worst[BLOCKS - 1] = slowdown;
        (slowdown <= MAX_SLOWDOWN).then_some(guard)
    }

    // The excess of a sweep, as far as it is believed: of a single hiccup, a quarter more than
    // before, as of a late slot.
    fn believable(&self, charged: u64, took: u64) -> u64 {
        let excess = u128::from(took.saturating_sub(charged)) * 1024;
        let over = u64::try_from(excess / u128::from(charged.max(1))).unwrap_or(u64::MAX);
        let before = self.slowdown();
        over.min(before + (1024 + before) / 4).min(MAX_SLOWDOWN)
    }
}

/// How far a disk is behind, as a part of what it is counted with, from 1,024ths.
pub fn slowdown_part(slowdown: u64) -> f64 {
    slowdown as f64 / 1024.0
}

/// Eight times as slow, it is broken: see [`FLOOR_PART`].
const MAX_SLOWDOWN: u64 = 7 * 1024;

/// One late slot takes at most a quarter: a single hiccup of a busy disk must not close the door
/// for minutes, a slow disk is found out within a few slots all the same.
const SHRINK_PART: u32 = 4;

/// Below an eighth the disk is broken, not slow; somebody must look at it.
const FLOOR_PART: u32 = 8;

/// Good slots in a row after which a guard that counts reads eases by one step: two seconds of 500
/// ms slots.
pub const EASE_SLOTS: u32 = 4;

/// Steps in a row, each twice the one before, after which any number of reads is regained: 34 s.
const MOST_STEPS: u32 = 16;

/// Blocks of time in which the slowest sweep is remembered: together 32 s. A disk that is slow once
/// in that time stays counted as slow.
const BLOCKS: usize = 8;

/// Nanoseconds in such a block.
const BLOCK: u64 = 4_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tightens_at_once_and_recovers_slowly() {
        let mut guard = Guard::new(40);
        let mut after = |asked, done| {
            guard.slot_ended(asked, done);
            guard.min_read()
        };
        assert_eq!(after(40, 40), 40);
        assert_eq!(after(40, 38), 38, "what it did");
        assert_eq!(after(38, 2), 28, "at most a quarter");
        assert_eq!([after(28, 2), after(21, 2), after(15, 2), after(11, 2)], [21, 15, 11, 8]);
        assert_eq!([after(8, 0), after(6, 0), after(5, 0)], [6, 5, 5], "the floor");
        let eased: Vec<u32> = (0..24).map(|_| after(5, 5)).collect();
        assert_eq!(eased[..8], [5, 5, 5, 6, 6, 6, 6, 8], "one read more, then two");
        assert_eq!(eased[20..], [36, 36, 36, 40], "never above the calibration");
        assert_eq!((guard.min_read(), guard.slowdown()), (40, 0));
        guard.slot_ended(40, 30);
        // Of any other number, three quarters are left.
        let timings =
            crate::DiskTimings { slowdown: guard.slowdown(), ..crate::DiskTimings::default() };
        assert_eq!(
            [40, 80, 1000].map(|reads| timings.shrink(reads)),
            [29, 59, 749],
            "or a little less"
        );
    }

    #[test]
    fn both_ease_while_nothing_is_booked() {
        let mut guard = Guard::new(40);
        (0..20).for_each(|_| guard.slot_ended(40, 0));
        assert_eq!(guard.min_read(), 5);
        guard.idle(8);
        assert_eq!(guard.min_read(), 8, "one read and two");
        guard.idle(u64::MAX);
        assert_eq!(guard.min_read(), 40);

        let mut guard = TimeGuard::default();
        guard.swept(1000, 1200);
        guard.passed(Duration::from_secs(31));
        assert_eq!(guard.slowdown(), 204);
        guard.passed(Duration::from_secs(1));
        assert_eq!(guard.slowdown(), 0);
    }

    /// A slowdown of 21 %, once: with a second of reading at the calibrated speed in each sweep,
    /// and with as many reads in a slot as are guaranteed, both guards believe the calibration
    /// again.
    #[test]
    fn a_disk_under_full_load_is_believed_again_within_half_a_minute() {
        let second = 1_000_000_000;
        let mut guard = TimeGuard::default();
        guard.swept(second, 1_210_000_000);
        assert_eq!(guard.slowdown(), 215);
        let believed = (1..100).find(|_| {
            guard.passed(Duration::from_secs(1));
            guard.swept(second, second);
            guard.slowdown() == 0
        });
        assert_eq!(believed, Some(32));
        for calibrated in [20, 200, 2_000, 200_000] {
            let mut guard = Guard::new(calibrated);
            guard.slot_ended(calibrated, calibrated / 100 * 79);
            let believed = (1..1000).find(|_| {
                let asked = guard.min_read();
                guard.slot_ended(asked, asked);
                guard.min_read() == calibrated
            });
            let slots = believed.unwrap();
            assert!(slots <= 17 * EASE_SLOTS, "{calibrated} reads: {slots} slots");
        }
    }

    #[test]
    fn a_disk_that_stays_slow_stays_known_as_slow() {
        // Every eighth sweep of a second shows it; the others, with fewer reads, do not.
        let mut guard = TimeGuard::default();
        for sweep in 0..1000 {
            let over = if sweep % 8 == 0 { 200 } else { 0 };
            guard.passed(Duration::from_secs(1));
            guard.swept(1000, 1000 + over);
            assert_eq!(guard.slowdown(), 204, "sweep {sweep}");
        }
        // 158 reads in a slot are done where 200 were calibrated.
        let mut guard = Guard::new(200);
        let done = |asked: u32| asked.min(158);
        guard.slot_ended(200, done(200));
        for slot in 0..1000 {
            let asked = guard.min_read();
            guard.slot_ended(asked, done(asked));
            assert!((158..=159).contains(&guard.min_read()), "slot {slot}: {}", guard.min_read());
        }
    }

    #[test]
    fn what_was_known_before_a_restart_is_contradicted_within_seconds() {
        let mut guard = TimeGuard::of_word(215).unwrap();
        guard.swept(1000, 1000);
        assert_eq!(guard.slowdown(), 215);
        guard.passed(Duration::from_nanos(BLOCK));
        assert_eq!(guard.slowdown(), 0);
        let mut guard = TimeGuard::of_word(215).unwrap();
        guard.passed(Duration::from_nanos(BLOCK));
        guard.swept(1000, 1200);
        assert_eq!(guard.slowdown(), 204, "it is still slow");
        assert_eq!(TimeGuard::of_word(MAX_SLOWDOWN + 1), None);

        let mut guard = Guard::of_word(200, 118).unwrap();
        (0..EASE_SLOTS - 1).for_each(|_| guard.slot_ended(118, 118));
        assert_eq!(guard.min_read(), 118);
        guard.slot_ended(118, 118);
        assert_eq!(guard.min_read(), 200);
        assert_eq!(Guard::of_word(200, 201), None);
    }

    #[test]
    fn a_sweep_that_only_seemed_long_before_it_ended_changes_nothing() {
        let mut guard = TimeGuard::default();
        guard.under_way(1000, 5000);
        assert_eq!(guard.slowdown(), 256, "believed at once");
        guard.swept(1000, 1000);
        assert_eq!(guard.slowdown(), 0);
    }

    #[test]
    fn a_disk_that_guarantees_nothing_stays_at_nothing() {
        let mut guard = Guard::new(0);
        guard.slot_ended(1, 0);
        assert_eq!(guard.min_read(), 0);
    }

    #[test]
    fn a_disk_that_takes_longer_than_it_is_charged_is_charged_more() {
        let mut guard = TimeGuard::default();
        let mut after = |took| {
            guard.swept(1000, took);
            guard.slowdown()
        };
        assert_eq!([after(900), after(1000)], [0, 0]);
        assert_eq!(after(1100), 102, "a tenth");
        assert_eq!(after(9000), 102 + 281, "at most a quarter of the whole at once");
        assert_eq!([after(1000), after(1000), after(1200)], [383; 3]);
        guard.passed(Duration::from_secs(32));
        let mut during = |so_far| {
            guard.under_way(1000, so_far);
            guard.slowdown()
        };
        assert_eq!([during(999), during(1500), during(2000)], [0, 256, 576], "before it ends");
        assert_eq!([during(10), during(10), during(10)], [576; 3]);
        guard.swept(1000, 9000);
        assert_eq!(guard.slowdown(), 976, "a quarter more than was known before");
        (0..40).for_each(|_| guard.swept(0, u64::MAX));
        assert_eq!(guard.slowdown(), MAX_SLOWDOWN);
    }
}
