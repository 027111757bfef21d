//! Transfers on a target, as fast as they go: `meter transfers`, `meter ramp`; and `meter report`.

use super::on_target::{each, on_a_target, profile, threshold, window};
use super::{Command, Row, Value, ca_file, cert_file, insecure, json, key_file};

pub(super) const TRANSFERS: Command = Command {
    name: "transfers",
    about: "Move data as fast as it goes: rate and latency as EBU TECH 3362 defines them",
    long: "\
Each client does one transfer after another, and draws for each: the file, read or write, sequential or \
random, length, start and block size. Rate is the bytes over the time in block transfers, latency all the \
other time (opening, closing, and between blocks), by operation and block size. What is written goes to \
files made for it.",
    inner: &[],
    rows: on_a_target!(
        "transfers",
        " --profile ebu3362-edit",
        [
            profile!("transfers", "ebu3362-edit"),
            threshold!("transfers", " --profile ebu3362-edit"),
            each!("transfers", " --profile ebu3362-edit", "each client"),
            window!(
                "transfers",
                " --profile ebu3362-edit",
                "A second, unless you say otherwise: transfers have no buffer."
            ),
            Row::switch(
                "replace",
                "Each transfer is a whole file; one that is written is a new one"
            )
            .long(
                "It is written beside the old one and takes its name when it is closed. In a \
                     directory, with room for one more file a client.",
            )
            .example("meter transfers --profile ebu3362-write --target /mnt/films --replace")
            .bad("meter transfers --replace=yes", "--replace takes no value"),
            Row::option("clients", Value::Count(1, 1000), "How many work at the same time")
                .default("1")
                .example("meter transfers --profile ebu3362-read --target /mnt/films --clients 4")
                .bad(
                    "meter transfers --clients 0",
                    "--clients: '0' is not a whole number from 1 to 1000",
                ),
            Row::option("duration", Value::Time, "No transfer begins later")
                .default("60s")
                .example("meter transfers --profile ebu3362-edit --target /mnt/films --duration 1h")
                .bad(
                    "meter transfers --duration 60",
                    "--duration: '60' is not a time such as 500ms, 2s or 1h",
                ),
            Row::option("transfers", Value::Count(1, 1_000_000_000), "Of each client at most")
                .example(
                    "meter transfers --profile ebu3362-edit --target /mnt/films --transfers 500"
                )
                .bad(
                    "meter transfers --transfers all",
                    "--transfers: 'all' is not a whole number from 1 to 1000000000",
                ),
            Row::option("files", Value::Count(1, 10_000), "Files that are drawn from")
                .default("1")
                .long("In a directory; together they take --size.")
                .example("meter transfers --profile ebu3362-edit --target /mnt/films --files 8")
                .bad(
                    "meter transfers --files 0",
                    "--files: '0' is not a whole number from 1 to 10000"
                ),
            Row::switch("own-files", "Each client has a file of its own")
                .example("meter transfers --profile ebu3362-edit --target /mnt/films --own-files")
                .bad("meter transfers --own-files=yes", "--own-files takes no value"),
            Row::option("length", Value::Size, "Of a transfer at most, instead of the profile's")
                .example(
                    "meter transfers --profile ebu3362-edit --target /mnt/films --length 64MiB"
                )
                .bad(
                    "meter transfers --length long",
                    "--length: 'long' is not a size such as 64KiB, 40GiB or 2TB",
                ),
            Row::option("block", Value::Size, "The only block size, instead of the profile's")
                .long("Up to 256 MiB.")
                .example("meter transfers --profile ebu3362-read --target /mnt/films --block 4MiB")
                .bad(
                    "meter transfers --block big",
                    "--block: 'big' is not a size such as 64KiB, 40GiB or 2TB",
                ),
            Row::option(
                "frames",
                Value::Count(1, 10_000),
                "Lengths of one to so many whole frames"
            )
            .long("Of a profile with frames; each frame is a block.")
            .example("meter transfers --profile dpx10-hd --target /mnt/films --frames 24")
            .bad(
                "meter transfers --frames 0",
                "--frames: '0' is not a whole number from 1 to 10000",
            ),
            Row::option("think", Value::Time, "Wait up to so long before each transfer")
                .example("meter transfers --profile ebu3362-edit --target /mnt/films --think 50ms")
                .bad(
                    "meter transfers --think long",
                    "--think: 'long' is not a time such as 500ms, 2s or 1h",
                ),
            Row::switch("unrepeated", "Ask for no byte twice before all have been")
                .long("Against caches that cannot be switched off.")
                .example("meter transfers --profile ebu3362-read --target /mnt/films --unrepeated")
                .bad("meter transfers --unrepeated=yes", "--unrepeated takes no value"),
            Row::option(
                "seed",
                Value::Count(0, 4_294_967_295),
                "Of what is drawn: the same again for the same"
            )
            .default("1")
            .example("meter transfers --profile ebu3362-edit --target /mnt/films --seed 2")
            .bad(
                "meter transfers --seed x",
                "--seed: 'x' is not a whole number from 0 to 4294967295",
            ),
        ]
    ),
};

pub(super) const RAMP: Command = Command {
    name: "ramp",
    about: "The same transfers with more and more clients, as the EBU's test scripts have it",
    long: "\
ebu-single-read, -write and -edit: 1 to 10 clients on a single file; ebu-multi-read, -write, -edit and \
-file-write, -file-replace: 4 to 40 clients with a file each; an hour for each number, unless --step says otherwise. \
The report has rate and latency against the number of clients.",
    inner: &[],
    rows: on_a_target!(
        "ramp ebu-multi-read",
        "",
        [
            Row::needed("SCRIPT", Value::Text, "One that comes along, or a TOML file")
                .example("meter ramp ebu-single-read --target /mnt/films --step 1min")
                .bad("meter ramp --target /mnt/films", "SCRIPT is missing"),
            Row::option("step", Value::Time, "Of each number of clients, instead of the script's")
                .example("meter ramp ebu-multi-edit --target /mnt/films --step 5min")
                .bad(
                    "meter ramp ebu-multi-edit --step 60",
                    "--step: '60' is not a time such as 500ms, 2s or 1h",
                ),
            Row::option(
                "seed",
                Value::Count(0, 4_294_967_295),
                "Of what is drawn: the same again for the same"
            )
            .default("1")
            .example("meter ramp ebu-multi-edit --target /mnt/films --seed 2")
            .bad(
                "meter ramp ebu-multi-edit --seed x",
                "--seed: 'x' is not a whole number from 0 to 4294967295",
            ),
            threshold!("ramp ebu-multi-read", ""),
            each!("ramp ebu-multi-read", "", "each client"),
            window!("ramp ebu-multi-read", "", "A second, unless you say otherwise."),
            Row::switch("toml", "Print the script, to change and use")
                .example("meter ramp ebu-multi-edit --toml")
                .bad("meter ramp ebu-multi-edit --toml=x", "--toml takes no value"),
        ]
    ),
};

pub(super) const REPORT: Command = Command {
    name: "report",
    about: "Count a run's misses again, and plot it, from its log alone",
    long: "\
Reads operations.parquet of a directory that --out made, also of a run that was interrupted, and says what \
was late; of meter capacity and ramp, that of each of its runs. Writes recount.html beside it, with plots. \
Ends with exit code 5 where the summary differs by more than one frame.",
    inner: &[],
    rows: &[
        Row::needed("DIR", Value::Path, "What --out named")
            .example("meter report monday")
            .bad("meter report", "DIR is missing"),
        json("meter report monday --json", "meter report monday --json=x"),
    ],
};
