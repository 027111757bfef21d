//! The extents of a track that is being written: where they are put, how they grow, what is given
//! back. Arithmetic on a map of free chunks: nothing is read or written.
//!
//! ```text
//!   place    │ sound │ video      │          of known size: side by side, in one hole if possible
//!   grow     │ sound │ video      │vvvv      in place, if the following chunks are free,
//!                          │VVVVVVVV│        else in the largest hole, in whole units
//!   trim     │ sound │ video      │vv
//! ```

use crate::format::record::MAX_EXTENTS;
use crate::free::{AllocError, FreeMap};
use units::{ByteCount, Extent};

/// The extents of a track that is being written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackSpace {
    extents: Vec<Extent>,
    chunks: u64,
}

/// How much a track grows whose size is not known, or was estimated too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// By this part of its size ...
    part: u64,
    /// ... at most so many bytes.
    most: u64,
}

impl Growth {
    /// A track of a title whose sizes are known about.
    pub const OF_ESTIMATED: Self = Self { part: 8, most: 1 << 30 };
    /// A track of a recording, whose length nobody knows: with a quarter, 64 extents are enough for
    /// terabytes.
    pub const OF_RECORDED: Self = Self { part: 4, most: u64::MAX };

    /// Chunks that a track of `chunks` chunks gets more where so many are free: of little each
    /// track takes little, because others grow, too.
    pub fn step(self, chunks: u64, chunk: ByteCount, free: u64) -> u64 {
        let step = (chunks.saturating_mul(chunk.0) / self.part).clamp(LEAST, self.most) / chunk.0;
        step.min((free / SHARE).max(1))
    }
}

impl TrackSpace {
    /// Takes room for tracks of so many chunks: side by side, the smallest first, so that space
    /// left over by a wrong estimate is behind the largest. Takes nothing on failure.
    ///
    /// # Errors
    /// As [`FreeMap::allocate`].
    pub fn place(free: &mut FreeMap, wanted: &[u64]) -> Result<Vec<Self>, AllocError> {
        let total = wanted.iter().fold(0u64, |sum, chunks| sum.saturating_add(*chunks));
        // Tested for all tracks together: a title that cannot fit is refused before any data is
        // written.
        if total > free.free() {
            return Err(AllocError::Missing(total - free.free()));
        }
        let mut order: Vec<usize> = (0..wanted.len()).collect();
        order.sort_by_key(|track| wanted[*track]);
        // Tracks side by side cost the shortest seeks while the title is played.
        let mut together = if total > 0 { free.first_fit(total) } else { None };
        let mut tracks = vec![Self::default(); wanted.len()];
        for track in order {
            let chunks = wanted[track];
            // The chunks are already taken from the free map; each track gets its part from the
            // front.
            if let Some(rest) = together.as_mut() {
                tracks[track].add(Extent { start: rest.start, chunks });
                rest.start.0 += chunks;
                rest.chunks -= chunks;
                continue;
            }
            match free.allocate(chunks, MAX_EXTENTS) {
                Ok(extents) => extents.into_iter().for_each(|extent| tracks[track].add(extent)),
                Err(error) => {
                    tracks.into_iter().for_each(|track| track.give_back(free));
                    return Err(error);
                }
            }
        }
        Ok(tracks)
    }

    /// The extents, in the order of the data.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Number of chunks.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Takes at least `needed` chunks more, and up to `step`: in place if the following chunks are
    /// free, else elsewhere. Takes nothing on failure.
    ///
    /// # Errors
    /// As [`FreeMap::allocate`].
    pub fn grow(&mut self, free: &mut FreeMap, needed: u64, step: u64) -> Result<(), AllocError> {
        // The next step begins at a whole unit, in whatever way the track began, unless there is
        // too little for whole units.
        let unit = if step < free.unit() { 1 } else { free.unit() };
        let step = (self.last() + step.max(needed)).next_multiple_of(unit) - self.last();
        let mut missing = needed;
        // Growing in place adds no extent, and the disk reads on without a seek.
        let before = self.last();
        if let Some(last) = self.extents.last_mut() {
            let got = free.extend(last.end(), step);
            last.chunks += got;
            self.chunks += got;
            // Another extent may follow: what would make reads small is given back, if no data is
            // in it.
            let part = last.chunks % unit;
            if part <= got {
                self.cut(free, part);
            }
            missing = needed.saturating_sub(self.last() - before);
        }
        if missing == 0 {
            return Ok(());
        }
        let mut step = step.max(missing);
        let room = MAX_EXTENTS - self.extents.len().min(MAX_EXTENTS);
        // A whole step in one extent if any hole has it, or a smaller one; otherwise only what the
        // data needs now.
        let extents = loop {
            if step < missing || room == 0 {
                break free.allocate(missing, room);
            }
            if let Some(extent) = free.largest_fit(step) {
                break Ok(vec![extent]);
            }
            step /= 2;
        };
        match extents {
            Ok(extents) => extents.into_iter().for_each(|extent| self.add(extent)),
            Err(error) => {
                self.cut(free, self.last() - before);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives back the chunks behind the first `used`.
    pub fn trim(&mut self, free: &mut FreeMap, used: u64) {
        while self.chunks > used {
            self.cut(free, (self.chunks - used).min(self.last()));
        }
    }

    /// Gives back all chunks.
    pub fn give_back(self, free: &mut FreeMap) {
        self.extents.into_iter().for_each(|extent| free.give(extent));
    }

    /// Chunks of the last extent.
    fn last(&self) -> u64 {
        self.extents.last().map_or(0, |extent| extent.chunks)
    }

    /// Gives back the end of the last extent.
    fn cut(&mut self, free: &mut FreeMap, chunks: u64) {
        let Some(last) = self.extents.last_mut().filter(|_| chunks > 0) else { return };
        last.chunks -= chunks;
        self.chunks -= chunks;
        free.give(Extent { start: last.end(), chunks });
        if last.chunks == 0 {
            self.extents.pop();
        }
    }

    /// Adds one more extent, merged with the last if they touch.
    fn add(&mut self, extent: Extent) {
        if extent.chunks == 0 {
            return;
        }
        self.chunks += extent.chunks;
        match self.extents.last_mut() {
            // Fewer extents make a shorter record and let one read cross the border.
            Some(last) if last.end() == extent.start => last.chunks += extent.chunks,
            _ => self.extents.push(extent),
        }
    }
}

/// A track grows by this part of the free chunks at most. With a larger one recordings that share
/// the end of a store would need more than [`MAX_EXTENTS`] each.
const SHARE: u64 = 16;

/// Bytes that a track grows by at least: the largest read, so that steps make few extents.
const LEAST: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use units::ChunkIndex;

    fn free(holes: &[(u64, u64)], unit: u64) -> FreeMap {
        let extent =
            |(start, chunks): &(u64, u64)| Extent { start: ChunkIndex(*start), chunks: *chunks };
        FreeMap::new(&holes.iter().map(extent).collect::<Vec<_>>()).in_units_of(unit)
    }

    fn show(track: &TrackSpace) -> String {
        let extent = |e: &Extent| format!("{}+{}", e.start.0, e.chunks);
        track.extents().iter().map(extent).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn tracks_of_known_size_are_side_by_side_the_smallest_first() {
        let mut map = free(&[(0, 4), (10, 20)], 4);
        let tracks = TrackSpace::place(&mut map, &[12, 2]).unwrap();
        assert_eq!(tracks.iter().map(show).collect::<Vec<_>>(), ["12+12", "10+2"]);
        assert_eq!(TrackSpace::place(&mut map, &[5, 6]), Err(AllocError::Missing(1)));
        assert_eq!(map.free(), 10, "nothing is taken on failure");
    }

    #[test]
    fn a_track_grows_in_place_else_in_the_largest_hole_in_whole_units() {
        let mut map = free(&[(0, 14), (20, 6), (30, 12)], 4);
        let mut track = TrackSpace::default();
        // (chunks needed, step, extents afterwards)
        let table = [
            (1, 5, "0+8"),
            // In place there are six chunks more, of which four are a whole unit.
            (1, 8, "0+12"),
            // The two that are left are too few.
            (3, 8, "0+12 30+8"),
            (4, 4, "0+12 30+12"),
            // No hole has a whole unit and more.
            (6, 8, "0+12 30+12 20+6"),
            (1, 4, "0+12 30+12 20+6 12+1"),
        ];
        for (needed, step, expected) in table {
            track.grow(&mut map, needed, step).unwrap();
            assert_eq!(show(&track), expected);
        }
        assert_eq!(track.grow(&mut map, 2, 4), Err(AllocError::Missing(1)));
        assert_eq!((show(&track).as_str(), map.free()), ("0+12 30+12 20+6 12+1", 1));
        track.trim(&mut map, 13);
        assert_eq!((show(&track).as_str(), track.chunks(), map.free()), ("0+12 30+1", 13, 19));
        track.give_back(&mut map);
        assert_eq!(map, free(&[(0, 14), (20, 6), (30, 12)], 4));
    }

    #[test]
    fn recordings_share_what_is_left_of_a_store() {
        // 61 MiB for eight tracks that write in turns, and of which each has the room of six.
        let mut map = free(&[(0, 61)], 16);
        let mut tracks = vec![TrackSpace::default(); 8];
        for written in 1..=6 {
            for track in tracks.iter_mut().filter(|track| track.chunks() < written) {
                let step = Growth::OF_RECORDED.step(track.chunks(), ByteCount::MIB, map.free());
                assert_eq!(track.grow(&mut map, 1, step), Ok(()), "{written} MiB");
            }
        }
        // Of much, each takes what is read with few seeks.
        let mut map = free(&[(0, 4096)], 16);
        let mut track = TrackSpace::default();
        let step = Growth::OF_RECORDED.step(0, ByteCount::MIB, map.free());
        track.grow(&mut map, 1, step).unwrap();
        assert_eq!(show(&track), "0+16");
    }

    #[test]
    fn random_tracks_never_share_a_chunk_and_read_whole_units() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let unit = random.u64(1..6);
            let mut map = free(&[(0, 500), (520, 300)], unit);
            let empty = map.clone();
            let mut tracks: Vec<TrackSpace> = Vec::new();
            for _ in 0..200 {
                match random.u8(0..4) {
                    0 => tracks.extend(
                        TrackSpace::place(&mut map, &[random.u64(0..90)]).into_iter().flatten(),
                    ),
                    1 if !tracks.is_empty() => {
                        tracks.swap_remove(random.usize(..tracks.len())).give_back(&mut map);
                    }
                    2 => tracks.push(TrackSpace::default()),
                    _ if tracks.is_empty() => {}
                    _ => {
                        let track = random.usize(..tracks.len());
                        let (before, needed) = (tracks[track].clone(), random.u64(1..20));
                        match tracks[track].grow(&mut map, needed, random.u64(1..40)) {
                            Ok(()) => assert!(tracks[track].chunks() >= before.chunks() + needed),
                            Err(_) => assert_eq!(tracks[track], before, "seed {seed}"),
                        }
                    }
                }
                let mut all: Vec<Extent> =
                    tracks.iter().flat_map(TrackSpace::extents).copied().collect();
                let held: u64 = all.iter().map(|extent| extent.chunks).sum();
                assert_eq!(held + map.free(), 800, "seed {seed}");
                all.sort();
                assert!(all.is_sorted_by(|a, b| a.end() <= b.start), "seed {seed}: {all:?}");
            }
            tracks.into_iter().for_each(|track| track.give_back(&mut map));
            assert_eq!(map, empty, "seed {seed}");
        }
    }
}
