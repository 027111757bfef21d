//! Vin's statistical admission: slots may overflow, as long as viewers on average get the part of
//! their reads in time that they are content with.
//!
//! ```text
//!   q F_o + (1 - q) F_s  ≥  p F_s      F_s  reads due in the slot
//!                                      q    the chance that they take longer than the slot
//!                                      F_o  reads of which an overflowing slot is sure
//!                                      p    the part that viewers want: [`WANTED`]
//! ```
//!
//! Source: H. M. Vin, P. Goyal, A. Goyal, A. Goyal, "A statistical admission control algorithm for
//! multimedia servers" (ACM Multimedia, 1994), with one p for all. There q comes from a measured
//! distribution of access times; here from the normal approximation of a sweep's time, of which
//! only the revolution is left to chance.
//!
//! No guarantee, on purpose. Where no revolution is known: [`Scan`].

use super::chance::Waits;
use super::rounds::{ByRound, Round};
use super::scan::Scan;
use super::{Policy, Supply};
use crate::ledger::BookedLoad;
use disk::Costs;
use units::nanos;

pub(super) struct Overflow;

impl Round for Overflow {
    const OTHERWISE: &'static dyn Policy = &ByRound(Scan);

    fn takes(supply: &Supply<'_>, costs: &Costs) -> Option<impl FnMut(BookedLoad) -> u64> {
        let timings = supply.timings;
        let waits = Waits::of(timings)?;
        let slot = nanos(supply.slot);
        Some(move |all: BookedLoad| {
            let reads = u64::from(all.reads);
            let worst = timings.stretch(costs.batch(reads, all.transfer));
            // Sure of all of them, or of as many as fit at their worst, at equal shares.
            let sure = if worst <= slot { reads } else { part(reads, slot, worst) };
            let deviations = allowed(reads, sure);
            let waiting = waits.normal(reads, deviations);
            timings.stretch(waits.sweep(costs, reads, all.transfer, waiting))
        })
    }
}

fn part(reads: u64, of: u64, whole: u64) -> u64 {
    let part = u128::from(reads) * u128::from(of) / u128::from(whole.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// Standard deviations above the mean at which the slot must end for q to be small enough: where
/// q ≤ (1 - p) F_s / (F_s - F_o).
fn allowed(due: u64, sure: u64) -> f64 {
    // Where every read is sure, any chance is small enough: one avoids the division by zero.
    let lost = due.saturating_sub(sure).max(1);
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 reads")]
    let chance = (1.0 - WANTED) * due as f64 / lost as f64;
    // The approximation below holds up to a half.
    deviations_of(chance.min(0.5))
}

/// The deviations that a normal variable exceeds with this chance, between 0 and a half.
///
/// M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions", 26.2.23: wrong by less than
/// 0.00045.
fn deviations_of(chance: f64) -> f64 {
    let t = (-2.0 * chance.ln()).sqrt();
    let above = 0.010_328_f64.mul_add(t, 0.802_853).mul_add(t, 2.515_517);
    let below = 0.001_308_f64.mul_add(t, 0.189_269).mul_add(t, 1.432_788).mul_add(t, 1.0);
    t - above / below
}

/// The part of its reads that a viewer wants in time: 0.999.
const WANTED: f64 = 0.999;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tails_of_the_normal_distribution() {
        for (chance, deviations) in
            [(0.5, 0.0), (0.158_655, 1.0), (0.022_750, 2.0), (0.001_350, 3.0)]
        {
            assert!((deviations_of(chance) - deviations).abs() < 5e-4, "{chance}");
        }
    }

    /// With 80 sure of 100 reads due, an overflow loses 20, so one slot in 200 may overflow for
    /// 0.1 % to be lost. Where none is sure, one in 1,000.
    #[test]
    fn the_more_an_overflow_loses_the_seldomer_it_may_be() {
        assert!((allowed(100, 80) - deviations_of(0.005)).abs() < 1e-9);
        assert!((allowed(100, 0) - deviations_of(0.001)).abs() < 1e-9);
        assert!((allowed(100, 100) - deviations_of(0.1)).abs() < 1e-9, "one read is lost at least");
    }
}
