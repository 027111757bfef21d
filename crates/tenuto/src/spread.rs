//! Computations that do not depend on each other, on all cores.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Calls `one` for every number below `count` on all cores; the results are in order.
pub(crate) fn spread<T: Send>(
    count: u64,
    mut progress: impl FnMut(f64),
    one: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    let work = Work { count, ..Work::default() };
    let (done, results) = channel();
    let mut all = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..cores() {
            let (done, work, one) = (done.clone(), &work, &one);
            scope.spawn(move || work.run(one, &done));
        }
        // The loop below ends when the last sender is dropped, and this thread sends nothing.
        drop(done);
        for result in results {
            all.push(result);
            progress(all.len() as f64 / count as f64);
        }
    });
    in_order(all)
}

/// Calls `one` as [`spread`] does until `stop` is set: the results are those of the first numbers,
/// and there may be none. Calls that have begun then have [`PATIENCE`] to end.
pub(crate) fn spread_until<T: Send + 'static>(
    stop: &Arc<AtomicBool>,
    count: u64,
    progress: impl FnMut(f64),
    one: impl Fn(u64) -> T + Send + Sync + 'static,
) -> Vec<T> {
    spread_within(PATIENCE, stop, count, progress, one)
}

/// The result of `one`, unless `stop` was set before it had one.
pub(crate) fn compute_until<T: Send + 'static>(
    stop: &Arc<AtomicBool>,
    one: impl Fn() -> T + Send + Sync + 'static,
) -> Option<T> {
    // Of one computation nothing is complete until its end, so there is nothing to wait for.
    spread_within(Duration::ZERO, stop, 1, |_| {}, move |_| one()).pop()
}

/// The longest time from a signal until the report of what is complete.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

fn spread_within<T: Send + 'static>(
    patience: Duration,
    stop: &Arc<AtomicBool>,
    count: u64,
    mut progress: impl FnMut(f64),
    one: impl Fn(u64) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let shared = Arc::new((Work { stop: Arc::clone(stop), count, ..Work::default() }, one));
    let (done, results) = channel();
    // Not scoped: a computation that does not end must not keep the command from ending.
    let threads = (0..cores()).map(|_| {
        let (done, shared) = (done.clone(), Arc::clone(&shared));
        std::thread::spawn(move || shared.0.run(&shared.1, &done))
    });
    let threads: Vec<_> = threads.collect();
    drop(done);
    let (mut all, mut until) = (Vec::new(), None);
    loop {
        match results.recv_timeout(LOOK_AGAIN) {
            Ok(result) => {
                all.push(result);
                progress(all.len() as f64 / count as f64);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            if now >= *until.get_or_insert(now + patience) {
                return in_order(all);
            }
        }
    }
    for thread in threads {
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
    in_order(all)
}

/// Numbers that threads take one after the other.
#[derive(Default)]
struct Work {
    stop: Arc<AtomicBool>,
    next: AtomicU64,
    count: u64,
}

impl Work {
    /// Takes numbers and sends their results until none is left or the work is stopped.
    fn run<T>(&self, one: &impl Fn(u64) -> T, done: &Sender<(u64, T)>) {
        // Computations differ in length by orders of magnitude, so each thread takes the next one
        // instead of a fixed share.
        while !self.stop.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count || done.send((number, one(number))).is_err() {
                break;
            }
        }
    }
}

/// The results from the first number to the one before the first that is missing. Threads finish in
/// any order, and the report must be the same on every machine.
fn in_order<T>(mut all: Vec<(u64, T)>) -> Vec<T> {
    all.sort_by_key(|(number, _)| *number);
    let complete = (0..).zip(all).take_while(|(expected, (number, _))| expected == number);
    complete.map(|(_, (_, result))| result).collect()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Time between two looks at the flag that stops the work.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stopped_has_the_results_of_the_first_numbers() {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let one = move |number| {
            told.fetch_or(number >= 20, Ordering::Relaxed);
            number * number
        };
        let results = spread_until(&stop, 1_000_000, |_| {}, one.clone());
        assert!(results.len() > 20 && results.len() < 1_000_000, "{}", results.len());
        assert!((0..).map(|number| number * number).zip(&results).all(|(one, it)| one == *it));
        assert!(spread_until(&stop, 10, |_| {}, one).is_empty());
        assert_eq!(spread(3, |_| {}, |number| number), [0, 1, 2]);
    }

    /// Number 3 never ends, as a scenario that is never read to its end.
    #[test]
    fn a_computation_without_end_does_not_hold_up_the_results_of_others() {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let one = move |number| {
            if number == 3 {
                told.store(true, Ordering::Relaxed);
                loop {
                    std::thread::park();
                }
            }
            number
        };
        let results = spread_within(Duration::ZERO, &stop, 1000, |_| {}, one);
        assert!(results.len() <= 3 && (0..).zip(&results).all(|(number, it)| number == *it));
        let never = || loop {
            std::thread::park();
        };
        assert!(compute_until::<()>(&stop, never).is_none());
        stop.store(false, Ordering::Relaxed);
        assert_eq!(compute_until(&stop, || 7), Some(7));
    }

    #[test]
    #[should_panic(expected = "number 2")]
    fn a_panic_is_passed_on() {
        spread_until(&Arc::default(), 4, |_| {}, |number| assert!(number != 2, "number {number}"));
    }
}
