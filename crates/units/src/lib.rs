//! The quantities all other rooms speak in: bytes, bit rates, media time, moments, slots, chunks.
//!
//! One type per meaning, so that an index, a count and a size cannot be mixed up. Nothing here
//! knows of disks, tracks or clocks; a [`Moment`] is only a number that some clock once produced.

mod quantity;
mod text;
mod time;

pub use quantity::{BitRate, ByteCount, ChunkIndex, Extent, align_down, align_up};
pub use text::{ParseQuantityError, parse_duration, show_duration};
pub use time::{MediaTime, Moment, SlotIndex, Timescale};
