//! The meaning of a title's bytes: the index of its logical data units (LDUs), parsing of FFmpeg's
//! remux, and packaging for players (HLS with fragmented MP4 and MPEG transport streams,
//! progressive MP4, RTP packets).
//!
//! The crate is pure: bytes and numbers in, bytes and numbers out. It never decodes a picture,
//! never uses a device or a socket, and never holds a title's payload: a response is a [`Body`], a
//! list of slices that were generated here, are in the store, or are made of stored bytes by a
//! [`PacketWriter`] on their way to the socket.

#![warn(missing_docs)]

mod boxes;
mod clean_aperture;
mod codec;
mod dolby_vision;
mod fragmented;
mod index_part;
mod index_region;
mod language;
mod language_names;
mod ldu_coding;
mod packaging;
pub mod rtp;
mod shared_list;
mod subsamples;
mod text;
mod thumbnails;
mod title;

pub use dolby_vision::DolbyVision;
pub use fragmented::{BadStream, FragmentError, FragmentReader, FragmentSink, LatmTracks};
pub use index_part::IndexPart;
pub use index_region::{IndexError, Section, checksum};
pub use language::language_code;
pub use packaging::{
    Body, ChainWriter, ChainedSegment, CipherBlock, CipherWriter, ConstantRate, ContentKey,
    ContentSteering, CueClock, DrmSystem, Encryption, EncryptionScheme, Excerpt, ExcerptError,
    FilledPart, FilledWriter, GrowingFile, Growth, HlsSignaling, KeyAccess, LATE_TRACK, Links,
    NoSegmentIndex, NoTransportForm, Packaging, PackagingError, PackagingOptions, PacketBlock,
    PacketWriter, PushedLdu, SettledSegments, Slice, TextForm, TransportCounters, TransportPush,
    TransportUnit, uuid,
};
pub use shared_list::SharedList;
pub use text::{Cue, TextDescription, TextError, TextTrack};
pub use thumbnails::Thumbnails;
pub use title::{
    CHECKSUM_SPAN, Checksums, Edit, Ldu, LduIndex, SoundPurposes, TitleIndex, TitleKind,
    TrackDescription, TrackIndex, TrackKind,
};
