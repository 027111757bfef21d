//! Sizes, rates and positions.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A number of bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ByteCount(pub u64);

impl ByteCount {
    pub const ZERO: Self = Self(0);
    pub const MIB: Self = Self(1 << 20);

    /// `n` kibibytes.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    /// `n` mebibytes.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The time of this many bytes at `rate`; `Duration::MAX` at a rate of zero.
    pub fn time_at(self, rate: BitRate) -> Duration {
        if rate.0 == 0 {
            return Duration::MAX;
        }
        // In 128 bits, because 64 overflow at 2.3 GB.
        let nanos = u128::from(self.0) * 8 * 1_000_000_000 / u128::from(rate.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Add for ByteCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for ByteCount {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Sum for ByteCount {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, Add::add)
    }
}

/// Formatted in binary units with at most one decimal, `1.5 GiB`; a whole number of a decimal unit
/// that is no whole number of a binary one, in that unit: `1 MB`.
impl fmt::Display for ByteCount {
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        const DECIMAL: [(u64, &str); 4] =
            [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        // Users and papers give blocks of 1 MB, which nobody recognizes as 976.6 KiB.
        if let Some((size, name)) = DECIMAL.into_iter().find(|(size, _)| self.0 >= *size)
            && self.0.is_multiple_of(size)
            && !self.0.is_multiple_of(1 << (self.0.ilog2() / 10 * 10))
        {
            return write!(f, "{} {name}", self.0 / size);
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        // From here on one decimal would be shown as 1024.0 of the smaller unit.
        while value >= 1023.95 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        let text = format!("{value:.1}");
        write!(f, "{} {}", text.strip_suffix(".0").unwrap_or(&text), UNITS[unit])
    }
}

/// Bits per second.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct BitRate(pub u64);

impl BitRate {
    /// The rate that transfers `bytes` in `time`; zero for no time.
    pub fn of(bytes: ByteCount, time: Duration) -> Self {
        if time.is_zero() {
            return Self(0);
        }
        // In 128 bits, because 64 overflow at 2.3 GB.
        let bits = u128::from(bytes.0) * 8 * 1_000_000_000 / time.as_nanos();
        Self(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// The whole bytes transferred in `time`.
    pub fn bytes_in(self, time: Duration) -> ByteCount {
        let bytes = u128::from(self.0) * time.as_nanos() / 8 / 1_000_000_000;
        ByteCount(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

/// Formatted in decimal units: `8.5 Mb/s`.
impl fmt::Display for BitRate {
    #[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1_000 => return write!(f, "{} b/s", self.0),
            1_000..1_000_000 => (bits / 1e3, "kb/s"),
            1_000_000..1_000_000_000 => (bits / 1e6, "Mb/s"),
            _ => (bits / 1e9, "Gb/s"),
        };
        let text = format!("{value:.2}");
        write!(f, "{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// The place of a chunk on a store's device, counted in chunks from the start of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkIndex(pub u64);

/// A run of contiguous chunks on one device. Never empty on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// The first chunk.
    pub start: ChunkIndex,
    /// The number of chunks.
    pub chunks: u64,
}

impl Extent {
    /// One past the last chunk.
    pub const fn end(self) -> ChunkIndex {
        ChunkIndex(self.start.0 + self.chunks)
    }
}

/// The largest multiple of `unit` that is not above `value`. `unit` is not zero.
pub const fn align_down(value: u64, unit: u64) -> u64 {
    value - value % unit
}

/// The smallest multiple of `unit` that is not below `value`. `unit` is not zero.
pub const fn align_up(value: u64, unit: u64) -> u64 {
    align_down(value + unit - 1, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_rates_have_their_usual_notation() {
        let shown: Vec<String> = [0, 1023, 1024, 1536, 1 << 20, 3 << 29, u64::MAX]
            .map(|n| ByteCount(n).to_string())
            .into();
        assert_eq!(shown, ["0 B", "1023 B", "1 KiB", "1.5 KiB", "1 MiB", "1.5 GiB", "16 EiB"]);
        let shown = [1_000_000, 64_000, 512_000, 1_000_001, 20_000_000_000_000]
            .map(|n| ByteCount(n).to_string());
        assert_eq!(shown, ["1 MB", "64 kB", "500 KiB", "976.6 KiB", "20 TB"]);
        let shown: Vec<String> =
            [999, 1_500, 8_500_000, 10_000_000_000].map(|n| BitRate(n).to_string()).into();
        assert_eq!(shown, ["999 b/s", "1.5 kb/s", "8.5 Mb/s", "10 Gb/s"]);
    }

    #[test]
    fn a_rate_and_a_time_give_back_the_bytes() {
        let rate = BitRate(8_000_000);
        assert_eq!(rate.bytes_in(Duration::from_millis(500)), ByteCount(500_000));
        assert_eq!(BitRate::of(ByteCount(500_000), Duration::from_millis(500)), rate);
        assert_eq!(ByteCount(1_000_000).time_at(rate), Duration::from_secs(1));
        assert_eq!(ByteCount(1).time_at(BitRate(0)), Duration::MAX);
    }

    #[test]
    fn alignment_goes_to_the_next_multiple() {
        assert_eq!((align_up(4097, 4096), align_down(4097, 4096)), (8192, 4096));
    }
}
