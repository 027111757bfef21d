//! Several disks in parallel, with a thread for each, to see whether they slow each other down.
//!
//! Simulated disks do not; real ones share a bus, memory and a processor.

use super::{Round, RoundsOutcome, RoundsPlan, run};
use crate::target::Port;
use device::DeviceError;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs each plan on its port in parallel, until all are complete or told to stop. Ports on real
/// disks share one origin, so that their rounds begin together.
pub fn run_together(
    jobs: Vec<(RoundsPlan, Box<dyn Port + Send>)>,
    stop: &AtomicBool,
) -> Result<Vec<RoundsOutcome>, DeviceError> {
    std::thread::scope(|scope| {
        let started: Vec<_> = jobs
            .into_iter()
            .map(|(plan, mut port)| {
                let mut go_on = |_: &[Round]| !stop.load(Ordering::Relaxed);
                scope.spawn(move || run(&plan, &mut *port, &mut go_on))
            })
            .collect();
        let ended = started.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended.map(|run| run.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}
