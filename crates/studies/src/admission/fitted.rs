//! The two disks of Makaroff, Coutu and Liu: what their Table 2 says they did, rather than what
//! their data sheets say they were.
//!
//! Both are fits, not portraits. The paper gives capacities and speeds of rotation (18 GB at 10,000
//! rpm, 9 GB at 5,400 rpm), no zones and no seek times; and it gives how many 64 KiB blocks the
//! disks read in a slot of 500 ms, at worst and in use. They are built-in models, and their sources
//! stand in the parameter files.

use disk::DiskModel;

/// The smaller disk: 46 to 50 blocks from pathological places, 54 to 82 in use.
pub fn small() -> DiskModel {
    built_in("makaroff-small")
}

/// The larger disk: 78 to 91 blocks from pathological places, 161 to 206 in use.
pub fn large() -> DiskModel {
    built_in("makaroff-large")
}

fn built_in(name: &str) -> DiskModel {
    DiskModel::preset(name).expect("a built-in model")
}

/// Blocks that a disk reads in a slot from places spread evenly over it, in one sweep: the paper's
/// calibration. `turn` is the part of a revolution that each waits for the platter.
pub fn pathological(model: &DiskModel, block: u64, slot: std::time::Duration, turn: f64) -> u32 {
    let fits = |count: u32| {
        let mut head = model.head();
        let mut now = units::Moment::ZERO;
        for i in 0..count {
            let part = (f64::from(i) + 0.5) / f64::from(count);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place")]
            let middle = (part * model.capacity().0 as f64) as u64;
            let offset = middle.min(model.capacity().0 - block);
            now = head.serve_turned(now, offset, block, turn).finish;
        }
        now <= units::Moment::ZERO + slot
    };
    (1..).take_while(|count| fits(*count)).last().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::BLOCK;
    use std::time::Duration;

    #[test]
    fn both_disks_calibrate_as_those_of_the_paper() {
        let slot = Duration::from_millis(500);
        let count = |model: &DiskModel, turn| pathological(model, BLOCK, slot, turn);
        assert_eq!(count(&small(), 0.5), 49, "the paper: 46 and 50");
        assert_eq!(count(&large(), 0.5), 78, "the paper: 78 and 91");
        assert!(count(&small(), 1.0) < 46 && count(&large(), 1.0) < 78, "not at worst rotation");
    }
}
