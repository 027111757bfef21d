//! The possible parameters of a disk: all others are refused by name, so that no model divides by
//! zero, runs backwards or gives guarantees that no such disk can keep.

use crate::parameters::{Flash, Mechanics, Parameters, SeekTimes, Spinning, Zone};
use std::fmt::Display;
use units::Reason;

impl Parameters {
    /// Checks that such a disk is possible.
    pub fn check(&self) -> Result<(), Reason> {
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(word) {
            let wanted = "a name is 1 to 64 lower-case letters, digits and hyphens";
            return impossible("name", format!("{:?}", self.name), wanted);
        }
        if !(MIB..=LARGEST).contains(&self.capacity) {
            return impossible("capacity", self.capacity, "a disk has between 1 MiB and 1 EiB");
        }
        match &self.mechanics {
            Mechanics::Spinning(spinning) => spinning.check(),
            Mechanics::Flash(flash) => flash.check(),
        }
    }
}

impl Spinning {
    fn check(&self) -> Result<(), Reason> {
        if !(60..=100_000).contains(&self.rpm) {
            return impossible("spinning.rpm", self.rpm, "disks turn 60 to 100000 times a minute");
        }
        if !(1..=128).contains(&self.heads) {
            return impossible("spinning.heads", self.heads, "a disk has 1 to 128 heads");
        }
        let revolution = 60e3 / f64::from(self.rpm);
        for (what, ms, most) in [
            ("spinning.overhead_ms", self.overhead_ms, LONGEST),
            ("spinning.head_switch_ms", self.head_switch_ms, revolution),
            ("spinning.cylinder_switch_ms", self.cylinder_switch_ms, revolution),
        ] {
            // `contains` is false for NaN, so that it is refused, too.
            if !(0.0..=most).contains(&ms) {
                let wanted = "it is not negative, a switch at most a revolution, an overhead 1000";
                return impossible(what, ms, wanted);
            }
        }
        if self.cylinder_switch_ms < self.head_switch_ms {
            let wanted = "a cylinder switch is at least as long as a head switch";
            return impossible("spinning.cylinder_switch_ms", self.cylinder_switch_ms, wanted);
        }
        for (what, bytes) in [("read_ahead", self.read_ahead), ("write_back", self.write_back)] {
            if bytes > MOST_CACHE {
                let wanted = "no disk has more than 64 GiB of memory";
                return impossible(&format!("spinning.{what}"), bytes, wanted);
            }
        }
        rate("spinning.bus_mb_s", self.bus_mb_s)?;
        self.seek.check()?;
        check_zones(&self.zones)
    }
}

impl SeekTimes {
    fn check(&self) -> Result<(), Reason> {
        for (what, ms) in [
            ("settle_ms", self.settle_ms),
            ("track_ms", self.track_ms),
            ("root_ms", self.root_ms),
            ("full_ms", self.full_ms),
        ] {
            if !(0.0..=LONGEST).contains(&ms) {
                let wanted = "a movement takes between 0 and 1000 ms";
                return impossible(&format!("spinning.seek.{what}"), ms, wanted);
            }
        }
        if !(0.0..1.0).contains(&self.knee) {
            let wanted = "the knee is a part of the stroke, from 0 to below 1";
            return impossible("spinning.seek.knee", self.knee, wanted);
        }
        let at_knee = self.settle_ms + self.track_ms + self.root_ms * self.knee.sqrt();
        if self.full_ms < at_knee {
            let wanted = "the full stroke takes no less than the movement to the knee \
                          (settle_ms + track_ms + root_ms × √knee)";
            return impossible("spinning.seek.full_ms", self.full_ms, wanted);
        }
        Ok(())
    }
}

impl Flash {
    fn check(&self) -> Result<(), Reason> {
        if !(0.0..=LONGEST).contains(&self.latency_ms) {
            let wanted = "a latency is between 0 and 1000 ms";
            return impossible("flash.latency_ms", self.latency_ms, wanted);
        }
        if !(1..=65_536).contains(&self.lanes) {
            return impossible("flash.lanes", self.lanes, "a disk has 1 to 65536 lanes");
        }
        rate("flash.read_mb_s", self.read_mb_s)?;
        rate("flash.write_mb_s", self.write_mb_s)
    }
}

fn check_zones(zones: &[Zone]) -> Result<(), Reason> {
    let ends = zones.last().is_some_and(|last| last.until == 1.0);
    if !ends || zones.len() > MOST_ZONES {
        let wanted = "there are 1 to 1024 zones, and the last ends at 1.0";
        let given = zones.last().map_or("[]".into(), |last| format!("[... [{}, ...]]", last.until));
        return impossible("spinning.zones", given, wanted);
    }
    let mut start = 0.0;
    for zone in zones {
        // Each comparison with NaN is false, so that it needs a test of its own.
        if zone.until.is_nan() || zone.until <= start {
            let wanted = "zones end one after the other, as parts of the capacity above 0";
            return impossible("spinning.zones", format!("[{}, ...]", zone.until), wanted);
        }
        start = zone.until;
        rate("spinning.zones", zone.mb_s)?;
    }
    Ok(())
}

fn rate(what: &str, mb_s: f64) -> Result<(), Reason> {
    if !(0.001..=1e6).contains(&mb_s) {
        return impossible(what, mb_s, "a rate is between 0.001 and 1000000 MB/s");
    }
    Ok(())
}

fn impossible<T>(what: &str, given: impl Display, wanted: &str) -> Result<T, Reason> {
    Err(format!("{what} = {given}, but {wanted}").into())
}

const MIB: u64 = 1 << 20;
/// The largest capacity: doubles are exact enough for 2^60 bytes in steps of 256.
const LARGEST: u64 = 1 << 60;
/// The longest time in ms: no operation of a disk takes a second by design, so that a longer time
/// is a typing error.
const LONGEST: f64 = 1000.0;
const MOST_CACHE: u64 = 64 << 30;
/// The largest number of zones, as in a calibration record.
const MOST_ZONES: usize = 1024;

#[cfg(test)]
mod tests {
    use crate::models::TEXTS;
    use crate::{DiskModel, Parameters};

    fn said(text: &str) -> String {
        Parameters::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn every_impossible_number_is_named() {
        let good = DiskModel::preset_text("hdd-20tb").unwrap();
        for (from, to, wanted) in [
            ("\"hdd-20tb\"", "\"My Disk\"", "name = \"My Disk\", but a name is"),
            ("20000588955648", "0", "capacity = 0, but a disk has between"),
            ("\"2MiB\"", "\"2QiB\"", "'2QiB' is not a size such as"),
            ("rpm = 7200", "rpm = 0", "spinning.rpm = 0, but disks turn"),
            ("rpm = 7200", "rpm = -1", "invalid value: integer `-1`, expected u32"),
            ("rpm = 7200", "rmp = 7200", "unknown field `rmp`, expected one of `rpm`"),
            ("heads = 20", "heads = 0", "spinning.heads = 0"),
            ("overhead_ms = 0.1", "overhead_ms = nan", "spinning.overhead_ms = NaN"),
            ("head_switch_ms = 0.8", "head_switch_ms = 99.0", "spinning.head_switch_ms = 99"),
            ("head_switch_ms = 0.8", "head_switch_ms = 5.0", "at least as long as a head switch"),
            ("bus_mb_s = 550.0", "bus_mb_s = 0.0", "spinning.bus_mb_s = 0, but a rate is"),
            ("full_ms = 15.0", "full_ms = 5.0", "seek.full_ms = 5, but the full stroke takes no"),
            ("knee = 0.33333333333333333", "knee = 1.0", "spinning.seek.knee = 1, but the knee"),
            ("[1.0000, 142.39]", "[0.9999, 142.39]", "but there are 1 to 1024 zones, and the last"),
            ("[0.0548, 284.91]", "[0.5, 284.91]", "but zones end one after the other"),
            ("[0.0548, 284.91]", "[0.0548, -1.0]", "spinning.zones = -1, but a rate is"),
            ("[spinning]", "[flash]", "no parameter file of a disk"),
        ] {
            assert!(good.contains(from), "{from}");
            let error = said(&good.replacen(from, to, 1));
            assert!(error.contains(wanted), "{from} -> {to}: {error}");
        }
        assert!(said("").contains("missing field `name`"), "{}", said(""));
        assert!(said("name = ").contains("line 1"), "{}", said("name = "));
        let bare = "name = \"x\"\ntitle = \"\"\ncapacity = \"1GB\"\n";
        assert!(said(bare).contains("one of the tables [spinning] and [flash]"));
        let flash = "[flash]\nlatency_ms = 0.1\nlanes = 0\nread_mb_s = 1\nwrite_mb_s = 1\n";
        assert!(said(&format!("{bare}{flash}")).starts_with("flash.lanes = 0"));
    }

    #[test]
    fn the_built_in_files_name_their_sources() {
        for (name, text) in TEXTS {
            let parameters = Parameters::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(parameters.name, *name);
            assert!(!parameters.sources.is_empty(), "{name}");
        }
    }
}
