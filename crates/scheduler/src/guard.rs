//! A second guard beside calibration: what the disk did lately. It can only tighten.
//!
//! A drive that retries, rebuilds or wears out keeps working, slower ("fail-stutter"). A batch
//! that was not complete when its slot ended lowers what is promised from then on; slots in which
//! the batch was complete raise it again, slowly, never above the calibration.
//!
//! ```text
//!   reads are counted    Guard       reads done of a batch, slot by slot    ─▶ min_read
//!                                                                           └▶ behind, for curves
//!   time is counted      TimeGuard   sweeps' time over their charge         ─▶ behind
//! ```
//!
//! Neither learns that a disk is better than it was known to be: that is calibration's to find out.

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
            if self.good_slots >= EASE_SLOTS {
                self.good_slots = 0;
                self.effective += 1;
            }
        }
    }

    /// `slots` have passed in which nothing was booked on the disk. They count as good ones: a disk
    /// that is believed too slow for anybody is not read any more, and would stay so for ever.
    pub fn idle(&mut self, slots: u64) {
        // Nothing changes any more after so many slots.
        let needed = u64::from(self.calibrated - self.effective) * u64::from(EASE_SLOTS);
        (0..slots.min(needed)).for_each(|_| self.slot_ended(0, 0));
    }

    /// What is kept of it beside the calibration.
    pub(crate) fn words(&self) -> [u64; 2] {
        [self.effective.into(), self.good_slots.into()]
    }

    /// The state from its words; `None` if no sequence of slots leads to it.
    pub(crate) fn of_words(calibrated: u32, [effective, good_slots]: [u64; 2]) -> Option<Self> {
        let sound = effective <= u64::from(calibrated) && good_slots < EASE_SLOTS.into();
        let short = |word: u64| u32::try_from(word).ok().filter(|_| sound);
        let (effective, good_slots) = (short(effective)?, short(good_slots)?);
        Some(Self { calibrated, effective, good_slots })
    }

    fn floor(&self) -> u32 {
        (self.calibrated / FLOOR_PART).max(1).min(self.calibrated)
    }
}

/// The slowdown of a disk whose time is counted: by how much its sweeps lately exceeded their
/// charge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeGuard {
    slowdown: u64,
    good_sweeps: u32,
}

impl TimeGuard {
    /// In 1,024ths of the charge: what [`DiskTimings::slowdown`](crate::DiskTimings::slowdown)
    /// wants to know.
    pub fn slowdown(&self) -> u64 {
        self.slowdown
    }

    /// A sweep that was charged `charged` nanoseconds (by the disk's model) took `took`.
    pub fn swept(&mut self, charged: u64, took: u64) {
        if !self.tightened(charged, took) {
            self.eased();
        }
    }

    /// As [`Guard::idle`]: each of the `slots` counts as a sweep in time.
    pub fn idle(&mut self, slots: u64) {
        for _ in 0..slots {
            if self.slowdown == 0 {
                break;
            }
            self.eased();
        }
    }

    /// A sweep that was charged so much is under way for so long: what is known of it before it
    /// ends, if it ever does. To be told once a slot.
    pub fn under_way(&mut self, charged: u64, so_far: u64) {
        self.tightened(charged, so_far);
    }

    /// As [`Guard::words`].
    pub(crate) fn words(&self) -> [u64; 2] {
        [self.slowdown, self.good_sweeps.into()]
    }

    /// As [`Guard::of_words`].
    pub(crate) fn of_words([slowdown, good_sweeps]: [u64; 2]) -> Option<Self> {
        let sound = slowdown <= MAX_SLOWDOWN && good_sweeps < EASE_SLOTS.into();
        let good_sweeps = u32::try_from(good_sweeps).ok().filter(|_| sound)?;
        Some(Self { slowdown, good_sweeps })
    }

    // A sweep was in time.
    fn eased(&mut self) {
        if self.slowdown > 0 {
            self.good_sweeps += 1;
            if self.good_sweeps >= EASE_SLOTS {
                self.good_sweeps = 0;
                // Rounded up, so that the slowdown reaches zero.
                self.slowdown -= self.slowdown.div_ceil(16);
            }
        }
    }

    // Whether that was longer than believed.
    fn tightened(&mut self, charged: u64, took: u64) -> bool {
        let excess = u128::from(took.saturating_sub(charged)) * 1024;
        let over = u64::try_from(excess / u128::from(charged.max(1))).unwrap_or(u64::MAX);
        // Slower than calibrated, but no slower than assumed: no reason to tighten.
        if over <= self.slowdown {
            return false;
        }
        self.good_sweeps = 0;
        // Like a late slot: at once, but a single hiccup takes no more than a quarter.
        self.slowdown = over.min(self.slowdown + (1024 + self.slowdown) / 4).min(MAX_SLOWDOWN);
        true
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

/// Good slots, or sweeps in time, after which a guard eases by one step: two seconds of 500 ms
/// slots for each read regained.
pub const EASE_SLOTS: u32 = 4;

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
        assert_eq!([after(5, 5), after(0, 0), after(5, 5), after(5, 5)], [5, 5, 5, 6]);
        for _ in 0..1000 {
            assert!(after(1, 1) <= 40);
        }
        assert_eq!(guard.min_read(), 40, "never above the calibration");
        assert_eq!(guard.slowdown(), 0);
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
        assert_eq!(guard.min_read(), 7, "four slots for each read");
        guard.idle(u64::MAX);
        assert_eq!(guard.min_read(), 40);

        let mut guard = TimeGuard::default();
        guard.swept(1000, 1200);
        guard.idle(3);
        assert_eq!(guard.slowdown(), 204);
        guard.idle(1);
        assert_eq!(guard.slowdown(), 191, "a sixteenth in four slots");
        guard.idle(u64::MAX);
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
        assert_eq!([after(1000), after(1000), after(1200), after(1000)], [383, 383, 383, 359]);
        for _ in 0..400 {
            after(500);
        }
        assert_eq!(guard.slowdown(), 0);
        let mut during = |so_far| {
            guard.under_way(1000, so_far);
            guard.slowdown()
        };
        assert_eq!([during(999), during(1500), during(2000)], [0, 256, 576], "before it ends");
        assert_eq!([during(10), during(10), during(10), during(10), during(10)], [576; 5]);
        (0..40).for_each(|_| guard.swept(0, u64::MAX));
        assert_eq!(guard.slowdown(), MAX_SLOWDOWN);
    }
}
