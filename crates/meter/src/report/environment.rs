//! The machine of a measurement and the devices beneath its target, for `environment.json` and
//! the end of every report. Facts that the kernel does not provide are left out.

use super::Block;
use crate::blame::beneath;
use crate::target::in_time;
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use units::{ByteCount, show};

/// The machine of a measurement, and the storage stack beneath the target.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Environment {
    tenuto: &'static str,
    /// Seconds since 1970 at the end of the measurement.
    unix_time: u64,
    host: Option<String>,
    kernel: Option<String>,
    processor: Option<String>,
    processors: Option<usize>,
    memory_bytes: Option<u64>,
    load_average: Option<String>,
    /// Mount point of the target, if it is on this machine.
    mount: Option<String>,
    file_system: Option<String>,
    devices: Vec<BlockDeviceInfo>,
}

/// A block device beneath the target.
#[derive(Clone, Debug, Serialize)]
struct BlockDeviceInfo {
    name: String,
    model: Option<String>,
    bytes: Option<u64>,
    /// Whether the kernel calls it rotational.
    rotational: Option<bool>,
}

impl Environment {
    /// Reads the state of this machine.
    pub(crate) fn of(target: Option<&Path>) -> Self {
        // On a storage that hangs, the look-up of its mount would hang too, so it has a time limit.
        let stack = target
            .map(Path::to_owned)
            .and_then(|target| in_time(PATIENCE, move || beneath(&target)))
            .unwrap_or_default();
        // A clock before 1970 is wrong, but is no reason to lose a report.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            tenuto: env!("CARGO_PKG_VERSION"),
            unix_time: now.as_secs(),
            host: line("/proc/sys/kernel/hostname"),
            kernel: line("/proc/sys/kernel/osrelease"),
            processor: named("/proc/cpuinfo", "model name"),
            processors: std::thread::available_parallelism().map(usize::from).ok(),
            memory_bytes: named("/proc/meminfo", "MemTotal").and_then(|text| kibibytes(&text)),
            load_average: line("/proc/loadavg"),
            mount: stack.mount,
            file_system: stack.file_system,
            devices: stack.devices.into_iter().map(BlockDeviceInfo::of).collect(),
        }
    }

    /// The last section of a report. `of_agents`: this machine only controlled the measurement, and
    /// the machines that measured have a table of their own.
    pub(crate) fn blocks(&self, of_agents: bool) -> Vec<Block> {
        let heading = if of_agents { "The controller, and when" } else { "Where and when" };
        let rows = Block::facts(["what", "which"], self.rows());
        vec![Block::Heading(heading.into()), rows]
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let processors = match (&self.processor, self.processors) {
            (Some(model), Some(count)) => Some(format!("{model}, {count} for the meter")),
            (None, Some(count)) => Some(count.to_string()),
            (model, None) => model.clone(),
        };
        let mount = match (&self.file_system, &self.mount) {
            (Some(kind), Some(at)) => Some(format!("{kind}, mounted at {at}")),
            _ => None,
        };
        let devices: Vec<String> = self.devices.iter().map(BlockDeviceInfo::said).collect();
        let all = [
            ("measured until", Some(format!("{} UTC", show::moment(self.unix_time)))),
            ("from the machine", self.host.clone()),
            ("processors", processors),
            ("memory", self.memory_bytes.map(|bytes| ByteCount(bytes).to_string())),
            ("kernel", self.kernel.clone()),
            ("load average at the end", self.load_average.clone()),
            ("file system", mount),
            ("on", (!devices.is_empty()).then(|| devices.join("; "))),
            ("measured with", Some(format!("tenuto {}", self.tenuto))),
        ];
        all.into_iter().filter_map(|(name, said)| Some((name, said?))).collect()
    }
}

impl BlockDeviceInfo {
    fn of(name: String) -> Self {
        let about = |file: &str| line(format!("/sys/block/{name}/{file}"));
        let [vendor, model] = ["device/vendor", "device/model"].map(about);
        let words: Vec<String> =
            [vendor, model].into_iter().flatten().filter(|word| !word.starts_with("0x")).collect();
        Self {
            model: (!words.is_empty()).then(|| words.join(" ")),
            // The kernel counts in units of 512 bytes, whatever the size of the device's blocks.
            bytes: about("size").and_then(|count| count.parse::<u64>().ok()?.checked_mul(512)),
            rotational: about("queue/rotational").map(|flag| flag == "1"),
            name,
        }
    }

    fn said(&self) -> String {
        let size = self.bytes.map(|bytes| format!(", {}", ByteCount(bytes)));
        let kind =
            self.rotational.map(|turns| if turns { ", rotational" } else { ", not rotational" });
        let model = self.model.as_ref().map(|model| format!(" ({model})"));
        format!(
            "{}{}{}{}",
            self.name,
            model.unwrap_or_default(),
            size.unwrap_or_default(),
            kind.unwrap_or_default()
        )
    }
}

/// Time for the look-up of the devices beneath a target.
const PATIENCE: Duration = Duration::from_secs(5);

/// The first line of a file of the kernel; `None` if it cannot be read.
fn line(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The text after the first `name:` in a file of the kernel.
fn named(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

fn kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_facts_about_a_machine_are_left_out() {
        let own = Environment::of(Some(Path::new("/proc/self")));
        assert_eq!(own.file_system.as_deref(), Some("proc"));
        assert!(own.memory_bytes.is_some_and(|bytes| bytes > 1 << 24), "{own:?}");
        let disk = BlockDeviceInfo {
            name: "sda".into(),
            model: Some("ATA SAMSUNG".into()),
            bytes: Some(1 << 41),
            rotational: Some(false),
        };
        assert_eq!(disk.said(), "sda (ATA SAMSUNG), 2 TiB, not rotational");
        let unknown = Environment { host: None, devices: vec![disk], ..own };
        let rows = unknown.rows();
        assert!(!rows.iter().any(|(name, _)| *name == "from the machine"), "{rows:?}");
        assert!(rows.contains(&("on", "sda (ATA SAMSUNG), 2 TiB, not rotational".into())));
    }
}
