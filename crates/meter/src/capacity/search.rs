//! The choice of the next run. Pure: it sees results only.

use std::collections::{BTreeMap, BTreeSet};

/// A run to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SearchStep {
    /// The number of streams of the run.
    pub streams: u32,
    /// The reason for the run.
    pub purpose: Purpose,
    /// Whether it is a confirming run, which is longer than the others.
    pub long: bool,
}

/// The reason for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Four times as many streams as before.
    Up,
    /// A count between the largest held and the smallest failed.
    Narrow,
    /// One more than the largest held, which must fail again.
    Above,
    /// The largest held again, for longer, directly after the overload.
    Confirm,
    /// The result again, for much longer.
    Endure,
}

/// The verdict on one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunVerdict {
    /// The rule held.
    Held,
    /// The rule did not hold.
    Failed,
    /// No verdict: the measuring machine itself was late.
    Invalid,
}

impl Purpose {
    /// The word for reports.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Narrow => "narrow",
            Self::Above => "above",
            Self::Confirm => "confirm",
            Self::Endure => "endure",
        }
    }
}

impl RunVerdict {
    /// The word for reports.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Failed => "not held",
            Self::Invalid => "invalid",
        }
    }
}

/// The verdict and the delivered rate of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunResult {
    /// The verdict by the rule.
    pub answer: RunVerdict,
    /// The delivered rate, expressed as a number of streams.
    pub delivered: f64,
}

/// The result of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SearchResult {
    /// The largest number of streams held: in a long run, or in a short one if no long run held.
    pub streams: u32,
    /// The streams held again in a longer run after an overload.
    pub confirmed: bool,
    /// The smallest count that failed. It is more than one above `streams` if the run budget ended
    /// first, or if counts between them both held and failed.
    pub too_many: Option<u32>,
    /// The search stopped at the largest count that the target has room for.
    pub at_limit: bool,
    /// The measuring machine, not the storage, could not do `too_many`: the storage may hold more.
    pub by_meter: bool,
    /// Valid runs.
    pub probes: u32,
    /// Invalid runs: the measuring machine itself was late.
    pub invalid: u32,
}

/// The state of a search for the largest number of streams that a storage holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    most: u32,
    budget: u32,
    probes: u32,
    /// How often each count held and failed, in this order.
    votes: BTreeMap<u32, (u32, u32)>,
    low: u32,
    high: Option<u32>,
    /// The capacity that the delivered rate of a failed run suggests.
    estimate: Option<u32>,
    /// The distance from the estimate, or from the last bound found, at which the next run is made.
    reach: u32,
    last: Option<(SearchStep, bool)>,
    /// Only long runs count: a longer run failed where a short one held.
    long: bool,
    /// Runs contradict each other: a count that failed once counts as too many.
    unrepeatable: bool,
    confirmed: bool,
    /// The largest count that a confirming run held.
    sure: u32,
    /// Where results are not repeatable: the delivered rate of a confirming run that failed.
    sustained: Option<u32>,
    /// Invalid runs, in all and since the last valid one.
    invalid: u32,
    in_a_row: u32,
    /// An invalid run that is to be repeated.
    again: Option<SearchStep>,
    /// Counts that failed because every run at them was invalid.
    by_meter: BTreeSet<u32>,
    /// Counts that held in any run.
    once: BTreeSet<u32>,
    /// A single stream cannot be measured.
    given_up: bool,
}

impl Search {
    /// A search up to `most` streams, with at most `budget` runs.
    pub(crate) fn new(most: u32, budget: u32) -> Self {
        Self { most, budget, reach: 1, ..Self::default() }
    }

    /// Ends the search soon: at most two more runs, to confirm a result.
    pub(crate) fn finish(&mut self) {
        self.budget = self.budget.min(self.probes + 2);
    }

    /// The next run; `None` when the search is over. Report its result before the next call.
    pub(crate) fn step(&mut self) -> Option<SearchStep> {
        if self.is_over() || self.given_up || self.probes >= self.budget || self.most == 0 {
            return None;
        }
        // An invalid run says nothing about the storage, so it is repeated before anything is
        // decided.
        if self.again.is_some() {
            return self.again;
        }
        let long = self.long;
        let step = |streams, purpose| {
            Some(SearchStep { streams, purpose, long: long || purpose == Purpose::Confirm })
        };
        // As long as nothing failed, the count grows fourfold: few runs reach even a large limit.
        let Some(high) = self.high else {
            // The target has no room for more, so no overload can come before the confirmation.
            if self.low == self.most {
                return step(self.most, Purpose::Confirm);
            }
            return step((self.low * 4).clamp(1, self.most), Purpose::Up);
        };
        // A confirming run comes after an overload, so that it cannot profit from an idle storage.
        let from_above = SearchStep { streams: high, purpose: Purpose::Above, long };
        if self.unrepeatable && high > 1 {
            let candidate = self.candidate(high);
            // Overload and confirmation alternate, because a run that held leaves no overload
            // behind.
            let is_from_above = self.last.is_some_and(|(last, _)| last.streams > candidate);
            return if is_from_above {
                step(candidate, Purpose::Confirm)
            } else {
                Some(from_above)
            };
        }
        // The last two runs confirm a result, even if a finer one would be possible.
        let last_two = self.budget - self.probes <= 2 && self.low > 0;
        if high - self.low > 1 && !last_two {
            return step(self.between(self.low, high), Purpose::Narrow);
        }
        match self.last {
            Some((last, false)) if last == from_above => step(self.low, Purpose::Confirm),
            _ => Some(from_above),
        }
    }

    /// Takes the result of the run that [`Search::step`] asked for.
    pub(crate) fn report(&mut self, step: SearchStep, found: RunResult) {
        // Up to here nothing is counted, so that an invalid run leaves no vote.
        if self.is_tried_again(step, found.answer) {
            return;
        }
        let SearchStep { streams, purpose, .. } = step;
        let (is_held, invalid) =
            (found.answer == RunVerdict::Held, found.answer == RunVerdict::Invalid);
        self.probes += 1;
        self.last = Some((step, is_held));
        let (held, failed) = self.votes.entry(streams).or_default();
        *(if is_held { held } else { failed }) += 1;
        if is_held {
            self.once.insert(streams);
        }
        match purpose {
            // It held after an overload and in a longer run: the search is over.
            Purpose::Confirm if is_held => {
                (self.confirmed, self.low, self.sure) = (true, streams, streams);
                return;
            }
            // A single stream that fails twice is the final verdict: there is no smaller number.
            Purpose::Above if !is_held && self.low == 0 => {
                (self.confirmed, self.given_up) = (!invalid, invalid);
            }
            _ => {}
        }
        if !is_held && !invalid && purpose == Purpose::Up {
            self.learn(streams, found.delivered);
        }
        // Where results contradict each other, the bracket is made anew from all votes.
        if !invalid && self.contradicts_itself(step, is_held, found.delivered) {
            return;
        }
        if !is_held && purpose == Purpose::Confirm && !self.long {
            // The rate of an invalid run is meaningless.
            let delivered = if invalid { f64::from(streams) } else { found.delivered };
            self.start_again_for_longer(streams, delivered);
            return;
        }
        let whole = !invalid && self.looks_accidental(streams, found);
        if purpose == Purpose::Up && !is_held && whole {
            // The full rate was delivered, so the failure may be an accident: try once more.
            return;
        }
        self.bracket(streams, is_held);
    }

    /// The result so far.
    pub(crate) fn verdict(&self) -> SearchResult {
        // Without a long run that held, the largest count that held in a short run is reported.
        let below = self.once.range(..self.high.unwrap_or(u32::MAX)).next_back();
        let once = below.or(self.once.last()).copied();
        // `low` is zero after long runs only failed; short runs that held are better than no
        // number.
        let sure = self.confirmed || self.low > 0;
        let low = if self.confirmed { self.sure } else { self.low };
        let streams = once.filter(|_| !sure).unwrap_or(low);
        SearchResult {
            streams,
            confirmed: self.confirmed,
            too_many: self.high.filter(|high| *high > streams),
            at_limit: self.confirmed && streams == self.most,
            by_meter: self.high.is_some_and(|high| self.by_meter.contains(&high)),
            probes: self.probes,
            invalid: self.invalid,
        }
    }

    /// Whether a confirmed count is close enough to the smallest that failed. Where results are not
    /// repeatable, the first count that is confirmed may be far below.
    fn is_over(&self) -> bool {
        let next = self.high.unwrap_or(0).saturating_sub(self.sure);
        self.confirmed && (!self.unrepeatable || next <= (self.sure / 100).max(1))
    }

    /// Whether an invalid run is to be repeated, up to [`TRIES`] runs in all. If each is invalid,
    /// this machine cannot measure that many streams, and the count is a limit like any other; from
    /// then on one invalid run is enough.
    fn is_tried_again(&mut self, step: SearchStep, answer: RunVerdict) -> bool {
        let tries = if self.by_meter.contains(&step.streams) { 1 } else { TRIES };
        if answer == RunVerdict::Invalid {
            self.in_a_row += 1;
            if self.in_a_row < tries && self.invalid < MAX_INVALID {
                self.invalid += 1;
                self.again = Some(step);
                return true;
            }
            self.by_meter.insert(step.streams);
        } else {
            // A valid run shows that this machine can measure the count after all.
            self.by_meter.remove(&step.streams);
        }
        (self.in_a_row, self.again) = (0, None);
        false
    }

    /// Whether the results are not repeatable. Near its limit a shared storage holds a count in one
    /// run and not in the next, so that bisection finds no boundary. From here on each failure
    /// counts, and confirming runs go down from the smallest count that ever failed, twice as far
    /// each time, until one holds.
    fn contradicts_itself(&mut self, step: SearchStep, is_held: bool, delivered: f64) -> bool {
        let failed_for_long = step.purpose == Purpose::Confirm && !is_held && self.long;
        if !self.unrepeatable {
            // One such count may be chance, as a neighbour that worked for a moment.
            let both = self.failures().filter(|(_, yes)| *yes > 0).count();
            self.unrepeatable = failed_for_long || both >= CONTRADICTIONS;
            if self.unrepeatable {
                // The limit is expected close to the count that failed, so the first step is small.
                self.reach = (step.streams / 128).max(1);
            }
        } else if failed_for_long {
            self.reach = self.reach.saturating_mul(2);
        }
        if failed_for_long && self.unrepeatable {
            // A rate near the demand says no more than that the count failed.
            let clear = delivered < f64::from(step.streams) * ALL;
            if clear {
                self.learn(step.streams, delivered);
                self.forget_above(delivered);
            }
            self.sustained = self.estimate.filter(|_| clear);
        }
        if self.unrepeatable {
            self.long = true;
            let fewest = self.failures().map(|(count, _)| count).next();
            self.high = fewest;
            // A count that held once remains a lower bound only if no smaller one ever failed.
            let below = self.once.range(..self.high.unwrap_or(u32::MAX));
            self.low = below.last().copied().unwrap_or(0);
        }
        self.unrepeatable
    }

    /// Counts that ever failed, with how often they held. A failure counts as an accident when a
    /// count a quarter higher held.
    fn failures(&self) -> impl Iterator<Item = (u32, u32)> {
        let held = self.once.last().copied().unwrap_or(0);
        let failed = self.votes.iter().filter(|(_, (_, no))| *no > 0);
        let counts = failed.map(|(count, (yes, _))| (*count, *yes));
        counts.filter(move |(count, _)| count + count / 4 >= held)
    }

    /// The count to confirm where results are not repeatable: one that held, or below one that did.
    fn candidate(&self, high: u32) -> u32 {
        if self.confirmed {
            return self.sure + (high - self.sure) / 2;
        }
        let held = self.once.last().copied().unwrap_or(1);
        let below = high.saturating_sub(self.reach);
        // What a failed run delivered at its end is nearer than a guess, and may be much lower.
        let sustained = self.sustained.filter(|rate| *rate + 1 < high);
        sustained.unwrap_or(below).clamp(1, held.max(1))
    }

    /// Discards short runs that held. A slight overload takes long to use up the clients' buffers,
    /// so that a short run that held is weak evidence; failures remain.
    fn start_again_for_longer(&mut self, streams: u32, delivered: f64) {
        self.long = true;
        self.votes.retain(|_, (held, failed)| failed > held);
        // The failure of the long run outweighs all short runs of this count that held.
        self.votes.insert(streams, (0, 1));
        (self.low, self.high) = (0, Some(streams));
        self.learn(streams, delivered);
        self.forget_above(delivered);
        // The limit is known roughly by now, so the search starts closer to the estimate.
        self.reach = (self.reach / 2).max(1);
    }

    /// Forgets that counts above the rate of a failed long run held before: the storage was faster
    /// then.
    fn forget_above(&mut self, delivered: f64) {
        self.once.retain(|count| f64::from(*count) * ALL <= delivered + 1.0);
    }

    fn looks_accidental(&self, streams: u32, found: RunResult) -> bool {
        found.delivered >= f64::from(streams) * ALL && self.votes[&streams].1 == 1
    }

    fn learn(&mut self, streams: u32, delivered: f64) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below the number of streams"
        )]
        let estimate = delivered.clamp(1.0, f64::from(streams)).round() as u32;
        // Below the count that failed, whatever rate it delivered for a moment.
        self.estimate = Some(estimate.min(streams - 1).max(1));
        self.reach = (estimate / 64).max(1);
    }

    /// Updates the bracket: the largest held below the smallest failed, by majority of the runs.
    fn bracket(&mut self, streams: u32, held: bool) {
        if held {
            let (yes, no) = self.votes[&streams];
            if no > yes {
                return;
            }
            self.low = streams;
            // The count held now, so only a failure above it still bounds the search.
            self.high = self.failing(streams + 1).filter(|high| *high > streams);
        } else {
            self.high = Some(streams);
            let below = self.votes.range(..streams).rev();
            // A tie still counts as held: one failure against one success decides nothing.
            let held = below.filter(|(_, (yes, no))| yes > no || (yes == no && *yes > 0));
            self.low = held.map(|(streams, _)| *streams).next().unwrap_or(0);
        }
    }

    /// The smallest count from `from` on that failed more often than it held.
    fn failing(&self, from: u32) -> Option<u32> {
        let mut above = self.votes.range(from..);
        above.find(|(_, (yes, no))| no > yes).map(|(streams, _)| *streams)
    }

    /// The next count to try between the two bounds.
    fn between(&mut self, low: u32, high: u32) -> u32 {
        let middle = low + (high - low) / 2;
        let Some(estimate) = self.estimate.filter(|_| high - low > 4 * self.reach) else {
            return middle;
        };
        let tried = self.votes.contains_key(&estimate);
        if !tried && low < estimate && estimate < high {
            return estimate;
        }
        // Move away from the estimate, twice as far each time.
        let from = if estimate <= low { low + self.reach } else { high - self.reach };
        self.reach = self.reach.saturating_mul(2);
        from.clamp(low + 1, high - 1)
    }
}

/// Attempts at a run before it counts as not measurable.
const TRIES: u32 = 3;

/// Number of counts that both held and failed from which the results are not repeatable: so many
/// are seldom due to chance.
const CONTRADICTIONS: usize = 3;

/// Repeated runs in a whole search: a bound for a machine that is always busy.
const MAX_INVALID: u32 = 20;

/// Share of the full rate from which a failed run may be an accident.
const ALL: f64 = 0.98;
