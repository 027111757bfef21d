//! The length of slice headers of H.264 (ISO/IEC 14496-10, 7.3.3).
//!
//! Of parameter sets only what that depends on is kept. Slice groups (FMO), data partitions and the
//! extensions for several views and layers are not read.

use super::parameter_sets::SetName;
use super::picture_format::PictureFormat;
use super::scan::SliceHeader;
use crate::codec::Bits;
use std::collections::BTreeMap;

/// The parameter sets of a track so far.
#[derive(Debug, Default)]
pub(super) struct AvcParameterSets {
    sequences: BTreeMap<u32, AvcSequence>,
    pictures: BTreeMap<u32, AvcPicture>,
    /// What the latest sequence parameter set says of the pictures.
    pub(super) latest: Option<PictureFormat>,
    /// Whether the latest slice is predicted from other pictures; not known of single fields, whose
    /// other field may be whole.
    pub(super) is_predicted: bool,
}

#[derive(Debug)]
struct AvcSequence {
    separate_planes: bool,
    has_chroma: bool,
    frame_num_bits: usize,
    order: Order,
    frames_only: bool,
    /// `None`: it could not be read.
    format: Option<PictureFormat>,
}

/// How a picture's place in the order of showing is stated.
#[derive(Debug)]
enum Order {
    Bits(usize),
    Deltas { always_zero: bool },
    AsDecoded,
}

#[derive(Debug)]
struct AvcPicture {
    sequence: u32,
    cabac: bool,
    has_order_of_fields: bool,
    references: [u32; 2],
    weighted: bool,
    weighted_both: u32,
    has_deblocking: bool,
    has_redundant: bool,
}

impl AvcParameterSets {
    /// Keeps a parameter set, or finds the end of a slice's header.
    pub(super) fn header_bits(&mut self, nal: &[u8]) -> SliceHeader {
        let Some(first) = nal.first() else { return SliceHeader::NoSlice };
        match first & 0x1f {
            1 | 5 => {
                self.is_predicted = self.is_predicted_frame(nal).unwrap_or(false);
                SliceHeader::Slice(self.slice(nal))
            }
            2..=4 | 19..=21 => SliceHeader::Slice(None),
            7 => {
                let sequence = sequence(nal);
                self.latest = sequence.as_ref().and_then(|(_, sequence)| sequence.format);
                self.sequences.extend(sequence);
                SliceHeader::NoSlice
            }
            8 => {
                self.pictures.extend(picture(nal));
                SliceHeader::NoSlice
            }
            _ => SliceHeader::NoSlice,
        }
    }

    fn is_predicted_frame(&self, nal: &[u8]) -> Option<bool> {
        let mut bits = Bits::new(nal);
        bits.skip(8)?;
        bits.ue()?;
        let kind = bits.ue()? % 5;
        let picture = self.pictures.get(&bits.ue()?)?;
        let sequence = self.sequences.get(&picture.sequence)?;
        bits.skip(if sequence.separate_planes { 2 } else { 0 } + sequence.frame_num_bits)?;
        let is_field = !sequence.frames_only && bits.flag()?;
        Some(!matches!(kind, I | SI) && !is_field)
    }

    fn slice(&self, nal: &[u8]) -> Option<usize> {
        let (is_reference, is_idr) = (nal[0] & 0x60 != 0, nal[0] & 0x1f == 5);
        let mut bits = Bits::new(nal);
        bits.skip(8)?;
        bits.ue()?;
        let kind = bits.ue()? % 5;
        let (is_b, is_intra) = (kind == B, matches!(kind, I | SI));
        let picture = self.pictures.get(&bits.ue()?)?;
        let sequence = self.sequences.get(&picture.sequence)?;
        skip_numbers(&mut bits, sequence, picture, is_idr)?;
        let mut references = picture.references;
        if is_b {
            bits.skip(1)?;
        }
        if !is_intra {
            if bits.flag()? {
                references[0] = bits.ue()?.checked_add(1)?;
                if is_b {
                    references[1] = bits.ue()?.checked_add(1)?;
                }
            }
            for _ in 0..1 + u8::from(is_b) {
                skip_list_changes(&mut bits)?;
            }
            if if is_b { picture.weighted_both == 1 } else { picture.weighted } {
                skip_weights(&mut bits, sequence, &references[..1 + usize::from(is_b)])?;
            }
        }
        if is_reference {
            skip_marking(&mut bits, is_idr)?;
        }
        if picture.cabac && !is_intra {
            bits.ue()?;
        }
        bits.se()?;
        if matches!(kind, SP | SI) {
            if kind == SP {
                bits.skip(1)?;
            }
            bits.se()?;
        }
        if picture.has_deblocking && bits.ue()? != 1 {
            bits.skip_ue(2)?;
        }
        Some(bits.at)
    }
}

/// The name of a parameter set; `None` of another NAL unit.
pub(super) fn set_name(nal: &[u8]) -> Option<SetName> {
    let kind = nal.first()? & 0x1f;
    let mut bits = Bits::new(nal);
    match kind {
        // Profile, constraints and level are in front.
        7 => bits.skip(8 + 24)?,
        8 => bits.skip(8)?,
        _ => return None,
    }
    Some(SetName { kind, number: bits.ue()? })
}

/// Skips what a slice header has from the plane to the redundant picture count.
fn skip_numbers(
    bits: &mut Bits<'_>,
    sequence: &AvcSequence,
    picture: &AvcPicture,
    is_idr: bool,
) -> Option<()> {
    if sequence.separate_planes {
        bits.skip(2)?;
    }
    bits.skip(sequence.frame_num_bits)?;
    let is_field = !sequence.frames_only && bits.flag()?;
    if is_field {
        bits.skip(1)?;
    }
    if is_idr {
        bits.ue()?;
    }
    let both_fields = picture.has_order_of_fields && !is_field;
    match sequence.order {
        Order::Bits(count) => {
            bits.skip(count)?;
            bits.skip_ue(u32::from(both_fields))?;
        }
        Order::Deltas { always_zero: false } => bits.skip_ue(1 + u32::from(both_fields))?,
        Order::Deltas { always_zero: true } | Order::AsDecoded => {}
    }
    bits.skip_ue(u32::from(picture.has_redundant))
}

/// `ref_pic_list_modification` of one list (7.3.3.1).
fn skip_list_changes(bits: &mut Bits<'_>) -> Option<()> {
    if bits.flag()? {
        while bits.ue()? != 3 {
            bits.ue()?;
        }
    }
    Some(())
}

/// `pred_weight_table` (7.3.3.2) with these numbers of references.
fn skip_weights(bits: &mut Bits<'_>, sequence: &AvcSequence, lists: &[u32]) -> Option<()> {
    bits.skip_ue(1 + u32::from(sequence.has_chroma))?;
    for _ in 0..lists.iter().try_fold(0, |sum: u32, count| sum.checked_add(*count))? {
        if bits.flag()? {
            bits.skip_ue(2)?;
        }
        if sequence.has_chroma && bits.flag()? {
            bits.skip_ue(4)?;
        }
    }
    Some(())
}

/// `dec_ref_pic_marking` (7.3.3.3).
fn skip_marking(bits: &mut Bits<'_>, is_idr: bool) -> Option<()> {
    if is_idr {
        return bits.skip(2);
    }
    if bits.flag()? {
        loop {
            match bits.ue()? {
                0 => break,
                3 => bits.skip_ue(2)?,
                5 => {}
                _ => bits.skip_ue(1)?,
            }
        }
    }
    Some(())
}

/// A sequence parameter set (7.3.2.1.1) with its number.
fn sequence(nal: &[u8]) -> Option<(u32, AvcSequence)> {
    let mut bits = Bits::new(nal);
    bits.skip(8)?;
    let profile = bits.take(8)?;
    bits.skip(16)?;
    let number = bits.ue().filter(|number| *number <= 31)?;
    let (mut chroma, mut separate_planes, mut depth) = (1, false, [8, 8]);
    if HIGH_PROFILES.contains(&profile) {
        chroma = bits.ue()?;
        separate_planes = chroma == 3 && bits.flag()?;
        depth = [bits.ue()?.checked_add(8)?, bits.ue()?.checked_add(8)?];
        bits.skip(1)?;
        if bits.flag()? {
            for list in 0..if chroma == 3 { 12 } else { 8 } {
                if bits.flag()? {
                    skip_scaling_list(&mut bits, if list < 6 { 16 } else { 64 })?;
                }
            }
        }
    }
    let size = |value: u32| usize::try_from(value).ok().filter(|it| *it <= 12).map(|it| it + 4);
    let frame_num_bits = size(bits.ue()?)?;
    let order = match bits.ue()? {
        0 => Order::Bits(size(bits.ue()?)?),
        1 => {
            let always_zero = bits.flag()?;
            bits.skip_ue(2)?;
            let count = bits.ue().filter(|count| *count <= 255)?;
            bits.skip_ue(count)?;
            Order::Deltas { always_zero }
        }
        _ => Order::AsDecoded,
    };
    bits.ue()?;
    bits.skip(1)?;
    let blocks = [bits.ue()?, bits.ue()?];
    let frames_only = bits.flag()?;
    let has_chroma = chroma != 0 && !separate_planes;
    let format = format(&mut bits, [profile, chroma], depth, blocks, frames_only);
    let sequence =
        AvcSequence { separate_planes, has_chroma, frame_num_bits, order, frames_only, format };
    Some((number, sequence))
}

/// The form of the pictures; `bits` are behind `frame_mbs_only_flag`. `blocks`: macroblocks across
/// and down, less one.
fn format(
    bits: &mut Bits<'_>,
    [profile, chroma]: [u32; 2],
    depth: [u32; 2],
    blocks: [u32; 2],
    frames_only: bool,
) -> Option<PictureFormat> {
    bits.skip(1 + usize::from(!frames_only))?;
    let fields = if frames_only { 1 } else { 2 };
    let pixels = |blocks: u32| blocks.checked_add(1)?.checked_mul(16);
    let size = [pixels(blocks[0])?, pixels(blocks[1])?.checked_mul(fields)?];
    PictureFormat { profile, chroma, depth, size }.crop(bits, fields)
}

/// `scaling_list` (7.3.2.1.1.1).
fn skip_scaling_list(bits: &mut Bits<'_>, size: u32) -> Option<()> {
    let (mut last, mut next) = (8_i32, 8_i32);
    for _ in 0..size {
        if next != 0 {
            next = bits.se()?.wrapping_add(last).rem_euclid(256);
        }
        last = if next == 0 { last } else { next };
    }
    Some(())
}

/// A picture parameter set (7.3.2.2) with its number.
fn picture(nal: &[u8]) -> Option<(u32, AvcPicture)> {
    let mut bits = Bits::new(nal);
    bits.skip(8)?;
    let number = bits.ue().filter(|number| *number <= 255)?;
    let sequence = bits.ue()?;
    let (cabac, has_order_of_fields) = (bits.flag()?, bits.flag()?);
    if bits.ue()? != 0 {
        return None; // Slice groups.
    }
    let references = [bits.ue()?.checked_add(1)?, bits.ue()?.checked_add(1)?];
    let (weighted, weighted_both) = (bits.flag()?, bits.take(2)?);
    bits.skip_ue(3)?;
    let has_deblocking = bits.flag()?;
    bits.skip(1)?;
    let has_redundant = bits.flag()?;
    let picture = AvcPicture {
        sequence,
        cabac,
        has_order_of_fields,
        references,
        weighted,
        weighted_both,
        has_deblocking,
        has_redundant,
    };
    Some((number, picture))
}

/// Values of `slice_type` (7.4.3).
const B: u32 = 1;
const I: u32 = 2;
const SP: u32 = 3;
const SI: u32 = 4;
/// Profiles whose sequence parameter sets state the chroma format.
const HIGH_PROFILES: [u32; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];
