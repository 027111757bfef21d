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
const EXAMPLES: &str = include_str!("examples.txt");

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

    /// Wrong command lines after `tenuto`, each with words of its error text.
    const MISUSES: &[(&str, &str)] = &[
        // Values.
        ("format a --size big", "--size: 'big' is not a size such as 64KiB, 40GiB"),
        ("plan --rate fast", "--rate: 'fast' is not a bit rate such as 800kbps"),
        ("serve a --slot 500", "--slot: '500' is not a time such as 500ms, 2s or 1h"),
        ("serve a --wait 1min", "--wait: players give up before 1min: at most 30s"),
        ("ingest a a.mkv --subtitles a.srt", "'a.srt' is not a language and a file"),
        ("ingest a a.mkv --subtitles en,loud=a.srt", "'loud' is neither forced nor sdh"),
        ("ingest a a.%d.png --fps fast", "'fast' is no number of pictures in a second"),
        ("ingest a a.mkv --thumbnails=0.5s", "--thumbnails: '0.5s' is not a number of whole"),
        ("record a b - --part 10ms", "--part: '10ms' is less than a second"),
        ("record a b - --rate 0", "--rate: a rate of 0 reserves nothing"),
        ("ls a --search=", "--search needs a value"),
        ("ls a --limit 0", "--limit: '0' is not a whole number from 1 to 1000000000"),
        ("plan --disks 0", "--disks: '0' is not a whole number from 1 to 10000"),
        ("play http://a --speed 0", "'0' is not a speed such as 2, 0.5 or -1"),
        ("serve a --rtsp 8554", "'8554' is not an address such as 127.0.0.1:8080"),
        ("serve a --auth-request http://b --auth-request-timeout 1m", "from 100 ms to 30 s"),
        ("serve a --auth-request-secret f", "--auth-request"),
        ("serve a --otlp http://a:4318 --otlp-traced 10%", "'10%' is no part from 0 to 1"),
        ("serve a --node-rtsp-address http://n1", "'http://n1' is no address such as rtsp://n1"),
        ("serve a --uploads u --ingest-from files/", "'files/' begins neither with https://"),
        ("cluster upgrade --cluster http://e1:1 --cluster-name a", "--run"),
        ("cluster forget --cluster http://e1:1 --cluster-name a", "NODE is missing"),
        ("cluster forget n1 --titles --cluster http://e1:1 --cluster-name a", "contradict"),
        ("cluster upgrade --run true --timeout 0s", "'0s' is no time at all"),
        ("play http://a/t/b --timeout 0s", "'0s' is no time at all"),
        ("director --cluster e1:2379", "'e1:2379' begins neither with http:// nor with https://"),
        ("director --cluster http://e1", "'http://e1' has no port; that of etcd is 2379"),
        ("director --rtsp 8554", "'8554' is not an address such as 127.0.0.1:8080"),
        ("director --survive-loss=disk", "--survive-loss: 'disk' is not one of node, title"),
        ("director --cluster-name a/b", "'a/b' is not a name: a cluster's name has 1 to 64"),
        ("director --cluster http://e1:1 --cluster-name a", "--cluster-secret"),
        ("cluster nodes --cluster http://e1:1 --cluster-name a --etcd-cert c", "--etcd-key"),
        ("serve a --listen 8080", "'8080' is not an address such as 127.0.0.1:8080"),
        ("play http://a --bandwidth 1", "--bandwidth: at 1 nobody watches: at least 8kbps"),
        ("play http://a --arrivals often", "'often' is not a way to arrive: 'all'"),
        ("play http://a --trace t --viewers 5", "--trace and --viewers contradict each other"),
        ("play http://a --choice best", "'best' is not a way to choose titles: 'in-turn'"),
        ("plan --model floppy", "--model: there is no disk model 'floppy', and no file"),
        ("simulate admission --policy best", "--policy: 'best' is not a policy"),
        ("reproduce lee-streams --filesystems ext9", "'ext9' is none of raw, ext2"),
        ("token keys.json --priority first", "'first' is not one of low, normal"),
        ("token keys.json --subject=", "--subject: a subject has a letter at least"),
        // Options that need or exclude each other.
        ("ingest a a.mkv b.mkv --title c", "--title names one title"),
        ("serve a --ingest-from https://", "--uploads is missing"),
        ("ingest a a.mkv --renditions", "--renditions needs two or more files"),
        ("resize a +1GiB", "'+1GiB'"),
        ("check a --rebuild --scrub", "--rebuild works on one store"),
        ("reproduce alderman-table1 --block 512KB --rounds 5", "--emulated"),
        ("reproduce park-figures --streams 3", "--emulated"),
        ("reproduce park-figures --ldu 7", "--emulated"),
        ("reproduce lee-drift --filesystems raw", "--emulated"),
        ("reproduce lee-drift --time-scale 2", "--emulated"),
        ("reproduce lee-drift --backing a", "--emulated"),
        ("reproduce --emulated", "--emulated needs the name"),
        ("reproduce lee-drift --emulated --streams 3", "--streams has no effect on lee-drift"),
        ("reproduce lee-streams --emulated --rounds 9", "--rounds has no effect on lee-streams"),
        ("reproduce lee-streams --emulated --time-scale 2", "--time-scale has no effect on"),
        (
            "reproduce park-figures --emulated --block 512KB",
            "--block has no effect on park-figures",
        ),
        (
            "simulate admission --preset crowd --policy vbrsim",
            "--policy has no effect with --preset",
        ),
        (
            "simulate admission --preset crowd --arrivals poisson:1s",
            "--arrivals has no effect with",
        ),
        ("simulate admission --preset slowing --scenarios 5", "--scenarios has no effect with"),
        ("simulate admission --preset stress --memory 1MiB", "--memory has no effect with"),
        ("simulate admission --preset stress --store a", "--store has no effect with"),
        ("simulate admission --preset paper --wait 3s", "--wait has no effect with --preset paper"),
        ("simulate admission --arrivals poisson:0ms", "the mean time between arrivals is longer"),
        ("simulate admission --arrivals often", "'often' is not a mean time between arrivals"),
        ("check a --destroy", "a check overwrites nothing"),
        ("play rtsp://a --bandwidth 1Mbps --rtsp-transport udp", "datagrams are in none"),
        ("play http://a --ca-file a --insecure", "contradict each other"),
        ("serve a --http2 maybe", "'maybe' is not one of on, off"),
        ("play http://a --key-file a", "--key-file needs --cert-file"),
        ("play http://a --save b --switching hls.js", "--save cannot put several"),
        ("plan --model ssd-sata", "no streams to plan for"),
        ("plan --rate 5Mbps", "no disk to plan with"),
        ("plan --model ssd-sata --calibration a", "are two disks"),
        ("plan --rate 5Mbps --calibration ssd-sata", "ssd-sata is a disk model"),
        ("plan --model ssd-sata --title film.store", "has no colon between store and title"),
        ("plan --model ssd-sata --title .:", "names no title of the store"),
        ("plan --model ssd-sata --rate 5Mbps --titles 9", "--titles needs --memory"),
        ("plan --model ssd-sata --rate 5Mbps --zipf 1", "--zipf needs --titles"),
        ("plan --model ssd-sata --rate 1", "1 b/s is not the rate of a stream"),
        ("plan --model ssd-sata --rate 5Mbps --startup 61min", "--startup: an hour at most"),
        ("disk models --toml", "--toml needs the name of a disk model"),
        ("disk emulate ssd-sata", "--backing is missing"),
        ("simulate admission --arrivals all", "arrive independently"),
        ("simulate admission --read-size 1KiB", "between 64KiB and 64MiB"),
        ("simulate admission --memory 512KiB", "no read of 1 MiB fits in 512 KiB"),
        ("simulate admission --preset library --memory 2MiB", "no read of 4 MiB fits"),
        ("simulate ageing --read-size 1KiB", "between 64KiB and 64MiB"),
        ("simulate fleet --nodes 9999 --disks 200", "guaranteed streams are more than"),
        ("simulate fleet --time 1000d", "--time must be between 1min and 744h"),
        ("simulate fleet --rate 1bps", "a disk does not hold streams of 1 b/s"),
        ("reproduce --out charts", "--out needs the name of a reproduction"),
        ("reproduce lee-rate-vs-unit --emulated", "cannot be reproduced on an emulated disk"),
        ("reproduce park-figures --emulated --filesystems raw", "does not measure 'raw'"),
        ("meter run", "--profile is missing"),
        ("meter run --profile xdcam422", "--target is missing"),
        ("meter run evening.toml --buffer-frames 4", "--buffer-frames is for runs without a job"),
        ("meter run nothing.toml", "cannot read nothing.toml"),
        ("meter run --target . --profile xdcam422 --rate 0bps", "0 b/s for 1 stream"),
        (
            "meter run --target . --profile dpx10-hd --read-frames 2",
            "2 frames in one read, and each in its file",
        ),
        ("meter run --target . --names frame.dpx", "%d, the number of the frame, is once"),
        ("meter run --target . --profile xdcam422 --names %d", "--names is for a file per frame"),
        ("meter run --target . --profile dpx10-hd --existing", "--existing needs --names"),
        (
            "meter run --target . --profile dpx10-hd --names none_%07d.dpx --existing",
            "no file is named",
        ),
        ("meter run --target http://a --rate 1Mbps", "--rate is not for players"),
        ("meter run --target . --switching hls.js", "--switching is for players"),
        ("meter run --target http://a --profile xdcam422", "a title has its own rate"),
        ("meter run --target http://a --buffered", "--buffered is not for players"),
        (
            "meter run --profile xdcam422 --target . --hosts a --threshold 1Mbps",
            "--threshold is not for agents",
        ),
        ("meter run --profile xdcam422 --target . --hosts a --live", "--live is not for agents"),
        (
            "meter run --profile xdcam422 --target . --agents a --destroy",
            "--destroy is not for agents",
        ),
        (
            "meter methods --profile xdcam422 --target . --method mmap",
            "--method: the command tries all methods",
        ),
        ("meter transfers --target .", "--profile is missing"),
        (
            "meter transfers --profile ebu3362-read --target sim:ssd-sata --rate 0bps",
            "at 0 b/s no block is ever due",
        ),
        ("meter study writes", "--target is missing"),
        ("meter agent .", "--token-file is missing"),
        (
            "meter console --listen 0.0.0.0:8099",
            "--listen 0.0.0.0:8099 can be reached from other machines: anybody could measure",
        ),
        ("meter profiles --toml", "--toml needs the name of a profile"),
        ("man flying", "there is no command 'flying'"),
    ];
}
