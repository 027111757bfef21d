//! The map of free chunks. Derived from the catalogue when the store opens, never stored.
//!
//! ```text
//!   chunks   0 1 2 3 4 5 6 7 8 9
//!            . A A . . B . . . C        holes: 3 → 2, 6 → 3
//! ```
//!
//! First fit: a request takes the first hole that holds it whole. Only when there is none, it takes
//! the largest holes, so that the number of extents stays small.

use std::collections::BTreeMap;
use units::{ChunkIndex, Extent};

/// The reason for a failed allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocError {
    /// The number of chunks that are missing.
    Missing(u64),
    /// There are enough chunks, but in more extents than allowed.
    Pieces,
}

/// The free chunks, as holes by start with their length. No two holes touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FreeMap {
    holes: BTreeMap<u64, u64>,
    free: u64,
}

impl FreeMap {
    /// A map in which all of these runs are free.
    pub(crate) fn new(runs: &[Extent]) -> Self {
        let mut map = Self::default();
        for run in runs {
            map.give(*run);
        }
        map
    }

    /// Number of free chunks.
    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    /// The length of the largest hole.
    pub(crate) fn largest(&self) -> u64 {
        self.holes.values().copied().max().unwrap_or(0)
    }

    /// Takes exactly these chunks; returns `false` and takes nothing if they are not all free.
    pub(crate) fn take(&mut self, extent: Extent) -> bool {
        let (start, end) = (extent.start.0, extent.end().0);
        // Holes do not touch, so only the last one that begins by `start` can contain the extent.
        let Some((&hole, &length)) = self.holes.range(..=start).next_back() else { return false };
        if extent.chunks == 0 || end > hole + length {
            return false;
        }
        self.holes.remove(&hole);
        if hole < start {
            self.holes.insert(hole, start - hole);
        }
        if end < hole + length {
            self.holes.insert(end, hole + length - end);
        }
        self.free -= extent.chunks;
        true
    }

    /// Frees chunks that were taken before.
    pub(crate) fn give(&mut self, extent: Extent) {
        let (mut start, mut end) = (extent.start.0, extent.end().0);
        if start == end {
            return;
        }
        // Holes that touch become one, or first fit would miss the room.
        if let Some((&hole, &length)) = self.holes.range(..end).next_back() {
            assert!(hole + length <= start, "chunks given back twice: {extent:?}");
            if hole + length == start {
                self.holes.remove(&hole);
                start = hole;
            }
        }
        if let Some(length) = self.holes.remove(&end) {
            end += length;
        }
        self.holes.insert(start, end - start);
        self.free += extent.chunks;
    }

    /// Allocates one extent by first fit.
    pub(crate) fn first_fit(&mut self, chunks: u64) -> Option<Extent> {
        let start = self.holes.iter().find(|(_, length)| **length >= chunks)?.0;
        let extent = Extent { start: ChunkIndex(*start), chunks };
        self.take(extent).then_some(extent)
    }

    /// Allocates one extent by first fit, else as few extents as possible, largest holes first, in
    /// the order of their positions. Takes nothing on failure.
    pub(crate) fn allocate(
        &mut self,
        chunks: u64,
        pieces: usize,
    ) -> Result<Vec<Extent>, AllocError> {
        if chunks == 0 {
            return Ok(Vec::new());
        }
        if chunks > self.free {
            return Err(AllocError::Missing(chunks - self.free));
        }
        if let Some(extent) = self.first_fit(chunks) {
            return Ok(vec![extent]);
        }
        // Nothing is taken while choosing, so a failure needs no undoing.
        let mut holes: Vec<(u64, u64)> = self.holes.iter().map(|(s, l)| (*s, *l)).collect();
        // The largest first: few extents mean few seeks.
        holes.sort_by_key(|(start, length)| (std::cmp::Reverse(*length), *start));
        let mut missing = chunks;
        let mut chosen = Vec::new();
        for (start, length) in holes.into_iter().take(pieces) {
            let chunks = length.min(missing);
            chosen.push(Extent { start: ChunkIndex(start), chunks });
            missing -= chunks;
            if missing == 0 {
                break;
            }
        }
        if missing > 0 {
            return Err(AllocError::Pieces);
        }
        // In the order of the disk, so that playing from start to end moves the head one way.
        chosen.sort();
        for extent in &chosen {
            assert!(self.take(*extent), "a hole just seen is free");
        }
        Ok(chosen)
    }

    /// Takes the first free chunks that are not before `from`: at most `most`, in one piece.
    pub(crate) fn take_next(&mut self, from: ChunkIndex, most: u64) -> Option<Extent> {
        // A hole that begins before `from` may reach beyond it.
        let before = self.holes.range(..from.0).next_back();
        let rest = before.map(|(start, length)| (from.0, (start + length).saturating_sub(from.0)));
        let behind = self.holes.range(from.0..).next().map(|(start, length)| (*start, *length));
        let (start, length) = rest.filter(|(_, length)| *length > 0).or(behind)?;
        let extent = Extent { start: ChunkIndex(start), chunks: length.min(most) };
        self.take(extent).then_some(extent)
    }

    /// Takes up to `chunks` chunks directly behind `end`; returns how many were free.
    pub(crate) fn extend(&mut self, end: ChunkIndex, chunks: u64) -> u64 {
        let taken = self.holes.get(&end.0).map_or(0, |length| chunks.min(*length));
        if taken > 0 {
            self.take(Extent { start: end, chunks: taken });
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(start: u64, chunks: u64) -> Extent {
        Extent { start: ChunkIndex(start), chunks }
    }

    fn show(extents: &[Extent]) -> String {
        let texts: Vec<String> =
            extents.iter().map(|e| format!("{}+{}", e.start.0, e.chunks)).collect();
        texts.join(" ")
    }

    #[test]
    fn one_extent_is_used_if_a_hole_is_large_enough_else_the_largest_holes() {
        // Holes of 2, 5, 3 and 8 chunks.
        let map = FreeMap::new(&[extent(0, 2), extent(10, 5), extent(20, 3), extent(30, 8)]);
        let table = [(1, 4), (3, 4), (6, 4), (9, 4), (13, 4), (18, 4), (18, 3), (19, 4)];
        let results = table.map(|(chunks, pieces)| {
            let result = match map.clone().allocate(chunks, pieces) {
                Ok(extents) => show(&extents),
                Err(error) => format!("{error:?}"),
            };
            format!("{chunks} in {pieces}: {result}")
        });
        expect_test::expect![[r#"
            1 in 4: 0+1
            3 in 4: 10+3
            6 in 4: 30+6
            9 in 4: 10+1 30+8
            13 in 4: 10+5 30+8
            18 in 4: 0+2 10+5 20+3 30+8
            18 in 3: Pieces
            19 in 4: Missing(1)"#]]
        .assert_eq(&results.join("\n"));
    }

    #[test]
    fn random_operations_agree_with_a_bitmap() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut map = FreeMap::new(&[extent(3, 40), extent(50, 30)]);
            let mut bits: Vec<bool> =
                (0..90).map(|i| (3..43).contains(&i) || (50..80).contains(&i)).collect();
            let mut held: Vec<Extent> = Vec::new();
            for _ in 0..100 {
                if random.bool() && !held.is_empty() {
                    let extent = held.swap_remove(random.usize(..held.len()));
                    map.give(extent);
                    for i in extent.start.0..extent.end().0 {
                        bits[usize::try_from(i).unwrap()] = true;
                    }
                } else if let Ok(extents) = map.allocate(random.u64(1..12), 4) {
                    for extent in extents {
                        for i in extent.start.0..extent.end().0 {
                            let bit = &mut bits[usize::try_from(i).unwrap()];
                            assert!(std::mem::take(bit), "seed {seed}: chunk {i} given twice");
                        }
                        held.push(extent);
                    }
                }
                let free = bits.iter().filter(|bit| **bit).count() as u64;
                let largest = bits.split(|bit| !bit).map(<[bool]>::len).max().unwrap_or(0) as u64;
                assert_eq!((map.free(), map.largest()), (free, largest), "seed {seed}");
            }
        }
    }

    #[test]
    fn all_holes_are_taken_piece_by_piece() {
        let mut map = FreeMap::new(&[extent(0, 2), extent(10, 5), extent(20, 3)]);
        let mut at = ChunkIndex(0);
        let mut pieces = Vec::new();
        while let Some(piece) = map.take_next(at, 2) {
            pieces.push(piece);
            at = piece.end();
            map.give(piece);
        }
        assert_eq!(show(&pieces), "0+2 10+2 12+2 14+1 20+2 22+1");
        assert_eq!((map.free(), map.largest()), (10, 5));
        assert_eq!(map.take_next(ChunkIndex(12), 9), Some(extent(12, 3)), "from inside of a hole");
    }

    #[test]
    fn extending_stops_at_the_next_taken_chunk() {
        let mut map = FreeMap::new(&[extent(0, 10)]);
        assert!(map.take(extent(0, 2)) && map.take(extent(5, 1)));
        assert_eq!(map.extend(ChunkIndex(2), 9), 3);
        assert_eq!(map.extend(ChunkIndex(5), 1), 0);
        assert!(!map.take(extent(4, 3)), "partly taken");
    }
}
