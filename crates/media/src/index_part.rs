//! What a recording adds to the index of a track from one moment to the next.
//!
//! ```text
//! last duration  u32, ticks: how long the LDU before the part really lasts; of the first part the
//!                time from the beginning of the title to its first LDU
//! LDUs           u32 length, then see `ldu_coding`; offsets and times count from the part's start
//! subsamples     u32 length (0: unknown), then 1 (u8), then see `subsamples`
//! checksums      u32 count, CRC-32C u32 of each whole span of the data that was completed
//! ```
//!
//! The parts of a recording, appended in order, are the index of its track.

use crate::index_region::{decode_bool, encode_subsamples};
use crate::subsamples::SubsampleMap;
use crate::{Edit, LduIndex, TrackIndex, ldu_coding};
use units::{Decoder, Encoder, Malformed, MediaTime};

/// A part of a track's index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexPart {
    /// The final duration of the LDU before the part, in ticks: a muxer guesses the duration of an
    /// LDU until it knows the next one. In the first part of a track, the time before its first
    /// LDU.
    pub last_duration: u32,
    /// The LDUs, with offsets and times that count from the part's start.
    pub ldus: LduIndex,
    /// The CRC-32C of each whole [`crate::CHECKSUM_SPAN`] of the track's data that ends in the
    /// part.
    pub checksums: Vec<u32>,
}

impl IndexPart {
    /// The encoded part.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.u32(self.last_duration);
        let mut ldus = Encoder::default();
        ldu_coding::encode(&self.ldus, &mut ldus);
        out.bytes32(ldus.written());
        let mut subsamples = Encoder::default();
        if self.ldus.subsamples().is_some() {
            encode_subsamples(&self.ldus, &mut subsamples);
        }
        out.bytes32(subsamples.written());
        out.count32(self.checksums.len());
        self.checksums.iter().for_each(|&crc| out.u32(crc));
        out.finish()
    }

    /// Decodes exactly these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Decoder::new(bytes);
        let last_duration = reader.u32()?;
        let mut ldus = ldu_coding::decode(&mut Decoder::new(reader.bytes32()?))?;
        let mut subsamples = Decoder::new(reader.bytes32()?);
        if !subsamples.is_empty() {
            if !decode_bool(&mut subsamples)? {
                return Err(ldu_coding::IMPOSSIBLE);
            }
            let map = SubsampleMap::decode(&mut subsamples, ldus.iter().map(|ldu| ldu.size))?;
            if !subsamples.is_empty() {
                return Err(ldu_coding::IMPOSSIBLE);
            }
            ldus.set_subsamples(map);
        }
        let count = reader.count32(4)?;
        let checksums = (0..count).map(|_| reader.u32()).collect::<Result<_, _>>()?;
        if !reader.is_empty() {
            return Err(ldu_coding::IMPOSSIBLE);
        }
        Ok(Self { last_duration, ldus, checksums })
    }

    /// The first and the second half of its LDUs and checksums; `None` if it has not two LDUs.
    pub fn halves(self) -> Option<(Self, Self)> {
        let count = self.ldus.len();
        let middle = count / 2;
        let last = middle.checked_sub(1)?;
        let subsamples = self.ldus.subsamples();
        let part = |ldus| self.ldus.part(ldus, subsamples);
        let (front, back) = self.checksums.split_at(self.checksums.len() / 2);
        let first = Self {
            last_duration: self.last_duration,
            ldus: part(0..middle),
            checksums: front.to_vec(),
        };
        let second = Self {
            last_duration: self.ldus.duration(last),
            ldus: part(middle..count),
            checksums: back.to_vec(),
        };
        Some((first, second))
    }

    /// Appends the part to a track as far as it is recorded.
    ///
    /// # Errors
    /// Only one of the two has subsamples, although both have LDUs.
    pub fn append_to_track(&self, track: &mut TrackIndex) -> Result<(), Malformed> {
        let description = &mut track.description;
        if track.ldus.is_empty() && !self.ldus.is_empty() && self.last_duration > 0 {
            let wait = MediaTime::from_ticks(self.last_duration.into(), description.timescale);
            if description.edits.is_empty() {
                description.edits.push(Edit { duration: None, media_time: Some(0) });
            }
            description.edits.insert(0, Edit { duration: Some(wait), media_time: None });
        }
        self.append_to(&mut track.ldus)?;
        track.checksums.extend(self.checksums.iter().copied());
        track.data_len = track.ldus.data_len();
        Ok(())
    }

    /// Appends the part to the index of the track so far, which ends before it.
    fn append_to(&self, index: &mut LduIndex) -> Result<(), Malformed> {
        if !index.is_empty() {
            index.set_last_duration(self.last_duration);
        }
        index.append(&self.ldus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subsamples::Subsample;

    /// An index of `ldus` LDUs with times that are not all alike.
    fn index(ldus: u32, nal_units: bool) -> LduIndex {
        let mut index = LduIndex::default();
        let mut map = SubsampleMap::default();
        for i in 0..ldus {
            index.push(100 + i % 7, 40 + i % 3, 0, i % 25 == 0, i % 2 == 1);
            map.push(&[Subsample { clear: 90, protected: 10 + i % 7 }]);
        }
        if nal_units {
            index.set_subsamples(map);
        }
        index
    }

    #[test]
    fn the_parts_of_an_index_are_the_index() {
        for (ldus, nal_units, step) in
            [(0, false, 1), (1, true, 1), (500, true, 25), (90, false, 64)]
        {
            let whole = index(ldus, nal_units);
            let mut built = LduIndex::default();
            let mut from = 0;
            while from < whole.len() {
                let to = (from + step).min(whole.len());
                let mut ldus = whole.part(from..to, whole.subsamples());
                // A guess that the next part corrects.
                ldus.set_last_duration(1);
                let last_duration = from.checked_sub(1).map_or(0, |last| whole.duration(last));
                let part = IndexPart { last_duration, ldus, checksums: vec![7, 8] };
                let bytes = part.encode();
                assert_eq!(IndexPart::decode(&bytes).as_ref(), Ok(&part));
                for cut in 0..bytes.len() {
                    assert!(IndexPart::decode(&bytes[..cut]).is_err(), "cut at {cut}");
                }
                part.append_to(&mut built).unwrap();
                from = to;
            }
            if let Some(last) = whole.len().checked_sub(1) {
                built.set_last_duration(whole.duration(last));
            }
            assert_eq!(built, whole);
        }
    }

    #[test]
    fn a_part_without_subsamples_does_not_follow_one_with_them() {
        let part = IndexPart { ldus: index(3, false), ..IndexPart::default() };
        assert!(part.append_to(&mut index(3, true)).is_err());
        assert_eq!(part.append_to(&mut LduIndex::default()), Ok(()));
    }
}
