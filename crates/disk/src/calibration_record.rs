//! A calibration as a store keeps it: JSON, with times as seconds and nanoseconds.
//!
//! A field that a later program adds is passed over by this one, and one that an earlier program
//! did not know is given its default, so that nobody has to calibrate again for a new program.
//! Whoever keeps the record protects it with a checksum; an inconsistent one is refused here.

use crate::{Calibration, MeasuredPart, ReadGuarantee};
use units::Reason;

impl Calibration {
    /// The bytes of the record.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and text always have a form in JSON")
    }

    /// Decodes a record that consists of all of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, Reason> {
        let read = serde_json::from_slice(bytes);
        let record: Self =
            read.map_err(|error| unusable(format!("no calibration record: {error}")))?;
        record.holds_together()?;
        Ok(record)
    }

    fn holds_together(&self) -> Result<(), Reason> {
        let sizes_grow = self.guarantees.is_sorted_by(|a, b| a.read_size < b.read_size);
        let zones_grow = self.zones.is_sorted_by(|a, b| a.0 < b.0);
        let usual = |g: &ReadGuarantee| g.mean_read >= 0.0;
        let part_of_whole = |part: MeasuredPart| part.bytes <= part.whole;
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
            (self.measured.is_none_or(part_of_whole), "part measured"),
        ] {
            if !holds {
                return Err(unusable(format!("a calibration record with an impossible {what}")));
            }
        }
        Ok(())
    }
}

fn unusable(message: String) -> Reason {
    Reason::new(message, "calibrate again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Actuator, DiskModel, Outlier, SeekTimes, WriteCost};
    use std::time::Duration;
    use units::ByteCount;

    /// A record with every part that a measurement can have.
    fn record() -> Calibration {
        let model = DiskModel::preset("hdd-20tb").unwrap();
        let sizes = [ByteCount::MIB, ByteCount::mib(4)];
        let ms = Duration::from_millis;
        let seek =
            SeekTimes { settle_ms: 0.0, track_ms: 0.9, root_ms: 8.0, knee: 0.3, full_ms: 16.1 };
        Calibration {
            measured_at: 1_790_000_000,
            writing: Some(WriteCost { write_size: ByteCount::MIB, mean: ms(7), slowest: ms(19) }),
            actuator: Some(Actuator {
                capacity: ByteCount(1 << 45),
                revolution: Duration::from_micros(8333),
                seek,
                following: Some(Duration::ZERO),
            }),
            measured: Some(MeasuredPart { bytes: ByteCount::kib(464), whole: ByteCount::mib(200) }),
            outliers: vec![Outlier { read_size: ByteCount::MIB, at: ms(3000), delay: ms(190) }],
            ..Calibration::from_model(&model, ms(500), &sizes)
        }
    }

    #[test]
    fn a_record_survives_encoding() {
        let model = DiskModel::preset("st39183w").unwrap();
        let computed = Calibration::from_model(&model, Duration::from_secs(1), &[]);
        for record in [record(), computed] {
            assert_eq!(Calibration::decode(&record.encode()), Ok(record));
        }
    }

    #[test]
    fn a_record_of_another_version_is_read() {
        let text = String::from_utf8(record().encode()).unwrap();
        let later = text.replacen('{', r#"{"temperature":[31,{"of":"air"}],"#, 1);
        assert_eq!(Calibration::decode(later.as_bytes()), Ok(record()));
        let start = text.find(r#","outliers""#).unwrap();
        let earlier = format!("{}}}", &text[..start]);
        let without = Calibration { outliers: Vec::new(), ..record() };
        assert_eq!(Calibration::decode(earlier.as_bytes()), Ok(without));
    }

    #[test]
    fn bytes_that_are_no_record_are_refused_with_the_reason() {
        let text = String::from_utf8(record().encode()).unwrap();
        for (from, to, reason) in [
            (text.as_str(), "", "no calibration record: EOF"),
            (text.as_str(), "TNTOcali\x03", "no calibration record: "),
            (r#""queue_depth":4"#, r#""queue_depth":0"#, "impossible queue depth"),
            (r#""queue_depth":4"#, r#""queue_depth":-1"#, "no calibration record: invalid value"),
            (
                r#""revolution":{"secs":0,"nanos":8333000}"#,
                "\"revolution\":{\"secs\":0,\"nanos\":0}",
                "actuator",
            ),
            (r#""whole":209715200"#, r#""whole":7"#, "impossible part measured"),
            (r#""mean_read":"#, r#""mean_read":-"#, "impossible number of reads"),
            (
                r#""mean_read":"#,
                r#""mean_read":1e999,"x":"#,
                "no calibration record: number out of range",
            ),
        ] {
            assert!(text.contains(from), "{from}");
            let error = Calibration::decode(text.replace(from, to).as_bytes()).unwrap_err();
            assert!(error.to_string().contains(reason), "{to}: {error}");
        }
    }

    #[test]
    fn no_bytes_cause_more_than_a_refusal() {
        let good = record().encode();
        for end in 0..good.len() {
            assert!(Calibration::decode(&good[..end]).is_err(), "cut at {end}");
        }
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..rng.usize(1..8) {
                let at = rng.usize(..bytes.len());
                bytes[at] = rng.u8(..);
            }
            if let Ok(record) = Calibration::decode(&bytes) {
                assert_eq!(Calibration::decode(&record.encode()), Ok(record));
            }
        }
    }
}
