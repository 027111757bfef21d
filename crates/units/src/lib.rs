//! The quantities that all other crates share (bytes, bit rates, media time, moments, slots,
//! chunks), a histogram of times, one binary codec, and number conversions.
//!
//! There is one type per meaning, so that an index, a count and a size cannot be mixed up. Nothing
//! here depends on disks, tracks or clocks; a [`Moment`] is only a number that came from a clock.

mod bytes;
mod list;
mod lock;
mod name;
mod number;
mod quantity;
mod reason;
pub mod show;
mod sums;
mod text;
mod time;
mod times;

pub use bytes::{Decoder, Encoder, Malformed, from_hex, to_hex};
pub use list::grown;
pub use lock::locked;
pub use name::name_of;
pub use number::{float, index, millis, nanos, rounded};
pub use quantity::{BitRate, ByteCount, ChunkIndex, Extent, align_down, align_up};
pub use reason::{Hinted, Reason};
pub use text::{ParseQuantityError, parse_duration, show_duration};
pub use time::{MediaTime, Moment, SlotIndex, Timescale};
pub use times::Times;
