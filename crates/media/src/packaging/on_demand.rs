//! A track as one file: its segments behind an index of them (ISO/IEC 14496-12, 8.16.3), for
//! players that fetch segments as ranges of a file (ISO/IEC 23009-1, 8.3). The I-frames of a video
//! track are such a file, too.
//!
//! ```text
//!   ftyp moov | sidx: size and time of each segment | segment 0: moof mdat | segment 1 | ...
//!   the initialization segment of DASH                the same bytes as N/0.m4s, N/1.m4s, ...
//! ```
//! The index follows from the sizes and times of the segments, which are known without them.

use super::body::{Body, Slice};
use super::growing::Growth;
use super::iframes::IFrames;
use super::{PackagedTrack, Packaging};
use crate::boxes::write_atom;
use mp4_atom::{SegmentReference, Sidx};
use std::ops::Range;

/// The reason why a title has no files with an index of their segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSegmentIndex {
    /// The index of a file is complete before its first segment is sent.
    #[error("it is, or was, played while it is recorded")]
    Growing,
    /// An index counts its segments in 16 bits.
    #[error("it has more than {MAX_SEGMENTS} segments")]
    Segments,
    /// An index has the size of a segment in 31 bits, and its time in 32.
    #[error("it has a segment of more than 2 GiB, or of more time than an index can state")]
    Segment,
}

impl Packaging {
    /// Whether each track can be a file with an index of its segments, or why not.
    pub fn on_demand(&self) -> Result<(), NoSegmentIndex> {
        if self.growth != Growth::Complete {
            return Err(NoSegmentIndex::Growing);
        }
        self.playable(None).filter_map(|number| self.track(number)).try_for_each(check)
    }

    /// A track as one file of its segments behind an index; `None` if there is no such track, or no
    /// such index. Takes time and memory in proportion to the number of LDUs, so that it should be
    /// kept.
    pub fn track_file(&self, track: u16) -> Option<Body> {
        let packaged = self.track(track)?;
        check(packaged).ok().filter(|()| self.growth == Growth::Complete)?;
        let segments = Indexed::of(packaged);
        debug_assert_eq!(segments.range(self, track), self.index_range(track), "as announced");
        segments.file(self, track, &|number| self.segment(track, number))
    }

    /// The I-frames of a video track as one file behind an index; `None` if it has none that a
    /// player can use, or no such index. Each is the same segment as [`Packaging::iframe`].
    pub fn iframe_file(&self, track: u16) -> Option<Body> {
        let (iframes, sizes) = self.indexed_iframes(track)?;
        let segments = Indexed::of_iframes(iframes, &sizes);
        segments.file(self, track, &|number| self.iframe(track, number))
    }

    /// Where the index is in the file of a track: behind the initialization segment, and before the
    /// first segment.
    pub(super) fn index_range(&self, track: u16) -> Option<Range<u64>> {
        Indexed::of(self.track(track)?).range(self, track)
    }

    /// Where the index is in the file of a track's I-frames; `None` if there is no such file.
    pub(super) fn iframe_index_range(&self, track: u16) -> Option<Range<u64>> {
        let (iframes, sizes) = self.indexed_iframes(track)?;
        Indexed::of_iframes(iframes, &sizes).range(self, track)
    }

    /// The I-frames of a track and their sizes, if an index can state them.
    fn indexed_iframes(&self, track: u16) -> Option<(&IFrames, Vec<u64>)> {
        let iframes = self.iframes(track)?;
        let number = usize::from(track);
        let sizes =
            iframes.sizes(&self.index.tracks[number], self.tracks[number].cipher.as_deref());
        Indexed::of_iframes(iframes, &sizes).check().ok()?;
        Some((iframes, sizes))
    }
}

fn check(track: &PackagedTrack) -> Result<(), NoSegmentIndex> {
    Indexed::of(track).check()
}

/// Segments that an index names.
#[derive(Clone, Copy, Debug)]
struct Indexed<'a> {
    sizes: &'a [u64],
    /// The start of each in ticks of the track, then the end of the last.
    boundaries: &'a [u64],
    /// Whether each begins with a picture that is shown first and decoded by itself.
    independent: bool,
}

impl<'a> Indexed<'a> {
    fn of(track: &'a PackagedTrack) -> Self {
        let PackagedTrack { sizes, boundaries, independent, .. } = track;
        Self { sizes, boundaries, independent: *independent }
    }

    fn of_iframes(iframes: &'a IFrames, sizes: &'a [u64]) -> Self {
        Self { sizes, boundaries: &iframes.boundaries, independent: true }
    }

    fn check(self) -> Result<(), NoSegmentIndex> {
        if self.sizes.len() > MAX_SEGMENTS {
            return Err(NoSegmentIndex::Segments);
        }
        let fits = |bytes: &u64| *bytes <= MAX_SEGMENT_BYTES;
        let mut lengths = self.boundaries.windows(2).map(|pair| pair[1] - pair[0]);
        if !self.sizes.iter().all(fits) || !lengths.all(|ticks| u32::try_from(ticks).is_ok()) {
            return Err(NoSegmentIndex::Segment);
        }
        Ok(())
    }

    fn range(self, packaging: &Packaging, track: u16) -> Option<Range<u64>> {
        let start = packaging.dash_init_segment(track)?.len() as u64;
        let is_wide = u32::try_from(self.boundaries[0]).is_err();
        let head = if is_wide { WIDE_HEAD_BYTES } else { HEAD_BYTES };
        Some(start..start + head + REFERENCE_BYTES * self.sizes.len() as u64)
    }

    /// The file with these segments of a track.
    fn file(
        self,
        packaging: &Packaging,
        track: u16,
        segment: &dyn Fn(u32) -> Option<Body>,
    ) -> Option<Body> {
        let mut body = Body::default();
        let bytes = packaging.dash_init_segment(track)?;
        let range = 0..bytes.len();
        body.push(Slice::Generated { bytes, range });
        body.push_generated(index(self, packaging.description(track).timescale.0));
        debug_assert_eq!(body.len(), self.range(packaging, track)?.end, "the index as announced");
        for (number, size) in (0..).zip(self.sizes) {
            let segment = segment(number)?;
            debug_assert_eq!(segment.len(), *size, "the size of segment {number}");
            segment.slices().for_each(|slice| body.push(slice.clone()));
        }
        Some(body)
    }
}

/// The index of segments, for which [`Indexed::check`] holds.
fn index(track: Indexed<'_>, timescale: u32) -> Vec<u8> {
    let narrow = |value: u64| u32::try_from(value).expect("checked beforehand");
    let references = track.sizes.iter().zip(track.boundaries.windows(2));
    let references = references.map(|(size, time)| SegmentReference {
        reference_type: false,
        referenced_size: narrow(*size),
        subsegment_duration: narrow(time[1] - time[0]),
        // Where pictures that are shown first depend on the segment before, the type is not known.
        starts_with_sap: track.independent,
        sap_type: u8::from(track.independent),
        sap_delta_time: 0,
    });
    let mut out = Vec::new();
    write_atom(
        &mut out,
        &Sidx {
            reference_id: 1,
            timescale,
            earliest_presentation_time: track.boundaries[0],
            first_offset: 0,
            references: references.collect(),
        },
    );
    out
}

const MAX_SEGMENTS: usize = u16::MAX as usize;
const MAX_SEGMENT_BYTES: u64 = (1 << 31) - 1;
/// Bytes of an index before its references, with times of 32 bits and of 64 bits.
const HEAD_BYTES: u64 = 32;
const WIDE_HEAD_BYTES: u64 = 40;
const REFERENCE_BYTES: u64 = 12;
