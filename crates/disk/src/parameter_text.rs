//! Parameters as the text of a parameter file, for disks that were fitted to measurements.
//! [`Parameters::parse`] gives the same numbers.

use crate::parameters::{Mechanics, Parameters, Spinning};
use std::fmt::Write;

impl Parameters {
    /// The text of a parameter file.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing to a string cannot fail");
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "name = {}", quoted(&self.name))?;
        writeln!(out, "title = {}", quoted(&self.title))?;
        let sources: Vec<String> = self.sources.iter().map(|source| quoted(source)).collect();
        writeln!(out, "sources = [{}]", sources.join(", "))?;
        writeln!(out, "capacity = {}\n", self.capacity)?;
        match &self.mechanics {
            Mechanics::Spinning(arm) => arm.write(out),
            Mechanics::Flash(chips) => {
                writeln!(out, "[flash]\nlatency_ms = {:?}", chips.latency_ms)?;
                writeln!(out, "lanes = {}", chips.lanes)?;
                writeln!(out, "read_mb_s = {:?}", chips.read_mb_s)?;
                writeln!(out, "write_mb_s = {:?}", chips.write_mb_s)
            }
        }
    }
}

impl Spinning {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "[spinning]\nrpm = {}\nheads = {}", self.rpm, self.heads)?;
        writeln!(out, "head_switch_ms = {:?}", self.head_switch_ms)?;
        writeln!(out, "cylinder_switch_ms = {:?}", self.cylinder_switch_ms)?;
        writeln!(out, "overhead_ms = {:?}", self.overhead_ms)?;
        writeln!(out, "read_ahead = {}\nwrite_back = {}", self.read_ahead, self.write_back)?;
        writeln!(out, "bus_mb_s = {:?}", self.bus_mb_s)?;
        writeln!(out, "# Each zone: where it ends as a part of the capacity, and its MB/s.")?;
        writeln!(out, "zones = [")?;
        for zone in &self.zones {
            writeln!(out, "  [{:?}, {:?}],", zone.until, zone.mb_s)?;
        }
        writeln!(out, "]\n\n[spinning.seek]")?;
        writeln!(
            out,
            "settle_ms = {:?}\ntrack_ms = {:?}",
            self.seek.settle_ms, self.seek.track_ms
        )?;
        writeln!(out, "root_ms = {:?}\nknee = {:?}", self.seek.root_ms, self.seek.knee)?;
        writeln!(out, "full_ms = {:?}", self.seek.full_ms)
    }
}

/// The text as a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use crate::{DiskModel, Parameters};

    #[test]
    fn written_parameters_are_parsed_to_the_same_numbers() {
        for model in DiskModel::presets() {
            let mut parameters = model.parameters().clone();
            parameters.title += " \"quoted\" \\ and\nbroken";
            assert_eq!(Parameters::parse(&parameters.to_toml()), Ok(parameters));
        }
    }
}
