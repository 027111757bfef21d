//! Common encryption of segments (ISO/IEC 23001-7): schemes `cenc` and `cbcs`. Segments of
//! transport streams are encrypted as a whole ([`chained`]).
//!
//! ```text
//!   init      stsd ─ encv or enca ─ the entry's own boxes
//!                                 ─ sinf ─ frma, schm, schi ─ tenc: key, initialization vector
//!             moov ─ pssh           one for each system
//!   segment   moof ─ traf ─ ..., saiz, saio, senc: vectors and subsamples of each LDU
//!             mdat ─ stored bytes, encrypted by a `CipherWriter` on their way to the socket
//! ```
//!
//! | | `cenc` | `cbcs` |
//! |---|---|---|
//! | cipher | AES-128 in counter mode | AES-128 in CBC mode |
//! | video | the protected bytes, in whole blocks | the first of each ten blocks |
//! | sound | all bytes | all whole blocks |
//! | vector | 8 bytes for each LDU | 16 bytes for each track |
//!
//! Vectors follow from the key's number, the title's content and the place in it, so that equal
//! requests give equal bytes, and two titles with one key never use one vector twice: 64 bits of a
//! hash are where a track of `cenc` begins to count. An I-frame that is sent alone has the vector
//! that it has in its segment.
//!
//! Which bytes of video are protected is in the index ([`crate::subsamples`]). Sizes of segments
//! are known beforehand; nothing is encrypted in place, because several viewers may be sent from
//! one buffer.

mod block;
mod boxes;
mod chained;
mod manifests;
mod writer;

pub use block::CipherBlock;
pub use chained::{ChainWriter, ChainedSegment};
pub use writer::CipherWriter;

pub(super) use boxes::{AuxiliaryInfo, protected_entry, write_systems};
pub(super) use manifests::{
    key_address, write_dash_protection, write_hls_keys, write_hls_session_keys,
};

use crate::codec::SampleEntry;
use crate::subsamples::Subsample;
use crate::{LduIndex, TrackIndex, TrackKind};
use aes::Aes128;
use aes::cipher::KeyInit;
use sha2::{Digest, Sha256};
use std::fmt;

/// A protection scheme of ISO/IEC 23001-7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EncryptionScheme {
    /// Counter mode, all of the protected bytes.
    Cenc,
    /// CBC mode, of video one block in ten.
    Cbcs,
}

impl EncryptionScheme {
    /// The four characters of the scheme.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cenc => "cenc",
            Self::Cbcs => "cbcs",
        }
    }
}

/// A key and its public number. The key is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ContentKey {
    /// The key's number (KID).
    pub id: [u8; 16],
    /// The key itself.
    pub key: [u8; 16],
    /// How players get it.
    pub access: KeyAccess,
}

/// How players get a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyAccess {
    /// From this server, for their session.
    Server,
    /// From this address.
    Address(String),
    /// From DRM systems alone.
    Systems,
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}", uuid(&self.id))
    }
}

/// A system from which players may get keys, as its provider describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrmSystem {
    /// The system's number.
    pub id: [u8; 16],
    /// The number of the key that this is about; `None`: of all keys of the title.
    pub key_id: Option<[u8; 16]>,
    /// The whole `pssh` box; empty for a system that has none.
    pub pssh: Vec<u8>,
    /// What the provider states for HLS; `None`: the `pssh` box says it.
    pub hls: Option<HlsSignaling>,
}

/// Attributes of a key's tags in HLS playlists, as the provider of a system states them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HlsSignaling {
    /// Behind `#EXT-X-KEY:`.
    pub media: String,
    /// Behind `#EXT-X-SESSION-KEY:`.
    pub multivariant: String,
}

/// How a title is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// The scheme of segments.
    pub scheme: EncryptionScheme,
    /// The key of video.
    pub video: ContentKey,
    /// The key of sound.
    pub audio: ContentKey,
    /// The systems beside the common one of the W3C, which is always named.
    pub systems: Vec<DrmSystem>,
    /// What distinguishes the title's content from all others.
    pub content: String,
}

impl Encryption {
    /// The key of tracks of this kind.
    pub fn key(&self, kind: TrackKind) -> &ContentKey {
        match kind {
            TrackKind::Audio => &self.audio,
            _ => &self.video,
        }
    }

    /// What systems state of this key.
    fn systems_of(&self, key: &ContentKey) -> impl Iterator<Item = &DrmSystem> {
        self.systems.iter().filter(|system| system.key_id.is_none_or(|id| id == key.id))
    }

    /// Whether players without a DRM system get the keys.
    pub fn has_clear_keys(&self) -> bool {
        self.keys().all(|key| key.access != KeyAccess::Systems)
    }

    /// The keys, each once.
    pub fn keys(&self) -> impl Iterator<Item = &ContentKey> {
        std::iter::once(&self.video).chain((self.audio != self.video).then_some(&self.audio))
    }
}

/// A number of 16 bytes as RFC 9562 writes it.
pub fn uuid(id: &[u8; 16]) -> String {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    parts.join("-")
}

/// How one track is encrypted.
pub(super) struct TrackCipher {
    pub(super) scheme: EncryptionScheme,
    pub(super) key_id: [u8; 16],
    /// Whether only a part of each LDU is encrypted.
    pub(super) is_divided: bool,
    cipher: Aes128,
    /// The vector of `cbcs`; with `cenc` its first half is where vectors begin to count.
    vector: [u8; 16],
}

impl fmt::Debug for TrackCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with key {}", self.scheme.name(), uuid(&self.key_id))
    }
}

impl TrackCipher {
    /// The cipher of track `number`; `None` where its codec is not one that is divided here.
    pub(super) fn of(encryption: &Encryption, track: &TrackIndex, number: u16) -> Option<Self> {
        let kind = track.description.kind;
        let is_divided = kind == TrackKind::Video;
        if is_divided && track.ldus.subsamples().is_none() {
            return None;
        }
        let key = encryption.key(kind);
        let mut hash = Sha256::new();
        hash.update(b"tenuto initialization vector");
        hash.update(key.id);
        hash.update(number.to_be_bytes());
        hash.update(encryption.content.as_bytes());
        let hash = hash.finalize();
        Some(Self {
            scheme: encryption.scheme,
            key_id: key.id,
            is_divided,
            cipher: Aes128::new(&key.key.into()),
            vector: *hash.first_chunk().expect("32 bytes"),
        })
    }

    /// The vector that is stated for an LDU of `cenc`.
    pub(super) fn counter_vector(&self, ldu: usize) -> [u8; 8] {
        let first = u64::from_be_bytes(*self.vector.first_chunk().expect("16 bytes"));
        first.wrapping_add(ldu as u64).to_be_bytes()
    }

    /// The subsamples of an LDU as the scheme states them: in `cenc` whole blocks are protected,
    /// and bytes in the clear fit into 16 bits.
    fn stated(&self, found: &[Subsample], out: &mut Vec<Subsample>) {
        out.clear();
        let mut clear = 0;
        for subsample in found {
            clear += subsample.clear;
            let blocks = subsample.protected / BLOCK * BLOCK;
            let protected = match self.scheme {
                EncryptionScheme::Cenc => blocks,
                // The bytes behind the last whole block are not encrypted.
                EncryptionScheme::Cbcs if blocks == 0 => 0,
                EncryptionScheme::Cbcs => subsample.protected,
            };
            if protected == 0 || out.len() > MOST_SUBSAMPLES {
                clear += subsample.protected;
                continue;
            }
            // The clear bytes of a slice come first, so that whole blocks end where it ends.
            push_clear(out, clear + subsample.protected - protected);
            out.last_mut().expect("clear bytes were added").protected = protected;
            clear = 0;
        }
        if clear > 0 {
            push_clear(out, clear);
        }
    }

    /// Calls `each` with the subsamples of each of these LDUs, as the scheme states them; with none
    /// where LDUs are not divided.
    pub(super) fn for_each(
        &self,
        index: &LduIndex,
        ldus: std::ops::Range<usize>,
        mut each: impl FnMut(&[Subsample]),
    ) {
        let mut stated = Vec::new();
        match index.subsamples().filter(|_| self.is_divided) {
            None => ldus.for_each(|_| each(&[])),
            Some(map) => map.for_each(ldus, |found| {
                self.stated(found, &mut stated);
                each(&stated);
            }),
        }
    }
}

/// Whether segments of the track can be encrypted.
pub(super) fn is_possible(track: &TrackIndex) -> bool {
    track.description.kind != TrackKind::Video || track.ldus.subsamples().is_some()
}

/// The codec of a track, for people.
pub(super) fn codec_name(track: &TrackIndex) -> String {
    SampleEntry(&track.description.sample_entry).codec()
}

fn push_clear(out: &mut Vec<Subsample>, mut clear: u32) {
    while clear > MOST_CLEAR {
        out.push(Subsample { clear: MOST_CLEAR, protected: 0 });
        clear -= MOST_CLEAR;
    }
    out.push(Subsample { clear, protected: 0 });
}

/// Bytes of a block of AES.
const BLOCK: u32 = 16;
/// The most bytes in the clear that a subsample states.
const MOST_CLEAR: u32 = 0xffff;
/// The most subsamples of an LDU, whose number has 16 bits; what is behind them stays in the clear.
const MOST_SUBSAMPLES: usize = 1 << 15;
/// In `cbcs` the blocks of video of which the first is encrypted.
const PATTERN: u32 = 10;

#[cfg(test)]
mod tests;
