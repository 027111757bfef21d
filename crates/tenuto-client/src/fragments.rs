//! The LDUs of a track of fragmented MP4 (ISO/IEC 14496-12, 8.8), found in its bytes as they
//! arrive.
//!
//! ```text
//!   header (moov)  ──▶ timescale, defaults
//!   segment        styp | moof | mdat | moof | mdat ...
//!                          │      └─ bytes pass through; an LDU ends ──▶ sink(LDU, its bytes)
//!                          └─ tfhd, tfdt, trun: time, size and place of each LDU
//! ```
//!
//! A segment is never kept: a `moof` is, and the bytes of the LDU that is arriving, if somebody
//! wants them. Boxes that make no sense end the search in that segment; the media itself is not
//! judged.

use crate::boxes::{box_header, boxes, find, ticks, u32_at, u64_at};
use crate::ldus::LduPlace;
use std::collections::VecDeque;

/// Reads the segments of one track, one after another.
#[derive(Clone, Debug, Default)]
pub(crate) struct FragmentReader {
    track: Option<TrackDefaults>,
    state: BoxState,
    /// Bytes of the segment so far, and where its last `moof` began.
    at: u64,
    moof_at: u64,
    /// The bytes of a header or a `moof` that is not complete.
    kept: Vec<u8>,
    /// LDUs whose bytes have not all arrived, in the order of their bytes, with their ends.
    awaited: VecDeque<(u64, LduPlace)>,
    /// Bytes of the first of them that have arrived.
    partial: u64,
    /// The bytes of the LDU that is arriving, where bytes are wanted.
    payload: Option<Vec<u8>>,
    /// The clock behind the last LDU, for fragments without a time.
    clock: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BoxState {
    /// The header of the next box.
    #[default]
    Header,
    /// A `moof` of this many bytes, which is kept.
    Fragment(u64),
    /// A box of which so many bytes are left, which pass.
    Passing(u64),
    /// The rest of the segment makes no sense.
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct TrackDefaults {
    timescale: u64,
    duration: u32,
    size: u32,
    flags: u32,
}

impl FragmentReader {
    /// A reader that passes on the bytes of LDUs, or only their places and times.
    pub(crate) fn new(with_bytes: bool) -> Self {
        Self { payload: with_bytes.then(Vec::new), ..Self::default() }
    }

    /// Takes the track's header (`ftyp` and `moov`).
    pub(crate) fn header(&mut self, init: &[u8]) {
        self.track = defaults(init);
    }

    /// A segment begins.
    pub(crate) fn begin(&mut self) {
        (self.state, self.at, self.partial) = (BoxState::Header, 0, 0);
        self.kept.clear();
        self.awaited.clear();
        if let Some(payload) = &mut self.payload {
            payload.clear();
        }
    }

    /// Takes the next bytes of the segment, and passes on the LDUs that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(LduPlace, &[u8])) {
        while !bytes.is_empty() {
            let taken = match self.state {
                BoxState::Header => self.push_header(bytes),
                BoxState::Fragment(size) => self.push_fragment(bytes, size),
                BoxState::Passing(left) => self.pass(bytes, left, sink),
                BoxState::Lost => return,
            };
            self.at += taken as u64;
            bytes = &bytes[taken..];
        }
    }

    fn push_header(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(LONGEST_HEADER - self.kept.len());
        let before = self.kept.len();
        self.kept.extend_from_slice(&bytes[..taken]);
        let Some((kind, header, size)) = box_header(&self.kept, u64::MAX) else {
            if self.kept.len() >= LONGEST_HEADER {
                self.state = BoxState::Lost;
            }
            return taken;
        };
        // The header may be shorter than what was taken for it.
        let used = header.max(before) - before;
        if kind == *b"moof" && size <= LARGEST_MOOF {
            self.moof_at = self.at - before as u64;
            self.kept.truncate(header);
            self.state = BoxState::Fragment(size);
        } else {
            self.kept.clear();
            self.state = BoxState::Passing(size - header as u64);
            self.skip_empty_box();
        }
        used
    }

    fn push_fragment(&mut self, bytes: &[u8], size: u64) -> usize {
        let left = usize::try_from(size).unwrap_or(usize::MAX) - self.kept.len();
        let taken = left.min(bytes.len());
        self.kept.extend_from_slice(&bytes[..taken]);
        if taken == left {
            let moof = std::mem::take(&mut self.kept);
            self.state = match self.read_fragment(&moof) {
                Some(()) => BoxState::Header,
                None => BoxState::Lost,
            };
        }
        taken
    }

    fn pass(&mut self, bytes: &[u8], left: u64, sink: &mut dyn FnMut(LduPlace, &[u8])) -> usize {
        let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let mut rest = &bytes[..taken];
        let mut at = self.at;
        while let Some((end, ldu)) = self.awaited.front().copied() {
            let next = end - u64::from(ldu.size) + self.partial;
            if next < at {
                // It would begin in bytes that have passed.
                self.state = BoxState::Lost;
                return taken;
            }
            // Bytes in front of the LDU belong to no LDU of this track.
            let skipped = usize::try_from(next - at).unwrap_or(usize::MAX);
            let Some(own) = rest.get(skipped..) else { break };
            let here = own.len().min(usize::try_from(end - next).unwrap_or(usize::MAX));
            if let Some(payload) = &mut self.payload {
                payload.extend_from_slice(&own[..here]);
            }
            at += (skipped + here) as u64;
            rest = &own[here..];
            self.partial += here as u64;
            if at < end {
                break;
            }
            self.awaited.pop_front();
            self.partial = 0;
            sink(ldu, self.payload.as_deref().unwrap_or_default());
            if let Some(payload) = &mut self.payload {
                payload.clear();
            }
        }
        self.state = BoxState::Passing(left - taken as u64);
        self.skip_empty_box();
        taken
    }

    fn skip_empty_box(&mut self) {
        if self.state == BoxState::Passing(0) {
            self.state = BoxState::Header;
        }
    }

    // The LDUs of the first track fragment: a media playlist and a representation have one track.
    fn read_fragment(&mut self, moof: &[u8]) -> Option<()> {
        let track = self.track?;
        let (_, content, _) = boxes(moof).next()?;
        let traf = find(content, &[b"traf"])?;
        let header = FragmentHeader::read(find(traf, &[b"tfhd"])?, track)?;
        if let Some(tfdt) = find(traf, &[b"tfdt"]) {
            self.clock = match tfdt.first()? {
                1 => u64_at(tfdt, 4)?,
                _ => u64::from(u32_at(tfdt, 4)?),
            };
        }
        let mut place = self.moof_at;
        for (_, trun, _) in boxes(traf).filter(|(kind, ..)| kind == b"trun") {
            self.read_run(trun, &header, &mut place)?;
        }
        Some(())
    }

    fn read_run(&mut self, trun: &[u8], header: &FragmentHeader, place: &mut u64) -> Option<()> {
        let flags = u32_at(trun, 0)? & 0x00ff_ffff;
        let count = u32_at(trun, 4)?;
        let mut at = 8;
        let mut next = |wanted: u32| -> Option<Option<u32>> {
            if flags & wanted == 0 {
                return Some(None);
            }
            at += 4;
            Some(Some(u32_at(trun, at - 4)?))
        };
        if let Some(offset) = next(0x1)? {
            *place = header.base.unwrap_or(self.moof_at).checked_add_signed(signed(offset))?;
        }
        let mut first_flags = next(0x4)?;
        for _ in 0..count {
            let duration = next(0x100)?.unwrap_or(header.track.duration);
            let size = next(0x200)?.unwrap_or(header.track.size);
            let own_flags = next(0x400)?.unwrap_or(header.track.flags);
            let flags = first_flags.take().unwrap_or(own_flags);
            // Version 0 has no negative shifts, and writers use them all the same.
            let shift = next(0x800)?.map_or(0, signed);
            *place = place.checked_add(u64::from(size))?;
            let scale = header.track.timescale;
            let ldu = LduPlace {
                decode: ticks(self.clock, scale),
                shift: nanos_of(shift, scale),
                duration: Some(ticks(u64::from(duration), scale)),
                sync: flags & NOT_SYNC == 0,
                size,
            };
            if self.awaited.len() >= MOST_LDUS {
                return None;
            }
            self.awaited.push_back((*place, ldu));
            self.clock = self.clock.checked_add(u64::from(duration))?;
        }
        Some(())
    }
}

/// The values of `tfhd`, or the track's where it has none.
struct FragmentHeader {
    base: Option<u64>,
    track: TrackDefaults,
}

impl FragmentHeader {
    fn read(tfhd: &[u8], mut track: TrackDefaults) -> Option<Self> {
        let flags = u32_at(tfhd, 0)?;
        let mut at = 8;
        let base = if flags & 0x1 != 0 {
            at += 8;
            Some(u64_at(tfhd, at - 8)?)
        } else {
            None
        };
        let fields = [
            (0x2, None),
            (0x8, Some(&mut track.duration)),
            (0x10, Some(&mut track.size)),
            (0x20, Some(&mut track.flags)),
        ];
        for (flag, field) in fields {
            if flags & flag != 0 {
                let value = u32_at(tfhd, at)?;
                at += 4;
                if let Some(field) = field {
                    *field = value;
                }
            }
        }
        Some(Self { base, track })
    }
}

/// The defaults of the first track of a header.
fn defaults(init: &[u8]) -> Option<TrackDefaults> {
    let moov = find(init, &[b"moov"])?;
    let mdhd = find(moov, &[b"trak", b"mdia", b"mdhd"])?;
    let timescale = u32_at(mdhd, if mdhd.first() == Some(&1) { 20 } else { 12 })?;
    let trex = find(moov, &[b"mvex", b"trex"]);
    let field = |at| trex.and_then(|trex| u32_at(trex, at)).unwrap_or(0);
    (timescale > 0).then(|| TrackDefaults {
        timescale: u64::from(timescale),
        duration: field(12),
        size: field(16),
        flags: field(20),
    })
}

/// The number that a field of 32 bits holds in two's complement.
fn signed(field: u32) -> i64 {
    i64::from(field.cast_signed())
}

/// Nanoseconds of a signed number of ticks.
fn nanos_of(count: i64, scale: u64) -> i64 {
    let time = i64::try_from(ticks(count.unsigned_abs(), scale).as_nanos()).unwrap_or(i64::MAX);
    if count < 0 { -time } else { time }
}

/// `sample_is_non_sync_sample` (ISO/IEC 14496-12, 8.8.3.1).
const NOT_SYNC: u32 = 0x0001_0000;

/// The longest header of a box: a length of 64 bits behind the type.
const LONGEST_HEADER: usize = 16;

/// The largest `moof` that is kept: a segment of an hour of audio has less.
const LARGEST_MOOF: u64 = 4 << 20;

/// The largest number of LDUs that are awaited: more than [`LARGEST_MOOF`] describes one by one.
const MOST_LDUS: usize = 1 << 20;

#[cfg(test)]
mod tests;
