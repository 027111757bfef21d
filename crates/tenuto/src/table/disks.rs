//! What disks can do.

use super::emulation::{EMULATE, STATS};
use super::{Command, Row, Value, json};

pub(super) const COMMANDS: &[Command] = &[CALIBRATE, PLAN, DISK];

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
    about: "Measure what a disk is guaranteed to read",
    long: "\
Reads from the worst places it can think of. How many reads the disk completed in every slot is the \
number that admission stands on; it is kept with the store. Also measured: how many reads at once \
are best, the rate of an endless read and what a read costs before its first byte, the rate by \
place, and what a writer takes from the readers. Writes go to a part of the store that `format` has \
reserved for them (stores below 1 GiB have none), to nothing else.

A store being served is measured by its server, between the viewers' reads. What is measured while \
somebody plays is less than the disk can do, so it is shown and not kept. A server calibrates a store \
that has never been calibrated by itself, briefly; a disk of your own deserves the longer run. \
Reading what was never written does not reach the disk: ingest something first.

A device or file that is no store is measured, too: nobody else may be using it, and nothing is \
written to it without --destroy.",
    inner: &[],
    rows: &[
        Row::needed("DEVICE", Value::Path, "The store, block device or file to measure")
            .example("calibrate film.store")
            .bad("calibrate", "DEVICE is missing"),
        Row::option("time", Value::Time, "About how long it may take")
            .default("15s")
            .long(
                "A slow disk needs a minute or two to meet its worst placements often; every \
                 measurement is made at least once, however short the time.",
            )
            .example("calibrate film.store --time 2min")
            .bad("calibrate film.store --time soon", "--time: 'soon' is not a time such as 500ms, 2s or 1h"),
        Row::switch("destroy", "Overwrite 64 MiB in the middle of a device that is no store")
            .long(
                "To find out what writes cost there. The one word that allows overwriting, here and \
                 everywhere else; stores refuse it.",
            )
            .example("calibrate /dev/sdb --destroy")
            .bad("calibrate /dev/sdb --destroy=yes", "--destroy takes no value"),
        Row::option("model", Value::Path, "Write the model that fits what was measured into this file")
            .long(
                "A parameter file, which `plan --model` and `disk emulate` take. A disk with an arm is \
                 nowhere faster in it than it was measured. A file that is there is not overwritten.",
            )
            .example("calibrate film.store --model mine.toml")
            .bad("calibrate film.store --model", "--model needs a value"),
        json("calibrate film.store --json", "calibrate film.store --json=x"),
    ],
};

const PLAN: Command = Command {
    name: "plan",
    about: "Say how many streams a disk would hold, and with how much memory",
    long: "\
By the bounds of the literature and by the server's own admission, for each size of read; reads \
nothing and starts nothing. The disk is a model or a calibration, the streams a rate or a title as \
it really varies. docs/guide/plan.md explains every number.",
    inner: &[],
    rows: &[
        Row::option("model", Value::Text, "The disk: a model's name, or a parameter file")
            .long("`tenuto disk models` lists those that come along.")
            .example("plan --model hdd-20tb --rate 5Mbps")
            .bad("plan --model", "--model needs a value"),
        Row::option(
            "calibration",
            Value::Path,
            "The disk: as measured, from a store or a JSON file",
        )
        .long("A store that was calibrated, or what `tenuto calibrate --json` printed.")
        .example("plan --calibration film.store --rate 5Mbps")
        .bad("plan --calibration", "--calibration needs a value"),
        Row::option("rate", Value::Rate, "The streams: this constant rate")
            .example("plan --model ssd-sata --rate 8.5Mbps")
            .bad(
                "plan --rate fast",
                "--rate: 'fast' is not a bit rate such as 800kbps, 8.5Mbps or 10Gbps",
            ),
        Row::option("title", Value::Text, "The streams: a title's own demand, as STORE:TITLE")
            .long(
                "Everybody watches it from its start, one after the other. A store that is being \
                 served is asked through its server.",
            )
            .example("plan --model hdd-20tb --title film.store:Nosferatu")
            .bad("plan --title", "--title needs a value"),
        Row::option("memory", Value::Size, "For buffers, of all disks together")
            .long("Left out: as much as it takes.")
            .example("plan --model hdd-20tb --rate 5Mbps --memory 4GiB")
            .bad(
                "plan --memory much",
                "--memory: 'much' is not a size such as 64KiB, 40GiB or 2TB",
            ),
        Row::option("disks", Value::Count(1, 10_000), "How many such disks")
            .default("1")
            .example("plan --model hdd-20tb --rate 5Mbps --disks 10")
            .bad("plan --disks 0", "--disks: '0' is not a whole number from 1 to 10000"),
        Row::option("startup", Value::Time, "From admission until the first media is in memory")
            .default("1s")
            .long("At least two slots.")
            .example("plan --model hdd-20tb --rate 5Mbps --startup 4s")
            .bad("plan --startup soon", "--startup: 'soon' is not a time such as 500ms, 2s or 1h"),
        Row::option("plot", Value::Path, "Draw streams against size of read into this SVG file")
            .example("plan --model hdd-20tb --rate 5Mbps --plot plan.svg")
            .bad("plan --plot", "--plot needs a value"),
        Row::switch("destroy", "Overwrite the plot of an earlier run")
            .example("plan --model hdd-20tb --rate 5Mbps --plot plan.svg --destroy")
            .bad("plan --destroy=x", "--destroy takes no value"),
        json("plan --model hdd-20tb --rate 5Mbps --json", "plan --json=x"),
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
            about: "Describe the disk models that come along, or your own",
            long: "\
The models slow a store down for --as-disk, drive the simulator and answer `tenuto plan`. Rates are \
sequential, in the outermost zone, over the whole disk and in the innermost zone. With a NAME: \
everything about one, with its sources and what it is guaranteed to read.",
            inner: &[],
            rows: &[
                Row::maybe("NAME", Value::Text, "One model in full: its name, or a parameter file")
                    .example("disk models hdd-20tb")
                    .bad("disk models hdd-20tb ssd-sata", "unexpected argument 'ssd-sata'"),
                Row::switch("toml", "Print the model's parameter file, to change and use")
                    .long(
                        "A changed copy is used with --model FILE; what each name means, \
                         docs/concepts/disks.md says.",
                    )
                    .example("disk models hdd-20tb --toml")
                    .bad("disk models hdd-20tb --toml=x", "--toml takes no value"),
                json("disk models --json", "disk models --json=x"),
            ],
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
        EMULATE,
        STATS,
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
