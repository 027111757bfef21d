//! Computations that do not depend on each other, on all cores.

use std::sync::atomic::{AtomicU64, Ordering};

/// Calls `one` for every number below `count` on all cores; the results are in order.
pub(crate) fn spread<T: Send>(
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
                loop {
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
