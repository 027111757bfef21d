//! Disks that are not there.

use super::{Command, Row, Value, json};

pub(super) const EMULATE: Command = Command {
    name: "emulate",
    about: "Make a disk with a model's seeks, turns and zones",
    long: "\
Any program and any file system can use it: as a file, and with --attach as a block device. Every \
request is answered when the modelled disk would have answered it. A disk that is smaller than its \
model has the whole model's seeks and zones, only closer together.

Runs until Ctrl-C or SIGTERM, then unmounts file systems on the disk, detaches it and goes; the \
bytes stay in the backing file. A second signal waits for nobody: whatever uses the disk fails. Needs root and /dev/fuse. docs/guide/emulated-disk.md shows how it \
is used.",
    inner: &[],
    rows: &[
        Row::needed("MODEL", Value::Text, "The disk to be: a model's name, or a parameter file")
            .long("`tenuto disk models` lists those that come along.")
            .example("disk emulate hdd-20tb --backing disk.img --size 8GiB")
            .bad("disk emulate --backing disk.img", "MODEL is missing"),
        Row::option("backing", Value::Path, "The file that holds the disk's bytes")
            .long("Made, all of it allocated, if it is not there. Always needed.")
            .example("disk emulate hdd-20tb --backing disk.img --size 8GiB")
            .bad("disk emulate hdd-20tb --backing", "--backing needs a value"),
        Row::option("size", Value::Size, "How large the disk is")
            .long(
                "Needed for a new file; of an existing one by default all is used. At most what the \
                 model has.",
            )
            .example("disk emulate hdd-20tb --backing disk.img --size 8GiB")
            .bad(
                "disk emulate hdd-20tb --backing disk.img --size all",
                "--size: 'all' is not a size such as 64KiB, 40GiB or 2TB",
            ),
        Row::option("at", Value::Path, "The folder in which its files appear")
            .long(
                "An empty one, or one to be made and removed again; by default the backing file's \
                 name with .emulated after it. In it: `disk`, and `control`, which tells the \
                 statistics.",
            )
            .example("disk emulate hdd-20tb --backing disk.img --at /mnt/disk")
            .bad("disk emulate hdd-20tb --backing disk.img --at", "--at needs a value"),
        Row::switch("attach", "Also make a block device of it")
            .long("A loop device past the page cache, which file systems take for a disk.")
            .example("disk emulate hdd-20tb --backing disk.img --attach")
            .bad("disk emulate hdd-20tb --attach=/dev/loop0", "--attach takes no value"),
        Row::switch("fast", "Begin at the backing file's own speed")
            .long("For filling it; `tenuto disk stats ... --fast off` ends it.")
            .example("disk emulate hdd-20tb --backing disk.img --attach --fast")
            .bad("disk emulate hdd-20tb --fast=1", "--fast takes no value"),
        Row::option("queue", Value::Count(1, 1024), "Waiting requests that the disk chooses from")
            .default("32")
            .long(
                "It turns to the one that its arm and platter reach first, unless another has waited \
                 for half a second. 1: in the order of arrival.",
            )
            .example("disk emulate hdd-20tb --backing disk.img --queue 1")
            .bad(
                "disk emulate hdd-20tb --queue 0",
                "--queue: '0' is not a whole number from 1 to 1024",
            ),
        Row::option("speed", Value::Count(1, 100), "How many times as fast as the model")
            .default("1")
            .long(
                "Everything takes that part of the model's time, for long measurements by a clock \
                 that runs as fast. What this program is late by counts as many times more; \
                 `tenuto disk stats` says all in the model's time.",
            )
            .example("disk emulate st39183w --backing disk.img --speed 4")
            .bad(
                "disk emulate hdd-20tb --speed 0",
                "--speed: '0' is not a whole number from 1 to 100",
            ),
        json("disk emulate hdd-20tb --backing disk.img --json", "disk emulate hdd-20tb --json=x"),
    ],
};

pub(super) const STATS: Command = Command {
    name: "stats",
    about: "Show what an emulated disk has done, and how late it was",
    long: "\
Where the time went: overhead, seeks, turns, transfers. And how much later than the model says \
requests were answered, which is the error of the emulation itself.",
    inner: &[],
    rows: &[
        Row::needed("DISK", Value::Path, "Its backing file, or the folder with its files")
            .example("disk stats disk.img")
            .bad("disk stats", "DISK is missing"),
        Row::option("fast", Value::Choice(ON_OFF), "Switch the fast mode, then show")
            .example("disk stats disk.img --fast on")
            .bad("disk stats disk.img --fast yes", "--fast: 'yes' is not one of on, off"),
        Row::switch("reset", "Show, then begin to count anew")
            .example("disk stats disk.img --reset")
            .bad("disk stats disk.img --reset=all", "--reset takes no value"),
        json("disk stats disk.img --json", "disk stats disk.img --json=x"),
    ],
};

const ON_OFF: &[(&str, &str)] =
    &[("on", "at the backing file's own speed, uncounted"), ("off", "in the model's time")];
