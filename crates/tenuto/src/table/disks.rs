//! What disks can do.

use super::{Command, Row, Value, json};

pub(super) const COMMANDS: &[Command] = &[CALIBRATE, DISK];

/// The disks that come along, oldest first. A test compares this with `disk::DiskModel::presets`.
pub(super) const MODELS: &[(&str, &str)] = &[
    ("st39183w", "Seagate Barracuda ST39183W, 9.1 GB, 7,200 rpm (1999)"),
    ("atlas-iv", "Quantum Atlas IV, 9 GB, 7,200 rpm (1999; stand-in)"),
    ("st318406lw", "Seagate Cheetah 36ES ST318406LW, 18 GB, 10,000 rpm (2001)"),
    ("hdd-20tb", "20 TB nearline disk, 7,200 rpm (2020s)"),
    ("ssd-sata", "SATA solid-state disk, 1.92 TB (PM893 class)"),
    ("ssd-nvme", "NVMe solid-state disk, 3.84 TB (PM9A3 class)"),
];

const CALIBRATE: Command = Command {
    name: "calibrate",
    about: "Measure what a store's disk is guaranteed to read",
    long: "\
Reads for a quarter of a minute from the worst places it can think of and keeps with the store how many \
reads the disk completed in every slot: the number that admission stands on. Nothing is written \
but the result. Calibrate while nobody watches: what others read meanwhile makes the disk look \
slower than it is.

A server calibrates a store that has never been calibrated by itself, briefly; a disk of your own \
deserves the longer run. Reading what was never written does not reach the disk: ingest something \
first.",
    inner: &[],
    rows: &[
        Row::needed("STORE", Value::Path, "The store whose disk is measured")
            .example("calibrate film.store")
            .bad("calibrate", "STORE is missing"),
        json("calibrate film.store --json", "calibrate film.store --json=x"),
    ],
};

const DISK: Command = Command {
    name: "disk",
    about: "Describe disks and disk models",
    long: "",
    rows: &[],
    inner: &[
        Command {
            name: "models",
            about: "List the disk models that come along",
            long: "\
The models slow a store down for --as-disk and drive the simulator. Rates are sequential, in the \
outermost zone, over the whole disk and in the innermost zone.",
            inner: &[],
            rows: &[json("disk models --json", "disk models --json=x")],
        },
        Command {
            name: "show",
            about: "Say what a device or file tells of itself",
            long: "\
Its size, the disk it is or lies on, what the kernel does to requests on their way there, who uses \
it, and which ways of reading this kernel allows. Nothing is written. The ways of reading are tried \
with one small read each, which takes the right to read it; the rest does not.",
            inner: &[],
            rows: &[
                Row::needed("DEVICE", Value::Path, "A block device or file")
                    .example("disk show /dev/sda")
                    .bad("disk show", "DEVICE is missing"),
                json("disk show /dev/sda --json", "disk show /dev/sda --json=x"),
            ],
        },
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn all_models_are_offered_under_their_titles() {
        let presets = disk::DiskModel::presets();
        let known: Vec<_> = presets.iter().map(|model| (model.name(), model.title())).collect();
        assert_eq!(super::MODELS, known);
    }
}
