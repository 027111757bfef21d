//! Examples of each command, and wrong command lines with their errors, as data.
//!
//! Examples end `--help`, the man pages and the sections of docs/reference/cli.md. Wrong lines are
//! those whose error text is our own; clap's errors are tested in `cli`. The tests below run them
//! all.

/// A command line after `tenuto`, and what it shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Example {
    pub(crate) line: &'static str,
    pub(crate) shows: &'static str,
}

/// The examples of a command such as `disk show`.
pub(crate) fn of(command: &str) -> Vec<Example> {
    sections().find(|(name, _)| *name == command).map_or(Vec::new(), |(_, examples)| examples)
}

fn sections() -> impl Iterator<Item = (&'static str, Vec<Example>)> {
    EXAMPLES.split("\n\n").filter_map(|section| {
        let (name, examples) = section.split_once(":\n")?;
        let lines: Vec<&str> = examples.lines().map(str::trim).collect();
        let pairs = lines.chunks_exact(2);
        Some((name, pairs.map(|pair| Example { line: pair[0], shows: pair[1] }).collect()))
    })
}

/// Sections of one command each: its name, and its examples, each with what it shows.
const EXAMPLES: &str = "\
format:
format film.store --size 10GiB
  A store of 10 GiB in a new file
format /dev/sdb --destroy
  A whole disk, whatever is on it

ingest:
ingest film.store nosferatu.mkv caligari.mov
  Two titles
ingest film.store a.mkv --title Nosferatu
  A title with another name
ingest film.store film-1080.mp4 film-360.mp4 --renditions --title film
  One title in two sizes
ingest film.store metropolis.mkv --replica other.store --replica third.store
  The same title in three stores
ingest film.store master.mxf --as file
  A file kept bit for bit

ls:
ls film.store --long
  Titles with size, length, rate and date
ls film.store other.store --long
  Which store has which copy

info:
info film.store Nosferatu
  Tracks, codecs and places of a title

export:
export film.store Nosferatu out.mp4
  A playable file
export film.store Nosferatu out.mp4 --destroy
  In place of an older one

rm:
rm film.store Nosferatu --replica other.store
  Both copies of a title

rename:
rename film.store Nosferatu Orlok
  Nosferatu becomes Orlok

relabel:
relabel copy.store --new-identity
  Serve a copy beside the original

check:
check film.store --scrub
  All media, too
check film.store --replica other.store
  Whether copies are alike
check film.store --rebuild --destroy
  A new catalogue for a lost one

serve:
serve film.store archive.store
  Two stores, for viewers on this machine
serve film.store --listen 0.0.0.0:8080 --network 1Gbps
  For the network, and not more than it carries
serve film.store other.store --survive-loss
  Streams that go on when one of the disks is lost
serve film.store --as-disk hdd-20tb
  As if it were on that disk

play:
play http://127.0.0.1:8080/t/film/master.m3u8
  One viewer of one title
play http://127.0.0.1:8080 --viewers 50 --arrivals poisson:500ms --duration 30s
  Fifty viewers of all titles
play http://127.0.0.1:8080 --viewers 300 --arrivals poisson:100ms --choice zipf:1.0 --stay 1min
  An evening: some titles are popular, and viewers come and leave
play http://127.0.0.1:8080/t/film/master.m3u8 --from 10min --to 12min --speed 2
  A part, at twice the speed
play http://127.0.0.1:8080/t/film.mp4 --save film.mp4
  What the viewer got, in a file
play http://127.0.0.1:8080/t/film/master.m3u8 --strict
  Exit code 3 if the viewer is refused or stalls
play https://films.example/t/film/master.m3u8 --ca-file ca.pem
  A server with a certificate of its own authority

calibrate:
calibrate film.store --time 2min
  A slow disk, thoroughly
calibrate /dev/sdb --destroy --write-model mine.toml
  A bare disk, writes included, as a model for `plan`

plan:
plan --model hdd-20tb --rate 5Mbps --memory 4GiB
  Streams of 5 Mb/s on a disk of today
plan --calibration film.store --title film.store:Nosferatu
  Viewers of a title on the disk as measured
plan --model hdd-20tb --rate 5Mbps --plot plan.svg
  The table as a picture

disk models:
disk models hdd-20tb
  Everything about one model
disk models hdd-20tb --toml
  Its parameter file, to change and use

disk show:
disk show /dev/sda
  A disk, and the ways of reading it

disk emulate:
disk emulate hdd-20tb --backing disk.img --size 8GiB --attach --no-delay
  A block device, to be filled at full speed first

disk stats:
disk stats disk.img
  Where the time went
disk stats disk.img --delay on
  From now on in the model's time

simulate admission:
simulate admission --scenarios 560 --policy all
  The shape, in a minute
simulate admission --store film.store --model hdd-20tb --policy time-domain,vbrsim
  Your titles on another disk
simulate admission --preset crowd --wait 0s
  A full house at once, and nobody waits

reproduce:
reproduce alderman-bounds --out charts
  In virtual time, with charts
reproduce alderman-table1 --emulated --filesystems raw,ext4 --rounds 25
  On an emulated disk

completions:
completions zsh
  For zsh

man:
man disk emulate
  The page of a subcommand
man --out man1
  A file for each command and subcommand

version:
version
  The version, for a report of a problem

meter capacity:
meter capacity --profile xdcam422 --target /mnt/films --out monday
  Streams of a camera format, with a report
meter capacity --target http://127.0.0.1:8080 --switching hls.js
  Players of a server
meter capacity --profile mpeg-1.5 --target sim:st39183w --rule one-late-round-of-100
  A simulated disk, by a paper's rule

meter bottleneck:
meter bottleneck --profile xdcam422 --target /mnt/films
  What ends first on the way to a file server

meter methods:
meter methods --profile xdcam422 --target /mnt/films --max-streams 50
  Each way of reading, up to 50 streams

meter run:
meter run --profile xdcam422 --target /mnt/films --streams 20 --duration 5min
  Twenty streams for five minutes
meter run --profile ingest-xavc300-25 --streams 4 --target /dev/sdx --destroy
  Four recordings over a whole disk
meter run --profile xdcam422 --target /mnt/films --streams 20 --threshold 9Mbps --threshold-each
  Reported at once when a stream starves
meter run --profile xdcam422 --target /mnt/films --streams 40 --hosts edit1,edit2
  From two other machines, by ssh

meter transfers:
meter transfers --profile ebu3362-edit --target /mnt/films --clients 4
  Four clients as in EBU TECH 3362
meter transfers --profile dpx10-hd --target /mnt/films --frames 24 --file-per-client
  Up to a second of single frames

meter ramp:
meter ramp ebu-multi-edit --target /mnt/films --step 5min --out ramp
  The EBU's script, in shorter steps
meter ramp ebu-multi-edit --toml
  The script, to change and use

meter ebu:
meter ebu --target /mnt/films --size 400GiB --step 5min --out procedure
  In seven hours instead of eighty

meter report:
meter report monday
  A run, counted again from its log

meter profiles:
meter profiles prores-hq-uhd --toml
  A profile, to change and use
meter profiles --verify
  All figures, computed again

meter rounds:
meter rounds sim:st39183w --streams 62 --block 1MB --rate 1.5Mbps
  A simulated disk of 1999
meter rounds /dev/sdb /dev/sdc --streams 40 --iodepth 40 --alone
  What two disks cost each other
meter rounds film.bin --streams 1 --unpaced
  The sequential rate of a file

meter compare:
meter compare monday tuesday --confidence 99
  Is Tuesday better?

meter profile-from:
meter profile-from day.strace --only /mnt/films/
  One folder's traffic

meter agent:
meter agent /mnt/films --token-file secret --listen 0.0.0.0:7070
  For controllers on the network

meter study:
meter study block-size --target /mnt/films
  What the block size does
meter study nodes --target /mnt/one --second /mnt/two
  What a second node adds

meter study network:
meter study network --link 1Gbps
  A gigabit link";

/// Wrong command lines after `tenuto`, each with words of its error text.
#[cfg(test)]
const MISUSES: &[(&str, &str)] = &[
    // Values.
    ("format a --size big", "--size: 'big' is not a size such as 64KiB, 40GiB"),
    ("plan --rate fast", "--rate: 'fast' is not a bit rate such as 800kbps"),
    ("serve a --slot 500", "--slot: '500' is not a time such as 500ms, 2s or 1h"),
    ("serve a --wait 1min", "--wait: players give up before 1min: at most 30s"),
    ("plan --disks 0", "--disks: '0' is not a whole number from 1 to 10000"),
    ("play http://a --speed 0", "'0' is not a speed such as 2, 0.5 or -1"),
    ("serve a --listen 8080", "'8080' is not an address such as 127.0.0.1:8080"),
    ("play http://a --arrivals often", "'often' is not a way to arrive: 'all'"),
    ("play http://a --choice best", "'best' is not a way to choose titles: 'in-turn'"),
    ("plan --model floppy", "--model: there is no disk model 'floppy', and no file"),
    ("simulate admission --policy best", "--policy: 'best' is not a policy"),
    ("reproduce lee-streams --filesystems ext9", "'ext9' is none of raw, ext2"),
    // Options that need or exclude each other.
    ("ingest a a.mkv b.mkv --title c", "--title names one title"),
    ("ingest a a.mkv --renditions", "--renditions needs two or more files"),
    ("check a --rebuild --scrub", "--rebuild works on one store"),
    ("check a --destroy", "a check overwrites nothing"),
    ("play http://a --ca-file a --insecure", "contradict each other"),
    ("play http://a --key-file a", "--key-file needs --cert-file"),
    ("play http://a --save b --switching hls.js", "--save cannot put several"),
    ("plan --model ssd-sata", "no streams to plan for"),
    ("plan --rate 5Mbps", "no disk to plan with"),
    ("plan --model ssd-sata --calibration a", "are two disks"),
    ("plan --model ssd-sata --rate 1", "1 b/s is not the rate of a stream"),
    ("plan --model ssd-sata --rate 5Mbps --startup 10ms", "--startup: from 1s"),
    ("disk models --toml", "--toml needs the name of a model"),
    ("disk emulate ssd-sata", "--backing is missing"),
    ("simulate admission --arrivals all", "arrive independently"),
    ("simulate admission --read-size 1KiB", "between 64KiB and 64MiB"),
    ("reproduce --out charts", "--out needs the name of a reproduction"),
    ("reproduce lee-streams --emulated", "cannot be reproduced on an emulated disk"),
    ("meter run", "--profile is missing"),
    ("meter run --profile xdcam422", "--target is missing"),
    ("meter run --target . --switching hls.js", "--switching is for players"),
    ("meter run --target http://a --profile xdcam422", "a title has its own rate"),
    ("meter run --target http://a --buffered", "--buffered is not for players"),
    (
        "meter run --profile xdcam422 --target . --hosts a --threshold 1Mbps",
        "--threshold is not for agents",
    ),
    ("meter run --profile xdcam422 --target . --agents a --destroy", "--destroy is not for agents"),
    (
        "meter methods --profile xdcam422 --target . --method mmap",
        "--method: the command tries all methods",
    ),
    ("meter transfers --target .", "--profile is missing"),
    ("meter study writes", "--target is missing"),
    ("meter agent .", "--token-file is missing"),
    ("meter profiles --toml", "--toml needs the name of a profile"),
    ("man flying", "there is no command 'flying'"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Code;
    use crate::{cli, commands};
    use std::ffi::OsString;

    fn words(line: &str) -> Vec<OsString> {
        std::iter::once("tenuto").chain(line.split_whitespace()).map(OsString::from).collect()
    }

    #[test]
    fn every_example_parses_under_its_command() {
        for (command, examples) in sections() {
            for Example { line, shows } in examples {
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
        for (line, text) in MISUSES {
            let given = words(line);
            let failure = match cli::parse(given.clone()) {
                Err(error) => cli::failure(&error, &given[1..]),
                Ok(parsed) => commands::run(parsed.command).expect_err(line),
            };
            assert_eq!(failure.code, Code::Usage, "`{line}`: {failure:?}");
            assert!(failure.sentence.contains(text), "`{line}`: {failure:?}");
            assert!(failure.hint.is_some(), "`{line}` has no hint: {failure:?}");
        }
    }
}
