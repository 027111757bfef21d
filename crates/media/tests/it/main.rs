//! The media crate from outside: real files in through FFmpeg, packaged bytes out and through
//! FFmpeg again; hostile bytes; other parsers.

#![expect(
    clippy::disallowed_methods,
    reason = "the room is pure, its tests run FFmpeg's programs on real files"
)]

mod encryption;
mod excerpts;
mod footage;
mod formats;
mod hostile;
mod iframes;
mod index_region;
mod manifest;
mod packaging;
mod parts;
mod playback;
mod text;
mod thumbnails;
mod transport;
