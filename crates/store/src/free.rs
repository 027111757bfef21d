//! The map of free chunks. Derived from the catalogue when the store opens, never stored.
//!
//! ```text
//!   chunks   0 1 2 3 4 5 6 7 8 9
//!            . A A . . B . . . C        holes: 3 → 2, 6 → 3
//! ```
//!
//! First fit: a request takes the first hole that holds it whole. Only when there is none, it takes
//! the largest holes, so that the number of extents stays small. Then each extent but the last is a
//! multiple of the largest read, if possible: a read never crosses the end of an extent, so that a
//! track with other extents is read in smaller reads, of which a disk makes fewer bytes a second.

use crate::StoreError;
use crate::format::layout::StoreLayout;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use units::{ByteCount, ChunkIndex, Extent, align_down};

/// The reason for a failed allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocError {
    /// The number of chunks that are missing.
    Missing(u64),
    /// There are enough chunks, but in more extents than allowed.
    Pieces,
}

/// The free chunks, as holes by start with their length. No two holes touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeMap {
    holes: BTreeMap<u64, u64>,
    free: u64,
    /// An extent that another one follows has a multiple of so many chunks, if possible.
    unit: u64,
}

impl FreeMap {
    /// The map of an empty store of this size, formatted with this chunk.
    ///
    /// # Errors
    /// Sizes that no store can have.
    pub fn of_empty_store(size: ByteCount, chunk: ByteCount) -> Result<Self, StoreError> {
        StoreLayout::plan(size.0, chunk.0).map(|layout| Self::of(&layout))
    }

    /// A map in which all data chunks of this layout are free.
    pub(crate) fn of(layout: &StoreLayout) -> Self {
        Self::new(&layout.data()).in_units_of((LARGEST_READ / layout.chunk).max(1))
    }

    /// A map in which all of these runs are free.
    pub(crate) fn new(runs: &[Extent]) -> Self {
        let mut map = Self { unit: 1, ..Self::default() };
        for run in runs {
            map.give(*run);
        }
        map
    }

    /// This map without these chunks; `None` if they are not all free, or some of them twice. Much
    /// faster than to take millions of extents one after the other.
    pub(crate) fn without(&self, mut taken: Vec<Extent>) -> Option<Self> {
        taken.sort_unstable_by_key(|extent| extent.start);
        let mut taken = taken.into_iter().peekable();
        let (mut holes, mut free) = (Vec::with_capacity(taken.len()), self.free);
        for (start, length) in &self.holes {
            let (mut at, end) = (*start, start + length);
            while let Some(extent) = taken.next_if(|extent| extent.start.0 < end) {
                if extent.start.0 < at || extent.chunks == 0 || extent.end().0 > end {
                    return None;
                }
                if at < extent.start.0 {
                    holes.push((at, extent.start.0 - at));
                }
                at = extent.end().0;
                free -= extent.chunks;
            }
            if at < end {
                holes.push((at, end - at));
            }
        }
        let holes = holes.into_iter().collect();
        taken.peek().is_none().then_some(Self { holes, free, unit: self.unit })
    }

    /// Makes extents that another one follows multiples of so many chunks (1: of any length).
    #[must_use]
    pub fn in_units_of(self, unit: u64) -> Self {
        Self { unit, ..self }
    }

    /// Number of free chunks.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// The length of the largest hole.
    pub fn largest(&self) -> u64 {
        self.holes.values().copied().max().unwrap_or(0)
    }

    /// Number of holes.
    pub fn holes(&self) -> usize {
        self.holes.len()
    }

    /// The free chunks in order, in pieces as long as possible.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Extent> + '_ {
        let hole = |(&start, &chunks)| Extent { start: ChunkIndex(start), chunks };
        self.holes.iter().map(hole)
    }

    /// The chunks that an extent has a multiple of if another one follows it.
    pub(crate) fn unit(&self) -> u64 {
        self.unit
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
    pub fn give(&mut self, extent: Extent) {
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

    /// Allocates one extent at the start of the largest hole, where a track that grows has the most
    /// room behind it.
    pub(crate) fn largest_fit(&mut self, chunks: u64) -> Option<Extent> {
        let (start, length) =
            self.holes.iter().max_by_key(|(start, length)| (**length, Reverse(**start)))?;
        let extent = Extent { start: ChunkIndex(*start), chunks };
        (chunks <= *length && self.take(extent)).then_some(extent)
    }

    /// Allocates one extent by first fit, else as few extents as possible, largest holes first, in
    /// the order of their positions. Takes nothing on failure.
    ///
    /// # Errors
    /// Fewer free chunks, or free chunks in more than `pieces` holes.
    pub fn allocate(&mut self, chunks: u64, pieces: usize) -> Result<Vec<Extent>, AllocError> {
        if chunks == 0 {
            return Ok(Vec::new());
        }
        if chunks > self.free {
            return Err(AllocError::Missing(chunks - self.free));
        }
        if pieces == 0 {
            return Err(AllocError::Pieces);
        }
        if let Some(extent) = self.first_fit(chunks) {
            return Ok(vec![extent]);
        }
        // Parts of any length fit where whole units do not: better small reads than no title.
        let chosen = self
            .choose(chunks, pieces, self.unit)
            .or_else(|| self.choose(chunks, pieces, 1))
            .ok_or(AllocError::Pieces)?;
        for extent in &chosen {
            assert!(self.take(*extent), "a hole just seen is free");
        }
        Ok(chosen)
    }

    /// Extents in the largest holes; all but the last have a multiple of `unit` chunks. Nothing is
    /// taken, so a failure needs no undoing.
    fn choose(&self, chunks: u64, pieces: usize, unit: u64) -> Option<Vec<Extent>> {
        let mut holes: Vec<(u64, u64)> = self.holes.iter().map(|(s, l)| (*s, *l)).collect();
        // The largest first: few extents mean few seeks.
        holes.sort_by_key(|(start, length)| (Reverse(*length), *start));
        let (mut missing, mut chosen) = (chunks, Vec::new());
        for (start, length) in holes.into_iter().take(pieces) {
            let chunks = if length >= missing { missing } else { align_down(length, unit) };
            if chunks > 0 {
                chosen.push(Extent { start: ChunkIndex(start), chunks });
                missing -= chunks;
            }
            if missing == 0 {
                break;
            }
        }
        // In the order of the disk, so that playing from start to end moves the head one way; the
        // part that is no multiple comes last.
        chosen.sort_by_key(|extent| (!extent.chunks.is_multiple_of(unit), extent.start));
        (missing == 0).then_some(chosen)
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

/// Bytes of the largest read of a server; the smaller read sizes divide it.
const LARGEST_READ: u64 = 16 << 20;

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

    /// What a map gives for so many chunks in so many extents, a line each.
    fn allocations<const N: usize>(map: &FreeMap, table: [(u64, usize); N]) -> String {
        let results = table.map(|(chunks, pieces)| {
            let result = match map.clone().allocate(chunks, pieces) {
                Ok(extents) => show(&extents),
                Err(error) => format!("{error:?}"),
            };
            format!("{chunks} in {pieces}: {result}")
        });
        results.join("\n")
    }

    #[test]
    fn one_extent_is_used_if_a_hole_is_large_enough_else_the_largest_holes() {
        // Holes of 2, 5, 3 and 8 chunks.
        let map = FreeMap::new(&[extent(0, 2), extent(10, 5), extent(20, 3), extent(30, 8)]);
        let table = [(1, 4), (3, 4), (6, 4), (9, 4), (13, 4), (18, 4), (18, 3), (19, 4)];
        expect_test::expect![[r#"
            1 in 4: 0+1
            3 in 4: 10+3
            6 in 4: 30+6
            9 in 4: 10+1 30+8
            13 in 4: 10+5 30+8
            18 in 4: 0+2 10+5 20+3 30+8
            18 in 3: Pieces
            19 in 4: Missing(1)"#]]
        .assert_eq(&allocations(&map, table));
    }

    #[test]
    fn all_extents_but_the_last_are_whole_units_if_there_is_room() {
        // Holes of 9, 5, 6 and 11 chunks, in units of 4.
        let holes = [extent(0, 9), extent(10, 5), extent(20, 6), extent(30, 11)];
        let map = FreeMap::new(&holes).in_units_of(4);
        let table = [(11, 4), (12, 4), (16, 4), (18, 4), (23, 4), (24, 4), (31, 4), (12, 0)];
        expect_test::expect![[r#"
            11 in 4: 30+11
            12 in 4: 0+4 30+8
            16 in 4: 0+8 30+8
            18 in 4: 0+8 30+8 20+2
            23 in 4: 0+8 20+4 30+8 10+3
            24 in 4: 0+8 10+4 20+4 30+8
            31 in 4: 0+9 10+5 20+6 30+11
            12 in 0: Pieces"#]]
        .assert_eq(&allocations(&map, table));
    }

    #[test]
    fn random_operations_agree_with_a_bitmap() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let empty = FreeMap::new(&[extent(3, 40), extent(50, 30)]).in_units_of(1 + seed % 5);
            let mut map = empty.clone();
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
                assert_eq!(empty.without(held.clone()).as_ref(), Some(&map), "seed {seed}");
                // Of one more, which may be taken already, or no data.
                let more = extent(random.u64(..90), random.u64(1..5));
                let (mut all, mut one_by_one) = (held.clone(), map.clone());
                all.insert(random.usize(..=held.len()), more);
                let expected = one_by_one.take(more).then_some(one_by_one);
                assert_eq!(empty.without(all), expected, "seed {seed}");
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
