//! Özden, Rastogi and Silberschatz: a slot is two strokes of the head, out and back; each read
//! waits a whole revolution and settles, and lies where the disk is slowest.
//!
//! ```text
//!   Σ ( d_i / r_disk + t_rot + t_settle ) + 2 t_seek  ≤  T
//! ```
//!
//! Source: B. Özden, R. Rastogi, A. Silberschatz, "Disk striping in video server environments"
//! (IEEE Multimedia Computing and Systems, 1996), as I. Alderman and M. Diallo use it, there for
//! equal streams: q (d/r_disk + t_rot + t_settle) + 2 t_seek ≤ d/r_disp.
//!
//! The authors' guarantee needs a seek time that grows with the distance and by nothing else but
//! settling. Real actuators accelerate: many short movements take longer than two long ones. So it
//! is not counted among the policies that guarantee here. Where the disk's mechanics are not known:
//! [`Scan`].

use super::rounds::{ByRound, Round};
use super::scan::Scan;
use super::{Policy, Supply};
use crate::ledger::BookedLoad;
use disk::Costs;
use disk::bounds::RoundCost;
use units::{ByteCount, nanos};

pub(super) struct FullStroke;

impl Round for FullStroke {
    const OTHERWISE: &'static dyn Policy = &ByRound(Scan);

    fn takes(supply: &Supply<'_>, _: &Costs) -> Option<impl FnMut(BookedLoad) -> u64> {
        let timings = supply.timings;
        let round = timings.round.as_ref()?;
        Some(|all: BookedLoad| timings.stretch(takes(round, all)))
    }
}

fn takes(round: &RoundCost, all: BookedLoad) -> u64 {
    let transfer = ByteCount(all.bytes).time_at(round.rate);
    let each = (round.revolution + round.settle).saturating_mul(all.reads);
    let time = transfer.saturating_add(each).saturating_add(round.full_seek * 2);
    nanos(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use units::BitRate;

    /// Alderman and Diallo, 5.1: 70 streams of 1.5 Mb/s in reads of 1 MB on their disk, by the rate
    /// that they put in; a slot is the time that a read plays.
    #[test]
    fn the_papers_disk_holds_the_papers_seventy() {
        let round = RoundCost {
            rate: BitRate(120_000_000),
            revolution: Duration::from_micros(8_330),
            settle: Duration::from_micros(600),
            full_seek: Duration::from_millis(17),
        };
        let slot = 8_000_000_u64 * 1_000_000_000 / 1_500_000;
        let of = |reads: u32| {
            takes(&round, BookedLoad { reads, bytes: u64::from(reads) * 1_000_000, transfer: 0 })
        };
        assert!(of(70) <= slot && of(71) > slot, "{} and {} of {slot}", of(70), of(71));
    }
}
