//! Which bytes of a video track's LDUs may be encrypted: for each NAL unit of a slice what is
//! behind its header (ISO/IEC 23001-7, 9.5.2).
//!
//! ```text
//!   LDU          |length|SPS..|length|slice header|slice data.........|length|SEI|
//!   subsamples   |clear                           |protected          |clear     |
//! ```
//! Found when a title is taken in ([`scan`]), because a `moof` states them in front of the payload,
//! and kept in the index: about four bytes for a picture of one slice, also in memory. How a scheme
//! rounds them is decided where it is used (`packaging::encryption`). The parameter sets that are
//! found on the way become part of the track's description ([`parameter_sets`]).

mod avc;
mod hevc;
mod parameter_sets;
mod picture_format;
mod scan;

pub(crate) use scan::SubsampleScanner;

use crate::SharedList;
use std::ops::Range;
use units::{Decoder, Encoder, Malformed};

/// Bytes of an LDU that stay in the clear, then bytes that may be encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subsample {
    pub(crate) clear: u32,
    pub(crate) protected: u32,
}

/// The subsamples of the LDUs of a track, in order. A copy shares all but those of the last LDUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SubsampleMap {
    /// For every 64 LDUs one run: for each LDU the number of subsamples, then the two numbers of
    /// bytes of each, as varints.
    runs: SharedList<Vec<u8>, RUNS>,
    ldus: usize,
    bytes: usize,
}

impl SubsampleMap {
    /// Appends the subsamples of the next LDU.
    pub(crate) fn push(&mut self, subsamples: &[Subsample]) {
        if self.ldus.is_multiple_of(SPARSE) {
            self.runs.push(Vec::new());
        }
        self.ldus += 1;
        let mut codes = Encoder::default();
        codes.varint(u32::try_from(subsamples.len()).expect("fewer than bytes of an LDU"));
        for subsample in subsamples {
            codes.varint(subsample.clear);
            codes.varint(subsample.protected);
        }
        self.bytes += codes.len();
        self.runs.last_mut().expect("a run of every LDU").extend_from_slice(codes.written());
    }

    /// The subsamples of a range of LDUs, as a map of their own.
    pub(crate) fn part(&self, ldus: Range<usize>) -> Self {
        let mut part = Self::default();
        self.for_each(ldus, |subsamples| part.push(subsamples));
        part
    }

    /// The subsamples of the first LDUs, as a map of their own. It shares them with this one.
    pub(crate) fn first(&self, count: usize) -> Self {
        let whole = count / SPARSE;
        let runs = self.runs.prefix(whole);
        let bytes =
            self.bytes - self.runs.range(whole..self.runs.len()).map(Vec::len).sum::<usize>();
        let mut first = Self { runs, ldus: whole * SPARSE, bytes };
        self.for_each(first.ldus..count, |subsamples| first.push(subsamples));
        first
    }

    /// Appends the subsamples of further LDUs.
    pub(crate) fn append(&mut self, more: &Self) {
        more.for_each(0..more.len(), |subsamples| self.push(subsamples));
    }

    /// The number of LDUs.
    pub(crate) fn len(&self) -> usize {
        self.ldus
    }

    /// The memory of the map in bytes.
    pub(crate) fn memory(&self) -> u64 {
        (self.bytes + self.runs.len() * size_of::<Vec<u8>>()) as u64
    }

    /// Calls `each` with the subsamples of each of these LDUs. Panics beyond the end, like a slice.
    pub(crate) fn for_each(&self, ldus: Range<usize>, mut each: impl FnMut(&[Subsample])) {
        let mut found = Vec::new();
        let runs = ldus.start / SPARSE..ldus.end.div_ceil(SPARSE);
        for (run, codes) in runs.clone().zip(self.runs.range(runs)) {
            let mut codes = Decoder::new(codes);
            for ldu in run * SPARSE..ldus.end.min((run + 1) * SPARSE) {
                read_ldu(&mut codes, &mut found).expect("codes that were written here");
                if ldu >= ldus.start {
                    each(&found);
                }
            }
        }
    }

    /// Appends the map, whose LDUs are counted elsewhere.
    pub(crate) fn encode(&self, out: &mut Encoder) {
        self.runs.iter().for_each(|codes| out.bytes(codes));
    }

    /// Decodes all remaining bytes as the map of LDUs of these sizes.
    pub(crate) fn decode(
        reader: &mut Decoder<'_>,
        sizes: impl Iterator<Item = u32>,
    ) -> Result<Self, Malformed> {
        let (mut map, mut found) = (Self::default(), Vec::new());
        for size in sizes {
            read_ldu(reader, &mut found)?;
            let all = found.iter().flat_map(|of| [of.clear, of.protected]);
            if all.map(u64::from).sum::<u64>() != u64::from(size) {
                return Err(IMPOSSIBLE);
            }
            map.push(&found);
        }
        Ok(map)
    }
}

/// Reads the subsamples of one LDU into `found`.
fn read_ldu(codes: &mut Decoder<'_>, found: &mut Vec<Subsample>) -> Result<(), Malformed> {
    found.clear();
    for _ in 0..codes.varint()? {
        found.push(Subsample { clear: codes.varint()?, protected: codes.varint()? });
    }
    Ok(())
}

/// The error of a map that is not one of these LDUs.
const IMPOSSIBLE: Malformed = Malformed("subsamples that are not the bytes of their LDUs");
/// LDUs in a run: any LDU is at most 63 behind the beginning of one.
const SPARSE: usize = 64;
/// Runs that copies of a map share as one.
const RUNS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_of_a_map_is_what_was_put_in() {
        let of = |i: u32| -> Vec<Subsample> {
            let one = |k| Subsample { clear: i * 7 + k, protected: i * 1000 };
            (0..i % 4).map(one).collect()
        };
        let mut map = SubsampleMap::default();
        (0..200).for_each(|i| map.push(&of(i)));
        for range in [0..200, 0..1, 63..65, 64..64, 130..199] {
            let mut found = Vec::new();
            map.for_each(range.clone(), |of| found.push(of.to_vec()));
            let wanted = range.map(|i| of(u32::try_from(i).unwrap()));
            assert_eq!(found, wanted.collect::<Vec<_>>());
        }
        for count in [0, 1, 63, 64, 65, 128, 200] {
            assert_eq!(map.first(count), map.part(0..count), "the first {count}");
        }
        let mut out = Encoder::default();
        map.encode(&mut out);
        let size = |i| of(i).iter().map(|it| it.clear + it.protected).sum::<u32>();
        let decode = |more: u32| {
            let mut reader = Decoder::new(out.written());
            SubsampleMap::decode(&mut reader, (0..200).map(|i| size(i) + more))
        };
        assert_eq!(decode(0), Ok(map));
        assert_eq!(decode(1), Err(IMPOSSIBLE), "its bytes are not those of the LDU");
    }
}
