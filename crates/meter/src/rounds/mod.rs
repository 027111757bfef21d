//! Rounds: how many streams of equal rate a disk holds, counted as in Alderman and Diallo.
//!
//! ```text
//!   N streams, each needs its next block (d bytes) every round (d / r seconds)
//!
//!   round 0        round 1        round 2            strict: block k of every stream is in memory
//!   ├─ d d d ··· ──┼─ d d d d d ──┼──────────┤       (k + 1) rounds after its stream's start,
//!   began   ended  began     ended└ deadline         however late the rounds before were
//! ```
//!
//! [`RoundsPlan`] says what is read and in which order. A [`Port`] says how, and by which clock: a
//! simulated disk in virtual time, or any device, file or file system through one of the kernel's
//! interfaces; [`FileAStream`] reads one file for each stream. [`run`] is the same for all.
//! [`most_streams`] searches the largest number that is held; [`run_together`] reads several disks
//! in parallel.
//!
//! The module only reads and does not model a player: [`tenuto_client`] does.

mod cut;
mod drift;
mod faster;
mod file_a_stream;
mod outcome;
mod plan;
mod search;

pub use cut::Cut;
pub use drift::FrameDrift;
pub use faster::Faster;
pub use file_a_stream::FileAStream;
pub use outcome::{Round, RoundsOutcome, RoundsStreamStats, Spread};
pub use plan::{Order, RoundPace, RoundsPlan};
pub use search::{Capacity, fewest_units, most_streams, most_streams_by_halves};

use crate::target::{IoRequest, Port};
use device::DeviceError;
use outcome::RoundsTally;
use std::sync::atomic::{AtomicBool, Ordering};
use units::Moment;

/// Reads as planned, and returns when each block arrived. After each round `go_on` receives the
/// rounds so far; if it returns false, the outcome ends there. A read that fails is counted, and
/// its stream continues; a read that cannot be submitted ends the run.
pub fn run(
    plan: &RoundsPlan,
    port: &mut dyn Port,
    go_on: &mut dyn FnMut(&[Round]) -> bool,
) -> Result<RoundsOutcome, DeviceError> {
    let mut tally = RoundsTally::new(plan, port.now());
    let mut places = plan.places();
    let mut order = plan.ordering();
    let mut done = Vec::new();
    for number in 0..plan.rounds {
        let begins = match plan.pace {
            RoundPace::Rounds => plan.moment(tally.origin(), number),
            // The next round begins as soon as the last one is complete.
            RoundPace::Free => Moment::ZERO,
        };
        while port.now() < begins {
            port.wait(begins, &mut done)?;
        }
        tally.begin(number, port.now());
        let mut waiting = order.next(&places).into_iter();
        let mut under_way = 0;
        loop {
            while under_way < plan.at_once
                && let Some(stream) = waiting.next()
            {
                port.begin(IoRequest::read(stream as u64, places[stream], plan.block.0))?;
                under_way += 1;
            }
            // All blocks are here: a round ends with its last read.
            if under_way == 0 {
                break;
            }
            port.wait(Moment::MAX, &mut done)?;
            for arrived in done.drain(..) {
                under_way -= 1;
                tally.arrived(&arrived);
            }
        }
        tally.end(port.now());
        // Every stream moves on, even one whose read failed.
        for place in &mut places {
            *place = plan.after(*place);
        }
        if !go_on(tally.rounds()) {
            break;
        }
    }
    Ok(tally.outcome(port.method()))
}

/// Runs each plan on its port in parallel, with a thread for each, until all are complete or told
/// to stop: it shows whether disks that share a bus, memory and a processor slow each other down.
/// Ports on real disks share one origin, so that their rounds begin together.
pub fn run_together(
    jobs: Vec<(RoundsPlan, Box<dyn Port + Send>)>,
    stop: &AtomicBool,
) -> Result<Vec<RoundsOutcome>, DeviceError> {
    std::thread::scope(|scope| {
        let start = |(plan, mut port): (RoundsPlan, Box<dyn Port + Send>)| {
            let mut go_on = |_: &[Round]| !stop.load(Ordering::Relaxed);
            scope.spawn(move || run(&plan, &mut *port, &mut go_on))
        };
        let started: Vec<_> = jobs.into_iter().map(start).collect();
        let ended = started.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended.map(|run| run.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

#[cfg(test)]
mod tests;
