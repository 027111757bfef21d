//! What stretches of reads without a pause say about any such reads: the fewest in so many slots,
//! the pace in the long run and the longest delay; and which delay was a single one.
//!
//! ```text
//!   a stretch    rounds of reads, one after another; each read's end counts from the begin
//!   each         of the slowest stretch, the mean time of a read; more than that if `once` were
//!                longer than half a second and no read is
//!   once         the most by which the reads of a stretch fell behind `each`
//!   an outlier   one round without which `once` is a quarter or less, in all that was measured
//! ```
//!
//! An outlier is left out of the guarantees. It happened once in all the time measured, its repeat
//! was looked for and not seen, and the record names it. If it does recur while viewers are served,
//! the guard of the disk reduces the guarantee and keeps it reduced for minutes.

use disk::{LONGER, Outlier, ReadGuarantee, ReadPace};
use std::time::Duration;
use units::{ByteCount, nanos};

/// Reads that were given to the disk together.
#[derive(Clone, Debug)]
pub(super) struct ReadRound {
    /// Time from the beginning of the calibration until it began.
    pub(super) at: Duration,
    /// Time from its beginning until its last read ended.
    pub(super) took: Duration,
    /// When each read ended, from the beginning of the round on.
    pub(super) ends: Vec<Duration>,
}

/// Rounds of reads of one size, without a pause between them.
pub(super) type Stretch = Vec<ReadRound>;

/// All that was measured of reads of one size.
#[derive(Debug, Default)]
pub(super) struct Stretches(pub(super) Vec<Stretch>);

impl ReadRound {
    fn reads(&self) -> u64 {
        self.ends.len() as u64
    }

    fn longest(&self) -> Duration {
        let starts = std::iter::once(&Duration::ZERO).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| end.saturating_sub(*start)).max().unwrap_or(LEAST)
    }
}

impl Stretches {
    /// The mean time of a read.
    pub(super) fn mean(&self) -> Duration {
        self.0.iter().map(Vec::as_slice).fold(Sum::default(), Sum::plus).mean()
    }

    /// The longest time of a read after the end of the one before it.
    pub(super) fn longest(&self) -> Duration {
        self.0.iter().flatten().map(ReadRound::longest).max().unwrap_or(LEAST)
    }

    /// The mean time of a read in the second half of the longest stretch.
    pub(super) fn later_mean(&self) -> Duration {
        let longest = self.0.iter().map(|stretch| ends(stretch)).max_by_key(Vec::len);
        let ends = longest.unwrap_or_default();
        let half = ends.len() / 2;
        let (Some(from), Some(to)) = (ends.get(half), ends.last()) else { return LEAST };
        let reads = (ends.len() - half - 1).max(1) as u64;
        Duration::from_nanos((to - from).div_ceil(reads)).max(LEAST)
    }

    /// The time of all reads.
    pub(super) fn time(&self) -> Duration {
        self.0.iter().flatten().map(|round| round.took).sum()
    }

    /// The round without which the reads of all others are a quarter as late, or less: a delay
    /// that was measured once.
    pub(super) fn suspect(&self) -> Option<Suspect> {
        let rounds = || {
            let of = |(at, stretch): (usize, &Stretch)| {
                let longest =
                    stretch.iter().map(ReadRound::longest).enumerate().max_by_key(|r| r.1);
                longest.map(|(round, longest)| (longest, at, round))
            };
            self.0.iter().enumerate().filter_map(of)
        };
        let (_, stretch, round) = rounds().max()?;
        let mut others = Self(self.0.clone());
        let after = others.0[stretch].split_off(round + 1);
        let suspect = others.0[stretch].pop()?;
        others.0.push(after);
        others.0.retain(|stretch| !stretch.is_empty());
        if others.0.is_empty() {
            return None;
        }
        let usual = others.pace();
        // By the others' pace: the delay itself lengthens the mean of its stretch.
        let delay = delay(std::slice::from_ref(&suspect), usual.each);
        let stands_out = delay > usual.once.max(usual.each) * STANDS_OUT;
        stands_out.then_some(Suspect { at: suspect.at, delay, others })
    }

    /// The bound of these reads, which holds for each stretch.
    pub(super) fn pace(&self) -> ReadPace {
        let each = |stretch: &Stretch| {
            let mut sum = Sum::default().plus(stretch);
            // A stretch may begin after a pause and end before one: then it has one too few.
            let longest = stretch.iter().map(ReadRound::longest).max().unwrap_or(LEAST);
            if longest > sum.mean() * PAUSE {
                sum.took += longest;
            }
            sum.mean()
        };
        let mean = self.0.iter().map(each).max().unwrap_or(LEAST).max(LEAST);
        let once = |each| self.0.iter().map(|it| delay(it, each)).max().unwrap_or_default();
        // Reads that were slow for a while are behind the mean by seconds in the end, with which no
        // viewer could start in time. By a slower pace they are not behind.
        let longest = self.longest();
        let most = LONGEST_DELAY.max(longest * 2);
        let (mut each, mut slower) = (mean, mean.max(longest));
        if once(each) > most {
            while slower - each > each / PACE_STEPS {
                let between = (each + slower) / 2;
                if once(between) > most { each = between } else { slower = between }
            }
            each = slower;
        }
        ReadPace { once: once(each), each }
    }

    /// The guarantee that was measured.
    pub(super) fn guarantee(&self, read_size: ByteCount, slot: Duration) -> ReadGuarantee {
        let longest_read = self.longest();
        let rounds = self.0.iter().flatten().filter(|round| round.reads() > 0);
        let slowest = rounds.map(|round| round.took.div_f64(round.reads() as f64)).max();
        // A sweep of so many reads is complete within the slot, whatever the disk did before.
        let sweep =
            super::procedure::reads_in(slot.saturating_sub(longest_read), slowest.unwrap_or(LEAST));
        let min_read = sweep.max(self.fewest(slot).unwrap_or(0));
        let mut longer = [0; LONGER];
        for (power, longer) in (1..).zip(&mut longer) {
            let slots = 1u32 << power;
            let Some(fewest) = self.fewest(slot * slots) else { break };
            *longer = fewest.max(min_read.saturating_mul(slots));
        }
        ReadGuarantee {
            read_size,
            min_read,
            mean_read: slot.as_secs_f64() / self.mean().as_secs_f64().max(1e-9),
            longest_read,
            longer,
            pace: self.pace(),
        }
    }

    /// The fewest reads in any `time`; `None` if no stretch was as long.
    fn fewest(&self, time: Duration) -> Option<u32> {
        // A slot may begin while the disk is idle: then its first read has no other before it.
        let mut first: Vec<Duration> =
            self.0.iter().flatten().filter_map(|round| round.ends.first().copied()).collect();
        first.sort_unstable();
        let idle = first.get(first.len() / 2).copied().unwrap_or_default();
        let time = nanos(time.saturating_sub(idle));
        let of = |stretch: &Stretch| {
            let ends = ends(stretch);
            let last = ends.last().copied().unwrap_or(0);
            let mut until = 0;
            let mut fewest = None;
            for (at, begin) in std::iter::once(&0).chain(&ends).enumerate() {
                if begin + time > last {
                    break;
                }
                until += ends[until..].partition_point(|end| *end <= begin + time);
                let reads = until - at;
                fewest = Some(fewest.map_or(reads, |fewest: usize| fewest.min(reads)));
            }
            fewest
        };
        let fewest = self.0.iter().filter_map(of).min()?;
        Some(u32::try_from(fewest).unwrap_or(u32::MAX))
    }
}

/// A delay that was measured once.
#[derive(Debug)]
pub(super) struct Suspect {
    at: Duration,
    pub(super) delay: Duration,
    /// What was measured before and after its round.
    pub(super) others: Stretches,
}

impl Suspect {
    /// Whether it happened again in `repeat`: at least half as long.
    pub(super) fn recurs_in(&self, repeat: &Stretches) -> bool {
        let each = self.others.pace().each;
        repeat.0.iter().any(|stretch| delay(stretch, each) * 2 >= self.delay)
    }

    pub(super) fn outlier(&self, read_size: ByteCount) -> Outlier {
        Outlier { read_size, at: self.at, delay: self.delay }
    }
}

#[derive(Default)]
struct Sum {
    reads: u64,
    took: Duration,
}

impl Sum {
    fn plus(mut self, rounds: &[ReadRound]) -> Self {
        self.reads += rounds.iter().map(ReadRound::reads).sum::<u64>();
        self.took += rounds.iter().map(|round| round.took).sum::<Duration>();
        self
    }

    fn mean(&self) -> Duration {
        Duration::from_nanos(nanos(self.took).div_ceil(self.reads.max(1)))
    }
}

/// Nanoseconds from the beginning of a stretch until the end of each read.
fn ends(stretch: &[ReadRound]) -> Vec<u64> {
    let mut begin = 0;
    let mut ends = Vec::new();
    for round in stretch {
        ends.extend(round.ends.iter().map(|end| begin + nanos(*end)));
        begin += nanos(round.took);
    }
    ends
}

/// The most by which the reads of a stretch fell behind one every `each`, from any of them on.
fn delay(stretch: &[ReadRound], each: Duration) -> Duration {
    let each = i128::from(nanos(each));
    let (mut least, mut most) = (0, 0);
    for (reads, end) in (1..).zip(ends(stretch)) {
        let behind = i128::from(end) - reads * each;
        most = most.max(behind - least);
        least = least.min(behind);
    }
    Duration::from_nanos(u64::try_from(most).unwrap_or(0))
}

/// No read takes less.
const LEAST: Duration = Duration::from_nanos(1);

/// How far reads may fall behind their pace, unless one read takes half as long: a slot.
const LONGEST_DELAY: Duration = Duration::from_millis(500);

/// Steps in which a slower pace is looked for, of a read's time.
const PACE_STEPS: u32 = 256;

/// The mean times of a read that a pause lasts, on a disk that works in bursts.
pub(super) const PAUSE: u32 = 8;

/// The factor between a delay and all others from which it may be a single one.
const STANDS_OUT: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Duration = Duration::from_millis(500);

    /// Reads every `each` microseconds while a throttle lets them pass: `open` of every 100 ms.
    fn throttled(each: u64, open: u64, reads: u64) -> Stretches {
        let per_burst = open * 1000 / each;
        let end = |read: u64| {
            let (burst, within) = (read / per_burst, read % per_burst);
            Duration::from_micros(burst * 100_000 + within * each + 1)
        };
        let ends: Vec<Duration> = (0..reads).map(end).collect();
        let took = *ends.last().unwrap();
        Stretches(vec![vec![ReadRound { at: Duration::ZERO, took, ends }]])
    }

    #[test]
    fn a_throttle_that_opens_ten_times_a_second_keeps_its_pace() {
        // 40 reads in the first 8 ms of each 100 ms: 200 in a slot.
        let measured = throttled(200, 8, 12_801);
        let guarantee = measured.guarantee(ByteCount::kib(256), SLOT);
        let fewest: Vec<(u64, u32)> = guarantee.fewest().collect();
        let slots: Vec<u64> = fewest.iter().map(|(slots, _)| *slots).collect();
        assert_eq!(slots, [1, 2, 4, 8, 16, 32, 64]);
        for (slots, reads) in fewest {
            let most = slots * 200;
            assert!((most - 41..=most).contains(&u64::from(reads)), "{slots}: {reads}");
        }
        let ReadPace { once, each } = guarantee.pace;
        assert!(each.abs_diff(Duration::from_micros(2500)) < Duration::from_micros(10), "{each:?}");
        assert!((85..=105).contains(&once.as_millis()), "{once:?}");
        assert!(measured.suspect().is_none(), "it waits every time");
    }

    #[test]
    fn a_disk_that_was_slow_for_a_while_has_that_pace_and_no_delay_of_seconds() {
        // Half a minute of reads of 0.5 ms, half a minute of 0.6 ms, half a minute of 0.5 ms.
        let round = |number: u64| {
            let each = if (150..300).contains(&number) { 600 } else { 500 };
            let ends: Vec<_> = (1..=400).map(|it| Duration::from_micros(it * each)).collect();
            ReadRound { at: Duration::ZERO, took: *ends.last().unwrap(), ends }
        };
        let measured = Stretches(vec![(0..450).map(round).collect()]);
        let ReadPace { once, each } = measured.pace();
        assert!(once <= LONGEST_DELAY, "{once:?}");
        assert!((585..=600).contains(&each.as_micros()), "{each:?}");
        // It holds for any of the reads.
        assert!(delay(&measured.0[0], each) <= once);
    }

    #[test]
    fn a_disk_that_pauses_for_seconds_keeps_its_mean() {
        // 100 ms of reads of 1 ms, then 3 s without one.
        let end = |read: u64| Duration::from_millis(read / 100 * 3100 + read % 100 + 1);
        let ends: Vec<_> = (0..2001).map(end).collect();
        let took = *ends.last().unwrap();
        let pace = Stretches(vec![vec![ReadRound { at: Duration::ZERO, took, ends }]]).pace();
        assert!((30_900..=33_000).contains(&pace.each.as_micros()), "{pace:?}");
        assert!((2900..=3100).contains(&pace.once.as_millis()), "{pace:?}");
    }

    #[test]
    fn one_delay_stands_out_and_two_do_not() {
        let rounds = |late: &[usize]| {
            let round = |number: usize| {
                let delay = if late.contains(&number) { 200 } else { 0 };
                let ends: Vec<Duration> =
                    (1..=100).map(|read| Duration::from_millis(read + delay)).collect();
                let at = Duration::from_millis(100 * number as u64);
                ReadRound { at, took: *ends.last().unwrap(), ends }
            };
            Stretches(vec![(0..30).map(round).collect()])
        };
        assert!(rounds(&[]).suspect().is_none());
        assert!(rounds(&[3, 17]).suspect().is_none());
        let once = rounds(&[17]);
        let suspect = once.suspect().unwrap();
        assert_eq!(suspect.outlier(ByteCount::MIB).at, Duration::from_millis(1700));
        assert!(!suspect.recurs_in(&rounds(&[])) && suspect.recurs_in(&rounds(&[0])));
        assert_eq!(once.guarantee(ByteCount::MIB, SLOT).min_read, 299, "with the delay");
        assert_eq!(suspect.others.guarantee(ByteCount::MIB, SLOT).min_read, 499, "without");
    }
}
