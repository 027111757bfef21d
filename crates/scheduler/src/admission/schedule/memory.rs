//! What a window needs beside the disk's time: buffers for all of it, before it begins.

use super::Merged;

/// The buffers while a walk goes on.
pub(super) trait MemoryModel: Copy {
    /// Bytes that the window that is open may have.
    fn most(&self) -> u64;

    /// A window of so many bytes is read.
    fn take(&mut self, bytes: u64);

    /// Returns bytes that were taken and are not held after all.
    fn give_back(&mut self, bytes: u64);

    /// When, not before `at`, there is room for so many bytes that are due in this slot; or how
    /// many there is no room for.
    fn begins(&mut self, slots: &Merged<'_>, ahead: usize, at: u64, bytes: u64)
    -> Result<u64, u64>;
}

/// Buffers for everything.
#[derive(Clone, Copy)]
pub(super) struct UnlimitedMemory;

impl MemoryModel for UnlimitedMemory {
    #[inline(always)]
    fn most(&self) -> u64 {
        u64::MAX
    }

    #[inline(always)]
    fn take(&mut self, _: u64) {}

    #[inline(always)]
    fn give_back(&mut self, _: u64) {}

    #[inline(always)]
    fn begins(&mut self, _: &Merged<'_>, _: usize, at: u64, _: u64) -> Result<u64, u64> {
        Ok(at)
    }
}

/// A bounded amount of buffers, as the schedule takes and frees them.
#[derive(Clone, Copy)]
pub(super) struct LimitedMemory {
    pub(super) most: u64,
    /// Read and not let go at the moment that the walk has come to.
    pub(super) used: u64,
    /// What is let go at the ends of slots before this one is off; when a window that waits for its
    /// end is read as if it had begun: at its end and the delay after a pause; nanoseconds of a
    /// slot.
    to: usize,
    frees: u64,
    slot: u64,
}

impl LimitedMemory {
    /// Before the first slot; windows that wait for its end are delayed until `frees`.
    pub(super) fn new(most: u64, used: u64, frees: u64, slot: u64) -> Self {
        Self { most, used, to: 0, frees, slot }
    }

    #[inline(always)]
    fn next(&mut self, slots: &Merged<'_>) {
        self.used = self.used.saturating_sub(slots.freed(self.to));
        self.to += 1;
        self.frees = self.frees.saturating_add(self.slot);
    }
}

impl MemoryModel for LimitedMemory {
    #[inline(always)]
    fn most(&self) -> u64 {
        self.most.saturating_sub(self.used)
    }

    #[inline(always)]
    fn take(&mut self, bytes: u64) {
        self.used += bytes;
    }

    #[inline(always)]
    fn give_back(&mut self, bytes: u64) {
        self.used -= bytes;
    }

    #[inline(always)]
    fn begins(
        &mut self,
        slots: &Merged<'_>,
        ahead: usize,
        at: u64,
        bytes: u64,
    ) -> Result<u64, u64> {
        let mut begins = at;
        // Buffers that are free by then cost no wait.
        while self.to < ahead && self.frees <= begins {
            self.next(slots);
        }
        // The window waits slot by slot, but not beyond the slot in which its reads are due.
        while self.used + bytes > self.most && self.to < ahead {
            begins = begins.max(self.frees);
            self.next(slots);
        }
        match (self.used + bytes).saturating_sub(self.most) {
            0 => Ok(begins),
            missing => Err(missing),
        }
    }
}
