//! Examples of each command, and wrong command lines with their errors, as data.
//!
//! Examples end `--help`, the man pages and the sections of docs/reference/cli.md. Wrong lines are
//! those whose error text is our own; clap's errors are tested in `cli`. The tests below run them
//! all.

#[cfg(test)]
use crate::failure::Code;

/// A command line after `tenuto`, and what it shows.
#[derive(Debug)]
pub(crate) struct Example {
    pub(crate) line: &'static str,
    pub(crate) shows: &'static str,
}

const fn example(line: &'static str, shows: &'static str) -> Example {
    Example { line, shows }
}

/// The examples of a command such as `disk show`.
pub(crate) fn of(command: &str) -> &'static [Example] {
    EXAMPLES.iter().find(|(name, _)| *name == command).map_or(&[], |(_, examples)| examples)
}

const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "format",
        &[
            example("format film.store --size 40GiB", "A store of 40 GiB in a new file"),
            example("format /dev/sdb --destroy", "A whole disk, whatever is on it"),
        ],
    ),
    (
        "ingest",
        &[
            example("ingest film.store nosferatu.mkv caligari.mov", "Two titles"),
            example("ingest film.store a.mkv --title Nosferatu", "A title with another name"),
            example(
                "ingest film.store film-1080.mp4 film-360.mp4 --renditions --title film",
                "One title in two sizes",
            ),
            example(
                "ingest film.store film.mkv --replica other.store --replica third.store",
                "The same title in three stores",
            ),
            example("ingest film.store master.mxf --as file", "A file kept bit for bit"),
        ],
    ),
    (
        "ls",
        &[
            example("ls film.store --long", "Titles with size, length, rate and date"),
            example("ls film.store other.store --long", "Which store has which copy"),
        ],
    ),
    ("info", &[example("info film.store Nosferatu", "Tracks, codecs and places of a title")]),
    (
        "export",
        &[
            example("export film.store Nosferatu out.mp4", "A playable file"),
            example("export film.store Nosferatu out.mp4 --destroy", "In place of an older one"),
        ],
    ),
    ("rm", &[example("rm film.store Nosferatu --replica other.store", "Both copies of a title")]),
    ("rename", &[example("rename film.store Nosferatu Orlok", "Nosferatu becomes Orlok")]),
    (
        "check",
        &[
            example("check film.store --scrub", "All media, too"),
            example("check film.store --replica other.store", "Whether copies are alike"),
            example("check film.store --rebuild --destroy", "A new catalogue for a lost one"),
        ],
    ),
    (
        "serve",
        &[
            example("serve film.store archive.store", "Two stores, for viewers on this machine"),
            example(
                "serve film.store --listen 0.0.0.0:8080 --network 1Gbps",
                "For the network, and not more than it carries",
            ),
            example(
                "serve film.store other.store --survive-loss",
                "Streams that go on when one of the disks is lost",
            ),
            example("serve film.store --as-disk hdd-20tb", "As if it were on that disk"),
        ],
    ),
    (
        "play",
        &[
            example("play http://127.0.0.1:8080/t/film/master.m3u8", "One viewer of one title"),
            example(
                "play http://127.0.0.1:8080 --viewers 50 --arrivals poisson:500ms --duration 30s",
                "Fifty viewers of all titles",
            ),
            example(
                "play http://127.0.0.1:8080/t/film/master.m3u8 --from 10min --to 12min --speed 2",
                "A part, at twice the speed",
            ),
            example(
                "play http://127.0.0.1:8080/t/film.mp4 --save film.mp4",
                "What the viewer got, in a file",
            ),
            example(
                "play https://films.example/t/film/master.m3u8 --ca-file ca.pem",
                "A server with a certificate of its own authority",
            ),
        ],
    ),
    (
        "calibrate",
        &[
            example("calibrate film.store --time 2min", "A slow disk, thoroughly"),
            example(
                "calibrate /dev/sdb --destroy --write-model mine.toml",
                "A bare disk, writes included, as a model for `plan`",
            ),
        ],
    ),
    (
        "plan",
        &[
            example(
                "plan --model hdd-20tb --rate 5Mbps --memory 4GiB",
                "Streams of 5 Mb/s on a disk of today",
            ),
            example(
                "plan --calibration film.store --title film.store:Nosferatu",
                "Viewers of a title on the disk as measured",
            ),
            example("plan --model hdd-20tb --rate 5Mbps --plot plan.svg", "The table as a picture"),
        ],
    ),
    (
        "disk models",
        &[
            example("disk models hdd-20tb", "Everything about one model"),
            example("disk models hdd-20tb --toml", "Its parameter file, to change and use"),
        ],
    ),
    ("disk show", &[example("disk show /dev/sda", "A disk, and the ways of reading it")]),
    (
        "disk emulate",
        &[example(
            "disk emulate hdd-20tb --backing disk.img --size 8GiB --attach --no-delay",
            "A block device, to be filled at full speed first",
        )],
    ),
    (
        "disk stats",
        &[
            example("disk stats disk.img", "Where the time went"),
            example("disk stats disk.img --delay on", "From now on in the model's time"),
        ],
    ),
    (
        "simulate admission",
        &[
            example("simulate admission --scenarios 560 --policy all", "The shape, in a minute"),
            example(
                "simulate admission --store film.store --model hdd-20tb --policy time-domain,vbrsim",
                "Your titles on another disk",
            ),
        ],
    ),
    (
        "reproduce",
        &[
            example("reproduce alderman-bounds --out charts", "In virtual time, with charts"),
            example(
                "reproduce alderman-table1 --emulated --filesystems raw,ext4 --rounds 25",
                "On an emulated disk",
            ),
        ],
    ),
    ("completions", &[example("completions zsh", "For zsh")]),
    ("man", &[example("man disk emulate", "The page of a subcommand")]),
    (
        "meter capacity",
        &[
            example(
                "meter capacity --profile xdcam422 --target /mnt/films --out monday",
                "Streams of a camera format, with a report",
            ),
            example(
                "meter capacity --target http://127.0.0.1:8080 --switching hls.js",
                "Players of a server",
            ),
            example(
                "meter capacity --profile mpeg-1.5 --target sim:st39183w --rule one-late-round-of-100",
                "A simulated disk, by a paper's rule",
            ),
        ],
    ),
    (
        "meter bottleneck",
        &[example(
            "meter bottleneck --profile xdcam422 --target /mnt/films",
            "What ends first on the way to a file server",
        )],
    ),
    (
        "meter methods",
        &[example(
            "meter methods --profile xdcam422 --target /mnt/films --max-streams 50",
            "Each way of reading, up to 50 streams",
        )],
    ),
    (
        "meter run",
        &[
            example(
                "meter run --profile xdcam422 --target /mnt/films --streams 20 --duration 5min",
                "Twenty streams for five minutes",
            ),
            example(
                "meter run --profile ingest-xavc300-25 --streams 4 --target /dev/sdx --destroy",
                "Four recordings over a whole disk",
            ),
            example(
                "meter run --profile xdcam422 --target /mnt/films --streams 20 --threshold 9Mbps \
                 --threshold-each",
                "Reported at once when a stream starves",
            ),
            example(
                "meter run --profile xdcam422 --target /mnt/films --streams 40 --hosts edit1,edit2",
                "From two other machines, by ssh",
            ),
        ],
    ),
    (
        "meter transfers",
        &[
            example(
                "meter transfers --profile ebu3362-edit --target /mnt/films --clients 4",
                "Four clients as in EBU TECH 3362",
            ),
            example(
                "meter transfers --profile dpx10-hd --target /mnt/films --frames 24 --file-per-client",
                "Up to a second of single frames",
            ),
        ],
    ),
    (
        "meter ramp",
        &[
            example(
                "meter ramp ebu-multi-edit --target /mnt/films --step 5min --out ramp",
                "The EBU's script, in shorter steps",
            ),
            example("meter ramp ebu-multi-edit --toml", "The script, to change and use"),
        ],
    ),
    ("meter report", &[example("meter report monday", "A run, counted again from its log")]),
    (
        "meter profiles",
        &[
            example("meter profiles prores-hq-uhd --toml", "A profile, to change and use"),
            example("meter profiles --verify", "All figures, computed again"),
        ],
    ),
    (
        "meter rounds",
        &[
            example(
                "meter rounds sim:st39183w --streams 63 --block 1MB --rate 1.5Mbps",
                "A simulated disk of 1999",
            ),
            example(
                "meter rounds /dev/sdb /dev/sdc --streams 40 --iodepth 40 --alone",
                "What two disks cost each other",
            ),
            example("meter rounds film.bin --streams 1 --unpaced", "The sequential rate of a file"),
        ],
    ),
    (
        "meter compare",
        &[example("meter compare monday tuesday --confidence 99", "Is Tuesday better?")],
    ),
    (
        "meter profile-from",
        &[example("meter profile-from day.strace --only /mnt/films/", "One folder's traffic")],
    ),
    (
        "meter agent",
        &[example(
            "meter agent /mnt/films --token-file secret --listen 0.0.0.0:7070",
            "For controllers on the network",
        )],
    ),
    (
        "meter study",
        &[
            example("meter study block-size --target /mnt/films", "What the block size does"),
            example(
                "meter study nodes --target /mnt/one --second /mnt/two",
                "What a second node adds",
            ),
        ],
    ),
    ("meter study network", &[example("meter study network --link 1Gbps", "A gigabit link")]),
];

/// A wrong command line after `tenuto`, its exit code, and words of its error text.
#[cfg(test)]
struct Misuse(&'static str, Code, &'static str);

#[cfg(test)]
const MISUSES: &[Misuse] = &[
    // Values.
    Misuse("format a --size big", Code::Usage, "--size: 'big' is not a size such as 64KiB, 40GiB"),
    Misuse("plan --rate fast", Code::Usage, "--rate: 'fast' is not a bit rate such as 800kbps"),
    Misuse(
        "serve a --slot 500",
        Code::Usage,
        "--slot: '500' is not a time such as 500ms, 2s or 1h",
    ),
    Misuse("plan --disks 0", Code::Usage, "--disks: '0' is not a whole number from 1 to 10000"),
    Misuse("play http://a --speed 0", Code::Usage, "'0' is not a speed such as 2, 0.5 or -1"),
    Misuse("serve a --listen 8080", Code::Usage, "'8080' is not an address such as 127.0.0.1:8080"),
    Misuse("play http://a --arrivals often", Code::Usage, "'often' is not a way to arrive: 'all'"),
    Misuse(
        "plan --model floppy",
        Code::Usage,
        "--model: there is no disk model 'floppy', and no file",
    ),
    Misuse("simulate admission --policy best", Code::Usage, "--policy: 'best' is not a policy"),
    Misuse("reproduce lee-streams --filesystems ext9", Code::Usage, "'ext9' is none of raw, ext2"),
    // Options that need or exclude each other.
    Misuse("ingest a a.mkv b.mkv --title c", Code::Usage, "--title names one title"),
    Misuse("ingest a a.mkv --renditions", Code::Usage, "--renditions needs a file for each"),
    Misuse("check a --rebuild --scrub", Code::Usage, "--rebuild is about one store's catalogue"),
    Misuse("check a --destroy", Code::Usage, "a check overwrites nothing"),
    Misuse("play http://a --ca-file a --insecure", Code::Usage, "contradict each other"),
    Misuse("play http://a --key-file a", Code::Usage, "--key-file needs --cert-file"),
    Misuse("play http://a --save b --switching hls.js", Code::Usage, "--save cannot put several"),
    Misuse("plan --model ssd-sata", Code::Usage, "no streams to plan for"),
    Misuse("plan --rate 5Mbps", Code::Usage, "no disk to plan with"),
    Misuse("plan --model ssd-sata --calibration a", Code::Usage, "are two disks"),
    Misuse("plan --model ssd-sata --rate 1", Code::Usage, "1 b/s is no rate of a stream"),
    Misuse("plan --model ssd-sata --rate 5Mbps --startup 10ms", Code::Usage, "--startup: from 1s"),
    Misuse("disk models --toml", Code::Usage, "--toml is for one model"),
    Misuse("disk emulate ssd-sata", Code::Usage, "--backing is missing"),
    Misuse("simulate admission --arrivals all", Code::Usage, "independent viewers"),
    Misuse("simulate admission --read-size 1KiB", Code::Usage, "between 64KiB and 64MiB"),
    Misuse("reproduce --out charts", Code::Usage, "--out is for one reproduction"),
    Misuse("reproduce lee-streams --emulated", Code::Usage, "is not made on an emulated disk"),
    Misuse("meter run", Code::Usage, "--profile is missing"),
    Misuse("meter run --profile xdcam422", Code::Usage, "--target is missing"),
    Misuse("meter run --target . --switching hls.js", Code::Usage, "--switching is for players"),
    Misuse(
        "meter run --target http://a --profile xdcam422",
        Code::Usage,
        "a title has its own rate",
    ),
    Misuse("meter run --target http://a --buffered", Code::Usage, "--buffered is not for players"),
    Misuse(
        "meter run --profile xdcam422 --target . --hosts a --threshold 1Mbps",
        Code::Usage,
        "--threshold is not for agents",
    ),
    Misuse(
        "meter run --profile xdcam422 --target . --agents a --destroy",
        Code::Usage,
        "--destroy and --hold are not for agents",
    ),
    Misuse(
        "meter methods --profile xdcam422 --target . --method mmap",
        Code::Usage,
        "--method: all of them are tried",
    ),
    Misuse("meter transfers --target .", Code::Usage, "--profile is missing"),
    Misuse("meter study writes", Code::Usage, "--target is missing"),
    Misuse("meter agent .", Code::Usage, "--token-file is missing"),
    Misuse("meter profiles --toml", Code::Usage, "--toml is for one profile"),
    Misuse("man flying", Code::Usage, "there is no command 'flying'"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli, commands};
    use std::ffi::OsString;

    fn words(line: &str) -> Vec<OsString> {
        std::iter::once("tenuto").chain(line.split_whitespace()).map(OsString::from).collect()
    }

    #[test]
    fn every_example_parses_under_its_command() {
        for (command, examples) in EXAMPLES {
            for Example { line, shows } in *examples {
                assert!(line.starts_with(command), "`{line}` is an example of another command");
                assert!(!shows.ends_with('.') && line.len() <= 100, "{line}");
                if let Err(error) = cli::parse(words(line)) {
                    panic!("`{line}`: {error}");
                }
            }
        }
    }

    #[test]
    fn every_command_has_an_example() {
        fn look(before: &str, command: &clap::Command) {
            for inner in command.get_subcommands() {
                let name = format!("{before} {}", inner.get_name());
                let name = name.trim_start();
                let covered = !of(name).is_empty() || inner.has_subcommands();
                assert!(covered || before == "meter study", "{name} has no example");
                look(name, inner);
            }
        }
        look("", &cli::command());
    }

    #[test]
    fn every_misuse_gives_its_error() {
        for Misuse(line, code, text) in MISUSES {
            let given = words(line);
            let failure = match cli::parse(given.clone()) {
                Err(error) => cli::failure(&error, &given[1..]),
                Ok(parsed) => commands::run(parsed.command).expect_err(line),
            };
            assert_eq!(failure.code, *code, "`{line}`: {failure:?}");
            assert!(failure.sentence.contains(text), "`{line}`: {failure:?}");
            assert!(failure.hint.is_some(), "`{line}` has no hint: {failure:?}");
        }
    }
}
