//! What a viewer asks for (which part, how fast, which way), and the reads that this takes.
//!
//! ```text
//!   groups    |0      |1    |2        |3    |4     |        start, stop, skip, direction choose groups
//!   frames    |I B B P|I B B|I B B P B|I B B|I B B P        speed stretches their time
//!   slot         0        0      1        1     2           500 ms each: when a frame is shown
//!   blocks    |   |   |   |   |   |   |   |   |   |   |     64 KiB: each is first needed in one slot
//!   reads     └─── read 0 ────┴─── read 1 ────┴── 2 ──      neighbours joined up to the read size
//! ```
//!
//! Played backwards, whole groups come in reverse, each due when its first frame is shown. Skipping
//! shows every n-th group at the normal frame rate. A read is due when its first block is, and kept
//! until its last was shown.

use super::random::RandomSource;
use super::titles::{BLOCK, Title, TitleSource, Track, whole};
use disk::Costs;
use std::borrow::Cow;
use std::ops::Range;

/// What is asked of a title.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Seconds of media: from here ...
    pub start: f64,
    /// ... to here.
    pub stop: f64,
    /// Seconds of media shown in a second.
    pub speed: f64,
    /// Groups left out after each that is shown.
    pub skip: usize,
    /// Last group first.
    pub backwards: bool,
}

impl View {
    /// All of it, as it is.
    pub const PLAIN: Self =
        Self { start: 0.0, stop: f64::INFINITY, speed: 1.0, skip: 0, backwards: false };

    /// The kinds of requests of the paper's scenarios, in shares that are assumed, because the
    /// paper states none: half of the viewers see a part; 8 % at half speed, 4 % at a quarter more,
    /// 8 % skipping one to three groups, 5 % backwards.
    pub(crate) fn draw(title: &Title, random: &mut RandomSource) -> Self {
        let track = &title.tracks[0];
        let groups = track.groups.len();
        let mut view = Self::PLAIN;
        if random.happens(0.5) && groups > LEAST_GROUPS {
            let first = whole(random.between(0.0, 0.5) * groups as f64);
            let left = (groups - first) as f64;
            let least = first as f64 + (0.3 * left).max(LEAST_GROUPS as f64);
            let drawn = whole(random.between(least, (groups + 1) as f64));
            let last = drawn.clamp((first + LEAST_GROUPS).min(groups), groups);
            view.start = track.at[track.groups[first]];
            view.stop = track.groups.get(last).map_or(f64::INFINITY, |frame| track.at[*frame]);
        }
        // One number decides all four, so that their shares exclude each other.
        match random.part() {
            u if u < 0.08 => view.speed = 0.5,
            u if u < 0.12 => view.speed = 1.25,
            u if u < 0.20 => view.skip = 1 + random.below(3),
            u if u < 0.25 => view.backwards = true,
            _ => {}
        }
        view
    }

    /// The groups shown, in order, each with the seconds after the start at which it is.
    fn groups(&self, track: &Track) -> Vec<(usize, f64)> {
        let time = |group: usize| track.groups.get(group).map_or(track.duration, |f| track.at[*f]);
        let shown = |group: &usize| time(*group) >= self.start && time(*group) < self.stop;
        let mut chosen: Vec<usize> =
            (0..track.groups.len()).filter(shown).step_by(self.skip + 1).collect();
        if self.backwards {
            chosen.reverse();
        }
        let mut at = 0.0;
        let placed = |group| {
            let now = at;
            // Groups that are left out take no time: the next one shown follows at once.
            at += (time(group + 1) - time(group)) / self.speed;
            (group, now)
        };
        chosen.into_iter().map(placed).collect()
    }
}

/// One read of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Where it lies.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// The slot after the start in which its first byte is shown.
    pub shown: u32,
    /// The slot in which its last is.
    pub until: u32,
    /// Nanoseconds that its bytes take at most; none where no times are known.
    pub transfer: u32,
    /// Slots until the read is shown that goes on where this one ends, if the disk takes the two
    /// for one visit.
    pub followed_after: Option<u8>,
}

/// What a request takes of the disk.
#[derive(Clone, Debug, Default)]
pub struct ReadSchedule {
    /// Track after track, each in the order in which its reads are due.
    pub reads: Vec<Read>,
    /// The number of reads up to the end of each track.
    track_ends: Vec<usize>,
    /// 64 KiB blocks needed.
    pub blocks: u64,
    /// Slots from the first to the last frame.
    pub slots: u32,
}

impl ReadSchedule {
    /// The reads of `view`, each of at most `read_size` bytes, in slots of so many seconds; of a
    /// disk that takes so long for them.
    pub fn new(
        title: &Title,
        view: &View,
        read_size: u64,
        slot: f64,
        costs: Option<&Costs>,
    ) -> Self {
        let mut schedule = Self::default();
        for track in &title.tracks {
            let mut joiner = Joiner::new(track, (read_size / BLOCK).max(1), view.backwards);
            for (group, shown) in view.groups(track) {
                joiner.group(group, shown, view, slot);
            }
            schedule.blocks += joiner.blocks;
            schedule.slots = schedule.slots.max(joiner.slots);
            if let Some(costs) = costs {
                time(&mut joiner.reads, costs);
            }
            schedule.reads.append(&mut joiner.reads);
            schedule.track_ends.push(schedule.reads.len());
        }
        schedule
    }

    /// The places of each track's reads in `reads`.
    pub(super) fn tracks(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        (0..self.track_ends.len()).map(|track| self.track(track))
    }

    /// The places of one track's reads in `reads`.
    pub(super) fn track(&self, track: usize) -> Range<usize> {
        let start = track.checked_sub(1).map_or(0, |before| self.track_ends[before]);
        start..self.track_ends[track]
    }

    /// Mean blocks a slot.
    pub fn rate(&self) -> f64 {
        self.blocks as f64 / f64::from(self.slots.max(1))
    }
}

// Says of the reads of a track what they take, and which of them are one visit.
fn time(reads: &mut [Read], costs: &Costs) {
    for read in &mut *reads {
        let takes = costs.transfer(read.offset, read.len.into());
        read.transfer = u32::try_from(takes).unwrap_or(u32::MAX);
    }
    let Some(shortest) = costs.shortest_following() else { return };
    for at in 1..reads.len() {
        let (read, next) = (reads[at - 1], reads[at]);
        let goes_on = read.offset + u64::from(read.len) == next.offset;
        // Two short reads must not count as one visit: see `Costs::shortest_following`.
        let long = u64::from(read.transfer.min(next.transfer)) >= shortest;
        if goes_on && long {
            // The distance has eight bits. Reads further apart are charged as two visits, which is
            // never too little.
            reads[at - 1].followed_after = u8::try_from(next.shown - read.shown).ok();
        }
    }
}

/// Joins what neighbouring slots need into reads.
struct Joiner<'a> {
    track: &'a Track,
    most: u64,
    backwards: bool,
    reads: Vec<Read>,
    blocks: u64,
    slots: u32,
    // Blocks below (backwards: from) here are asked for already.
    seen: Option<u64>,
}

impl<'a> Joiner<'a> {
    fn new(track: &'a Track, most: u64, backwards: bool) -> Self {
        Self { track, most, backwards, reads: Vec::new(), blocks: 0, slots: 0, seen: None }
    }

    fn group(&mut self, group: usize, shown: f64, view: &View, slot: f64) {
        let track = self.track;
        let first = track.groups[group];
        let end = track.groups.get(group + 1).copied().unwrap_or(track.ends.len());
        let in_slot = |frame: usize| {
            // Backwards, the whole group is needed before its first frame can be shown.
            let ahead = if view.backwards { 0.0 } else { track.at[frame] - track.at[first] };
            // A frame on the border of two slots is shown in the later.
            u32::try_from(whole((shown + ahead / view.speed) / slot + 1e-9)).unwrap_or(u32::MAX)
        };
        // The 1e-9 is for sums of frame times, which may end just below the border of a slot.
        let last = (shown + (track.at[end - 1] - track.at[first]) / view.speed) / slot + 1e-9;
        self.slots = self.slots.max(u32::try_from(whole(last)).unwrap_or(u32::MAX - 1) + 1);
        let mut frame = first;
        while frame < end {
            let slot = in_slot(frame);
            let next = (frame..end).find(|f| in_slot(*f) > slot).unwrap_or(end);
            let from = frame.checked_sub(1).map_or(0, |before| track.ends[before]);
            self.bytes(from, track.ends[next - 1], slot);
            frame = next;
        }
    }

    fn bytes(&mut self, from: u64, to: u64, slot: u32) {
        let (mut low, mut high) = (from / BLOCK, to.div_ceil(BLOCK));
        let touched = high - low;
        match self.seen {
            Some(seen) if self.backwards => high = high.min(seen),
            Some(seen) => low = low.max(seen),
            None => {}
        }
        // A block that the read before has already is needed until this slot, too.
        if high.saturating_sub(low) < touched
            && let Some(last) = self.reads.last_mut()
        {
            last.until = last.until.max(slot);
        }
        if low >= high {
            return;
        }
        // Each block is requested once, although frames of two slots may share it.
        self.seen = Some(if self.backwards { low } else { high });
        self.blocks += high - low;
        if self.backwards { self.before(low, high, slot) } else { self.behind(low, high, slot) }
    }

    fn behind(&mut self, mut low: u64, high: u64, slot: u32) {
        if let Some(last) = self.reads.last_mut() {
            let end = last.offset + u64::from(last.len);
            // A read grows only where the next block lies right behind it on the disk.
            let room = self.most * BLOCK - u64::from(last.len);
            if end == self.track.offset + low * BLOCK && room >= BLOCK {
                let taken = (high - low).min(room / BLOCK);
                last.len += length(taken);
                last.until = slot;
                low += taken;
            }
        }
        while low < high {
            let taken = (high - low).min(self.most);
            self.push(low, taken, slot);
            low += taken;
        }
    }

    fn before(&mut self, low: u64, mut high: u64, slot: u32) {
        if let Some(last) = self.reads.last_mut() {
            let joins = last.offset == self.track.offset + high * BLOCK;
            // Backwards a read grows at its front, and only by all of the slot's blocks.
            if joins && (high - low) * BLOCK + u64::from(last.len) <= self.most * BLOCK {
                last.offset -= (high - low) * BLOCK;
                last.len += length(high - low);
                last.until = slot;
                return;
            }
        }
        while low < high {
            let taken = (high - low).min(self.most);
            high -= taken;
            self.push(high, taken, slot);
        }
    }

    fn push(&mut self, block: u64, blocks: u64, slot: u32) {
        let offset = self.track.offset + block * BLOCK;
        self.reads.push(Read {
            offset,
            len: length(blocks),
            shown: slot,
            until: slot,
            transfer: 0,
            followed_after: None,
        });
    }
}

fn length(blocks: u64) -> u32 {
    u32::try_from(blocks * BLOCK).expect("no read is that large")
}

/// A request drawn for a scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Index of the title that is asked for.
    pub title: usize,
    /// The part of the title, and its speed.
    pub view: View,
}

/// Draws requests for titles of a shelf; in turn for all if they are to be unique.
pub(crate) struct Draw {
    order: Vec<usize>,
    next: usize,
    repeated: bool,
}

impl Draw {
    pub(crate) fn new(source: &dyn TitleSource, repeated: bool, random: &mut RandomSource) -> Self {
        // Shuffled once: unique requests come in random order, and no title comes again before all
        // others.
        let mut order: Vec<usize> = (0..source.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, random.below(i + 1));
        }
        Self { order, next: 0, repeated }
    }

    /// The next request; titles come again when all have been asked for.
    pub(crate) fn next<'a>(
        &mut self,
        source: &'a dyn TitleSource,
        random: &mut RandomSource,
    ) -> (Request, Cow<'a, Title>) {
        let at = if self.repeated { random.below(self.order.len()) } else { self.next };
        self.next = (self.next + 1) % self.order.len();
        let number = self.order[at];
        let title = source.title(number);
        let view = View::draw(&title, random);
        (Request { title: number, view }, title)
    }
}

/// Nobody asks for less than half a minute: groups.
const LEAST_GROUPS: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    /// Four groups of two frames, 0.25 s a frame, 40,000 bytes each: a block holds 1.6 frames.
    fn title() -> Title {
        Title {
            tracks: vec![Track {
                offset: 1 << 30,
                ends: (1..=8).map(|frame| frame * 40_000).collect(),
                at: (0..8).map(|frame| f64::from(frame) * 0.25).collect(),
                groups: vec![0, 2, 4, 6],
                duration: 2.0,
            }],
        }
    }

    fn reads(view: View, blocks: u64) -> Vec<(u64, u64, u32, u32)> {
        let schedule = ReadSchedule::new(&title(), &view, blocks * BLOCK, 0.5, None);
        let show =
            |r: &Read| ((r.offset - (1 << 30)) / BLOCK, u64::from(r.len) / BLOCK, r.shown, r.until);
        assert_eq!(
            schedule.blocks,
            schedule.reads.iter().map(|r| u64::from(r.len) / BLOCK).sum::<u64>()
        );
        schedule.reads.iter().map(show).collect()
    }

    #[test]
    fn blocks_are_due_with_the_first_frame_in_them() {
        // Groups end at byte 80,000, 160,000, 240,000 and 320,000: in blocks 1, 2, 3 and 4.
        let plain = reads(View::PLAIN, 1);
        assert_eq!(plain, [(0, 1, 0, 0), (1, 1, 0, 1), (2, 1, 1, 2), (3, 1, 2, 3), (4, 1, 3, 3)]);
        let slow = reads(View { speed: 0.5, ..View::PLAIN }, 1);
        let shown: Vec<u32> = slow.iter().map(|r| r.2).collect();
        assert_eq!(shown, [0, 1, 3, 4, 6], "a frame a slot");
        let skipping = reads(View { skip: 1, ..View::PLAIN }, 1);
        assert_eq!(skipping, [(0, 1, 0, 0), (1, 1, 0, 0), (2, 1, 1, 1), (3, 1, 1, 1)]);
        let part = reads(View { start: 0.5, stop: 1.0, ..View::PLAIN }, 1);
        assert_eq!(part, [(1, 1, 0, 0), (2, 1, 0, 0)]);
    }

    #[test]
    fn backwards_whole_groups_come_last_first() {
        let back = reads(View { backwards: true, ..View::PLAIN }, 1);
        assert_eq!(back, [(4, 1, 0, 0), (3, 1, 0, 1), (2, 1, 1, 2), (1, 1, 2, 3), (0, 1, 3, 3)]);
        let joined = reads(View { backwards: true, ..View::PLAIN }, 3);
        assert_eq!(joined, [(2, 3, 0, 2), (0, 2, 2, 3)]);
    }

    #[test]
    fn neighbours_are_read_together_up_to_the_read_size() {
        assert_eq!(reads(View::PLAIN, 3), [(0, 3, 0, 2), (3, 2, 2, 3)]);
        assert_eq!(reads(View::PLAIN, 16), [(0, 5, 0, 3)]);
    }

    #[test]
    fn a_view_of_nothing_takes_nothing() {
        assert_eq!(reads(View { start: 9.0, ..View::PLAIN }, 1), []);
        assert_eq!(ReadSchedule::default().rate(), 0.0);
    }
}
