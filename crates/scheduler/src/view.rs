//! What a viewer asks for (from, to, how fast, every which part, which way) as pieces with their
//! slots: from one pair of sums per group of pictures, without looking at any frame.
//!
//! ```text
//!   groups          g0   g1   g2   g3   g4   g5        start in g1, stop in g5, skip 1, forwards:
//!   delivered            ▓▓        ▓▓        ▓▓          g1, g3, g5, one after the other
//!   pieces of the   ├──0──┼──1──┼──2──┼──3──┼──4──┤      each piece that one of them touches, once,
//!   track                                                due when the first of these is shown
//! ```
//!
//! - speed stretches time, and nothing else;
//! - skipping costs more than its share: pieces at the edges of groups are read whole;
//! - backwards, a group is shown last picture first and so is needed whole when it begins. Forwards
//!   it is taken to be, too: the sums do not say how a group's bytes lie in time, and its first
//!   picture is the largest.
//!
//! It does not know where anything lies; whoever asks says what each piece's transfer takes.

use crate::demand::{Curve, HOLD_SLOTS, PieceDue, Timing};

/// What a viewer asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// From here, in milliseconds of the title.
    pub start_ms: u32,
    /// To here; `None`: to the end.
    pub stop_ms: Option<u32>,
    /// Seconds of media shown in a second.
    pub speed: f64,
    /// Groups of pictures left out after each that is shown.
    pub skip: u32,
    /// Last group first.
    pub backwards: bool,
}

impl Default for View {
    fn default() -> Self {
        Self { start_ms: 0, stop_ms: None, speed: 1.0, skip: 0, backwards: false }
    }
}

/// A track by its groups of pictures.
#[derive(Clone, Copy, Debug)]
pub struct Groups<'a> {
    /// When each begins, in milliseconds of the title, and last when the track ends. Never
    /// decreases.
    pub at_ms: &'a [u32],
    /// At which byte of the track each begins, and last its bytes. Never decreases; as many.
    pub at_byte: &'a [u64],
    /// Bytes of a piece; not zero.
    pub piece: u32,
}

/// What cannot be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadView {
    /// The sums contradict themselves.
    #[error("the track's index is not in order; check the store")]
    Index,
    /// Not a speed.
    #[error("the speed must be between {SLOWEST} and {FASTEST}")]
    Speed,
    /// Nothing is there to be shown.
    #[error("the title ends before the start that was asked for")]
    BeyondTheEnd,
    /// Stops before it starts.
    #[error("the stop must be later than the start")]
    Empty,
}

impl View {
    /// Adds to `pieces` what must be read, in the order in which it is needed, in O(groups +
    /// pieces). `timing` says when the play-out begins (its `from_ms` is not looked at), `transfer`
    /// how many nanoseconds the disk transfers for a piece.
    pub fn pieces(
        &self,
        groups: Groups<'_>,
        timing: &Timing,
        mut transfer: impl FnMut(u32) -> u32,
        pieces: &mut Vec<PieceDue>,
    ) -> Result<(), BadView> {
        let shown = self.shown(groups)?;
        let timing = Timing { from_ms: 0, kept_from_ms: 0, ..*timing };
        let bytes = groups.at_byte.last().copied().unwrap_or(0);
        let curve = Curve { due: &[], piece: groups.piece, bytes, transfer: &[], followed: &[] };
        let touched = |number: u64| groups.pieces_of(shown.group(number));
        // Where the search for the last group that touches a piece goes on, and when it ends.
        let (mut until, mut until_ms) = (0, 0.0);
        let mut elapsed_ms = 0.0;
        let mut done: Option<(u32, u32)> = None;
        for number in 0..shown.count {
            let due = timing.due_slot(whole_ms(elapsed_ms / self.speed));
            elapsed_ms += groups.length_ms(shown.group(number));
            let Some((first, last)) = touched(number) else { continue };
            for piece in first..=last {
                if done.is_some_and(|(low, high)| low <= piece && piece <= high) {
                    continue;
                }
                while until < shown.count
                    && (until <= number
                        || touched(until).is_none_or(|(low, high)| low <= piece && piece <= high))
                {
                    until_ms += groups.length_ms(shown.group(until));
                    until += 1;
                }
                let end = timing.due_slot(whole_ms(until_ms / self.speed)) + HOLD_SLOTS;
                let (len, transfer) = (curve.len(piece), transfer(piece));
                let release = end.max(due);
                pieces.push(PieceDue { piece, due, release, len, transfer, followed_after: None });
            }
            done = Some((first, last));
        }
        Ok(())
    }

    fn shown(&self, groups: Groups<'_>) -> Result<Shown, BadView> {
        let in_order = groups.at_ms.is_sorted() && groups.at_byte.is_sorted();
        let count = groups.at_ms.len().saturating_sub(1);
        let countable = groups.at_byte.last().is_none_or(|bytes| {
            bytes.div_ceil(u64::from(groups.piece.max(1))) < u64::from(u32::MAX)
        });
        if !in_order || groups.at_byte.len() != count + 1 || groups.piece == 0 || !countable {
            return Err(BadView::Index);
        }
        if !(SLOWEST..=FASTEST).contains(&self.speed) {
            return Err(BadView::Speed);
        }
        let end = groups.at_ms[count];
        if count == 0 || (self.start_ms > 0 && self.start_ms >= end) {
            return Err(BadView::BeyondTheEnd);
        }
        let stop = self.stop_ms.unwrap_or(u32::MAX);
        if stop <= self.start_ms {
            return Err(BadView::Empty);
        }
        let begins = &groups.at_ms[..count];
        // The group that is shown at the start, and those of no duration just before it.
        let shown = begins[begins.partition_point(|at| *at <= self.start_ms).saturating_sub(1)];
        let first = begins.partition_point(|at| *at < shown) as u64;
        let after = begins.partition_point(|at| *at < stop) as u64;
        let step = u64::from(self.skip) + 1;
        let count = (after.max(first + 1) - first).div_ceil(step);
        Ok(Shown { first, step, count, backwards: self.backwards })
    }
}

/// Which groups are shown.
#[derive(Clone, Copy)]
struct Shown {
    first: u64,
    step: u64,
    count: u64,
    backwards: bool,
}

impl Shown {
    fn group(&self, number: u64) -> usize {
        let number = if self.backwards { self.count - 1 - number } else { number };
        usize::try_from(self.first + number * self.step).expect("an index into memory")
    }
}

impl Groups<'_> {
    fn length_ms(&self, group: usize) -> f64 {
        f64::from(self.at_ms[group + 1] - self.at_ms[group])
    }

    /// First and last piece that a group touches; `None` if it has no bytes.
    fn pieces_of(&self, group: usize) -> Option<(u32, u32)> {
        let (start, end) = (self.at_byte[group], self.at_byte[group + 1]);
        let piece = |byte: u64| u32::try_from(byte / u64::from(self.piece)).expect("counted");
        (end > start).then(|| (piece(start), piece(end - 1)))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and float to integer casts saturate"
)]
fn whole_ms(ms: f64) -> u32 {
    ms as u32
}

/// Slower is a pause.
const SLOWEST: f64 = 1.0 / 64.0;

/// Faster, nobody sees anything; groups are to be skipped instead.
const FASTEST: f64 = 64.0;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use units::{Moment, SlotIndex};

    const TIMING: Timing = Timing {
        origin: Moment(0),
        startup: Duration::from_secs(1),
        from_ms: 0,
        kept_from_ms: 0,
        slot: Duration::from_millis(500),
        early: 0,
    };

    // Six groups of a second, of 150 bytes each; pieces of 100 bytes.
    const GROUPS: Groups<'_> = Groups {
        at_ms: &[0, 1000, 2000, 3000, 4000, 5000, 6000],
        at_byte: &[0, 150, 300, 450, 600, 750, 900],
        piece: 100,
    };

    fn shown(view: View) -> Vec<(u32, u64, u64)> {
        let mut pieces = Vec::new();
        view.pieces(GROUPS, &TIMING, |piece| piece, &mut pieces).unwrap();
        assert!(pieces.iter().all(|p| p.len == 100 && p.transfer == p.piece));
        pieces.iter().map(|p| (p.piece, p.due.0, p.release.0)).collect()
    }

    #[test]
    fn what_is_asked_for_becomes_pieces_in_time() {
        let view = View::default();
        // A group is due a slot before it is shown, the first after the start-up; a piece is let
        // go two slots after the last group that it has bytes of was due to end.
        assert_eq!(
            shown(View { stop_ms: Some(3000), ..view }),
            [(0, 1, 3), (1, 1, 4), (2, 1, 4), (3, 2, 6), (4, 2, 6)],
        );
        let only =
            |view| shown(view).iter().map(|(piece, due, _)| (*piece, *due)).collect::<Vec<_>>();
        assert_eq!(
            only(View { skip: 1, ..view }),
            [(0, 1), (1, 1), (3, 1), (4, 1), (6, 2), (7, 2)],
            "half of the groups, two thirds of the pieces"
        );
        assert_eq!(
            only(View { start_ms: 2500, stop_ms: Some(4500), speed: 0.5, ..view }),
            [(3, 1), (4, 1), (5, 2), (6, 6), (7, 6)],
        );
        assert_eq!(
            only(View { start_ms: 3000, backwards: true, ..view }),
            [(7, 1), (8, 1), (6, 1), (4, 2), (5, 2)],
        );
        assert_eq!(only(View { skip: 99, ..view }), [(0, 1), (1, 1)], "skips beyond the end");
    }

    #[test]
    fn every_view_reads_each_piece_that_it_touches_once_and_keeps_it_long_enough() {
        for seed in 0..3000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut ms, mut byte) = (0, 0);
            let (at_ms, at_byte): (Vec<u32>, Vec<u64>) = (0..random.usize(2..30))
                .map(|_| {
                    let here = (ms, byte);
                    ms += random.u32(0..2000);
                    byte += random.u64(0..300);
                    here
                })
                .unzip();
            let groups = Groups { at_ms: &at_ms, at_byte: &at_byte, piece: random.u32(1..400) };
            let view = View {
                start_ms: random.u32(0..=ms / 2),
                stop_ms: random.bool().then(|| random.u32(1..20_000)),
                speed: [0.5, 1.0, 1.25, 2.0][random.usize(..4)],
                skip: random.u32(0..4),
                backwards: random.bool(),
            };
            let mut pieces = Vec::new();
            let Ok(()) = view.pieces(groups, &TIMING, |_| 1, &mut pieces) else { continue };
            assert!(pieces.is_sorted_by_key(|piece| piece.due), "seed {seed}");
            // The slow way: each group in turn, all that it touches.
            let shown = view.shown(groups).unwrap();
            let mut wanted = std::collections::BTreeMap::<u32, (SlotIndex, SlotIndex)>::new();
            let mut elapsed = 0.0;
            for number in 0..shown.count {
                let group = shown.group(number);
                let due = TIMING.due_slot(whole_ms(elapsed / view.speed));
                elapsed += groups.length_ms(group);
                let over = TIMING.due_slot(whole_ms(elapsed / view.speed));
                for byte in at_byte[group]..at_byte[group + 1] {
                    let piece = u32::try_from(byte / u64::from(groups.piece)).unwrap();
                    wanted.entry(piece).or_insert((due, over)).1 = over;
                }
            }
            assert_eq!(pieces.len(), wanted.len(), "seed {seed}: {pieces:?} {wanted:?}");
            for piece in &pieces {
                let (due, over) = wanted[&piece.piece];
                assert_eq!(piece.due, due, "seed {seed}");
                assert!(piece.release >= over + HOLD_SLOTS, "seed {seed}: {piece:?} {over:?}");
            }
        }
    }

    #[test]
    fn absurd_requests_and_titles_get_an_answer() {
        let asked = |view: View, groups: Groups<'_>| {
            let mut pieces = Vec::new();
            view.pieces(groups, &TIMING, |_| u32::MAX, &mut pieces).map(|()| pieces.len())
        };
        let view = View::default();
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert_eq!(asked(View { speed, ..view }, GROUPS), Err(BadView::Speed), "{speed}");
        }
        let first = View { stop_ms: Some(1), ..view };
        for skip in [99, u32::MAX] {
            let skipped = asked(View { skip, ..view }, GROUPS);
            assert_eq!(skipped, asked(first, GROUPS), "skips more than there is: its first group");
        }
        let beyond = View { start_ms: 6000, ..view };
        assert_eq!(asked(beyond, GROUPS), Err(BadView::BeyondTheEnd));
        let back = View { start_ms: 3000, stop_ms: Some(3000), ..view };
        assert_eq!(asked(back, GROUPS), Err(BadView::Empty));
        let of = |at_ms, at_byte, piece| asked(view, Groups { at_ms, at_byte, piece });
        assert_eq!(of(&[], &[], 100), Err(BadView::Index));
        assert_eq!(of(&[0], &[0], 100), Err(BadView::BeyondTheEnd));
        assert_eq!(of(&[0, 5, 4], &[0, 1, 2], 100), Err(BadView::Index), "times that go back");
        assert_eq!(of(&[0, 4], &[0, 1], 0), Err(BadView::Index), "pieces of nothing");
        assert_eq!(of(&[0, 4], &[0, u64::MAX], 1), Err(BadView::Index), "more than can be counted");
        assert_eq!(of(&[0, 0, 0], &[0, 500, 1000], 100), Ok(10), "no duration");
        assert_eq!(of(&[0, 40], &[0, 1 << 30], 1 << 20), Ok(1024), "one frame of 1 GiB");
        assert_eq!(of(&[0, 4], &[7, 7], 100), Ok(0), "no bytes");
    }
}
