//! Parameter sets in a track that its sample entry lacks: some streams tell their decoder anew, in
//! the middle, how to go on.
//!
//! Sets of further numbers are all put into the sample entry. Where a number has another content
//! later on, the sets must be taken from among the pictures, and the sample entry says so by its
//! name: `avc3`, `hev1` (ISO/IEC 14496-15, 5.4.2 and 8.4.1).

use crate::TrackDescription;
use crate::codec::SampleEntry;
use std::collections::{BTreeMap, BTreeSet};

/// The type of the NAL unit of a parameter set, and its number among those of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SetName {
    pub(super) kind: u8,
    pub(super) number: u32,
}

/// What is known of the parameter sets of a track.
#[derive(Debug, Default)]
pub(crate) struct ParameterSets {
    /// The first content of each set.
    first: BTreeMap<SetName, Vec<u8>>,
    /// The sets that are in the track and not in its sample entry, each with the type of its NAL
    /// unit.
    further: Vec<(u8, Vec<u8>)>,
    has_changed: bool,
    /// The sets whose latest content is not the first one.
    other: BTreeSet<SetName>,
    /// The sets of `other` that the present LDU has.
    in_ldu: BTreeSet<SetName>,
    unrepeated: usize,
    /// What there was at the end of the last LDU.
    ended: SetsSoFar,
}

/// The sets that are in a track up to the end of one of its LDUs, and not in its sample entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SetsSoFar {
    /// Number of those of further numbers.
    further: usize,
    has_changed: bool,
}

impl ParameterSets {
    /// Takes a set of the sample entry.
    pub(super) fn put_in_front(&mut self, name: SetName, set: &[u8]) {
        self.first.entry(name).or_insert_with(|| content(set).to_owned());
    }

    /// Takes the beginning of a set in the track. `is_whole`: it is all of it.
    pub(super) fn take(&mut self, name: SetName, set: &[u8], is_whole: bool) {
        let set = if is_whole { content(set) } else { set };
        match self.first.get(&name) {
            Some(first) if first.starts_with(set) && (first.len() == set.len() || !is_whole) => {
                self.other.remove(&name);
            }
            Some(_) => {
                self.has_changed = true;
                self.other.insert(name);
                self.in_ldu.insert(name);
            }
            None => {
                self.first.insert(name, set.to_owned());
                // What is not known whole cannot be in front of the track.
                self.has_changed |= !is_whole;
                if is_whole {
                    self.further.push((name.kind, set.to_owned()));
                }
            }
        }
    }

    /// Is told that an LDU has ended, which says of itself that decoding may begin with it or not.
    pub(super) fn end_ldu(&mut self, is_key: bool) {
        self.unrepeated += usize::from(is_key && !self.other.is_subset(&self.in_ldu));
        self.in_ldu.clear();
        self.ended = self.so_far();
    }

    /// The sets up to now.
    pub(crate) fn so_far(&self) -> SetsSoFar {
        SetsSoFar { further: self.further.len(), has_changed: self.has_changed }
    }

    /// The sets up to the end of the last LDU that was seen whole.
    pub(super) fn ended(&self) -> SetsSoFar {
        self.ended
    }

    /// The number of key frames that cannot be decoded with the sets of the sample entry and their
    /// own: the content of a set is another one since an LDU before.
    pub(crate) fn unrepeated(&self) -> usize {
        self.unrepeated
    }

    /// Makes the sample entry of the track that of these sets.
    pub(crate) fn describe(&self, sets: SetsSoFar, track: &mut TrackDescription) {
        let SetsSoFar { further, has_changed } = sets;
        if further == 0 && !has_changed {
            return;
        }
        let entry = SampleEntry(&track.sample_entry);
        let with_all = entry.with_sets(&self.further[..further], has_changed);
        // Too many for the sample entry: those that it lacks are among the pictures.
        let described = with_all.or_else(|| entry.with_sets(&[], true));
        if let Some(described) = described {
            track.codec = SampleEntry(&described).codec();
            track.sample_entry = described;
        }
    }
}

/// A set without the zero bytes that may follow a NAL unit in a stream.
fn content(set: &[u8]) -> &[u8] {
    &set[..set.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPS: SetName = SetName { kind: 7, number: 0 };
    const PPS: SetName = SetName { kind: 8, number: 0 };
    const SECOND: SetName = SetName { kind: 8, number: 1 };

    /// Key frames with these sets, behind a sample entry with an SPS `s` and a PPS `p`.
    fn of_key_frames(frames: &[&[(SetName, &[u8])]]) -> (bool, usize, usize) {
        let mut sets = ParameterSets::default();
        sets.put_in_front(SPS, b"s");
        sets.put_in_front(PPS, b"p");
        for frame in frames {
            frame.iter().for_each(|(name, set)| sets.take(*name, set, true));
            sets.end_ldu(true);
        }
        (sets.has_changed, sets.further.len(), sets.unrepeated)
    }

    #[test]
    fn further_sets_and_changed_ones_are_told_apart() {
        assert_eq!(of_key_frames(&[&[], &[(SPS, b"s"), (PPS, b"p\0\0")]]), (false, 0, 0));
        assert_eq!(of_key_frames(&[&[(SECOND, b"q")], &[], &[(SECOND, b"q")]]), (false, 1, 0));
        assert_eq!(of_key_frames(&[&[(PPS, b"q")], &[(PPS, b"q")]]), (true, 0, 0));
        assert_eq!(of_key_frames(&[&[(PPS, b"q")], &[], &[(PPS, b"q")]]), (true, 0, 1));
        assert_eq!(of_key_frames(&[&[(PPS, b"q")], &[(PPS, b"p")], &[]]), (true, 0, 0));
        assert_eq!(of_key_frames(&[&[(SECOND, b"q")], &[(SECOND, b"r")], &[]]), (true, 1, 1));
    }

    #[test]
    fn of_a_long_set_the_beginning_is_compared() {
        let mut sets = ParameterSets::default();
        sets.put_in_front(SPS, b"sequence");
        sets.take(SPS, b"seq", false);
        assert!(!sets.has_changed);
        sets.take(SPS, b"seq", true);
        assert!(sets.has_changed, "a whole one that is shorter");
        let mut sets = ParameterSets::default();
        sets.take(PPS, b"long", false);
        assert!(sets.has_changed && sets.further.is_empty(), "it stays where it is");
    }
}
