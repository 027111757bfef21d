//! The boxes of ISO/IEC 23001-7: what the initialization segment states of keys and systems, and
//! each fragment of its LDUs.
//!
//! ```text
//! tenc  version u8 = 1 with a pattern, flags u24, reserved u8, pattern u8, protected u8 = 1,
//!       vector bytes u8, key 16, of a constant vector: its bytes u8, vector
//! pssh  version u8 = 1, flags u24, system 16, keys u32, each 16, data bytes u32 = 0
//! saiz  version and flags u32, size u8 (0: they differ), LDUs u32, the size of each u8
//! saio  version and flags u32, entries u32 = 1, offset u32 from the start of the moof
//! senc  version u8, flags u24 (2: with subsamples), LDUs u32, of each:
//!       vector 0 or 8, subsamples u16, of each: clear u16, protected u32
//! ```

use super::{ContentKey, Encryption, EncryptionScheme, PATTERN, TrackCipher};
use crate::boxes::write_box;
use crate::{LduIndex, TrackDescription, TrackKind};
use std::ops::Range;

/// The sample entry of an encrypted track.
pub(in crate::packaging) fn protected_entry(
    track: &TrackDescription,
    cipher: &TrackCipher,
) -> Vec<u8> {
    let clear = &track.sample_entry;
    let mut entry = clear.clone();
    let kind = if track.kind == TrackKind::Audio { b"enca" } else { b"encv" };
    entry[4..8].copy_from_slice(kind);
    write_box(&mut entry, b"sinf", |out| {
        write_box(out, b"frma", |out| out.extend_from_slice(&clear[4..8]));
        write_box(out, b"schm", |out| {
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(cipher.scheme.name().as_bytes());
            // Version 1.0.
            out.extend_from_slice(&[0, 1, 0, 0]);
        });
        write_box(out, b"schi", |out| write_box(out, b"tenc", |out| write_tenc(out, cipher)));
    });
    let size = u32::try_from(entry.len()).expect("a sample entry in memory");
    entry[..4].copy_from_slice(&size.to_be_bytes());
    entry
}

fn write_tenc(out: &mut Vec<u8>, cipher: &TrackCipher) {
    let constant = cipher.scheme == EncryptionScheme::Cbcs;
    let pattern = if constant && cipher.is_divided { 0x10 | (PATTERN - 1) } else { 0 };
    let pattern = u8::try_from(pattern).expect("two halves of a byte");
    out.extend_from_slice(&[u8::from(pattern > 0), 0, 0, 0, 0, pattern, 1]);
    out.push(if constant { 0 } else { 8 });
    out.extend_from_slice(&cipher.key_id);
    if constant {
        out.push(16);
        out.extend_from_slice(&cipher.vector);
    }
}

/// Writes a `pssh` for each system: that of the W3C with all keys, then those of the provider.
pub(in crate::packaging) fn write_systems(out: &mut Vec<u8>, encryption: &Encryption) {
    out.extend_from_slice(&common_system(encryption.keys()));
    encryption.systems.iter().for_each(|system| out.extend_from_slice(&system.pssh));
}

/// The `pssh` of the W3C's common system, which lists keys.
pub(in crate::packaging) fn common_system<'a>(
    keys: impl Iterator<Item = &'a ContentKey>,
) -> Vec<u8> {
    let keys: Vec<&ContentKey> = keys.collect();
    let mut out = Vec::new();
    write_box(&mut out, b"pssh", |out| {
        out.extend_from_slice(&[1, 0, 0, 0]);
        out.extend_from_slice(&COMMON_SYSTEM);
        out.extend_from_slice(&u32::try_from(keys.len()).expect("two").to_be_bytes());
        keys.iter().for_each(|key| out.extend_from_slice(&key.id));
        out.extend_from_slice(&[0; 4]);
    });
    out
}

/// What a fragment states of the encryption of its LDUs.
pub(in crate::packaging) struct AuxiliaryInfo {
    /// The bytes of all LDUs, and of each how many.
    info: Vec<u8>,
    sizes: Vec<usize>,
    has_subsamples: bool,
}

impl AuxiliaryInfo {
    /// What is stated of these LDUs; `None` where the initialization segment says all.
    pub(in crate::packaging) fn of(
        cipher: &TrackCipher,
        index: &LduIndex,
        ldus: Range<usize>,
    ) -> Option<Self> {
        let has_vectors = cipher.scheme == EncryptionScheme::Cenc;
        if !has_vectors && !cipher.is_divided {
            return None;
        }
        let mut all =
            Self { info: Vec::new(), sizes: Vec::new(), has_subsamples: cipher.is_divided };
        let mut ldu = ldus.start;
        cipher.for_each(index, ldus, |subsamples| {
            let before = all.info.len();
            if has_vectors {
                all.info.extend_from_slice(&cipher.counter_vector(ldu));
            }
            if cipher.is_divided {
                let count = u16::try_from(subsamples.len()).unwrap_or(u16::MAX);
                all.info.extend_from_slice(&count.to_be_bytes());
            }
            for subsample in subsamples {
                let clear = u16::try_from(subsample.clear).expect("divided to fit");
                all.info.extend_from_slice(&clear.to_be_bytes());
                all.info.extend_from_slice(&subsample.protected.to_be_bytes());
            }
            all.sizes.push(all.info.len() - before);
            ldu += 1;
        });
        Some(all)
    }

    /// The payload of `saiz` behind its version and flags; `None` where it cannot state a size, of
    /// pictures with more than 40 slices. Readers find all in `senc` then.
    fn listed_sizes(&self) -> Option<Vec<u8>> {
        let sizes: Vec<u8> =
            self.sizes.iter().map(|it| u8::try_from(*it)).collect::<Result<_, _>>().ok()?;
        let first = *sizes.first()?;
        let is_common = sizes.iter().all(|size| *size == first);
        let mut out = vec![if is_common { first } else { 0 }];
        out.extend_from_slice(&u32::try_from(sizes.len()).ok()?.to_be_bytes());
        if !is_common {
            out.extend_from_slice(&sizes);
        }
        Some(out)
    }

    /// The bytes of the boxes.
    pub(in crate::packaging) fn len(&self) -> u64 {
        let listed = self.listed_sizes().map_or(0, |sizes| FULL_BOX + sizes.len() + SAIO_BYTES);
        (listed + SENC_BYTES + self.info.len()) as u64
    }

    /// Writes the boxes as the last ones of a `traf` of which they begin at `at` in the `moof`.
    pub(in crate::packaging) fn write(&self, out: &mut Vec<u8>, at: u64) {
        let count = u32::try_from(self.sizes.len()).expect("an index has fewer LDUs");
        if let Some(sizes) = self.listed_sizes() {
            write_box(out, b"saiz", |out| {
                out.extend_from_slice(&[0; 4]);
                out.extend_from_slice(&sizes);
            });
            let offset = at + self.len() - self.info.len() as u64;
            write_box(out, b"saio", |out| {
                out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1]);
                let offset = u32::try_from(offset).expect("a moof stays below 4 GiB");
                out.extend_from_slice(&offset.to_be_bytes());
            });
        }
        write_box(out, b"senc", |out| {
            out.extend_from_slice(&[0, 0, 0, if self.has_subsamples { 2 } else { 0 }]);
            out.extend_from_slice(&count.to_be_bytes());
            out.extend_from_slice(&self.info);
        });
    }
}

/// The number of the W3C's common system (`cenc` initialization data format).
pub(in crate::packaging) const COMMON_SYSTEM: [u8; 16] = [
    0x10, 0x77, 0xef, 0xec, 0xc0, 0xb2, 0x4d, 0x02, 0xac, 0xe3, 0x3c, 0x1e, 0x52, 0xe2, 0xfb, 0x4b,
];
/// Bytes of a box's size, kind, version and flags.
const FULL_BOX: usize = 12;
const SAIO_BYTES: usize = 20;
/// Bytes of a `senc` without what it states of LDUs.
const SENC_BYTES: usize = 16;
