//! The seeds of a test, run on all processors. `TENUTO_SEED` gives the only seed, and
//! `TENUTO_SEEDS` the number of seeds.

use std::sync::atomic::{AtomicU64, Ordering};

/// Runs seeds from 0, `count` of them unless the environment says otherwise. Returns each seed with
/// its result, in ascending order.
pub(crate) fn run_each<T: Send>(count: u64, run: impl Fn(u64) -> T + Sync) -> Vec<(u64, T)> {
    let given = std::env::var("TENUTO_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let range = single().map_or(0..given.unwrap_or(count), |seed| seed..seed + 1);
    let next = AtomicU64::new(range.start);
    let work = || {
        let mut results = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= range.end {
                return results;
            }
            results.push((seed, run(seed)));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut results: Vec<(u64, T)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no run panics")).collect()
    });
    results.sort_unstable_by_key(|(seed, _)| *seed);
    results
}

/// The seed that `TENUTO_SEED` gives.
pub(crate) fn single() -> Option<u64> {
    std::env::var("TENUTO_SEED").ok()?.parse().ok()
}
