//! Whether a run's backlog grows: the test that refuses a run in which no frame is late yet.
//!
//! # The rule
//!
//! Streams are *held* by a run if no frame misses its deadline (or at most the share that the rule
//! allows) and the backlog does not grow. The backlog is seen in the delays of the frames: for each
//! round (the frames with one number) the longest response. Its level is the lowest such delay in a
//! window, because each storage that keeps up works off its backlog again and again, however its
//! speed varies, and the lowest delay of a window shows whether it did.
//!
//! ```text
//!   delay │              x                        A = time of the client's buffer
//!         │    x    x   x x    x     x            T = A / 32, what counts as equal
//!         │x  x x  x x x   x  x x   x x
//!         │ xx   xx   x     xx   xxx   xxxx       not growing: the lowest are where they were
//!         └──────┴──────┴──────┴──────┤ L
//!           not used   second   last quarter      ends here, or up to L later, as soon as
//!                      quarter                    it is not growing
//! ```
//!
//! At the end of a run of length L the backlog grows if the lowest delay of the last quarter is
//! more than T above that of both the second quarter and the quarter before; or if the lowest delay
//! of the last 32nd is more than T above that of every earlier 32nd from the second quarter on. The
//! first comparison finds a slow growth beneath any variation that is shorter than a quarter; the
//! second finds one that has begun shortly before the end. A run of a search that grows at L goes
//! on until it does not, at most to 2 L: a trough of the storage's speed passes, a growing backlog
//! does not.
//!
//! A growth that at its pace would need more than a day from the end of the run to make a frame
//! late is none ([`HORIZON`]): the number is one that holds for a day. It can be seen in runs of
//! hours alone. In a shorter one a rise by T makes a frame late within 32 of its windows.
//!
//! # What a held run cannot hide
//!
//! Let the streams ask for 1 + e times what the storage delivers. The frame due at time t then
//! waits for at least e t / (1 + e), plus what varies.
//!
//! - By deadlines alone: no frame is late, so e L < A: e < A / L, however the storage varies.
//! - By the trend: between two consecutive quarters the lowest delay rises by e L / 4 if what
//!   varies is shorter than a quarter. Not growing means that this is at most T: e < A / (8 L).
//!
//! A run lasts at least 11 A and a confirming one at least 33 A ([`long_enough`], [`CONFIRMING`]):
//! an overload of 3 % misses deadlines in a confirming run whatever the storage does, and one of
//! 0.4 % is found by its trend. With 8 frames of 25 a second, A is 0.32 s, and the confirming run
//! of 60 s sees 0.5 % and 0.07 %. What a run cannot see is a storage that becomes slower after it:
//! a burst credit that lasts longer, or a load that comes at another time of the day.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A backlog that grew until the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BacklogGrowth {
    /// The delay of frames in an earlier part of the run.
    pub before: Duration,
    /// The delay of frames at its end.
    pub end: Duration,
}

/// The shortest run that shows whether streams are held, of clients that buffer for `allowed`.
pub(crate) fn long_enough(allowed: Duration) -> Duration {
    allowed * 11
}

/// A confirming run is at least this many times as long as the shortest one that is long enough.
pub(crate) const CONFIRMING: u32 = 3;

/// The growth of the backlog at the end of a run. `delays` has the longest response of each round,
/// and `planned` of these rounds were to be run, in a time of `length`: the others are a
/// continuation. `None` if the backlog does not grow, or before the end.
pub(crate) fn growth(
    delays: &[Duration],
    planned: usize,
    length: Duration,
    allowed: Duration,
) -> Option<BacklogGrowth> {
    let (quarter, part) = (planned / 4, (planned / PARTS as usize).max(1));
    // Fewer rounds than that are no quarters to compare.
    if delays.len() < planned || quarter == 0 {
        return None;
    }
    by_quarters(delays, quarter, allowed)
        .filter(|growth| growth.ends_within_horizon(allowed, length / 4))
        .or_else(|| {
            let (growth, parts) = by_parts(delays, quarter, part, allowed)?;
            growth.ends_within_horizon(allowed, length * parts / PARTS).then_some(growth)
        })
}

/// The growth of the last part over all parts between the first and the last quarter, and in how
/// many parts it came about.
fn by_parts(
    delays: &[Duration],
    quarter: usize,
    part: usize,
    allowed: Duration,
) -> Option<(BacklogGrowth, u32)> {
    let (before, last) = delays.split_at(delays.len() - quarter);
    let highest = before[quarter..].chunks_exact(part).map(lowest).max().unwrap_or_default();
    let mut ends = last.rchunks_exact(part).map(lowest);
    let growth = above(ends.next().unwrap_or_default(), highest, allowed)?;
    let higher = ends.take_while(|level| *level > highest).count();
    Some((growth, u32::try_from(higher + 1).unwrap_or(PARTS)))
}

/// The growth of what players' buffers of length `buffer` lack: `lacks` has the most of any player
/// for each piece. `None` if it does not grow, or with too few pieces to tell.
pub(crate) fn growth_of_lack(lacks: &[Duration], buffer: Duration) -> Option<BacklogGrowth> {
    let quarter = lacks.len() / 4;
    // The lowest of a single piece would show an accident. Half of the buffer's time, because runs
    // are short in relation to the buffers of players.
    if quarter < LEAST_PIECES { None } else { by_quarters(lacks, quarter, buffer / 2) }
}

/// The growth from the second quarter, and the quarter before the last, to the last one.
fn by_quarters(delays: &[Duration], quarter: usize, allowed: Duration) -> Option<BacklogGrowth> {
    let (before, last) = delays.split_at(delays.len() - quarter);
    // The first quarter is not compared with: there the storage fills its queues and caches.
    let second = lowest(&before[quarter..2 * quarter]);
    above(lowest(last), second.max(lowest(&before[before.len() - quarter..])), allowed)
}

fn lowest(window: &[Duration]) -> Duration {
    window.iter().copied().min().unwrap_or_default()
}

impl BacklogGrowth {
    /// Whether a frame is late within [`HORIZON`] if the backlog goes on growing as it did in the
    /// last `time`.
    fn ends_within_horizon(self, allowed: Duration, time: Duration) -> bool {
        let pace = self.end.saturating_sub(self.before).as_secs_f64();
        let left = allowed.saturating_sub(self.end).as_secs_f64();
        left * time.as_secs_f64() <= pace * HORIZON.as_secs_f64()
    }
}

fn above(end: Duration, before: Duration, allowed: Duration) -> Option<BacklogGrowth> {
    (end > before + allowed / EQUAL).then_some(BacklogGrowth { before, end })
}

/// Pieces of a quarter of a player's run, at least.
const LEAST_PIECES: usize = 2;

/// The run's part whose lowest delay is its state at that time: one in this many.
const PARTS: u32 = 32;

/// The time after a run for which what it held is to hold.
const HORIZON: Duration = Duration::from_secs(24 * 60 * 60);

/// The part of the buffer's time, one in this number, by which two delays count as equal.
const EQUAL: u32 = 32;

/// A continued run is tested again after each of this many parts of its planned length.
pub(super) fn tested_every(planned: u64) -> u64 {
    (planned / u64::from(PARTS)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const ALLOWED: Duration = Duration::from_millis(320);

    /// The growth after 1,500 rounds at 25 a second, of 1,500 planned, with these delays in ms.
    fn grows(delay: impl Fn(u32) -> u32) -> bool {
        let delays: Vec<Duration> = (0..1500).map(|round| MS * delay(round)).collect();
        growth(&delays, 1500, Duration::from_secs(60), ALLOWED).is_some()
    }

    #[test]
    fn a_backlog_grows_where_its_lowest_delays_do() {
        assert!(!grows(|_| 5), "constant");
        assert!(!grows(|round| 5 + round * 40 / 1500), "7 parts in 10,000 are too little to see");
        assert!(grows(|round| 5 + round * 60 / 1500), "1 part in 1,000: 15 ms a quarter");
        assert!(
            grows(|round| 5 + round / 25 + if round % 100 < 30 { 90 } else { 0 }),
            "with stalls"
        );
        assert!(!grows(|round| if round % 250 < 200 { 250 } else { 5 }), "periods of 10 s");
        assert!(!grows(|round| if round < 600 { 5 } else { 100 }), "slower, and no longer growing");
        assert!(grows(|round| 5 + round.saturating_sub(1350)), "since a tenth of the run");
        assert!(!grows(|round| 200_u32.saturating_sub(round)), "a backlog of the start");
    }

    #[test]
    fn a_growth_counts_where_a_frame_is_late_within_a_day() {
        let grows = |hours: u32, by: u32| {
            let delays: Vec<Duration> = (0..1500).map(|round| MS * (round * by / 1500)).collect();
            growth(&delays, 1500, Duration::from_secs(3600) * hours, ALLOWED).is_some()
        };
        assert!(grows(1, 60), "15 ms a quarter, 275 are left: 5 hours");
        assert!(grows(5, 60), "23 hours");
        assert!(!grows(6, 60), "27 hours");
        assert!(!grows(24, 60), "4 days");
        assert!(grows(24, 200), "20 hours");
        assert!(grows(24, 400), "frames are late");
    }

    #[test]
    fn buffers_that_empty_from_piece_to_piece_are_a_backlog() {
        let lacks = |lack: fn(u32) -> u32, pieces| {
            let lacks: Vec<Duration> = (0..pieces).map(|piece| MS * lack(piece)).collect();
            growth_of_lack(&lacks, MS * 30_000).is_some()
        };
        assert!(lacks(|piece| 20_000 + piece * 210, 16), "pieces of 4 s every 4.21 s");
        assert!(!lacks(|piece| 30_000 - piece * 1000, 16), "buffers that fill");
        assert!(!lacks(|piece| if piece == 15 { 9_000 } else { 800 }, 16), "a late piece");
        assert!(!lacks(|piece| 20_000 + piece * 210, 7), "too few pieces");
    }

    #[test]
    fn a_backlog_is_not_judged_before_the_planned_end() {
        let delays: Vec<Duration> = (0..999).map(|round| MS * round).collect();
        let length = Duration::from_secs(40);
        assert_eq!(growth(&delays, 1000, length, ALLOWED), None);
        assert!(growth(&delays, 999, length, ALLOWED).is_some());
        assert_eq!(growth(&delays[..3], 3, length, ALLOWED), None, "too few rounds");
    }
}
