//! A response as a list of slices: bytes made here and pieces of tracks that lie in the store.
//!
//! Only places and lengths: whoever sends a body fetches the stored pieces; no payload byte
//! passes through here.
//!
//! ```text
//! a media segment            a progressive file
//! +-----------+              +------------+
//! | Generated | moof, mdat   | Generated  | ftyp, moov, mdat header
//! +-----------+              +------------+
//! | Stored    | LDUs         | Stored 0   | second 0 of the video
//! +-----------+              | Stored 1   | second 0 of the sound
//!                            | Stored 0   | second 1 of the video ...
//! ```

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// One piece of a [`Body`]. Never empty inside one.
#[derive(Clone, PartialEq, Eq)]
pub enum Slice {
    /// Bytes made by packaging: `bytes[range]`.
    Generated {
        /// Shared with whoever else sends them.
        bytes: Arc<[u8]>,
        /// The part that belongs here.
        range: Range<usize>,
    },
    /// Bytes of a track's data, counted from its start.
    Stored {
        /// Index of the track in its title.
        track: u16,
        /// Which bytes of it.
        bytes: Range<u64>,
    },
}

impl Slice {
    /// Bytes of this piece.
    pub fn len(&self) -> u64 {
        match self {
            Self::Generated { range, .. } => (range.end - range.start) as u64,
            Self::Stored { bytes, .. } => bytes.end - bytes.start,
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The piece without its first `skip` bytes and with at most `take` of the rest.
    fn part(&self, skip: u64, take: u64) -> Self {
        let take = take.min(self.len() - skip);
        match self {
            Self::Generated { bytes, range } => {
                // Both are at most the range's own length, which is a usize.
                let from = range.start + usize::try_from(skip).expect("within a slice");
                let to = from + usize::try_from(take).expect("within a slice");
                Self::Generated { bytes: bytes.clone(), range: from..to }
            }
            Self::Stored { track, bytes } => {
                Self::Stored { track: *track, bytes: bytes.start + skip..bytes.start + skip + take }
            }
        }
    }
}

/// What one response consists of, in order.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Body {
    slices: Vec<Slice>,
    /// Where each slice ends, counted from the start of the body.
    ends: Vec<u64>,
}

impl Body {
    /// Bytes of the whole body.
    pub fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether the body has no bytes.
    pub fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// The pieces in order.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// The body of a byte range of this one; what lies beyond the end is left out.
    pub fn range(&self, bytes: Range<u64>) -> Self {
        let end = bytes.end.min(self.len());
        let mut part = Self::default();
        let mut at = bytes.start;
        let mut i = self.ends.partition_point(|&e| e <= at);
        while at < end {
            let slice_start = self.ends[i] - self.slices[i].len();
            part.push(self.slices[i].part(at - slice_start, end - at));
            at = self.ends[i];
            i += 1;
        }
        part
    }

    /// Appends a piece; empty ones are dropped, a stored one that continues the last is joined
    /// to it.
    pub(crate) fn push(&mut self, slice: Slice) {
        if slice.is_empty() {
            return;
        }
        let end = self.len() + slice.len();
        if let (Some(Slice::Stored { track: last, bytes: before }), Slice::Stored { track, bytes }) =
            (self.slices.last_mut(), &slice)
            && last == track
            && before.end == bytes.start
        {
            before.end = bytes.end;
            *self.ends.last_mut().expect("as many ends as slices") = end;
            return;
        }
        self.slices.push(slice);
        self.ends.push(end);
    }

    /// Appends bytes made here.
    pub(crate) fn push_generated(&mut self, bytes: Vec<u8>) {
        let range = 0..bytes.len();
        self.push(Slice::Generated { bytes: bytes.into(), range });
    }
}

/// A body of these slices; empty ones are left out.
impl FromIterator<Slice> for Body {
    fn from_iter<I: IntoIterator<Item = Slice>>(slices: I) -> Self {
        let mut body = Self::default();
        slices.into_iter().for_each(|slice| body.push(slice));
        body
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generated { range, .. } => write!(f, "generated {range:?}"),
            Self::Stored { track, bytes } => write!(f, "track {track} {bytes:?}"),
        }
    }
}

/// A table: where each slice starts in the body, its length, what it is.
impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>12} {:>12}  slice", "at", "bytes")?;
        for (slice, end) in self.slices.iter().zip(&self.ends) {
            writeln!(f, "{:>12} {:>12}  {slice:?}", end - slice.len(), slice.len())?;
        }
        write!(f, "{:>12}", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Body {
        let mut body = Body::default();
        body.push_generated((0..10).collect());
        body.push(Slice::Stored { track: 0, bytes: 100..107 });
        body.push(Slice::Stored { track: 1, bytes: 50..50 });
        body.push(Slice::Stored { track: 1, bytes: 50..51 });
        body.push(Slice::Stored { track: 1, bytes: 51..60 });
        body.push_generated(vec![99; 3]);
        body
    }

    /// Every byte as (whose, where): what the ranges are checked against.
    fn materialise(body: &Body) -> Vec<(u16, u64)> {
        let mut all = Vec::new();
        for slice in body.slices() {
            match slice {
                Slice::Generated { bytes, range } => {
                    all.extend(bytes[range.clone()].iter().map(|&b| (u16::MAX, u64::from(b))));
                }
                Slice::Stored { track, bytes } => all.extend(bytes.clone().map(|b| (*track, b))),
            }
        }
        all
    }

    #[test]
    fn any_range_is_what_slicing_the_whole_gives() {
        let body = sample();
        let whole = materialise(&body);
        assert_eq!(whole.len() as u64, body.len());
        for from in 0..=body.len() + 2 {
            for to in from..=body.len() + 2 {
                let part = body.range(from..to);
                let clip = |at: u64| usize::try_from(at.min(body.len())).unwrap();
                assert_eq!(materialise(&part), whole[clip(from)..clip(to)], "{from}..{to}");
                assert!(part.slices().iter().all(|s| !s.is_empty()), "{part:?}");
            }
        }
    }

    #[test]
    fn a_body_is_shown_as_a_table() {
        let shown = format!("{:?}", sample());
        let wanted = "          at        bytes  slice
           0           10  generated 0..10
          10            7  track 0 100..107
          17           10  track 1 50..60
          27            3  generated 0..3
          30";
        assert_eq!(shown, wanted);
    }
}
