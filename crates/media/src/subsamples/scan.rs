//! Finds the subsamples of LDUs of NAL units (H.264, HEVC) as they arrive, in pieces of any size.
//!
//! Of each NAL unit the first bytes are kept until its header has been read. A slice whose header
//! cannot be read, for want of its parameter sets or because a tool is used that is not read here,
//! keeps its first [`UNREAD_LEAD`] bytes in the clear, more than almost any header has. Of an LDU
//! that does not consist of NAL units, the rest stays in the clear: nobody can decode it.

use super::parameter_sets::{ParameterSets, SetName, SetsSoFar};
use super::picture_format::PictureFormat;
use super::{Subsample, SubsampleMap, avc, hevc};
use crate::codec::{Bits, SampleEntry, avc_config, hevc_config};
use crate::{LduIndex, TrackDescription};

/// Finds the subsamples of the LDUs of one track.
#[derive(Debug)]
pub(crate) struct SubsampleScanner {
    codec: Codec,
    length_bytes: usize,
    map: SubsampleMap,
    /// Bytes of the current LDU that have not been seen.
    ldu_left: u32,
    /// Whether decoding may begin with the current LDU, as its container has it.
    is_key: bool,
    found: Vec<Subsample>,
    /// Bytes in the clear since the last protected ones.
    clear: u32,
    state: ScanState,
    /// What the parameter sets in front of the track say of its pictures; of a track with none
    /// there, the first one in it.
    formats: Vec<PictureFormat>,
    sets: ParameterSets,
    /// Whether a key frame is predicted from other pictures.
    gradual_refresh: bool,
    changed: Option<FormatChange>,
}

/// A parameter set in a track that is of another form than those in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FormatChange {
    /// The first LDU of the new form.
    pub(crate) ldu: usize,
    pub(crate) before: PictureFormat,
    pub(crate) after: PictureFormat,
    /// The sets of the LDUs before.
    sets: SetsSoFar,
    /// Whether a key frame before is predicted from other pictures.
    gradual_refresh: bool,
}

#[derive(Debug)]
enum Codec {
    Avc(avc::AvcParameterSets),
    Hevc(hevc::HevcParameterSets),
}

#[derive(Debug)]
enum ScanState {
    /// In the length of a NAL unit: its bytes so far, and their value.
    Length { seen: usize, value: u32 },
    /// At the beginning of a NAL unit with so many bytes to come.
    Head { head: Vec<u8>, wanted: usize, left: u32 },
    /// Behind the header of a NAL unit.
    Body { left: u32 },
    /// In an LDU that does not consist of NAL units.
    Unreadable,
}

const BEGIN: ScanState = ScanState::Length { seen: 0, value: 0 };

impl SubsampleScanner {
    /// A scanner for a track with this sample entry; `None` where its codec has no NAL units, or
    /// its configuration cannot be read.
    pub(crate) fn of(sample_entry: &[u8]) -> Option<Self> {
        let entry = SampleEntry(sample_entry);
        let (mut codec, config) = match &entry.kind() {
            b"avc1" | b"avc3" | b"dva1" | b"dvav" => {
                (Codec::Avc(avc::AvcParameterSets::default()), avc_config(entry.child(b"avcC")?)?)
            }
            b"hvc1" | b"hev1" | b"dvh1" | b"dvhe" => (
                Codec::Hevc(hevc::HevcParameterSets::default()),
                hevc_config(entry.child(b"hvcC")?)?,
            ),
            _ => return None,
        };
        let (mut formats, mut sets) = (Vec::new(), ParameterSets::default());
        for (_, set) in config.sets {
            codec.clear_bytes(set);
            if let Some(name) = codec.set_name(set) {
                sets.put_in_front(name, set);
            }
            formats.extend(codec.take_format());
        }
        Some(Self {
            codec,
            length_bytes: config.length_bytes,
            map: SubsampleMap::default(),
            ldu_left: 0,
            is_key: false,
            found: Vec::new(),
            clear: 0,
            state: BEGIN,
            formats,
            sets,
            gradual_refresh: false,
            changed: None,
        })
    }

    /// Takes the next bytes of the track, whose LDUs `index` has.
    pub(crate) fn push(&mut self, mut bytes: &[u8], index: &LduIndex) {
        while !bytes.is_empty() {
            while self.ldu_left == 0 {
                if self.map.len() >= index.len() {
                    return;
                }
                let ldu = index.get(self.map.len());
                (self.ldu_left, self.is_key) = (ldu.size, ldu.sync);
                if self.ldu_left == 0 {
                    self.map.push(&[]);
                }
            }
            let taken = self.step(bytes);
            bytes = &bytes[taken..];
            if self.ldu_left == 0 {
                self.end_ldu();
            }
        }
    }

    /// The subsamples of the LDUs that have been seen whole.
    pub(crate) fn map(&self) -> &SubsampleMap {
        &self.map
    }

    /// The parameter sets of the track so far.
    pub(crate) fn sets(&self) -> &ParameterSets {
        &self.sets
    }

    /// Whether the pictures at some key frames are predicted from others, so that they are complete
    /// only after further ones.
    pub(crate) fn gradual_refresh(&self) -> bool {
        self.gradual_refresh
    }

    /// Completes the description of the track. `of_one_form`: by the LDUs before those of another
    /// form alone.
    pub(crate) fn describe(&self, of_one_form: bool, track: &mut TrackDescription) {
        let before = self.changed.filter(|_| of_one_form);
        let sets = before.map_or_else(|| self.sets.so_far(), |before| before.sets);
        self.sets.describe(sets, track);
        track.gradual_refresh =
            before.map_or(self.gradual_refresh, |before| before.gradual_refresh);
    }

    /// Where the pictures have another form for the first time.
    pub(crate) fn changed(&self) -> Option<FormatChange> {
        self.changed
    }

    /// Forgets the first LDUs, all of which have been seen whole; the index that is passed on from
    /// now on is without them.
    pub(crate) fn forget(&mut self, ldus: usize) {
        self.map = self.map.part(ldus.min(self.map.len())..self.map.len());
        if let Some(changed) = &mut self.changed {
            changed.ldu = changed.ldu.saturating_sub(ldus);
        }
    }

    /// The map of all LDUs of `index`; `None` if not all of them have been seen.
    pub(crate) fn finish(mut self, index: &LduIndex) -> Option<SubsampleMap> {
        while self.map.len() < index.len() && index.get(self.map.len()).size == 0 {
            self.map.push(&[]);
        }
        (self.map.len() == index.len()).then_some(self.map)
    }

    /// Takes some of these bytes, and returns how many.
    fn step(&mut self, bytes: &[u8]) -> usize {
        let here = bytes.len().min(usize::try_from(self.ldu_left).unwrap_or(usize::MAX));
        let bytes = &bytes[..here];
        let taken = match &mut self.state {
            ScanState::Length { seen, value } => {
                (*seen, *value) = (*seen + 1, *value << 8 | u32::from(bytes[0]));
                let (seen, value) = (*seen, *value);
                self.clear += 1;
                self.ldu_left -= 1;
                if seen == self.length_bytes {
                    self.state = match usize::try_from(value) {
                        Ok(_) if value > self.ldu_left => ScanState::Unreadable,
                        Ok(0) | Err(_) => BEGIN,
                        Ok(size) => {
                            let wanted = size.min(MOST_HEAD);
                            ScanState::Head { head: Vec::new(), wanted, left: value }
                        }
                    };
                }
                return 1;
            }
            ScanState::Head { head, wanted, left } => {
                let taken = (*wanted - head.len()).min(bytes.len());
                head.extend_from_slice(&bytes[..taken]);
                if head.len() == *wanted {
                    let (clear, rest) = self.codec.split(head, *left);
                    self.gradual_refresh |= self.is_key && rest > 0 && self.codec.is_predicted();
                    if let Some(after) = self.codec.take_format() {
                        match self.formats.first() {
                            None => self.formats.push(after),
                            Some(before) if !self.formats.contains(&after) => {
                                self.changed.get_or_insert(FormatChange {
                                    ldu: self.map.len(),
                                    before: *before,
                                    after,
                                    sets: self.sets.ended(),
                                    gradual_refresh: self.gradual_refresh,
                                });
                            }
                            Some(_) => {}
                        }
                    }
                    let whole = u32::try_from(head.len()) == Ok(*left);
                    if let Some(name) = self.codec.set_name(head) {
                        self.sets.take(name, head, whole);
                    }
                    self.clear += clear;
                    // What was kept of the NAL unit behind its header is the begin of its rest.
                    let kept = u32::try_from(head.len()).expect("a short head");
                    let left = *left - kept;
                    if rest > 0 {
                        self.found.push(Subsample { clear: self.clear, protected: rest });
                        self.clear = 0;
                    }
                    self.state = if left > 0 { ScanState::Body { left } } else { BEGIN };
                }
                taken
            }
            ScanState::Body { left } => {
                let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= u32::try_from(taken).expect("at most what is left");
                if *left == 0 {
                    self.state = BEGIN;
                }
                taken
            }
            ScanState::Unreadable => {
                self.clear += u32::try_from(bytes.len()).expect("at most what is left");
                bytes.len()
            }
        };
        self.ldu_left -= u32::try_from(taken).expect("at most what is left");
        taken
    }

    fn end_ldu(&mut self) {
        self.sets.end_ldu(self.is_key);
        if self.clear > 0 {
            self.found.push(Subsample { clear: self.clear, protected: 0 });
        }
        self.map.push(&self.found);
        self.found.clear();
        self.clear = 0;
        self.state = BEGIN;
    }
}

impl Codec {
    /// What the latest sequence parameter set says of the pictures, once.
    fn take_format(&mut self) -> Option<PictureFormat> {
        match self {
            Self::Avc(sets) => sets.latest.take(),
            Self::Hevc(sets) => sets.latest.take(),
        }
    }

    /// Whether the latest slice is predicted from other pictures. FFmpeg takes no such picture of
    /// HEVC for a key frame.
    fn is_predicted(&self) -> bool {
        matches!(self, Self::Avc(sets) if sets.is_predicted)
    }

    /// The clear and the protected bytes of a NAL unit of `size` bytes that begins with `head`.
    fn split(&mut self, head: &[u8], size: u32) -> (u32, u32) {
        match self.clear_bytes(head) {
            None => (size, 0),
            Some(clear) => {
                let clear = u32::try_from(clear).unwrap_or(u32::MAX).min(size);
                (clear, size - clear)
            }
        }
    }

    /// The name of a parameter set; `None` of another NAL unit.
    fn set_name(&self, nal: &[u8]) -> Option<SetName> {
        // Most NAL units are slices, and long.
        let first = *nal.first()?;
        match self {
            Self::Avc(_) if matches!(first & 0x1f, 7 | 8) => avc::set_name(&Rbsp::of(nal).bytes),
            Self::Hevc(_) if matches!(first >> 1 & 0x3f, 32..=34) => {
                hevc::set_name(&Rbsp::of(nal).bytes)
            }
            _ => None,
        }
    }

    /// The bytes of a slice up to the end of its header; `None` of another NAL unit. Parameter sets
    /// are kept.
    fn clear_bytes(&mut self, nal: &[u8]) -> Option<usize> {
        let rbsp = Rbsp::of(nal);
        let header = match self {
            Self::Avc(sets) => sets.header_bits(&rbsp.bytes),
            Self::Hevc(sets) => sets.header_bits(&rbsp.bytes),
        };
        match header {
            SliceHeader::NoSlice => None,
            SliceHeader::Slice(Some(bits)) => Some(rbsp.raw_len(bits.div_ceil(8))),
            SliceHeader::Slice(None) => Some(UNREAD_LEAD),
        }
    }
}

/// What the beginning of a NAL unit is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SliceHeader {
    /// Not a slice: all of it stays in the clear.
    NoSlice,
    /// A slice with so many bits of headers, that of the NAL unit included; `None`: they could not
    /// be read.
    Slice(Option<usize>),
}

/// The beginning of a NAL unit without emulation prevention bytes.
struct Rbsp {
    bytes: Vec<u8>,
    /// Where in the NAL unit there are emulation prevention bytes, counted in `bytes`.
    removed: Vec<usize>,
}

impl Rbsp {
    fn of(nal: &[u8]) -> Self {
        let mut rbsp = Self { bytes: Vec::with_capacity(nal.len()), removed: Vec::new() };
        let mut zeros = 0;
        for &byte in nal {
            if zeros >= 2 && byte == 3 {
                rbsp.removed.push(rbsp.bytes.len());
                zeros = 0;
                continue;
            }
            zeros = if byte == 0 { zeros + 1 } else { 0 };
            rbsp.bytes.push(byte);
        }
        rbsp
    }

    /// The bytes of the NAL unit that its first `count` bytes are here.
    fn raw_len(&self, count: usize) -> usize {
        count + self.removed.iter().filter(|at| **at < count).count()
    }
}

impl Bits<'_> {
    pub(super) fn flag(&mut self) -> Option<bool> {
        self.take(1).map(|bit| bit == 1)
    }

    /// `ue(v)` of ISO/IEC 14496-10, 9.1.
    pub(super) fn ue(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while self.take(1)? == 0 {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some((1 << zeros) - 1 + self.take(zeros)?)
    }

    /// `se(v)` of ISO/IEC 14496-10, 9.1.1.
    pub(super) fn se(&mut self) -> Option<i32> {
        let code = i64::from(self.ue()?);
        let value = (code + 1) / 2 * if code % 2 == 1 { 1 } else { -1 };
        i32::try_from(value).ok()
    }

    /// Skips so many `ue(v)`, or `se(v)`, which have the same length.
    pub(super) fn skip_ue(&mut self, count: u32) -> Option<()> {
        (0..count).try_for_each(|_| self.ue().map(|_| ()))
    }

    /// Skips bits.
    pub(super) fn skip(&mut self, count: usize) -> Option<()> {
        self.take(count).map(|_| ())
    }
}

/// Bytes of a NAL unit in which its header must end: a header with 32 references of each list, all
/// weighted, and entry points has some hundred.
const MOST_HEAD: usize = 2048;
/// Bytes of a slice that stay in the clear where its header cannot be read.
const UNREAD_LEAD: usize = 128;
