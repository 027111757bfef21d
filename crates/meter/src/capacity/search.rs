//! What to try next. Pure: it sees answers only.

use std::collections::{BTreeMap, BTreeSet};

/// A run to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchStep {
    /// The number of streams of the run.
    pub streams: u32,
    /// Why.
    pub purpose: Purpose,
    /// Whether it is a confirming run, which is longer than the others.
    pub long: bool,
}

/// Why a run is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// On the way up.
    Up,
    /// Between held and failed.
    Narrow,
    /// One more than the largest held: to fail again.
    Above,
    /// The largest held, for longer, right after.
    Confirm,
}

/// The answer of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunVerdict {
    /// By the rule.
    Held,
    /// By the rule.
    Failed,
    /// Nothing: the machine that measures was late itself.
    Invalid,
}

impl Purpose {
    /// The word for reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Narrow => "narrow",
            Self::Above => "above",
            Self::Confirm => "confirm",
        }
    }
}

impl RunVerdict {
    /// The word for reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Failed => "not held",
            Self::Invalid => "invalid",
        }
    }
}

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunResult {
    /// The answer.
    pub answer: RunVerdict,
    /// The delivered bytes as a number of streams.
    pub delivered: f64,
}

/// The result of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchResult {
    /// The largest number of streams held: in a long run, or in a short one if no long run held.
    pub streams: u32,
    /// They held when asked again for longer, from above.
    pub confirmed: bool,
    /// The smallest count that failed: one more, unless the runs were used up between the two, or
    /// some counts between them held at one time and failed at another.
    pub too_many: Option<u32>,
    /// More were not tried because there is no room for them.
    pub at_limit: bool,
    /// It was the machine that measures which could not do `too_many`: the storage may hold more.
    pub by_meter: bool,
    /// Runs made that count.
    pub probes: u32,
    /// Further runs, which were invalid because of the measuring machine.
    pub invalid: u32,
}

/// The state of a search for the largest number of streams that a storage holds.
#[derive(Clone, Debug)]
pub struct Search {
    most: u32,
    budget: u32,
    probes: u32,
    /// How often each count held and failed.
    votes: BTreeMap<u32, (u32, u32)>,
    low: u32,
    high: Option<u32>,
    /// What a run that failed on the way up delivered.
    estimate: Option<u32>,
    /// How far from the estimate, or from where it led, the next run is.
    reach: u32,
    last: Option<(SearchStep, bool)>,
    /// A longer run failed where a short one held: only long ones count from here on.
    long: bool,
    /// Runs contradict each other: what failed once is too many from here on.
    unrepeatable: bool,
    confirmed: bool,
    /// Runs that were invalid, in all and one after another just now.
    invalid: u32,
    in_a_row: u32,
    /// To be made again.
    again: Option<SearchStep>,
    /// Counts that failed since every try at them was invalid.
    by_meter: BTreeSet<u32>,
    /// Counts that held in any run.
    once: BTreeSet<u32>,
    /// Not even one stream can be measured.
    given_up: bool,
}

impl Search {
    /// Up to `most` streams, with at most `budget` runs.
    pub fn new(most: u32, budget: u32) -> Self {
        Self {
            most,
            budget,
            probes: 0,
            votes: BTreeMap::new(),
            low: 0,
            high: None,
            estimate: None,
            reach: 1,
            last: None,
            long: false,
            unrepeatable: false,
            confirmed: false,
            invalid: 0,
            in_a_row: 0,
            again: None,
            by_meter: BTreeSet::new(),
            once: BTreeSet::new(),
            given_up: false,
        }
    }

    /// Time is short: two more runs at most, for a sure answer.
    pub fn finish(&mut self) {
        self.budget = self.budget.min(self.probes + 2);
    }

    /// The next run; `None` when the search is over. Report its result before the next call.
    pub fn step(&mut self) -> Option<SearchStep> {
        if self.confirmed || self.given_up || self.probes >= self.budget || self.most == 0 {
            return None;
        }
        if self.again.is_some() {
            return self.again;
        }
        let long = self.long;
        let step = |streams, purpose| {
            Some(SearchStep { streams, purpose, long: long || purpose == Purpose::Confirm })
        };
        let Some(high) = self.high else {
            if self.low == self.most {
                return step(self.most, Purpose::Confirm);
            }
            return step((self.low * 4).clamp(1, self.most), Purpose::Up);
        };
        let from_above = SearchStep { streams: high, purpose: Purpose::Above, long };
        if self.unrepeatable && high > 1 {
            let candidate = self.candidate(high);
            let is_from_above = self.last.is_some_and(|(last, _)| last.streams > candidate);
            return if is_from_above {
                step(candidate, Purpose::Confirm)
            } else {
                Some(from_above)
            };
        }
        // The last two runs are for a sure answer, even if it is not the finest.
        let last_two = self.budget - self.probes <= 2 && self.low > 0;
        if high - self.low > 1 && !last_two {
            return step(self.between(self.low, high), Purpose::Narrow);
        }
        match self.last {
            Some((last, false)) if last == from_above => step(self.low, Purpose::Confirm),
            _ => Some(from_above),
        }
    }

    /// What came of the run that [`Search::step`] wanted.
    pub fn report(&mut self, step: SearchStep, found: RunResult) {
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
            Purpose::Confirm if is_held => {
                (self.confirmed, self.low) = (true, streams);
                return;
            }
            // A single stream that fails twice is the final answer: there is no smaller number.
            Purpose::Above if !is_held && self.low == 0 => {
                (self.confirmed, self.given_up) = (!invalid, invalid);
            }
            _ => {}
        }
        if !is_held && !invalid && purpose == Purpose::Up {
            self.learn(streams, found.delivered);
        }
        if !invalid && self.contradicts_itself(step, is_held) {
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
            // Everything was delivered all the same: ask once more before going down.
            return;
        }
        self.bracket(streams, is_held);
    }

    /// What is known now.
    pub fn verdict(&self) -> SearchResult {
        // Nothing that held for longer is no reason to forget what held at all.
        let below = self.once.range(..self.high.unwrap_or(u32::MAX)).next_back();
        let once = below.or(self.once.last()).copied();
        let sure = self.confirmed || self.low > 0;
        let streams = once.filter(|_| !sure).unwrap_or(self.low);
        SearchResult {
            streams,
            confirmed: self.confirmed,
            too_many: self.high.filter(|high| *high > streams),
            at_limit: self.confirmed && self.low == self.most,
            by_meter: self.high.is_some_and(|high| self.by_meter.contains(&high)),
            probes: self.probes,
            invalid: self.invalid,
        }
    }

    /// An invalid run is made again at once, up to [`TRIES`] times in all. If each is invalid, that
    /// many streams cannot be measured from here, which is a limit like any other; from then on one
    /// invalid run says so.
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
            self.by_meter.remove(&step.streams);
        }
        (self.in_a_row, self.again) = (0, None);
        false
    }

    /// Near its limit a storage that others use as well holds a count now and does not the next
    /// time: then no halving finds its edge. From here on each failure is believed, and confirming
    /// runs go down from the smallest count that ever failed, each time twice as far, until one
    /// holds.
    fn contradicts_itself(&mut self, step: SearchStep, is_held: bool) -> bool {
        let failed_for_long = step.purpose == Purpose::Confirm && !is_held && self.long;
        if !self.unrepeatable {
            let both = self.failures().filter(|(_, yes)| *yes > 0).count();
            self.unrepeatable = failed_for_long || both >= CONTRADICTIONS;
            if self.unrepeatable {
                self.reach = (step.streams / 128).max(1);
            }
        } else if failed_for_long {
            self.reach = self.reach.saturating_mul(2);
        }
        if self.unrepeatable {
            self.long = true;
            let fewest = self.failures().map(|(count, _)| count).next();
            self.high = fewest;
            let below = self.once.range(..self.high.unwrap_or(u32::MAX));
            self.low = below.last().copied().unwrap_or(0);
        }
        self.unrepeatable
    }

    /// Counts that ever failed, and how often they held. What failed while a quarter more held was
    /// an accident.
    fn failures(&self) -> impl Iterator<Item = (u32, u32)> {
        let held = self.once.last().copied().unwrap_or(0);
        let failed = self.votes.iter().filter(|(_, (_, no))| *no > 0);
        let counts = failed.map(|(count, (yes, _))| (*count, *yes));
        counts.filter(move |(count, _)| count + count / 4 >= held)
    }

    /// What to confirm where answers are not repeatable: something that held, or less than
    /// something that did.
    fn candidate(&self, high: u32) -> u32 {
        let held = self.once.last().copied().unwrap_or(1);
        high.saturating_sub(self.reach).clamp(1, held.max(1))
    }

    /// A slight overload takes long to use up the clients' buffers. What held for a short time
    /// says little then; what failed has failed.
    fn start_again_for_longer(&mut self, streams: u32, delivered: f64) {
        self.long = true;
        self.votes.retain(|_, (held, failed)| failed > held);
        self.votes.insert(streams, (0, 1));
        (self.low, self.high) = (0, Some(streams));
        self.learn(streams, delivered);
        self.reach = (self.reach / 2).max(1);
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
        self.estimate = Some(estimate.min(streams - 1).max(1));
        self.reach = (estimate / 64).max(1);
    }

    /// The largest held below the smallest failed, as most answers have it.
    fn bracket(&mut self, streams: u32, held: bool) {
        if held {
            let (yes, no) = self.votes[&streams];
            if no > yes {
                return;
            }
            self.low = streams;
            self.high = self.failing(streams + 1).filter(|high| *high > streams);
        } else {
            self.high = Some(streams);
            let below = self.votes.range(..streams).rev();
            let held = below.filter(|(_, (yes, no))| yes > no || (yes == no && *yes > 0));
            self.low = held.map(|(streams, _)| *streams).next().unwrap_or(0);
        }
    }

    /// The smallest count from here on that failed at least as often as it held.
    fn failing(&self, from: u32) -> Option<u32> {
        let mut above = self.votes.range(from..);
        above.find(|(_, (yes, no))| no > yes).map(|(streams, _)| *streams)
    }

    /// A count between the two.
    fn between(&mut self, low: u32, high: u32) -> u32 {
        let middle = low + (high - low) / 2;
        let Some(estimate) = self.estimate.filter(|_| high - low > 4 * self.reach) else {
            return middle;
        };
        let tried = self.votes.contains_key(&estimate);
        if !tried && low < estimate && estimate < high {
            return estimate;
        }
        // Away from it, twice as far each time.
        let from = if estimate <= low { low + self.reach } else { high - self.reach };
        self.reach = self.reach.saturating_mul(2);
        from.clamp(low + 1, high - 1)
    }
}

/// Attempts at a run that is invalid each time.
const TRIES: u32 = 3;

/// Counts that both held and failed: of so many, chance is seldom the reason.
const CONTRADICTIONS: usize = 3;

/// Runs that are made again, of a whole search: a machine that is always busy is no reason to go on
/// for hours.
const MAX_INVALID: u32 = 20;

/// A run that fails with this share delivered may have met an accident.
const ALL: f64 = 0.98;
