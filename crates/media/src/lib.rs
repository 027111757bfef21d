//! What a title's bytes mean: the index of its logical data units (LDUs), reading what FFmpeg
//! remuxes, and packaging for players (HLS with fragmented MP4, progressive MP4).
//!
//! Pure: bytes and numbers in, bytes and numbers out. It never decodes a picture, never sees a
//! device or a socket, and never holds a title's payload: a response is a [`Body`], a list of
//! slices that either were generated here or lie in the store.

#![warn(missing_docs)]

mod boxes;
mod codec;
mod fragmented;
mod index_region;
mod language;
mod ldu_coding;
mod packaging;
mod title;

pub use fragmented::{BadStream, FragmentError, FragmentReader, FragmentSink};
pub use index_region::{IndexError, Section, checksum};
pub use packaging::{
    Body, Excerpt, ExcerptError, Packaging, PackagingError, PackagingOptions, Slice,
};
pub use title::{
    CHECKSUM_SPAN, Edit, Ldu, LduIndex, TitleIndex, TitleKind, TrackDescription, TrackIndex,
    TrackKind,
};
