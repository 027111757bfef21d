//! A calibration record as bytes, little-endian. Whoever keeps it guards it with a checksum; a
//! record that does not hold together is refused here in any case.
//!
//! ```text
//!   0  magic "TNTOcali"       8  version u16 = 4      10  method length u16 (<= 1,024)
//!  12  guarantees u16 (<= 64) 14  zones u16 (<= 1,024) 16  queue depth u32
//!  20  slot ns u64            28  r0 b/s u64           36  t0 ns u64
//!  44  measured at u64        52  method, UTF-8
//!  then each guarantee: read size u64, min read u32, mean read f64, longest read ns u64   (28 bytes)
//!  then each zone:      offset u64, rate b/s u64                                          (16 bytes)
//!  then what writes cost: write size u64 (0: not measured), mean ns u64, slowest ns u64
//!  then the arm:          capacity u64 (0: none seen), revolution ns u64; settle, track, root in
//!                         ms, knee, full in ms, each f64; what a read that goes on costs
//!                         beside transfer, ns u64 + 1 (0: not measured)                   (64 bytes)
//! ```
//!
//! Version 3 is the same without what a read that goes on costs, version 2 without the arm.

use crate::{Arm, Calibration, ReadGuarantee, SeekTimes, WriteCost};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Bytes that are no calibration record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibrationError {
    /// They do not begin as one.
    #[error("no calibration record")]
    NotOne,
    /// Written by another Tenuto.
    #[error(
        "a calibration record of version {0}, and this program knows versions 2 to 4; calibrate again"
    )]
    Version(u16),
    /// They end too early, or go on too long.
    #[error("a calibration record of the wrong length; calibrate again")]
    Length,
    /// They say what cannot be.
    #[error("a calibration record with an impossible {0}; calibrate again")]
    Impossible(&'static str),
}

impl Calibration {
    /// The record's bytes. What is beyond the format's bounds (64 guarantees, 1,024 zones, 1,024
    /// bytes of method) is left out.
    pub fn encode(&self) -> Vec<u8> {
        let method = front(&self.method, MOST_METHOD);
        let guarantees = &self.guarantees[..self.guarantees.len().min(MOST_GUARANTEES)];
        let zones = &self.zones[..self.zones.len().min(MOST_ZONES)];
        let mut bytes = Vec::new();
        bytes.extend(MAGIC);
        for short in [usize::from(VERSION), method.len(), guarantees.len(), zones.len()] {
            bytes.extend(u16::try_from(short).expect("bounded above").to_le_bytes());
        }
        bytes.extend(self.queue_depth.to_le_bytes());
        for long in [nanos(self.slot), self.r0.0, nanos(self.t0), self.measured_at] {
            bytes.extend(long.to_le_bytes());
        }
        bytes.extend(method.as_bytes());
        for g in guarantees {
            bytes.extend(g.read_size.0.to_le_bytes());
            bytes.extend(g.min_read.to_le_bytes());
            bytes.extend(g.mean_read.to_bits().to_le_bytes());
            bytes.extend(nanos(g.longest_read).to_le_bytes());
        }
        for (offset, rate) in zones {
            bytes.extend(offset.0.to_le_bytes());
            bytes.extend(rate.0.to_le_bytes());
        }
        let writing = self
            .writing
            .map_or([0; 3], |cost| [cost.write_size.0, nanos(cost.mean), nanos(cost.slowest)]);
        bytes.extend(writing.map(u64::to_le_bytes).as_flattened());
        bytes.extend(arm_words(self.arm.as_ref()).map(u64::to_le_bytes).as_flattened());
        bytes
    }

    /// A record from its bytes, all of them.
    pub fn decode(bytes: &[u8]) -> Result<Self, CalibrationError> {
        let mut rest = bytes.strip_prefix(&MAGIC).ok_or(CalibrationError::NotOne)?;
        let [version, method, guarantees, zones] =
            [u16_of(&mut rest)?, u16_of(&mut rest)?, u16_of(&mut rest)?, u16_of(&mut rest)?];
        if !(WITHOUT_ARM..=VERSION).contains(&version) {
            return Err(CalibrationError::Version(version));
        }
        within(method, MOST_METHOD, "length of its method")?;
        within(guarantees, MOST_GUARANTEES, "number of guarantees")?;
        within(zones, MOST_ZONES, "number of zones")?;
        let queue_depth = u32_of(&mut rest)?;
        let slot = Duration::from_nanos(u64_of(&mut rest)?);
        let r0 = BitRate(u64_of(&mut rest)?);
        let t0 = Duration::from_nanos(u64_of(&mut rest)?);
        let measured_at = u64_of(&mut rest)?;
        let method = rest.split_off(..usize::from(method)).ok_or(CalibrationError::Length)?;
        let method = str::from_utf8(method).map_err(|_| CalibrationError::Impossible("method"))?;
        let record = Self {
            slot,
            guarantees: (0..guarantees).map(|_| guarantee(&mut rest)).collect::<Result<_, _>>()?,
            queue_depth,
            r0,
            t0,
            zones: (0..zones).map(|_| zone(&mut rest)).collect::<Result<_, _>>()?,
            writing: writing(&mut rest)?,
            arm: if version == WITHOUT_ARM { None } else { arm(&mut rest, version)? },
            method: method.to_owned(),
            measured_at,
        };
        if !rest.is_empty() {
            return Err(CalibrationError::Length);
        }
        record.holds_together()?;
        Ok(record)
    }

    fn holds_together(&self) -> Result<(), CalibrationError> {
        let sizes_grow = self.guarantees.is_sorted_by(|a, b| a.read_size < b.read_size);
        let zones_grow = self.zones.is_sorted_by(|a, b| a.0 < b.0);
        let usual = |g: &ReadGuarantee| g.mean_read.is_finite() && g.mean_read >= 0.0;
        for (holds, what) in [
            (!self.slot.is_zero(), "slot"),
            (self.queue_depth > 0, "queue depth"),
            (sizes_grow, "order of read sizes"),
            (zones_grow, "order of zones"),
            (self.guarantees.iter().all(usual), "number of reads"),
            (self.arm.is_none() || self.model().is_some(), "arm"),
        ] {
            if !holds {
                return Err(CalibrationError::Impossible(what));
            }
        }
        Ok(())
    }
}

fn guarantee(rest: &mut &[u8]) -> Result<ReadGuarantee, CalibrationError> {
    Ok(ReadGuarantee {
        read_size: ByteCount(u64_of(rest)?),
        min_read: u32_of(rest)?,
        mean_read: f64::from_bits(u64_of(rest)?),
        longest_read: Duration::from_nanos(u64_of(rest)?),
    })
}

fn zone(rest: &mut &[u8]) -> Result<(ByteCount, BitRate), CalibrationError> {
    Ok((ByteCount(u64_of(rest)?), BitRate(u64_of(rest)?)))
}

fn writing(rest: &mut &[u8]) -> Result<Option<WriteCost>, CalibrationError> {
    let [write_size, mean, slowest] = [u64_of(rest)?, u64_of(rest)?, u64_of(rest)?];
    let (mean, slowest) = (Duration::from_nanos(mean), Duration::from_nanos(slowest));
    match (write_size, mean, slowest) {
        (0, Duration::ZERO, Duration::ZERO) => Ok(None),
        (0, ..) => Err(CalibrationError::Impossible("cost of writes")),
        _ => Ok(Some(WriteCost { write_size: ByteCount(write_size), mean, slowest })),
    }
}

fn arm_words(arm: Option<&Arm>) -> [u64; 8] {
    arm.map_or([0; 8], |Arm { capacity, revolution, seek, following }| {
        let SeekTimes { settle_ms, track_ms, root_ms, knee, full_ms } = *seek;
        let [a, b, c, d, e] = [settle_ms, track_ms, root_ms, knee, full_ms].map(f64::to_bits);
        let following = following.map_or(0, |time| nanos(time).saturating_add(1));
        [capacity.0, nanos(*revolution), a, b, c, d, e, following]
    })
}

fn arm(rest: &mut &[u8], version: u16) -> Result<Option<Arm>, CalibrationError> {
    let (capacity, revolution) = (ByteCount(u64_of(rest)?), u64_of(rest)?);
    let words = [u64_of(rest)?, u64_of(rest)?, u64_of(rest)?, u64_of(rest)?, u64_of(rest)?];
    let following = if version == WITHOUT_FOLLOWING { 0 } else { u64_of(rest)? };
    if capacity == ByteCount::ZERO {
        let nothing = (revolution, following) == (0, 0) && words == [0; 5];
        return if nothing { Ok(None) } else { Err(CalibrationError::Impossible("arm")) };
    }
    let [settle_ms, track_ms, root_ms, knee, full_ms] = words.map(f64::from_bits);
    let seek = SeekTimes { settle_ms, track_ms, root_ms, knee, full_ms };
    let following = following.checked_sub(1).map(Duration::from_nanos);
    Ok(Some(Arm { capacity, revolution: Duration::from_nanos(revolution), seek, following }))
}

/// The whole characters within the first `most` bytes.
fn front(text: &str, most: usize) -> &str {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    &text[..ends.take_while(|end| *end <= most).last().unwrap_or(0)]
}

fn u16_of(rest: &mut &[u8]) -> Result<u16, CalibrationError> {
    take(rest).map(u16::from_le_bytes)
}

fn u32_of(rest: &mut &[u8]) -> Result<u32, CalibrationError> {
    take(rest).map(u32::from_le_bytes)
}

fn u64_of(rest: &mut &[u8]) -> Result<u64, CalibrationError> {
    take(rest).map(u64::from_le_bytes)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], CalibrationError> {
    let (first, after) = rest.split_first_chunk().ok_or(CalibrationError::Length)?;
    *rest = after;
    Ok(*first)
}

fn within(count: u16, most: usize, what: &'static str) -> Result<(), CalibrationError> {
    if usize::from(count) > most {
        return Err(CalibrationError::Impossible(what));
    }
    Ok(())
}

/// 584 years at most.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

const MAGIC: [u8; 8] = *b"TNTOcali";
const VERSION: u16 = 4;
const WITHOUT_FOLLOWING: u16 = 3;
const WITHOUT_ARM: u16 = 2;

/// A record stays below 20 KB: it is kept with the store's books.
const MOST_METHOD: usize = 1024;
/// Read sizes are powers of two or few.
const MOST_GUARANTEES: usize = 64;
/// No disk has a tenth of it.
const MOST_ZONES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiskModel;

    fn record() -> Calibration {
        let model = DiskModel::preset("hdd-20tb").unwrap();
        let sizes = [ByteCount::MIB, ByteCount::mib(4)];
        let slot = Duration::from_millis(500);
        Calibration { measured_at: 1_790_000_000, ..Calibration::from_model(&model, slot, &sizes) }
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        let record = record();
        assert_eq!(Calibration::decode(&record.encode()), Ok(record.clone()));
        let ms = Duration::from_millis;
        let cost = WriteCost { write_size: ByteCount::MIB, mean: ms(7), slowest: ms(19) };
        let writing = Calibration { writing: Some(cost), ..record.clone() };
        assert_eq!(Calibration::decode(&writing.encode()), Ok(writing));
        let arm = Arm {
            capacity: ByteCount(1 << 45),
            revolution: Duration::from_micros(8333),
            seek: SeekTimes {
                settle_ms: 0.0,
                track_ms: 0.9,
                root_ms: 8.0,
                knee: 0.3,
                full_ms: 16.0,
            },
            following: Some(Duration::ZERO),
        };
        let with_arm = Calibration { arm: Some(arm), ..record.clone() };
        assert_eq!(Calibration::decode(&with_arm.encode()), Ok(with_arm.clone()));
        let mut older = with_arm.encode();
        older[8] = 3;
        older.truncate(older.len() - 8);
        let unknown = Calibration { arm: Some(Arm { following: None, ..arm }), ..record.clone() };
        assert_eq!(Calibration::decode(&older), Ok(unknown.clone()), "before it was measured");
        assert_eq!(Calibration::decode(&unknown.encode()), Ok(unknown));
        let nonsense = Arm { revolution: Duration::ZERO, ..arm };
        let nonsense = Calibration { arm: Some(nonsense), ..record.clone() }.encode();
        assert_eq!(Calibration::decode(&nonsense), Err(CalibrationError::Impossible("arm")));
        let mut older = record.encode();
        older[8] = 2;
        older.truncate(older.len() - 64);
        assert_eq!(Calibration::decode(&older), Ok(record.clone()), "written before arms were");
        let bare =
            Calibration { guarantees: vec![], zones: vec![], method: String::new(), ..record };
        assert_eq!(Calibration::decode(&bare.encode()), Ok(bare));
    }

    #[test]
    fn what_is_too_long_is_cut_and_still_read() {
        let long = Calibration { method: "µ".repeat(1000), ..record() };
        let short = Calibration::decode(&long.encode()).unwrap();
        assert_eq!(short.method, "µ".repeat(512));
    }

    #[test]
    fn what_is_no_record_is_named() {
        let good = record().encode();
        let changed = |at: usize, to: u8| {
            let mut bytes = good.clone();
            bytes[at] = to;
            Calibration::decode(&bytes).unwrap_err().to_string()
        };
        assert_eq!(Calibration::decode(b""), Err(CalibrationError::NotOne));
        assert_eq!(
            Calibration::decode(&[good.clone(), vec![0]].concat()),
            Err(CalibrationError::Length)
        );
        assert!(changed(8, 9).starts_with("a calibration record of version 9, and this program"));
        assert!(changed(11, 255).contains("impossible length of its method"));
        assert!(changed(52, 0xff).contains("impossible method"));
        assert!(changed(16, 0).contains("impossible queue depth"));
    }

    #[test]
    fn no_bytes_whatever_are_more_than_refused() {
        let arm = Arm {
            capacity: ByteCount(1 << 45),
            revolution: Duration::from_millis(8),
            seek: SeekTimes {
                settle_ms: 0.0,
                track_ms: 1.0,
                root_ms: 8.0,
                knee: 0.3,
                full_ms: 16.0,
            },
            following: Some(Duration::from_micros(900)),
        };
        let good = Calibration { arm: Some(arm), ..record() }.encode();
        for end in 0..good.len() {
            assert!(Calibration::decode(&good[..end]).is_err(), "cut at {end}");
        }
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..rng.usize(1..8) {
                let at = rng.usize(8..bytes.len());
                bytes[at] = rng.u8(..);
            }
            if let Ok(record) = Calibration::decode(&bytes) {
                assert_eq!(record.encode(), bytes, "what is accepted means what it says");
            }
        }
    }
}
