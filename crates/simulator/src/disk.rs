//! Disks in virtual time: one that keeps exactly its word, at the worst moments; and the heads of
//! a modelled one.

use crate::scenario::{DiskKind, Timing};
use disk::{DiskModel, Head};
use server::engine::DiskGuarantee;
use std::time::Duration;
use units::{ByteCount, Moment, SlotIndex, align_down};

/// A disk that says when what is given to it will be complete.
#[derive(Debug)]
pub(crate) enum SimDisk {
    Guaranteed(Guaranteed),
    Model(Box<Head>, Moment),
}

#[derive(Debug)]
pub(crate) struct Guaranteed {
    promised: u32,
    kept: u32,
    timing: Timing,
    slot: Duration,
    longest: Duration,
    // Reads given at the start of this slot, and when the last of everything is complete.
    batch_slot: SlotIndex,
    batch: u32,
    free_at: Moment,
}

impl SimDisk {
    pub(crate) fn new(kind: DiskKind, slot: Duration) -> Self {
        match kind {
            DiskKind::Guaranteed { promised, kept, timing } => Self::Guaranteed(Guaranteed {
                promised,
                kept,
                timing,
                slot,
                longest: slot / promised.max(1),
                batch_slot: SlotIndex(0),
                batch: 0,
                free_at: Moment::ZERO,
            }),
            DiskKind::Model(name) => {
                let model = DiskModel::preset(name).expect("scenarios name presets");
                Self::Model(Box::new(model.head()), Moment::ZERO)
            }
        }
    }

    /// What it promises for reads of `read_size`.
    pub(crate) fn guarantee(&self, read_size: ByteCount, slot: Duration) -> DiskGuarantee {
        match self {
            Self::Guaranteed(disk) => DiskGuarantee {
                min_read: disk.promised,
                read_size,
                longest_read: disk.longest,
                queue_depth: 4,
            },
            Self::Model(head, _) => DiskGuarantee {
                min_read: head.model().guaranteed_reads(read_size, slot),
                read_size,
                longest_read: head.model().worst_read(read_size),
                queue_depth: 1,
            },
        }
    }

    /// Bytes on it; places beyond are folded back.
    pub(crate) fn capacity(&self) -> u64 {
        match self {
            Self::Guaranteed(_) => u64::MAX,
            Self::Model(head, _) => head.model().capacity().0,
        }
    }

    /// When a read given to it now will be complete.
    pub(crate) fn complete_at(
        &mut self,
        random: &mut fastrand::Rng,
        now: Moment,
        offset: u64,
        len: u64,
    ) -> Moment {
        match self {
            Self::Guaranteed(disk) => disk.complete_at(random, now),
            Self::Model(head, free_at) => {
                let room = align_down(head.model().capacity().0 - len, 4096);
                let service = head.serve(now.max(*free_at), offset % room, len, false);
                *free_at = service.finish;
                service.finish
            }
        }
    }
}

impl Guaranteed {
    fn complete_at(&mut self, random: &mut fastrand::Rng, now: Moment) -> Moment {
        let slot = SlotIndex::at(now, self.slot);
        if now > slot.start(self.slot) {
            // Read-ahead: as long as a read may ever take, behind all others.
            self.free_at = self.free_at.max(now) + self.longest;
            return self.free_at;
        }
        if slot != self.batch_slot {
            (self.batch_slot, self.batch) = (slot, 0);
        }
        self.batch += 1;
        let at = self.within_slot(random, slot);
        self.free_at = self.free_at.max(at);
        at
    }

    // What the disk does not manage in a slot it does in the next, or the one after.
    fn within_slot(&self, random: &mut fastrand::Rng, slot: SlotIndex) -> Moment {
        let kept = self.kept.max(1);
        let (slots_later, nth) = ((self.batch - 1) / kept, (self.batch - 1) % kept + 1);
        let start = (slot + u64::from(slots_later)).start(self.slot);
        let last = self.slot - Duration::from_nanos(1);
        start
            + match self.timing {
                Timing::Last => last,
                Timing::Even => last * nth / kept,
                Timing::Random => last.mul_f64(random.f64()),
                Timing::Early => last * nth / kept / 2,
            }
    }
}
