//! Rates: what a solid-state disk can do is so many bytes a second or so many reads a second, or
//! some of both, less what it writes. Counted in the parts of its time that these take, and carried
//! forward as vbrSim carries reads.
//!
//! ```text
//!   reads / (reads/s) + bytes / (bytes/s) + kept for writes  ≤  1   for every deadline, summed up
//! ```
//!
//! The constants come from a measured curve, reads completed in a slot over their size: see
//! [`crate::Rates`], with its source. It is sure as long as the device keeps what was measured,
//! mixtures of sizes included. Where no rates are known: [`TimeDomain`].

use super::Policy;
use super::schedule::{ByWindow, Charge, Windowed};
use super::time_domain::TimeDomain;
use crate::disk_timings::DiskTimings;
use crate::visits::Swept;

pub(super) struct RatesPolicy;

impl Windowed for RatesPolicy {
    const OTHERWISE: &'static dyn Policy = &ByWindow(TimeDomain);

    fn charge(timings: &DiskTimings) -> Option<impl Charge> {
        timings.rates.as_ref().map(|rates| Terms(timings, rates))
    }
}

struct Terms<'a>(&'a DiskTimings, &'a crate::rates::Rates);

impl Charge for Terms<'_> {
    #[inline]
    fn takes(&self, _: u64, swept: Swept) -> u64 {
        self.0.stretch(self.1.nanos(swept.reads, swept.bytes))
    }
}
