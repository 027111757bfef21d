//! The last stage of a search: the number that it found has to hold for much longer.
//!
//! ```text
//!   found 186 ─▶ 186 for a day: not held ─▶ 185 for a day: held, the result
//!                                        └▶ not held: lower, twice as far each time
//! ```
//!
//! An overload of one part in two thousand empties the buffers of clients in hours, so that a
//! confirming run of minutes may hold it. Runs of this stage are judged as any run of their length
//! is. They are few, because each may take a day.

use super::{Purpose, RunResult, RunVerdict, SearchResult, SearchStep};

/// The state of the last stage of a search.
#[derive(Clone, Debug)]
pub(crate) struct Endurance {
    /// The result of the search before.
    found: SearchResult,
    /// The largest number that held, and the smallest that did not.
    held: Option<u32>,
    failed: Option<u32>,
    /// Whether the smallest that did not hold was beyond the measuring machine.
    by_meter: bool,
    next: u32,
    /// The distance to the next number below one that did not hold.
    reach: u32,
    runs: u32,
    invalid: u32,
    in_a_row: u32,
}

impl Endurance {
    /// The stage after a search with this result.
    pub(crate) fn new(found: SearchResult) -> Self {
        Self {
            found,
            held: None,
            failed: None,
            by_meter: false,
            next: found.streams,
            reach: (found.streams / 128).max(1),
            runs: 0,
            invalid: 0,
            in_a_row: 0,
        }
    }

    /// The next run; `None` when the stage is over. A result that is not confirmed has none.
    pub(crate) fn step(&self) -> Option<SearchStep> {
        let has_more = self.found.confirmed && self.next > 0 && self.runs < MOST_RUNS;
        let step = SearchStep { streams: self.next, purpose: Purpose::Endure, long: true };
        (has_more && !self.is_over()).then_some(step)
    }

    /// Takes the result of the run that [`Endurance::step`] asked for.
    pub(crate) fn report(&mut self, step: SearchStep, run: RunResult) {
        let SearchStep { streams, .. } = step;
        let invalid = run.answer == RunVerdict::Invalid;
        self.in_a_row = if invalid { self.in_a_row + 1 } else { 0 };
        if invalid && self.in_a_row < TRIES {
            self.invalid += 1;
            return;
        }
        self.in_a_row = 0;
        self.runs += 1;
        if run.answer == RunVerdict::Held {
            self.held = Some(streams);
        } else {
            (self.failed, self.by_meter) = (Some(streams), invalid);
        }
        self.next = match (self.held, self.failed) {
            (Some(held), Some(failed)) => held + (failed - held) / 2,
            (Some(held), None) => held,
            (None, _) => self.below(streams, run.delivered),
        };
    }

    /// The result of the search with this stage.
    pub(crate) fn verdict(&self) -> SearchResult {
        let Self { found, held, failed, .. } = *self;
        // Without a number that held the next candidate is the best guess; below one there is none.
        let streams = held.unwrap_or(self.next);
        let none_holds = streams == 0 && !self.by_meter;
        SearchResult {
            streams,
            confirmed: found.confirmed && (held.is_some() || none_holds),
            too_many: failed.or(found.too_many),
            at_limit: found.at_limit && failed.is_none(),
            by_meter: if failed.is_some() { self.by_meter } else { found.by_meter },
            probes: found.probes + self.runs,
            invalid: found.invalid + self.invalid,
        }
    }

    /// Whether the number that held is close enough to the smallest that did not.
    fn is_over(&self) -> bool {
        self.held.is_some_and(|held| {
            self.failed.is_none_or(|failed| failed - held <= (held / 100).max(1))
        })
    }

    /// A number below `streams`, which did not hold and delivered the rate of `delivered` streams.
    fn below(&mut self, streams: u32, delivered: f64) -> u32 {
        let stepped = streams.saturating_sub(self.reach);
        self.reach = self.reach.saturating_mul(2);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of streams")]
        let sustained = delivered.clamp(0.0, f64::from(streams)) as u32;
        stepped.min(sustained).max(u32::from(streams > 1))
    }
}

/// Valid runs of this stage: down in steps that double, and halfway up again.
const MOST_RUNS: u32 = 12;

/// Attempts at a run before its number counts as not measurable.
const TRIES: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(streams: u32) -> SearchResult {
        SearchResult {
            streams,
            confirmed: true,
            too_many: Some(streams + 1),
            at_limit: false,
            by_meter: false,
            probes: 9,
            invalid: 0,
        }
    }

    /// The result where runs hold up to `capacity` and deliver `rate`, and the numbers tried.
    fn endured(first: u32, capacity: u32, rate: f64) -> (SearchResult, Vec<u32>) {
        let mut stage = Endurance::new(found(first));
        let mut tried = Vec::new();
        while let Some(step) = stage.step() {
            tried.push(step.streams);
            let held = step.streams <= capacity;
            let answer = if held { RunVerdict::Held } else { RunVerdict::Failed };
            stage.report(step, RunResult { answer, delivered: rate.min(step.streams.into()) });
        }
        (stage.verdict(), tried)
    }

    #[test]
    fn the_number_found_is_lowered_until_it_holds() {
        let cases: [(u32, u32, f64, u32, &[u32]); 8] = [
            (186, 186, 186.0, 186, &[186]),
            (186, 185, 185.9, 185, &[186, 185]),
            (186, 181, 185.9, 181, &[186, 185, 183, 179, 181, 182]),
            // The storage became slower, and its rate names the number.
            (186, 120, 120.4, 120, &[186, 120, 153, 136, 128, 124, 122, 121]),
            (4000, 3900, 3950.0, 3888, &[4000, 3950, 3888, 3919]),
            (9, 4, 2.0, 4, &[9, 2, 5, 3, 4]),
            (1, 0, 0.9, 0, &[1]),
            (0, 0, 0.0, 0, &[]),
        ];
        for (first, capacity, rate, streams, expected) in cases {
            let (verdict, tried) = endured(first, capacity, rate);
            assert_eq!(tried, expected, "{verdict:?}");
            assert_eq!((verdict.streams, verdict.confirmed), (streams, true), "{tried:?}");
            assert!(verdict.too_many.is_some_and(|more| more > streams), "{verdict:?}");
        }
    }

    #[test]
    fn the_stage_ends_after_twelve_runs_with_what_held() {
        let (verdict, tried) = endured(100_000, 10, 100_000.0);
        assert_eq!((verdict.streams, verdict.confirmed, tried.len()), (1, true, 12), "{tried:?}");
        assert_eq!(verdict.too_many, tried.last().copied());
    }

    #[test]
    fn an_invalid_run_is_repeated_and_three_are_a_limit_of_the_machine() {
        let mut stage = Endurance::new(found(50));
        let answers = [RunVerdict::Invalid, RunVerdict::Held];
        for answer in answers {
            let step = stage.step().unwrap();
            stage.report(step, RunResult { answer, delivered: 50.0 });
        }
        let verdict = stage.verdict();
        assert_eq!((stage.step(), verdict.streams, verdict.invalid), (None, 50, 1), "{verdict:?}");
        let mut stage = Endurance::new(found(50));
        while let Some(step) = stage.step() {
            let answer = if step.streams > 48 { RunVerdict::Invalid } else { RunVerdict::Held };
            stage.report(step, RunResult { answer, delivered: 50.0 });
        }
        let verdict = stage.verdict();
        assert_eq!((verdict.streams, verdict.too_many, verdict.by_meter), (48, Some(49), true));
    }

    #[test]
    fn a_result_that_is_not_confirmed_gets_no_further_run() {
        let unsure = SearchResult { confirmed: false, ..found(50) };
        let stage = Endurance::new(unsure);
        assert_eq!((stage.step(), stage.verdict()), (None, unsure));
    }
}
