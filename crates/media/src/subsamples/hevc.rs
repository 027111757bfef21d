//! The length of slice segment headers of HEVC (ISO/IEC 23008-2, 7.3.6).
//!
//! Of parameter sets only what that depends on is kept. The extensions for several layers, depth
//! and screen content are not read.

use super::parameter_sets::SetName;
use super::picture_format::PictureFormat;
use super::scan::SliceHeader;
use crate::codec::Bits;
use std::collections::BTreeMap;

/// The parameter sets of a track so far.
#[derive(Debug, Default)]
pub(super) struct HevcParameterSets {
    sequences: BTreeMap<u32, HevcSequence>,
    pictures: BTreeMap<u32, HevcPicture>,
    /// What the latest sequence parameter set says of the pictures.
    pub(super) latest: Option<PictureFormat>,
}

#[derive(Debug)]
struct HevcSequence {
    separate_planes: bool,
    has_chroma: bool,
    /// The bits of the address of a slice segment.
    address_bits: usize,
    order_bits: usize,
    /// The short-term reference picture sets.
    sets: Vec<ReferenceSet>,
    /// Whether the current picture uses each long-term reference picture; `None`: the tool is not
    /// used.
    long_term: Option<Vec<bool>>,
    has_offset_filter: bool,
    has_temporal_vectors: bool,
    format: PictureFormat,
}

#[derive(Debug)]
struct HevcPicture {
    sequence: u32,
    has_dependent: bool,
    has_output_flag: bool,
    extra_bits: usize,
    has_cabac_init: bool,
    references: [u32; 2],
    has_chroma_offsets: bool,
    weighted: [bool; 2],
    has_entry_points: bool,
    filters_across: bool,
    may_override_deblocking: bool,
    no_deblocking: bool,
    changes_lists: bool,
    has_extension: bool,
    has_offset_lists: bool,
}

/// A short-term reference picture set: distances in the order of showing, and whether the current
/// picture uses each. First the earlier ones, nearest first, then the later ones.
#[derive(Clone, Debug, Default)]
struct ReferenceSet {
    earlier: Vec<(i32, bool)>,
    later: Vec<(i32, bool)>,
}

impl HevcParameterSets {
    /// Keeps a parameter set, or finds the end of a slice segment's header.
    pub(super) fn header_bits(&mut self, nal: &[u8]) -> SliceHeader {
        let Some(first) = nal.first() else { return SliceHeader::NoSlice };
        match first >> 1 & 0x3f {
            kind @ (0..=9 | 16..=21) => SliceHeader::Slice(self.slice(nal, kind)),
            10..=31 => SliceHeader::Slice(None),
            33 => {
                let sequence = sequence(nal);
                self.latest = sequence.as_ref().map(|(_, sequence)| sequence.format);
                self.sequences.extend(sequence);
                SliceHeader::NoSlice
            }
            34 => {
                self.pictures.extend(picture(nal));
                SliceHeader::NoSlice
            }
            _ => SliceHeader::NoSlice,
        }
    }

    fn slice(&self, nal: &[u8], kind: u8) -> Option<usize> {
        let mut bits = Bits::new(nal);
        bits.skip(16)?;
        let is_first = bits.flag()?;
        if kind >= 16 {
            bits.skip(1)?;
        }
        let picture = self.pictures.get(&bits.ue()?)?;
        let sequence = self.sequences.get(&picture.sequence)?;
        let mut is_dependent = false;
        if !is_first {
            is_dependent = picture.has_dependent && bits.flag()?;
            bits.skip(sequence.address_bits)?;
        }
        if !is_dependent {
            skip_independent(&mut bits, sequence, picture, matches!(kind, 19 | 20))?;
        }
        if picture.has_entry_points {
            let count = bits.ue()?;
            if count > 0 {
                let size = usize::try_from(bits.ue()?).ok()?.checked_add(1)?;
                bits.skip(size.checked_mul(usize::try_from(count).ok()?)?)?;
            }
        }
        if picture.has_extension {
            let bytes = usize::try_from(bits.ue()?).ok()?;
            bits.skip(bytes.checked_mul(8)?)?;
        }
        // `byte_alignment` has one bit at least.
        Some(bits.at + 1)
    }
}

/// The name of a parameter set of the base layer; `None` of another NAL unit.
pub(super) fn set_name(nal: &[u8]) -> Option<SetName> {
    let kind = nal.first()? >> 1 & 0x3f;
    let mut bits = Bits::new(nal);
    bits.skip(7)?;
    if bits.take(6)? != 0 {
        return None;
    }
    bits.skip(3)?;
    let number = match kind {
        32 => bits.take(4)?,
        33 => {
            bits.skip(4)?;
            let layers = bits.take(3)?;
            bits.skip(1)?;
            skip_profile(&mut bits, layers)?;
            bits.ue()?
        }
        34 => bits.ue()?,
        _ => return None,
    };
    Some(SetName { kind, number })
}

/// Skips what only the first segment of a slice has.
fn skip_independent(
    bits: &mut Bits<'_>,
    sequence: &HevcSequence,
    picture: &HevcPicture,
    is_idr: bool,
) -> Option<()> {
    bits.skip(picture.extra_bits)?;
    let kind = bits.ue()?;
    bits.skip(usize::from(picture.has_output_flag))?;
    bits.skip(2 * usize::from(sequence.separate_planes))?;
    let (mut used, mut temporal) = (0, false);
    if !is_idr {
        used = skip_references(bits, sequence)?;
        temporal = sequence.has_temporal_vectors && bits.flag()?;
    }
    let mut is_filtered = false;
    if sequence.has_offset_filter {
        is_filtered = bits.flag()?;
        if sequence.has_chroma {
            is_filtered |= bits.flag()?;
        }
    }
    if kind != I {
        skip_prediction(bits, sequence, picture, kind == B, used, temporal)?;
    }
    bits.se()?;
    if picture.has_chroma_offsets {
        bits.skip_ue(2)?;
    }
    bits.skip(usize::from(picture.has_offset_lists))?;
    let mut no_deblocking = picture.no_deblocking;
    if picture.may_override_deblocking && bits.flag()? {
        no_deblocking = bits.flag()?;
        bits.skip_ue(if no_deblocking { 0 } else { 2 })?;
    }
    let has_filter = picture.filters_across && (is_filtered || !no_deblocking);
    bits.skip(usize::from(has_filter))
}

/// Skips the reference pictures of a slice. Returns the number of those that it uses.
fn skip_references(bits: &mut Bits<'_>, sequence: &HevcSequence) -> Option<u32> {
    bits.skip(sequence.order_bits)?;
    let count = sequence.sets.len();
    let own;
    let set = if !bits.flag()? {
        own = reference_set(bits, &sequence.sets, count, count)?;
        &own
    } else if count > 1 {
        let number = bits.take(bits_for(u32::try_from(count).ok()?))?;
        sequence.sets.get(usize::try_from(number).ok()?)?
    } else {
        sequence.sets.first()?
    };
    let mut used = set.earlier.iter().chain(&set.later).filter(|(_, used)| *used).count();
    if let Some(known) = &sequence.long_term {
        let named = if known.is_empty() { 0 } else { bits.ue()? };
        let all = named.checked_add(bits.ue()?).filter(|all| *all <= MOST_REFERENCES)?;
        for i in 0..all {
            let is_used = if i < named {
                let count = u32::try_from(known.len()).ok()?;
                let number = if count > 1 { bits.take(bits_for(count))? } else { 0 };
                *known.get(usize::try_from(number).ok()?)?
            } else {
                bits.skip(sequence.order_bits)?;
                bits.flag()?
            };
            used += usize::from(is_used);
            if bits.flag()? {
                bits.ue()?;
            }
        }
    }
    u32::try_from(used).ok()
}

/// Skips what slices with references have. `used`: the number of pictures that it refers to.
fn skip_prediction(
    bits: &mut Bits<'_>,
    sequence: &HevcSequence,
    picture: &HevcPicture,
    is_b: bool,
    used: u32,
    temporal: bool,
) -> Option<()> {
    let mut references = picture.references;
    if bits.flag()? {
        references[0] = bits.ue()?.checked_add(1)?;
        if is_b {
            references[1] = bits.ue()?.checked_add(1)?;
        }
    }
    let lists = &references[..1 + usize::from(is_b)];
    if lists.iter().any(|count| *count > MOST_REFERENCES) {
        return None;
    }
    if picture.changes_lists && used > 1 {
        for count in lists {
            if bits.flag()? {
                bits.skip(bits_for(used) * usize::try_from(*count).ok()?)?;
            }
        }
    }
    bits.skip(usize::from(is_b))?;
    bits.skip(usize::from(picture.has_cabac_init))?;
    if temporal {
        let from_first = !is_b || bits.flag()?;
        if references[usize::from(!from_first)] > 1 {
            bits.ue()?;
        }
    }
    if picture.weighted[usize::from(is_b)] {
        skip_weights(bits, sequence.has_chroma, lists)?;
    }
    bits.ue().map(|_| ())
}

/// `pred_weight_table` (7.3.6.3) with these numbers of references.
fn skip_weights(bits: &mut Bits<'_>, has_chroma: bool, lists: &[u32]) -> Option<()> {
    bits.skip_ue(1 + u32::from(has_chroma))?;
    for &count in lists {
        let mut flags = |has: bool| -> Option<Vec<bool>> {
            (0..count).map(|_| if has { bits.flag() } else { Some(false) }).collect()
        };
        let (luma, chroma) = (flags(true)?, flags(has_chroma)?);
        for (luma, chroma) in luma.into_iter().zip(chroma) {
            bits.skip_ue(2 * u32::from(luma) + 4 * u32::from(chroma))?;
        }
    }
    Some(())
}

/// A sequence parameter set (7.3.2.2) with its number.
fn sequence(nal: &[u8]) -> Option<(u32, HevcSequence)> {
    let mut bits = Bits::new(nal);
    bits.skip(16 + 4)?;
    let layers = bits.take(3)?;
    bits.skip(1)?;
    let profile = skip_profile(&mut bits, layers)?;
    let number = bits.ue().filter(|number| *number <= 15)?;
    let chroma = bits.ue()?;
    let separate_planes = chroma == 3 && bits.flag()?;
    let size = [bits.ue()?, bits.ue()?];
    let format = PictureFormat { profile, chroma, depth: [0, 0], size }.crop(&mut bits, 1)?;
    let depth = [bits.ue()?.checked_add(8)?, bits.ue()?.checked_add(8)?];
    let format = PictureFormat { depth, ..format };
    let order_bits = usize::try_from(bits.ue().filter(|it| *it <= 12)?).ok()? + 4;
    let stated = if bits.flag()? { layers + 1 } else { 1 };
    bits.skip_ue(3 * stated)?;
    let smallest = bits.ue()?;
    let block = smallest.checked_add(bits.ue()?)?.checked_add(3).filter(|log| *log <= 6)?;
    bits.skip_ue(4)?;
    if bits.flag()? && bits.flag()? {
        skip_scaling_lists(&mut bits)?;
    }
    bits.skip(1)?;
    let has_offset_filter = bits.flag()?;
    if bits.flag()? {
        bits.skip(8)?;
        bits.skip_ue(2)?;
        bits.skip(1)?;
    }
    let count = usize::try_from(bits.ue().filter(|count| *count <= 64)?).ok()?;
    let mut sets = Vec::with_capacity(count);
    for number in 0..count {
        sets.push(reference_set(&mut bits, &sets, number, count)?);
    }
    let mut long_term = None;
    if bits.flag()? {
        let count = bits.ue().filter(|count| *count <= 32)?;
        let known = (0..count).map(|_| {
            bits.skip(order_bits)?;
            bits.flag()
        });
        long_term = Some(known.collect::<Option<Vec<bool>>>()?);
    }
    let has_temporal_vectors = bits.flag()?;
    let [across, down] = size.map(|pixels| u64::from(pixels).div_ceil(1 << block));
    let address_bits = bits_for(u32::try_from(across * down).ok()?);
    let sequence = HevcSequence {
        separate_planes,
        has_chroma: chroma != 0 && !separate_planes,
        address_bits,
        order_bits,
        sets,
        long_term,
        has_offset_filter,
        has_temporal_vectors,
        format,
    };
    Some((number, sequence))
}

/// Skips `profile_tier_level` (7.3.3) of a sequence with this number of further temporal layers;
/// returns the profile. `None` for profiles of screen content, whose headers have more.
fn skip_profile(bits: &mut Bits<'_>, layers: u32) -> Option<u32> {
    bits.skip(3)?;
    let general = bits.take(5)?;
    if matches!(general, 9 | 11) {
        return None;
    }
    bits.skip(80 + 8)?;
    let stated: Vec<[bool; 2]> =
        (0..layers).map(|_| Some([bits.flag()?, bits.flag()?])).collect::<Option<_>>()?;
    if layers > 0 {
        bits.skip(2 * (8 - usize::try_from(layers).ok()?))?;
    }
    for [profile, level] in stated {
        bits.skip(88 * usize::from(profile) + 8 * usize::from(level))?;
    }
    Some(general)
}

/// `scaling_list_data` (7.3.4).
fn skip_scaling_lists(bits: &mut Bits<'_>) -> Option<()> {
    for size in 0..4 {
        for _ in 0..if size == 3 { 2 } else { 6 } {
            if bits.flag()? {
                let coefficients = 64.min(1 << (4 + 2 * size));
                bits.skip_ue(coefficients + u32::from(size > 1))?;
            } else {
                bits.ue()?;
            }
        }
    }
    Some(())
}

/// `st_ref_pic_set` (7.3.7 and 7.4.8) of this number, of `count` in the sequence parameter set; one
/// of a slice has `count` as its number.
fn reference_set(
    bits: &mut Bits<'_>,
    sets: &[ReferenceSet],
    number: usize,
    count: usize,
) -> Option<ReferenceSet> {
    if number > 0 && bits.flag()? {
        let back =
            if number == count { usize::try_from(bits.ue()?).ok()?.checked_add(1)? } else { 1 };
        return derived_set(bits, sets.get(number.checked_sub(back)?)?);
    }
    let counts = [bits.ue()?, bits.ue()?];
    if counts.iter().any(|count| *count > MOST_REFERENCES) {
        return None;
    }
    let mut list = |count: u32, sign: i32| -> Option<Vec<(i32, bool)>> {
        let mut at = 0_i32;
        (0..count)
            .map(|_| {
                let step = i32::try_from(bits.ue()?).ok()?.checked_add(1)?;
                at = at.checked_add(sign * step)?;
                Some((at, bits.flag()?))
            })
            .collect()
    };
    Some(ReferenceSet { earlier: list(counts[0], -1)?, later: list(counts[1], 1)? })
}

/// A set that is predicted from another one (7-61 and 7-62).
fn derived_set(bits: &mut Bits<'_>, from: &ReferenceSet) -> Option<ReferenceSet> {
    let is_negative = bits.flag()?;
    let distance = i32::try_from(bits.ue()?).ok()?.checked_add(1)?;
    let delta = if is_negative { -distance } else { distance };
    let moved = |(at, _): &(i32, bool)| at.checked_add(delta);
    let earlier: Vec<i32> = from.earlier.iter().map(moved).collect::<Option<_>>()?;
    let later: Vec<i32> = from.later.iter().map(moved).collect::<Option<_>>()?;
    // Of each picture of the other set, then of that set's own picture: where it is now, whether it
    // is used, and whether it is kept.
    let mut all = Vec::new();
    for at in earlier.iter().chain(&later).copied().chain([delta]) {
        let used = bits.flag()?;
        let kept = used || bits.flag()?;
        all.push((at, used, kept));
    }
    let (own, known) = all.split_last()?;
    let (before, after) = known.split_at(earlier.len());
    let chosen = |list: &mut dyn Iterator<Item = &(i32, bool, bool)>, sign: i32| {
        let here = list.filter(|(at, _, kept)| *kept && at.signum() == sign);
        here.map(|(at, used, _)| (*at, *used)).collect()
    };
    let own = std::slice::from_ref(own);
    Some(ReferenceSet {
        earlier: chosen(&mut after.iter().rev().chain(own).chain(before), -1),
        later: chosen(&mut before.iter().rev().chain(own).chain(after), 1),
    })
}

/// A picture parameter set (7.3.2.3) with its number.
fn picture(nal: &[u8]) -> Option<(u32, HevcPicture)> {
    let mut bits = Bits::new(nal);
    bits.skip(16)?;
    let number = bits.ue().filter(|number| *number <= 63)?;
    let sequence = bits.ue()?;
    let (has_dependent, has_output_flag) = (bits.flag()?, bits.flag()?);
    let extra_bits = usize::try_from(bits.take(3)?).ok()?;
    bits.skip(1)?;
    let has_cabac_init = bits.flag()?;
    let references = [bits.ue()?.checked_add(1)?, bits.ue()?.checked_add(1)?];
    bits.ue()?;
    bits.skip(1)?;
    let skips_transform = bits.flag()?;
    if bits.flag()? {
        bits.ue()?;
    }
    bits.skip_ue(2)?;
    let has_chroma_offsets = bits.flag()?;
    let weighted = [bits.flag()?, bits.flag()?];
    bits.skip(1)?;
    let (has_tiles, has_rows) = (bits.flag()?, bits.flag()?);
    if has_tiles {
        let [columns, rows] = [bits.ue()?, bits.ue()?];
        if !bits.flag()? {
            bits.skip_ue(columns.checked_add(rows)?)?;
        }
        bits.skip(1)?;
    }
    let filters_across = bits.flag()?;
    let (mut may_override_deblocking, mut no_deblocking) = (false, false);
    if bits.flag()? {
        may_override_deblocking = bits.flag()?;
        no_deblocking = bits.flag()?;
        bits.skip_ue(if no_deblocking { 0 } else { 2 })?;
    }
    if bits.flag()? {
        skip_scaling_lists(&mut bits)?;
    }
    let changes_lists = bits.flag()?;
    bits.ue()?;
    let has_extension = bits.flag()?;
    let has_offset_lists = has_offset_lists(&mut bits, skips_transform)?;
    let picture = HevcPicture {
        sequence,
        has_dependent,
        has_output_flag,
        extra_bits,
        has_cabac_init,
        references,
        has_chroma_offsets,
        weighted,
        has_entry_points: has_tiles || has_rows,
        filters_across,
        may_override_deblocking,
        no_deblocking,
        changes_lists,
        has_extension,
        has_offset_lists,
    };
    Some((number, picture))
}

/// Whether the extension of a picture parameter set lets slices choose among chroma offsets. `None`
/// where it has extensions for layers, depth or screen content.
fn has_offset_lists(bits: &mut Bits<'_>, skips_transform: bool) -> Option<bool> {
    if !bits.flag()? {
        return Some(false);
    }
    let has_range = bits.flag()?;
    if bits.take(3)? != 0 {
        return None;
    }
    bits.skip(4)?;
    if !has_range {
        return Some(false);
    }
    if skips_transform {
        bits.ue()?;
    }
    bits.skip(1)?;
    bits.flag()
}

/// The bits of a number below `count`.
fn bits_for(count: u32) -> usize {
    usize::try_from(u32::BITS - count.saturating_sub(1).leading_zeros()).expect("at most 32")
}

/// The values of `slice_type` (7.4.7.1) that matter here.
const B: u32 = 0;
const I: u32 = 2;
/// The most reference pictures of a list: 16 in any level, and some to spare.
const MOST_REFERENCES: u32 = 32;
