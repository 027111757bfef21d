//! The quantities that all other crates share (bytes, bit rates, media time, moments, slots,
//! chunks), one binary codec, and number conversions.
//!
//! One type per meaning, so that an index, a count and a size cannot be mixed up. Nothing here
//! knows of disks, tracks or clocks; a [`Moment`] is only a number that some clock once produced.

mod bytes;
mod number;
mod quantity;
pub mod show;
mod text;
mod time;

pub use bytes::{Decoder, Encoder, Malformed};
pub use number::{float, nanos, rounded};
pub use quantity::{BitRate, ByteCount, ChunkIndex, Extent, align_down, align_up};
pub use show::split_hint;
pub use text::{ParseQuantityError, parse_duration, show_duration};
pub use time::{MediaTime, Moment, SlotIndex, Timescale};
