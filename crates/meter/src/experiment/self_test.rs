//! The meter judged by itself: whole searches, with the streams, the pacing and the verdicts of
//! `meter capacity`, on simulated storage whose capacity is known.

use super::capacity::MAX_RUNS;
use super::search::{Probe, judge_run, run_search};
use super::streams::RunLength;
use crate::capacity::{
    HoldRule, KnownStorage, Search, SearchResult, SearchStep, StorageKind, StreamNeeds,
};
use crate::error::MeterError;
use crate::log::LogSink;
use crate::observer::Observer;
use crate::profiles::{self, Fps, Profile};
use crate::streams::{self, CONFIRMING, StreamsPlan, long_enough};
use crate::target::{FileSet, Layout};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use units::{ByteCount, float};

/// Searches on storage of one kind, and how many of them are right.
#[derive(Clone, Copy, Debug, Default)]
pub struct CapacityScore {
    /// The number of searches.
    pub searches: u32,
    /// Searches whose number is within one stream, or 1 %, of the truth.
    pub right: u32,
    /// Searches that confirm more than one stream, or 1 %, too many.
    pub overstated: u32,
    /// Searches whose number is above the truth at all.
    pub above: u32,
    /// Searches that say that their number is not confirmed.
    pub unconfirmed: u32,
    /// Runs of all searches.
    pub runs: u32,
}

/// The result of one search on a storage of known capacity.
#[derive(Clone, Copy, Debug)]
struct CapacityTrial {
    /// The largest number of streams that the storage holds for ever.
    truth: u32,
    found: SearchResult,
}

impl CapacityScore {
    fn add(&mut self, trial: &CapacityTrial) {
        let CapacityTrial { truth, found } = trial;
        let right = trial.is_right();
        self.searches += 1;
        self.right += u32::from(right);
        self.overstated += u32::from(found.confirmed && found.streams > *truth && !right);
        self.above += u32::from(found.streams > *truth);
        self.unconfirmed += u32::from(!found.confirmed);
        self.runs += found.probes;
    }

    /// Adds searches of the capacity of storages of this kind, one for each seed, for streams of
    /// one profile; `number` makes its seeds differ from those of other profiles.
    fn search(
        &mut self,
        number: u32,
        profile: &Profile,
        kind: StorageKind,
        seeds: u32,
    ) -> Result<(), MeterError> {
        for seed in 0..seeds {
            self.add(&trial(profile, kind, u64::from(number) << 32 | u64::from(seed))?);
        }
        Ok(())
    }
}

impl CapacityTrial {
    fn is_right(&self) -> bool {
        self.found.streams.abs_diff(self.truth) <= (self.truth / 100).max(1)
    }
}

/// Searches the capacity of storages of this kind, one for each seed and each built-in profile that
/// streams can use. `progress` gets the share that is done.
pub fn capacity_score(
    kind: StorageKind,
    seeds: u32,
    progress: &mut dyn FnMut(f64),
) -> Result<CapacityScore, MeterError> {
    let mut score = CapacityScore::default();
    let profiles = stream_profiles();
    for (number, profile) in (0_u32..).zip(&profiles) {
        score.search(number, profile, kind, seeds)?;
        progress(f64::from(number + 1) / profiles.len() as f64);
    }
    Ok(score)
}

/// The built-in profiles that streams can use.
fn stream_profiles() -> Vec<Profile> {
    let mut profiles = profiles::builtin();
    profiles.retain(|profile| profile.cannot_run().is_none());
    profiles
}

/// Searches the capacity of a storage that is drawn from `seed`, for streams of `profile`.
fn trial(profile: &Profile, kind: StorageKind, seed: u64) -> Result<CapacityTrial, MeterError> {
    let slowest = Fps { frames: 1, seconds: 1 };
    let allowed = profile.fps.unwrap_or(slowest).moment(BUFFER.into());
    let short = RunLength::AtLeast(USUAL).of(allowed);
    let confirming = short.max(long_enough(allowed)) * CONFIRMING;
    let each = profile.rate().unwrap_or_default();
    let needs = StreamNeeds {
        rate: float(each.0) / 8.0,
        allowed: allowed.as_secs_f64(),
        run: short.as_secs_f64(),
        confirming: confirming.as_secs_f64(),
    };
    let mut storage = KnownStorage::drawn(kind, needs, MOST, seed);
    let truth = storage.capacity();
    let size = ByteCount(profile.slot() * 64);
    let shape = FileSet::of(Layout::SharedFile, size, 1, profile.slot());
    let rule = HoldRule::Strict;
    let mut run = |step: SearchStep| {
        let length = if step.long { confirming } else { short };
        let mut plan = StreamsPlan::new(profile, step.streams, BUFFER, length, shape)?;
        plan.continues = true;
        let (answer, outcome) = judge_run(rule, step, allowed, &mut |_| true, |go_on| {
            streams::run(&plan, &mut storage, &mut LogSink::none(), go_on)
        })?;
        // Runs follow each other after a moment, as those of real time do.
        storage.rest(BETWEEN);
        let probe = Probe { step, answer, outcome, attribution: None };
        let delivered = probe.delivered(each);
        Ok((probe, delivered))
    };
    let runs = run_search(Search::new(MOST_TRIED, MAX_RUNS), &mut run, &Silent::default());
    let found = runs.verdict;
    runs.error.map_or(Ok(CapacityTrial { truth, found }), Err)
}

/// The buffer and the shortest run of `meter capacity`, unless the user says otherwise.
const BUFFER: u32 = 8;
const USUAL: Duration = Duration::from_secs(20);

/// The largest number of streams that is tried, unless the user says otherwise.
const MOST_TRIED: u32 = 4096;

/// The time between two runs.
const BETWEEN: Duration = Duration::from_millis(200);

/// The largest capacity that is drawn: more streams take longer and show nothing else.
const MOST: f64 = 60.0;

/// An observer that shows nothing and never stops.
#[derive(Default)]
struct Silent(Arc<AtomicBool>);

impl Observer for Silent {
    fn stop(&self) -> &Arc<AtomicBool> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    impl CapacityScore {
        fn merge(&mut self, other: &Self) {
            self.searches += other.searches;
            self.right += other.right;
            self.overstated += other.overstated;
            self.above += other.above;
            self.unconfirmed += other.unconfirmed;
            self.runs += other.runs;
        }
    }

    /// Prints the scores by kind of storage, and checks the requirement: each profile with
    /// `of_each` kinds of storage. The searches are divided among the processors.
    #[expect(clippy::print_stdout, reason = "the table of docs/reference/figures.md")]
    fn check(of_each: usize, seeds: u32) {
        let profiles = stream_profiles();
        let kinds = StorageKind::NAMES.len();
        let pairs: Vec<(usize, usize)> = (0..profiles.len())
            .flat_map(|profile| (0..of_each).map(move |kind| ((profile + kind) % kinds, profile)))
            .collect();
        let (next, scores) = (AtomicUsize::new(0), Mutex::new([CapacityScore::default(); 5]));
        let work = || {
            while let Some((kind, number)) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (name, of) = StorageKind::NAMES[*kind];
                let (at, profile) = (u32::try_from(*number).unwrap(), &profiles[*number]);
                let mut score = CapacityScore::default();
                score.search(at, profile, of, seeds).unwrap();
                println!("{name}, {}: {score:?}", profile.name);
                scores.lock().unwrap()[*kind].merge(&score);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        for ((name, _), score) in StorageKind::NAMES.iter().zip(*scores.lock().unwrap()) {
            println!("{name}: {score:?}");
            assert!(score.right * 100 >= score.searches * 99, "{name}: {score:?}");
            assert!(score.overstated * 1000 <= score.searches, "{name}: {score:?}");
        }
    }

    #[test]
    fn the_capacity_of_known_storage_is_found_with_every_profile() {
        check(1, 1);
    }

    /// `cargo test --release -p meter --lib -- --ignored --nocapture two_hundred`: half an hour.
    #[test]
    #[ignore = "takes half an hour"]
    fn the_capacity_of_two_hundred_known_storages_is_found_with_every_profile() {
        check(StorageKind::NAMES.len(), 200);
    }
}
