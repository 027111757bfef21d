//! The frames of a title as files, where each frame is a picture file of its own: names, and which
//! LDU a name is. No I/O but the first bytes of a track.

use media::{TitleIndex, TrackIndex, TrackKind};
use std::ops::Range;

/// The track of a title whose LDUs are files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frames {
    pub(crate) track: u16,
    ending: &'static str,
    count: usize,
}

impl Frames {
    /// The first video track, if each of its LDUs is a picture file. `head`: the first bytes of a
    /// track.
    pub(crate) fn of<E>(
        index: &TitleIndex,
        head: impl FnOnce(u16) -> Result<Vec<u8>, E>,
    ) -> Result<Option<Self>, E> {
        let is_video = |(_, track): &(u16, &TrackIndex)| track.description.kind == TrackKind::Video;
        let Some((number, track)) = (0..).zip(&index.tracks).find(is_video) else {
            return Ok(None);
        };
        let Some(mut ending) = track.description.picture_file() else { return Ok(None) };
        // Without the boxes around it.
        if ending == "jp2" && head(number)?.starts_with(J2K) {
            ending = "j2k";
        }
        let count = track.ldus.len().min(MOST_FRAMES);
        Ok(Some(Self { track: number, ending, count }))
    }

    /// The names of all frames, in order.
    pub(crate) fn names(self) -> impl Iterator<Item = String> {
        (0..self.count).map(move |ldu| self.name(ldu))
    }

    /// The LDU of this name.
    pub(crate) fn find(self, name: &str) -> Option<usize> {
        let ldu = name.split('.').next()?.parse::<usize>().ok()?.checked_sub(1)?;
        (ldu < self.count && name == self.name(ldu)).then_some(ldu)
    }

    fn name(self, ldu: usize) -> String {
        format!("{:06}.{}", ldu + 1, self.ending)
    }

    /// The bytes of an LDU in the data of the track.
    pub(crate) fn bytes(self, index: &TitleIndex, ldu: usize) -> Option<Range<u64>> {
        let track = index.tracks.get(usize::from(self.track))?;
        let ldu = (ldu < track.ldus.len()).then(|| track.ldus.get(ldu))?;
        Some(ldu.offset..ldu.offset + u64::from(ldu.size))
    }
}

/// The first bytes of JPEG 2000 without a file format around it.
const J2K: &[u8] = &[0xff, 0x4f];

/// The frames that are files at most: eleven hours at 25 a second. A listing of them takes some 50
/// bytes for each.
const MOST_FRAMES: usize = 999_999;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_one_name() {
        let frames = Frames { track: 0, ending: "jpg", count: 3 };
        let names: Vec<String> = frames.names().collect();
        assert_eq!(names, ["000001.jpg", "000002.jpg", "000003.jpg"]);
        for (ldu, name) in names.iter().enumerate() {
            assert_eq!(frames.find(name), Some(ldu));
        }
        for name in ["000000.jpg", "000004.jpg", "1.jpg", "0000001.jpg", "000001.png", "", "x.jpg"]
        {
            assert_eq!(frames.find(name), None, "{name}");
        }
    }
}
