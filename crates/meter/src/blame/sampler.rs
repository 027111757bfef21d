//! A thread that reads the counters once a second while streams run, and otherwise sleeps.

use super::stack::Stack;
use super::{SystemCounters, SystemSample, beneath};
use crate::streams::{Second, Times};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use units::BitRate;

/// The samples of a run from start to end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Watched {
    /// The devices and file system beneath the target.
    pub(crate) stack: Stack,
    /// One sample per second, and one for the incomplete last second.
    pub(crate) samples: Vec<SystemSample>,
    /// The delays with which a thread that only sleeps was woken: the timer accuracy of this
    /// machine, independent of the target.
    pub(crate) naps: Times,
    /// Link speeds of the network interfaces whose driver reports one.
    pub(crate) speeds: BTreeMap<String, BitRate>,
}

impl Watched {
    /// Adds to each sample how long the meter polled the clock in that second. Second n of the
    /// streams belongs to sample n.
    #[must_use]
    pub(crate) fn spun(mut self, seconds: &[Second]) -> Self {
        for (sample, second) in self.samples.iter_mut().zip(seconds) {
            // The clocks of streams and samples differ by some milliseconds; polling is never more
            // than the processor time.
            sample.own_spin = second.spun.as_secs_f64().min(sample.own_cpu);
        }
        self
    }
}

/// A thread that samples the machine until [`Sampler::end`]. Dropping it discards the samples.
#[derive(Debug)]
pub(crate) struct Sampler {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Watched>>,
}

impl Sampler {
    /// Starts sampling the machine and the devices beneath `target`.
    ///
    /// # Errors
    /// When there can be no more threads.
    pub(crate) fn start(target: &Path) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let (stack, ends) = (beneath(target), Arc::clone(&over));
        // Before the thread starts: starting it takes time that belongs to the first second.
        let (begun, first) = (Instant::now(), SystemCounters::now(&stack));
        let work = move || watch(stack, begun, first, &ends);
        let thread = Builder::new().name("sampler".into()).spawn(work)?;
        Ok(Self { over, thread: Some(thread) })
    }

    /// Stops the thread and returns its samples.
    pub(crate) fn end(mut self) -> Watched {
        self.over.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it ends once");
        thread.join().unwrap_or_default()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn watch(stack: Stack, begun: Instant, first: SystemCounters, over: &AtomicBool) -> Watched {
    // The default timer slack of 50 us would count as lateness of this machine.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let (mut samples, mut naps) = (Vec::new(), Times::default());
    let mut before = first;
    let mut overslept = Duration::ZERO;
    let mut next = begun + SECOND;
    loop {
        let asleep = Instant::now();
        std::thread::sleep(NAP);
        let late = asleep.elapsed().saturating_sub(NAP);
        naps.record(late);
        overslept = overslept.max(late);
        let ends = over.load(Ordering::Relaxed);
        if !ends && Instant::now() < next {
            continue;
        }
        let now = SystemCounters::now(&stack);
        samples.push(SystemSample::between(&before, &now, overslept));
        (before, overslept) = (now, Duration::ZERO);
        // After a freeze of several seconds each of them gets an equal sample, so that sample n
        // still belongs to second n of the streams.
        while next + SECOND <= Instant::now() && samples.len() < MOST {
            samples.push(samples.last().expect("one was just pushed").clone());
            next += SECOND;
        }
        next += SECOND;
        if ends || samples.len() >= MOST {
            return Watched { stack, samples, naps, speeds: speeds() };
        }
    }
}

/// Link speeds by interface. Loopback and most virtual interfaces have none, or report -1.
fn speeds() -> BTreeMap<String, BitRate> {
    let links = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let speed = |link: fs::DirEntry| {
        let text = fs::read_to_string(link.path().join("speed")).ok()?;
        let megabits: u64 = text.trim().parse().ok().filter(|megabits| *megabits > 0)?;
        Some((link.file_name().into_string().ok()?, BitRate(megabits * 1_000_000)))
    };
    links.filter_map(speed).collect()
}

const SECOND: Duration = Duration::from_secs(1);

/// The sleep between two looks: short enough to notice a machine that freezes, and the end of a
/// run.
const NAP: Duration = Duration::from_millis(20);

/// The largest number of samples, a day of seconds: a bound for memory.
const MOST: usize = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_time_of_this_process_is_seen() {
        let sampler = Sampler::start(Path::new("/")).unwrap();
        // Work until the kernel has counted at least one tick, however slow the machine.
        let stack = Stack::default();
        let ran =
            || SystemCounters::now(&stack).threads.values().map(|each| each.ran).sum::<Duration>();
        let before = ran();
        while ran() < before + Duration::from_millis(20) && !ran().is_zero() {}
        let seen = sampler.end();
        assert!(!seen.samples.is_empty() && seen.naps.count() > 0);
        let all: f64 = seen.samples.iter().map(|sample| sample.own_cpu).sum();
        assert!(all > 0.01 || ran().is_zero(), "{all}");
        assert!(seen.samples.iter().all(|sample| !sample.processors.is_empty()));
    }
}
