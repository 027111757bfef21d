//! The media room from outside: real files through FFmpeg in, packaged bytes out and through
//! FFmpeg again; hostile bytes; other people's parsers.

#![expect(
    clippy::disallowed_methods,
    reason = "the room is pure, its tests run FFmpeg's programs on real files"
)]

mod excerpts;
mod footage;
mod hostile;
mod index_region;
mod packaging;
mod playback;
