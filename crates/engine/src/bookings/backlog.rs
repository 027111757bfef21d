//! Whether a disk falls behind for good: from the reads that are past their slots, as each slot
//! begins, and from those that the disk has completed since it fell behind.
//!
//! ```text
//!   reads past their slots
//!     a pause, then as calibrated     ▁▃█▇▆▅▄▃▂▁      fewer again: the disk catches up
//!     slower than what is booked      ▁▂▂▃▄▄▅▆▆▇█     ever more: after LASTING slots it is overloaded
//! ```
//!
//! Guards react to one slow sweep, and are right to: they only keep newcomers out. Sessions are
//! ended by this, so it waits until the disk has shown that it does not catch up.

/// The reads that a disk is behind with, slot by slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// Slots in a row at whose start reads were past their slots.
    slots: u32,
    /// Reads that were completed in them.
    done: u64,
    /// The most reads that were past their slots at once.
    most: u32,
    /// Whether there are as many now.
    grows: bool,
}

impl Backlog {
    /// A slot begins, with so many reads past theirs; `done` were completed in the last one.
    /// `silent`: the device had reads and completed none, which measures no speed.
    pub(crate) fn slot_begins(&mut self, overdue: u32, done: u32, silent: bool) {
        if overdue == 0 {
            *self = Self::default();
            return;
        }
        if self.slots > 0 && !silent {
            self.done += u64::from(done);
        }
        self.slots += u32::from(!silent);
        self.grows = overdue >= self.most;
        self.most = self.most.max(overdue);
    }

    /// The reads that the disk completes in a slot, in thousandths, if it has been behind for
    /// [`LASTING`] slots and does not catch up.
    pub(crate) fn speed_if_overloaded(&self) -> Option<u64> {
        let measured = u64::from(self.slots.checked_sub(1)?);
        (self.slots >= LASTING && self.grows).then(|| self.done * 1000 / measured.max(1))
    }
}

/// Slots for which a disk falls behind before sessions end: 10 s of 500 ms slots. Players have
/// buffers for about so long, and have measured by then that a smaller rendition would do.
pub(crate) const LASTING: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// The slots after which a disk is overloaded, and its speed then.
    fn overloaded(slots: impl IntoIterator<Item = (u32, u32)>) -> Option<(usize, u64)> {
        let mut backlog = Backlog::default();
        slots.into_iter().enumerate().find_map(|(number, (overdue, done))| {
            backlog.slot_begins(overdue, done, done == 0);
            Some((number, backlog.speed_if_overloaded()?))
        })
    }

    #[test]
    fn only_a_backlog_that_grows_for_long_is_an_overload() {
        let grows = || (1..100).map(|slot| (slot * 2, 8));
        assert_eq!(overloaded(grows()), Some((19, 8000)), "two reads more in each slot");
        let stays = || (1..100).map(|_| (7, 8));
        assert_eq!(overloaded(stays()), Some((19, 8000)), "never fewer");
        let hiccup = [(10, 1), (30, 2)].into_iter().chain((1..30).map(|slot| (30 - slot, 11)));
        assert_eq!(overloaded(hiccup), None, "it catches up");
        let on_time = grows().take(19).chain([(0, 8)]).chain(grows().take(19));
        assert_eq!(overloaded(on_time), None, "never for so long");
        let hangs = (1..100).map(|slot| (slot, 0));
        assert_eq!(overloaded(hangs), None, "a disk that does nothing is not slow");
    }
}
