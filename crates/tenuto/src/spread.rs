//! Computations that do not depend on each other, on all cores.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Calls `one` for every number below `count` on all cores; the results are in order.
pub(crate) fn spread<T: Send>(
    count: u64,
    progress: impl FnMut(f64),
    one: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    spread_until(&AtomicBool::new(false), count, progress, one)
}

/// Calls `one` as [`spread`] does until `stop` is set: the results are those of the first numbers,
/// and there may be none.
pub(crate) fn spread_until<T: Send>(
    stop: &AtomicBool,
    count: u64,
    mut progress: impl FnMut(f64),
    one: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // Scenarios differ in length by orders of magnitude, so each thread takes the next one instead
    // of a fixed share.
    let next = AtomicU64::new(0);
    let (done, results) = std::sync::mpsc::channel();
    let mut all: Vec<(u64, T)> = std::thread::scope(|scope| {
        for _ in 0..cores {
            let (done, next, one) = (done.clone(), &next, &one);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || done.send((number, one(number))).is_err() {
                        break;
                    }
                }
            });
        }
        // The loop below ends when the last sender is dropped, and this thread sends nothing.
        drop(done);
        let mut all = Vec::new();
        for result in results {
            all.push(result);
            progress(all.len() as f64 / count as f64);
        }
        all
    });
    // Threads finish in any order, and the report must be the same on every machine.
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stopped_has_the_results_of_the_first_numbers() {
        let stop = AtomicBool::new(false);
        let one = |number| {
            stop.fetch_or(number >= 20, Ordering::Relaxed);
            number * number
        };
        let results = spread_until(&stop, 1_000_000, |_| {}, one);
        assert!(results.len() > 20 && results.len() < 1_000_000, "{}", results.len());
        assert!((0..).map(|number| number * number).zip(&results).all(|(one, it)| one == *it));
        assert!(spread_until(&stop, 10, |_| {}, one).is_empty());
        assert_eq!(spread(3, |_| {}, |number| number), [0, 1, 2]);
    }
}
