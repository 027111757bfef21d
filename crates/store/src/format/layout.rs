//! The layout of a store's regions, computed from its size and chunk at format and kept in the
//! superblock.
//!
//! ```text
//!  0        64 KiB            middle: size/2 rounded down to 64 KiB              size - 64 KiB
//!  │ SB 0    │ SB 1   data     │ SB 2 │ journal │ check- │ check- │ scratch  data   │ SB 3
//!  │         │                 │      │  ring   │ point 0│ point 1│                 │
//! ```
//!
//! Any superblock copy gives the places of all four: the third is in front of the journal, the last
//! at the end. A copy is always at 0, at 64 KiB or at the end, so that a store whose front is lost
//! can still be found. The metadata is in the middle, where a hard disk's seeks from everywhere are
//! shortest. A chunk that a region touches is reserved as a whole; all other whole chunks are data,
//! in two runs around the middle.
//!
//! A store that grows keeps its regions, or gets larger ones in the space that it grows by:
//!
//! ```text
//!  │ SB 0 │ SB 1  data  │ SB 2 │ regions │  data  │ SB 3 │              before
//!  │ SB 0 │ SB 1  data  │ SB 2 │ regions │  data         data │ SB 3 │  the regions suffice
//!  │ SB 0 │ SB 1  data     data     data        │ SB 2 │ regions │  data │ SB 3 │  or not
//! ```

use super::BLOCK;
use super::bytes::Malformed;
use crate::StoreError;
use std::ops::Range;
use units::{ByteCount, ChunkIndex, Decoder, Encoder, Extent, align_down, align_up};

/// The regions of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreLayout {
    /// The bytes of the device that the store uses, a multiple of 64 KiB.
    pub(crate) size: u64,
    /// The size of a chunk.
    pub(crate) chunk: u64,
    /// The journal ring.
    pub(crate) journal: Range<u64>,
    /// The two checkpoint slots, equally long.
    pub(crate) checkpoints: [Range<u64>; 2],
    /// The area that calibration may overwrite; may be empty.
    pub(crate) scratch: Range<u64>,
}

impl StoreLayout {
    /// The encoded length: size, chunk, then offset and length of the four regions.
    pub(crate) const ENCODED: usize = 2 * 8 + 4 * 16;

    /// Plans a store on a device of `size` bytes.
    pub(crate) fn plan(size: u64, chunk: u64) -> Result<Self, StoreError> {
        Self::plan_behind(0, size, chunk)
    }

    /// Plans a store whose journal, checkpoints and scratch are in the middle, or behind `start` if
    /// that is later.
    fn plan_behind(start: u64, size: u64, chunk: u64) -> Result<Self, StoreError> {
        if !chunk.is_power_of_two() || !(MIN_CHUNK..=MAX_CHUNK).contains(&chunk) {
            return Err(StoreError::BadChunk { chunk: ByteCount(chunk) });
        }
        // The rest of the device is not used: superblocks are at multiples of their spacing.
        let (given, size) = (size, align_down(size, SUPERBLOCK_SPACING));
        let too_small = || StoreError::TooSmall {
            size: ByteCount(given),
            chunk: ByteCount(chunk),
            needed: ByteCount(Self::smallest(chunk)),
        };
        if size > MAX_SIZE {
            return Err(StoreError::TooMuch { what: "a store of more than 1 EiB".to_owned() });
        }
        if size < Self::smallest(chunk) {
            return Err(too_small());
        }
        let chunks = size / chunk;
        // Both grow with the number of chunks, because titles and changes do.
        let journal = align_up((chunks * 64).clamp(MIN_JOURNAL, MAX_JOURNAL), BLOCK);
        // A title of two tracks takes about 260 bytes here and at least two chunks of data, so the
        // device is usually full before the slot is.
        let checkpoint = align_up((chunks * 256).clamp(MIN_CHECKPOINT, MAX_CHECKPOINT), BLOCK);
        // Whole chunks, because a part of a chunk would be lost to titles anyway.
        let scratch = align_down((size / 1024).min(MAX_SCRATCH), chunk);
        // Beside the middle superblock, so that the arm is seldom far from the journal.
        let middle = superblock_places(size)[2].max(align_up(start, SUPERBLOCK_SPACING));
        let journal_at = middle + SUPERBLOCK_SPACING;
        let slots_at = journal_at + journal;
        let scratch_at = align_up(slots_at + 2 * checkpoint, chunk);
        let layout = Self {
            size,
            chunk,
            journal: journal_at..slots_at,
            checkpoints: [
                slots_at..slots_at + checkpoint,
                slots_at + checkpoint..slots_at + 2 * checkpoint,
            ],
            scratch: scratch_at..scratch_at + scratch,
        };
        // On a small store the middle can reach the last superblock; `validate` finds it.
        if layout.validate().is_err() || layout.data_chunks() < MIN_DATA_CHUNKS {
            return Err(too_small());
        }
        Ok(layout)
    }

    /// The layout of this store on `size` bytes. Titles stay where they are; journal, checkpoints
    /// and scratch do, too, unless a store of this size has checkpoints at least twice as large:
    /// then they are planned anew, in the space that is added.
    ///
    /// # Errors
    /// [`StoreError::NotLarger`] if there is no space to add.
    pub(crate) fn grown(&self, size: u64) -> Result<Self, StoreError> {
        let (now, asked) = (ByteCount(self.size), ByteCount(size));
        let size = align_down(size, SUPERBLOCK_SPACING);
        if size <= self.size {
            return Err(StoreError::NotLarger { now, asked });
        }
        let is_larger = |it: &Self| length(&it.checkpoints[0]) >= 2 * length(&self.checkpoints[0]);
        // If the new regions do not fit into the added space, the old ones go on.
        if let Some(anew) = Self::plan_behind(self.size, size, self.chunk).ok().filter(is_larger) {
            return Ok(anew);
        }
        let grown = Self { size, ..self.clone() };
        match grown.validate() {
            Ok(()) => Ok(grown),
            Err(_) => Err(StoreError::TooMuch { what: "a store of more than 1 EiB".to_owned() }),
        }
    }

    /// The places of its four superblock copies.
    pub(crate) fn superblocks(&self) -> [u64; 4] {
        let middle = self.journal.start - SUPERBLOCK_SPACING;
        [0, SUPERBLOCK_SPACING, middle, self.size - SUPERBLOCK_SPACING]
    }

    /// A size that is sufficient for a store with this chunk size.
    fn smallest(chunk: u64) -> u64 {
        let fixed = 4 * SUPERBLOCK_SPACING + MIN_JOURNAL + 2 * MIN_CHECKPOINT;
        // Front, middle (rounded in both directions) and end each waste up to a chunk.
        align_up(2 * (fixed + 3 * chunk), SUPERBLOCK_SPACING)
    }

    /// The bytes that no title may have.
    fn reserved(&self) -> Vec<Range<u64>> {
        self.superblocks()
            .iter()
            .map(|at| *at..*at + BLOCK)
            .chain([self.journal.clone(), self.scratch.clone()])
            .chain(self.checkpoints.clone())
            .collect()
    }

    /// The runs of chunks that are available to titles.
    pub(crate) fn data(&self) -> Vec<Extent> {
        let mut reserved = self.reserved();
        // A chunk larger than the distance of two regions is reserved by both: `next` only moves
        // forward.
        reserved.sort_by_key(|range| range.start);
        let mut runs = Vec::new();
        let mut next = 0;
        // An empty scratch region inside a data run would split the run.
        for range in reserved.into_iter().filter(|range| !range.is_empty()) {
            push_run(&mut runs, next, range.start / self.chunk);
            next = next.max(range.end.div_ceil(self.chunk));
        }
        push_run(&mut runs, next, self.size / self.chunk);
        runs
    }

    /// Number of chunks that are available to titles.
    pub(crate) fn data_chunks(&self) -> u64 {
        self.data().iter().map(|run| run.chunks).sum()
    }

    pub(crate) fn encode(&self, out: &mut Encoder) {
        out.u64(self.size);
        out.u64(self.chunk);
        for range in [&self.journal, &self.checkpoints[0], &self.checkpoints[1], &self.scratch] {
            out.u64(range.start);
            out.u64(range.end - range.start);
        }
    }

    pub(crate) fn decode(bytes: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let (size, chunk) = (bytes.u64()?, bytes.u64()?);
        let mut range = || -> Result<Range<u64>, Malformed> {
            let (start, length) = (bytes.u64()?, bytes.u64()?);
            let end = start.checked_add(length).ok_or("a region beyond all bounds")?;
            Ok(start..end)
        };
        let (journal, checkpoints, scratch) = (range()?, [range()?, range()?], range()?);
        let layout = Self { size, chunk, journal, checkpoints, scratch };
        layout.validate()?;
        Ok(layout)
    }

    fn validate(&self) -> Result<(), Malformed> {
        if !self.chunk.is_power_of_two() || !(MIN_CHUNK..=MAX_CHUNK).contains(&self.chunk) {
            return Err("a chunk size that cannot be".into());
        }
        if self.size > MAX_SIZE
            || self.size < 4 * SUPERBLOCK_SPACING
            || !self.size.is_multiple_of(SUPERBLOCK_SPACING)
        {
            return Err("a size that cannot be".into());
        }
        if self.journal.start < SUPERBLOCK_SPACING {
            return Err("a journal without a superblock in front of it".into());
        }
        // The limits also bound what is read into memory when a store opens.
        let lengths = [&self.journal, &self.checkpoints[0], &self.checkpoints[1]].map(length);
        if lengths[0] < MIN_JOURNAL || lengths[0] > MAX_JOURNAL {
            return Err("a journal of a length that cannot be".into());
        }
        // Equal slots, because each catalogue is written into either.
        if lengths[1] < MIN_CHECKPOINT || lengths[1] > MAX_CHECKPOINT || lengths[1] != lengths[2] {
            return Err("checkpoints of a length that cannot be".into());
        }
        let mut regions = self.reserved();
        if regions.iter().any(|r| !r.start.is_multiple_of(BLOCK) || !r.end.is_multiple_of(BLOCK)) {
            return Err("a region that is not aligned".into());
        }
        // By end too: an empty region at the start of another one does not overlap it.
        regions.sort_by_key(|range| (range.start, range.end));
        let apart = regions.windows(2).all(|pair| pair[0].end <= pair[1].start);
        if !apart || regions.last().is_some_and(|last| last.end > self.size) {
            return Err("regions that overlap or lie beyond the end".into());
        }
        Ok(())
    }
}

/// The places of the four superblock copies on a store that was made with `size` bytes.
pub(crate) fn superblock_places(size: u64) -> [u64; 4] {
    let end = align_down(size, SUPERBLOCK_SPACING).saturating_sub(SUPERBLOCK_SPACING);
    [0, SUPERBLOCK_SPACING, align_down(size / 2, SUPERBLOCK_SPACING), end]
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

fn push_run(runs: &mut Vec<Extent>, from: u64, to: u64) {
    if from < to {
        runs.push(Extent { start: ChunkIndex(from), chunks: to - from });
    }
}

/// The distance of the second copy from the first: a misdirected or torn write of one file system
/// block or one erase page does not reach both.
pub(crate) const SUPERBLOCK_SPACING: u64 = 64 * 1024;

/// The smallest chunk: it holds whole checksum spans.
const MIN_CHUNK: u64 = media::CHECKSUM_SPAN;

/// The largest chunk: four times the largest read; larger ones waste too much for small titles.
const MAX_CHUNK: u64 = 64 << 20;

/// The largest store, which leaves room for arithmetic on offsets.
const MAX_SIZE: u64 = 1 << 60;

/// The smallest journal: 32 commits of the smallest kind.
const MIN_JOURNAL: u64 = 256 * 1024;

/// The largest journal: 2,048 commits of the smallest kind, which are read in well under a second
/// when the store opens.
const MAX_JOURNAL: u64 = 16 << 20;

/// The smallest checkpoint slot: about 250 titles with two tracks.
const MIN_CHECKPOINT: u64 = 64 * 1024;

/// The largest checkpoint slot: a million titles with two tracks.
const MAX_CHECKPOINT: u64 = 256 << 20;

/// The largest scratch region: a few seconds of a concurrent writer on any disk. Small stores have
/// none.
const MAX_SCRATCH: u64 = 64 << 20;

/// The smallest number of data chunks: one for a title's data, one for its index.
const MIN_DATA_CHUNKS: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_regions_of_small_and_large_stores_are_as_designed() {
        let show = |size: u64, chunk: u64| match StoreLayout::plan(size, chunk) {
            Ok(layout) => {
                let runs: Vec<_> = layout.data().iter().map(|e| (e.start.0, e.end().0)).collect();
                format!(
                    "journal {}, checkpoints 2 x {}, scratch {}, data {runs:?} of {}",
                    ByteCount(length(&layout.journal)),
                    ByteCount(length(&layout.checkpoints[0])),
                    ByteCount(length(&layout.scratch)),
                    layout.size / chunk,
                )
            }
            Err(error) => error.to_string(),
        };
        let kib = 1 << 10;
        let table = [
            show(2 << 20, 64 * kib),
            show(64 << 20, 1 << 20),
            show((1 << 30) + 12_345, 1 << 20),
            show(40 << 30, 1 << 20),
            show(20 << 40, 4 << 20),
            show(1 << 20, 1 << 20),
            show(1 << 30, 3 << 20),
        ];
        expect_test::expect![[r#"
            journal 256 KiB, checkpoints 2 x 64 KiB, scratch 0 B, data [(2, 16), (23, 31)] of 32
            journal 256 KiB, checkpoints 2 x 64 KiB, scratch 0 B, data [(1, 32), (33, 63)] of 64
            journal 256 KiB, checkpoints 2 x 256 KiB, scratch 1 MiB, data [(1, 512), (514, 1023)] of 1024
            journal 2.5 MiB, checkpoints 2 x 10 MiB, scratch 40 MiB, data [(1, 20480), (20543, 40959)] of 40960
            journal 16 MiB, checkpoints 2 x 256 MiB, scratch 64 MiB, data [(1, 2621440), (2621589, 5242879)] of 5242880
            1 MiB are too few for a store with chunks of 1 MiB: at least 7.2 MiB are needed
            a chunk of 3 MiB cannot be: it must be a power of two from 64 KiB to 64 MiB"#]]
        .assert_eq(&table.join("\n"));
    }

    #[test]
    fn a_store_grows_around_its_titles() {
        const MIB: u64 = 1 << 20;
        let show = |layout: &StoreLayout| {
            let runs: Vec<_> = layout.data().iter().map(|e| (e.start.0, e.end().0)).collect();
            let [.., middle, last] = layout.superblocks().map(|at| at / 1024);
            let slot = ByteCount(length(&layout.checkpoints[0]));
            format!("superblocks at {middle} and {last} KiB, slots of {slot}, data {runs:?}")
        };
        let mut layout = StoreLayout::plan(1 << 30, MIB).unwrap();
        let mut table = vec![show(&layout)];
        // By less than twice, by the smallest step, twice the first size, and then little more.
        for mib in [1500, 1501, 2048, 2049, 40_960] {
            let before = layout.data();
            layout = layout.grown(mib * MIB).unwrap();
            let mut free = crate::free::FreeMap::new(&layout.data());
            assert!(before.iter().all(|run| free.take(*run)), "{mib} MiB: data stays data");
            table.push(format!("{mib} MiB: {}", show(&layout)));
        }
        expect_test::expect![[r#"
            superblocks at 524288 and 1048512 KiB, slots of 256 KiB, data [(1, 512), (514, 1023)]
            1500 MiB: superblocks at 524288 and 1535936 KiB, slots of 256 KiB, data [(1, 512), (514, 1499)]
            1501 MiB: superblocks at 524288 and 1536960 KiB, slots of 256 KiB, data [(1, 512), (514, 1500)]
            2048 MiB: superblocks at 1537024 and 2097088 KiB, slots of 512 KiB, data [(1, 1501), (1505, 2047)]
            2049 MiB: superblocks at 1537024 and 2098112 KiB, slots of 512 KiB, data [(1, 1501), (1505, 2048)]
            40960 MiB: superblocks at 20971520 and 41942976 KiB, slots of 10 MiB, data [(1, 20480), (20543, 40959)]"#]]
        .assert_eq(&table.join("\n"));
        let refused = [40_960 * MIB, 40_960 * MIB + 65_535, MIB, u64::MAX]
            .map(|size| layout.grown(size).unwrap_err().to_string());
        expect_test::expect![[r#"
            the store is 40 GiB long, and a size of 40 GiB adds nothing to it
            the store is 40 GiB long, and a size of 40 GiB adds nothing to it
            a store cannot become shorter: it is 40 GiB long, and not 1 MiB
            the store's format has no room for a store of more than 1 EiB"#]]
        .assert_eq(&refused.join("\n"));
    }

    #[test]
    fn the_reported_smallest_size_suffices_for_every_chunk() {
        for shift in 16..=26 {
            let chunk = 1u64 << shift;
            let StoreError::TooSmall { needed, .. } = StoreLayout::plan(4096, chunk).unwrap_err()
            else {
                panic!("too small for {chunk}");
            };
            StoreLayout::plan(needed.0, chunk).unwrap();
        }
    }
}
