//! Scenarios as in Makaroff, Coutu and Liu (section 3): requests are drawn one by one and arrive as
//! a Poisson process, until their sum reaches a given share of the disk's bandwidth.
//!
//! The load axis is that of the paper: the *cumulative average bandwidth requested* (CABR), the sum
//! of the streams' mean rates, as a percentage of the *bandwidth achieved* (BA) by a server like
//! theirs on the same scenario. Both are in blocks of 64 KiB per slot of 500 ms.

use super::disk_server::Rules;
use super::random::RandomSource;
use super::requests::{Draw, ReadSchedule};
use super::titles::{BLOCK, TitleSource};
use disk::Costs;
use std::sync::Arc;
use std::time::Duration;
use units::{Moment, SlotIndex};

/// Arrivals of viewers, and the titles that they ask for.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Arrivals in order of time.
    pub arrivals: Vec<Arrival>,
    /// CABR: blocks a slot.
    pub requested: f64,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When.
    pub at: Moment,
    /// In reads of one block.
    pub blocks: Arc<ReadSchedule>,
    /// In reads of the size that the disk is read with.
    pub reads: Arc<ReadSchedule>,
}

/// What scenarios are like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Mean time between arrivals.
    pub gap: Duration,
    /// Bytes of the largest read of the server that is not like the paper's.
    pub read_size: u64,
    /// The scheduling period.
    pub slot: Duration,
    /// Whether a title may be asked for again before all others were.
    pub repeated: bool,
}

impl Scenario {
    /// Draws requests until they ask for about `target` blocks a slot.
    pub(crate) fn draw(
        source: &dyn TitleSource,
        workload: &Workload,
        costs: Option<&Costs>,
        target: f64,
        seed: u64,
    ) -> Self {
        let mut random = RandomSource::new(seed, REQUESTS);
        let mut draw = Draw::new(source, workload.repeated, &mut random);
        let (mut arrivals, mut requested, mut at) = (Vec::new(), 0.0, Moment::ZERO);
        let slot = workload.slot.as_secs_f64();
        // At least one request, because the load of an empty scenario is undefined.
        while arrivals.is_empty() || (requested < target && arrivals.len() < MOST_ARRIVALS) {
            let (request, title) = draw.next(source, &mut random);
            at = at + Duration::from_secs_f64(random.exponential(workload.gap.as_secs_f64()));
            let schedule =
                |size| Arc::new(ReadSchedule::new(&title, &request.view, size, slot, costs));
            let blocks = schedule(BLOCK);
            // CABR is counted in blocks, whatever the read size of the server: the load axis is the
            // same for all.
            let rate = blocks.rate();
            // Whichever comes nearer to the target: with this one or without.
            if requested + rate / 2.0 > target && !arrivals.is_empty() {
                break;
            }
            requested += rate;
            arrivals.push(Arrival { at, blocks, reads: schedule(workload.read_size) });
        }
        Self { arrivals, requested }
    }
}

/// Whether any schedule at all could deliver everything: the reads' transfers alone, earliest
/// deadline first, cut wherever it helps, with no time lost to the arm or the platter.
pub(crate) fn could_be_delivered(scenario: &Scenario, rules: &Rules) -> bool {
    let slot = rules.slot;
    let mut due: Vec<u64> = Vec::new(); // nanoseconds of transfer by due slot
    let (mut free, mut first) = (Moment::ZERO, 0);
    let mut arrivals = scenario.arrivals.iter().peekable();
    loop {
        let until = arrivals.peek().map_or(Moment::MAX, |arrival| arrival.at);
        while free < until {
            while due.get(first) == Some(&0) {
                first += 1;
            }
            let Some(left) = due.get_mut(first) else {
                free = until;
                break;
            };
            let worked = (until.0 - free.0).min(*left);
            *left -= worked;
            free = Moment(free.0 + worked);
            // Work stops at arrivals, so that lateness shows only when all of a slot's work is
            // done.
            if *left == 0 && free > SlotIndex(first as u64 + 1).start(slot) {
                return false;
            }
        }
        let Some(arrival) = arrivals.next() else { return true };
        let begins = rules.first_slot(arrival.at);
        // Reads of one block: a long read is due with its first block, and would count later blocks
        // too early in a bound that no scheduler may exceed.
        for read in &arrival.blocks.reads {
            let slot_due = super::disk_server::due_slot(read, begins);
            let at = usize::try_from(slot_due.0).unwrap_or(usize::MAX);
            if at >= due.len() {
                due.resize(at + 1, 0);
            }
            due[at] += u64::from(read.transfer);
            // A new viewer may need something before all that is left.
            first = first.min(at);
        }
    }
}

/// A scenario with more is of another kind.
const MOST_ARRIVALS: usize = 2000;

// The name of a source of chance.
const REQUESTS: u64 = 4;
