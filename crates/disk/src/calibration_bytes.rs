//! The encoding of a calibration record, little-endian. Its owner protects it with a checksum; an
//! inconsistent record is refused here in any case.
//!
//! ```text
//!   0  magic "TNTOcali"       8  version u16 = 3      10  method length u16 (<= 1,024)
//!  12  guarantees u16 (<= 64) 14  zones u16 (<= 1,024) 16  queue depth u32
//!  20  slot ns u64            28  r0 b/s u64           36  t0 ns u64
//!  44  measured at u64        52  bytes measured u64     60  bytes of the area u64 (0: computed)
//!  68  method, UTF-8
//!  then each guarantee: read size u64, min read u32, mean read f64, longest read ns u64; fewest
//!                       reads of 2, 4, 8, 16, 32, 64 slots, each u32 (0: not measured); reads
//!                       without a pause: once ns u64, each ns u64                      (68)
//!  then each zone:      offset u64, rate b/s u64                                      (16)
//!  then what writes cost: write size u64 (0: not measured), mean ns u64, slowest ns u64
//!  then the actuator:     capacity u64 (0: none seen), revolution ns u64; settle, track, root in
//!                         ms, knee, full in ms, each f64; the cost of a sequential read beside its
//!                         transfer, ns u64 + 1 (0: not measured) (64)
//!  then outliers u16 (<= 64), each: read size u64, at ns u64, delay ns u64               (24)
//! ```

use crate::{
    Actuator, Calibration, LONGER, MeasuredPart, Outlier, ReadGuarantee, ReadPace, SeekTimes,
    WriteCost,
};
use std::time::Duration;
use units::{BitRate, ByteCount, Decoder, Encoder, Hinted, Malformed, nanos};

/// The reason why bytes are no calibration record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibrationError {
    /// The magic number is missing.
    #[error("no calibration record")]
    NotOne,
    /// The record has another version.
    #[error("a calibration record of version {0}, and this program knows version 3")]
    Version(u16),
    /// The record is too short or too long.
    #[error("a calibration record of the wrong length")]
    Length,
    /// A value is impossible.
    #[error("a calibration record with an impossible {0}")]
    Impossible(&'static str),
}

impl Hinted for CalibrationError {
    fn hint(&self) -> Option<String> {
        (*self != Self::NotOne).then(|| "calibrate again".to_owned())
    }
}

impl From<Malformed> for CalibrationError {
    fn from(_: Malformed) -> Self {
        Self::Length
    }
}

impl Calibration {
    /// The bytes of the record. Entries beyond the format's limits (64 guarantees, 1,024 zones,
    /// 1,024 bytes of method) are left out.
    pub fn encode(&self) -> Vec<u8> {
        let method = front(&self.method, MOST_METHOD);
        let guarantees = &self.guarantees[..self.guarantees.len().min(MOST_GUARANTEES)];
        let zones = &self.zones[..self.zones.len().min(MOST_ZONES)];
        let mut out = Encoder::default();
        out.bytes(&MAGIC);
        out.u16(VERSION);
        for count in [method.len(), guarantees.len(), zones.len()] {
            out.count16(count);
        }
        out.u32(self.queue_depth);
        for value in [nanos(self.slot), self.r0.0, nanos(self.t0), self.measured_at] {
            out.u64(value);
        }
        out.u64(self.measured.map_or(0, |part| part.bytes.0));
        out.u64(self.measured.map_or(0, |part| part.whole.0));
        out.bytes(method.as_bytes());
        for guarantee in guarantees {
            out.u64(guarantee.read_size.0);
            out.u32(guarantee.min_read);
            out.f64(guarantee.mean_read);
            out.u64(nanos(guarantee.longest_read));
            guarantee.longer.iter().for_each(|reads| out.u32(*reads));
            out.u64(nanos(guarantee.pace.once));
            out.u64(nanos(guarantee.pace.each));
        }
        for (offset, rate) in zones {
            out.u64(offset.0);
            out.u64(rate.0);
        }
        encode_writing(self.writing, &mut out);
        encode_actuator(self.actuator, &mut out);
        let outliers = &self.outliers[..self.outliers.len().min(MOST_OUTLIERS)];
        out.count16(outliers.len());
        for Outlier { read_size, at, delay } in outliers {
            [read_size.0, nanos(*at), nanos(*delay)].into_iter().for_each(|word| out.u64(word));
        }
        out.finish()
    }

    /// Decodes a record that consists of all of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, CalibrationError> {
        let body = bytes.strip_prefix(&MAGIC).ok_or(CalibrationError::NotOne)?;
        let mut rest = Decoder::new(body);
        let version = rest.u16()?;
        if version != VERSION {
            return Err(CalibrationError::Version(version));
        }
        let method_len = within(rest.u16()?, MOST_METHOD, "length of its method")?;
        let guarantees = within(rest.u16()?, MOST_GUARANTEES, "number of guarantees")?;
        let zones = within(rest.u16()?, MOST_ZONES, "number of zones")?;
        let queue_depth = rest.u32()?;
        let slot = Duration::from_nanos(rest.u64()?);
        let r0 = BitRate(rest.u64()?);
        let t0 = Duration::from_nanos(rest.u64()?);
        let measured_at = rest.u64()?;
        let measured = measured(&mut rest)?;
        let text = rest.bytes(method_len)?;
        let method = str::from_utf8(text).map_err(|_| CalibrationError::Impossible("method"))?;
        let record = Self {
            slot,
            guarantees: (0..guarantees).map(|_| guarantee(&mut rest)).collect::<Result<_, _>>()?,
            queue_depth,
            r0,
            t0,
            zones: (0..zones).map(|_| zone(&mut rest)).collect::<Result<_, _>>()?,
            writing: writing(&mut rest)?,
            actuator: actuator(&mut rest)?,
            method: method.to_owned(),
            measured_at,
            measured,
            outliers: outliers(&mut rest)?,
        };
        // Bytes after the record mean that counts and content disagree.
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
            (self.r0.0 > 0, "rate of an endless read"),
            (sizes_grow, "order of read sizes"),
            (zones_grow, "order of zones"),
            (self.guarantees.iter().all(usual), "number of reads"),
            // Charges divide by the time of a read.
            (self.guarantees.iter().all(|g| !g.pace.each.is_zero()), "time of a read"),
            // Costs are computed from the actuator's model, so that it must exist.
            (self.actuator.is_none() || self.model().is_some(), "actuator"),
        ] {
            if !holds {
                return Err(CalibrationError::Impossible(what));
            }
        }
        Ok(())
    }
}

fn measured(rest: &mut Decoder<'_>) -> Result<Option<MeasuredPart>, CalibrationError> {
    let part = MeasuredPart { bytes: ByteCount(rest.u64()?), whole: ByteCount(rest.u64()?) };
    if part.bytes > part.whole {
        return Err(CalibrationError::Impossible("part measured"));
    }
    Ok((part.whole > ByteCount::ZERO).then_some(part))
}

fn guarantee(rest: &mut Decoder<'_>) -> Result<ReadGuarantee, CalibrationError> {
    Ok(ReadGuarantee {
        read_size: ByteCount(rest.u64()?),
        min_read: rest.u32()?,
        mean_read: rest.f64()?,
        longest_read: Duration::from_nanos(rest.u64()?),
        longer: {
            let mut longer = [0; LONGER];
            for reads in &mut longer {
                *reads = rest.u32()?;
            }
            longer
        },
        pace: ReadPace {
            once: Duration::from_nanos(rest.u64()?),
            each: Duration::from_nanos(rest.u64()?),
        },
    })
}

fn outliers(rest: &mut Decoder<'_>) -> Result<Vec<Outlier>, CalibrationError> {
    let count = within(rest.u16()?, MOST_OUTLIERS, "number of outliers")?;
    let outlier = |_| {
        let [size, at, delay] = [rest.u64()?, rest.u64()?, rest.u64()?];
        let (at, delay) = (Duration::from_nanos(at), Duration::from_nanos(delay));
        Ok(Outlier { read_size: ByteCount(size), at, delay })
    };
    (0..count).map(outlier).collect()
}

fn zone(rest: &mut Decoder<'_>) -> Result<(ByteCount, BitRate), CalibrationError> {
    Ok((ByteCount(rest.u64()?), BitRate(rest.u64()?)))
}

fn writing(rest: &mut Decoder<'_>) -> Result<Option<WriteCost>, CalibrationError> {
    let [write_size, mean, slowest] = [rest.u64()?, rest.u64()?, rest.u64()?];
    let (mean, slowest) = (Duration::from_nanos(mean), Duration::from_nanos(slowest));
    match (write_size, mean, slowest) {
        (0, Duration::ZERO, Duration::ZERO) => Ok(None),
        // "Not measured" has one encoding.
        (0, ..) => Err(CalibrationError::Impossible("cost of writes")),
        _ => Ok(Some(WriteCost { write_size: ByteCount(write_size), mean, slowest })),
    }
}

fn encode_writing(writing: Option<WriteCost>, out: &mut Encoder) {
    let words =
        writing.map_or([0; 3], |cost| [cost.write_size.0, nanos(cost.mean), nanos(cost.slowest)]);
    words.into_iter().for_each(|word| out.u64(word));
}

fn encode_actuator(actuator: Option<Actuator>, out: &mut Encoder) {
    let Some(Actuator { capacity, revolution, seek, following }) = actuator else {
        return out.bytes(&[0; 64]);
    };
    let SeekTimes { settle_ms, track_ms, root_ms, knee, full_ms } = seek;
    out.u64(capacity.0);
    out.u64(nanos(revolution));
    [settle_ms, track_ms, root_ms, knee, full_ms].into_iter().for_each(|value| out.f64(value));
    // One more than the time: zero nanoseconds and "not measured" stay apart.
    out.u64(following.map_or(0, |time| nanos(time).saturating_add(1)));
}

fn actuator(rest: &mut Decoder<'_>) -> Result<Option<Actuator>, CalibrationError> {
    let (capacity, revolution) = (ByteCount(rest.u64()?), rest.u64()?);
    let words = [rest.u64()?, rest.u64()?, rest.u64()?, rest.u64()?, rest.u64()?];
    let following = rest.u64()?;
    if capacity == ByteCount::ZERO {
        // "None" has one encoding, so that decoding and encoding give the same bytes.
        let nothing = (revolution, following) == (0, 0) && words == [0; 5];
        return if nothing { Ok(None) } else { Err(CalibrationError::Impossible("actuator")) };
    }
    let [settle_ms, track_ms, root_ms, knee, full_ms] = words.map(f64::from_bits);
    let seek = SeekTimes { settle_ms, track_ms, root_ms, knee, full_ms };
    let following = following.checked_sub(1).map(Duration::from_nanos);
    Ok(Some(Actuator { capacity, revolution: Duration::from_nanos(revolution), seek, following }))
}

/// The longest prefix of whole characters within `most` bytes.
fn front(text: &str, most: usize) -> &str {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    &text[..ends.take_while(|end| *end <= most).last().unwrap_or(0)]
}

fn within(count: u16, most: usize, what: &'static str) -> Result<usize, CalibrationError> {
    let count = usize::from(count);
    if count > most { Err(CalibrationError::Impossible(what)) } else { Ok(count) }
}

const MAGIC: [u8; 8] = *b"TNTOcali";
const VERSION: u16 = 3;

/// The longest method: it keeps a record below 20 KB, as it is stored with the catalogue.
const MOST_METHOD: usize = 1024;
/// The largest number of guarantees: read sizes are powers of two or few.
const MOST_GUARANTEES: usize = 64;
/// The largest number of outliers: one for each guarantee.
const MOST_OUTLIERS: usize = 64;
/// The largest number of zones: no disk has a tenth of it.
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
    fn a_record_survives_encoding() {
        let record = record();
        assert_eq!(Calibration::decode(&record.encode()), Ok(record.clone()));
        let ms = Duration::from_millis;
        let cost = WriteCost { write_size: ByteCount::MIB, mean: ms(7), slowest: ms(19) };
        let writing = Calibration { writing: Some(cost), ..record.clone() };
        assert_eq!(Calibration::decode(&writing.encode()), Ok(writing));
        let arm = Actuator {
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
        let part = MeasuredPart { bytes: ByteCount::kib(464), whole: ByteCount::mib(200) };
        let provisional = Calibration { measured: Some(part), ..record.clone() };
        assert_eq!(Calibration::decode(&provisional.encode()), Ok(provisional));
        let too_much = MeasuredPart { bytes: ByteCount(2), whole: ByteCount(1) };
        let too_much = Calibration { measured: Some(too_much), ..record.clone() }.encode();
        let refused = Err(CalibrationError::Impossible("part measured"));
        assert_eq!(Calibration::decode(&too_much), refused);
        let hiccup =
            Outlier { read_size: ByteCount::MIB, at: Duration::from_secs(3), delay: ms(190) };
        let with_outlier = Calibration { outliers: vec![hiccup], ..record.clone() };
        assert_eq!(Calibration::decode(&with_outlier.encode()), Ok(with_outlier));
        let with_arm = Calibration { actuator: Some(arm), ..record.clone() };
        assert_eq!(Calibration::decode(&with_arm.encode()), Ok(with_arm.clone()));
        let unknown =
            Calibration { actuator: Some(Actuator { following: None, ..arm }), ..record.clone() };
        assert_eq!(Calibration::decode(&unknown.encode()), Ok(unknown));
        let nonsense = Actuator { revolution: Duration::ZERO, ..arm };
        let nonsense = Calibration { actuator: Some(nonsense), ..record.clone() }.encode();
        assert_eq!(Calibration::decode(&nonsense), Err(CalibrationError::Impossible("actuator")));
        let bare =
            Calibration { guarantees: vec![], zones: vec![], method: String::new(), ..record };
        assert_eq!(Calibration::decode(&bare.encode()), Ok(bare));
    }

    #[test]
    fn a_record_beyond_the_limits_is_cut_and_still_decoded() {
        let long = Calibration { method: "µ".repeat(1000), ..record() };
        let short = Calibration::decode(&long.encode()).unwrap();
        assert_eq!(short.method, "µ".repeat(512));
    }

    #[test]
    fn bytes_that_are_no_record_are_refused_with_the_reason() {
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
        assert!(changed(68, 0xff).contains("impossible method"));
        assert!(changed(16, 0).contains("impossible queue depth"));
    }

    #[test]
    fn no_bytes_cause_more_than_a_refusal() {
        let arm = Actuator {
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
        let good = Calibration { actuator: Some(arm), ..record() }.encode();
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
