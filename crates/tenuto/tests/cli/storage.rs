//! `meter run`, `meter capacity` and `meter profiles`: what they find, leave behind and refuse.

use crate::program::{TestDir, program};
use device::{FileDevice, Method, OpenOptions};
use meter::operations::{read, recount};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

const SIMULATED: &str = "--profile xdcam422 --target sim:ssd-sata --duration 4s";

#[test]
fn profiles_are_listed_explained_and_computed_again() {
    let dir = TestDir::new();
    let all = dir.json("meter profiles --verify");
    let all = all["profiles"].as_array().unwrap();
    assert!(all.len() >= 30, "{}", all.len());
    assert!(all.iter().all(|profile| profile["wrong"].as_array().unwrap().is_empty()));
    assert!(dir.ok("meter profiles v210-uhd").contains("22118400 a frame"));
    let list = dir.ok("meter profiles");
    let line = list.lines().find(|line| line.starts_with("v210-uhd ")).unwrap();
    assert!(line.contains(" 22,118,400 ") && line.contains(" 4423.68 "), "{line}");
    let file = dir.ok("meter profiles v210-uhd --toml");
    dir.write("own.toml", file.replace("22_118_400", "22_118_401"));
    let wrong = dir.run("meter profiles own.toml --verify");
    assert_eq!(wrong.code, Some(1), "{}", wrong.err);
    assert!(wrong.out.contains("bytes = 22118401, and its definition gives 22118400"));
    dir.write("own.toml", file.replace("fps = \"25\"", "fps = \"fast\""));
    dir.fails("meter profiles own.toml", 2, "line 4: fps = 'fast'");
    dir.fails("meter profiles prores", 2, "there is no profile 'prores', and no file");
    dir.fails("meter profiles --toml", 2, "--toml needs the name of a profile");
}

#[test]
fn a_size_that_is_too_small_or_not_used_is_told() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("films")).unwrap();
    let line = "meter run --profile xdcam422 --target films --duration 1s";
    for (options, words) in [
        ("--size 1KiB --streams 2", "1 KiB is too small for 2 streams\nhint: 496 KiB hold a frame"),
        ("--size 1KiB", "1 KiB is too small for 1 stream\n"),
        (
            "--size 300KiB --streams 2 --layout file-per-stream",
            "there is room for 1 file, and 2 streams have one each\nhint: make --size larger",
        ),
    ] {
        dir.fails(&format!("{line} {options}"), 2, words);
    }
    assert_eq!(std::fs::read_dir(dir.path("films")).unwrap().count(), 0);
    dir.write("tiny", "x".repeat(100));
    let tiny = "meter run --profile xdcam422 --target tiny --duration 1s";
    dir.fails(tiny, 2, "a target without a whole page of 4 KiB is too small for 1 stream");
    // Frames that are there do not become more with a larger --size.
    std::fs::create_dir(dir.path("shot")).unwrap();
    (0..3).for_each(|frame| dir.write(&format!("shot/{frame}.xd"), "x".repeat(250_000)));
    let frames = "meter run --profile xdcam422 --layout file-per-frame --target shot --names %d.xd \
                  --existing --streams 5 --duration 1s";
    dir.fails(frames, 2, "3 frames cannot be divided among 5 streams\nhint: take fewer --streams");
    let note = "note: --size is for files that are made: all of sim:ssd-sata is used\n";
    for line in [
        "meter run --profile xdcam422 --duration 1s --target sim:ssd-sata",
        "meter transfers --profile ebu3362-read --duration 1s --target sim:ssd-sata",
        "meter capacity --profile xdcam422 --max-streams 3 --duration 1s --target sim:ssd-sata",
    ] {
        for (size, told) in [("", false), ("--size 1GiB", true)] {
            let run = dir.run(&format!("{line} {size}"));
            assert_eq!((run.code, run.err.contains(note)), (Some(0), told), "{line}: {}", run.err);
        }
    }
}

#[test]
fn a_run_in_virtual_time_is_always_the_same_and_leaves_a_report() {
    let dir = TestDir::new();
    let line = format!("meter run {SIMULATED} --streams 3");
    let mut report = dir.json(&format!("{line} --out monday"));
    assert_eq!((&report["frames"], &report["late"]), (&300.into(), &0.into()));
    assert_eq!((&report["valid"], &report["complete"]), (&true.into(), &true.into()));
    assert_eq!(report["each_stream"].as_array().unwrap().len(), 3);
    let kept: serde_json::Value = serde_json::from_slice(&dir.read("monday/summary.json")).unwrap();
    assert_eq!(kept, report);
    let logged = report.as_object_mut().unwrap().remove("log").unwrap();
    assert_eq!((&logged["records"], &logged["lost"]), (&300.into(), &0.into()));
    assert_eq!(report, dir.json(&line));
    let counted = recount(read(&dir.path("monday")).unwrap()).unwrap();
    assert_eq!((counted.frames, counted.late), (300, 0), "the log says the same");
    let again = dir.json("meter report monday");
    assert_eq!((&again["frames"], &again["summary_agrees"]), (&300.into(), &true.into()));
    let recounted = String::from_utf8(dir.read("monday/recount.html")).unwrap();
    for wanted in ["Round by round", "Responses over time", "Late frames by second", "in time"] {
        assert!(recounted.contains(wanted), "{wanted}: {recounted}");
    }
    let seconds = String::from_utf8(dir.read("monday/seconds.csv")).unwrap();
    assert_eq!(seconds.lines().count(), 1 + report["seconds"].as_array().unwrap().len());
    let page = String::from_utf8(dir.read("monday/report.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("300, none late"), "{page}");
    dir.fails(&format!("{line} --out monday"), 1, "monday is not empty");
}

/// Frames of 5 s, of which clients buffer 43 s: a run of a minute shows nothing. The disk delivers
/// 88.8 Mb/s for 20 minutes, which is 59 streams.
#[test]
fn formats_with_long_frames_are_held_by_what_the_disk_delivers() {
    let dir = TestDir::new();
    let on = "--profile mpeg-1.5 --target sim:st39183w";
    let found = dir.json(&format!("meter capacity {on} --confirm 30min"));
    assert_eq!((&found["streams"], &found["confirmed"]), (&59.into(), &true.into()), "{found}");
    assert_eq!(found["burst"], serde_json::Value::Null);
    // No frame is late yet, but all wait longer and longer.
    let run = dir.run(&format!("meter run {on} --streams 61 --duration 10min --json"));
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&report["late"], &report["backlog_grows"]), (&0.into(), &true.into()), "{report}");
    assert_eq!(run.code, Some(3));
    let short = dir.run(&format!("meter run {on} --streams 61 --duration 1min"));
    assert!(short.err.contains("too short to show that streams are held"), "{}", short.err);
}

/// Disks without a cache. A client of `abr-hd` waits for 48 s before a segment is late, so that the
/// first runs of a search are not late for that long, however little comes.
#[test]
fn a_disk_without_a_cache_has_no_burst() {
    let dir = TestDir::new();
    for (profile, disk) in
        [("abr-hd", "st39183w"), ("abr-uhd", "st39183w"), ("mpeg-1.5", "atlas-iv")]
    {
        let line = format!("meter capacity --profile {profile} --target sim:{disk} --confirm 1h");
        let found = dir.json(&line);
        assert_eq!(found["burst"], serde_json::Value::Null, "{profile} on {disk}: {found}");
    }
}

/// The bound is one of rounds, of which each has a frame of every stream.
#[test]
fn the_certainty_of_a_rule_on_rounds_counts_rounds() {
    let dir = TestDir::new();
    let line = "meter capacity --profile xdcam422 --target sim:ssd-sata --max-streams 8";
    let found =
        dir.ok(&format!("{line} --duration 20s --confirm 20s --rule one-late-round-of-100"));
    assert!(found.contains("of rounds late, of 1500, none late"), "{found}");
}

/// Nearly every frame is late, so that none can wait longer than those before.
#[test]
fn late_frames_hide_whether_a_backlog_grows() {
    let dir = TestDir::new();
    for (streams, grows) in [(8, serde_json::Value::Null), (2, false.into())] {
        let line =
            format!("meter run --profile xdcam422 --streams {streams} --target sim:hdd-20tb");
        let run = dir.run(&format!("{line} --duration 1min --json"));
        let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(report["backlog_grows"], grows, "{report}");
    }
}

/// Six hours: what the search found in a confirming run of 23 minutes is held, and no more.
#[test]
fn a_long_run_does_not_contradict_the_capacity_that_was_found() {
    let dir = TestDir::new();
    for (streams, code) in [(59, 0), (60, 3)] {
        let line = format!(
            "meter run --profile mpeg-1.5 --target sim:st39183w --streams {streams} --duration 6h \
             --json"
        );
        let run = dir.run(&line);
        let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(run.code, Some(code), "{streams}: {}", run.err);
        assert_eq!(report["late"] == 0, code == 0, "{streams} streams");
    }
}

/// An overload of 0.05 %: half an hour of 186 streams is held, and nine hours are not.
#[test]
fn a_number_that_a_long_run_does_not_hold_is_lowered() {
    let line = "meter capacity --profile abr-hd --target sim:hdd-20tb --confirm 10h";
    let found = TestDir::new().json(line);
    assert_eq!((&found["streams"], &found["too_many"]), (&185.into(), &186.into()), "{found}");
    let runs = found["runs"].as_array().unwrap();
    let said = |run: &serde_json::Value| {
        (run["streams"].as_u64(), run["why"].as_str() == Some("endure"), run["held"].as_bool())
    };
    let last: Vec<_> = runs.iter().rev().take(3).map(said).collect();
    let expected = [(185, true, true), (186, true, false), (186, false, true)];
    let expected = expected.map(|(streams, endure, held)| (Some(streams), endure, Some(held)));
    assert_eq!((&last[..], &found["confirmed"]), (&expected[..], &true.into()));
    assert!(runs.last().unwrap()["took"].as_f64().is_some_and(|took| took >= 36_000.0));
}

#[test]
fn the_capacity_of_a_simulated_disk_is_where_one_more_stream_is_late() {
    let dir = TestDir::new();
    // No longer than the confirming run: without the last stage.
    let found = dir.json(&format!("meter capacity {SIMULATED} --confirm 12s --out found"));
    assert_eq!(found["confirmed"], true, "{found}");
    let most = found["streams"].as_u64().unwrap();
    let late = |streams| {
        let run = dir.run(&format!("meter run {SIMULATED} --streams {streams} --json"));
        let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        (run.code, report["late"].as_u64().unwrap())
    };
    assert_eq!(late(most), (Some(0), 0));
    let (code, late) = late(most * 11 / 10);
    assert!(
        code == Some(3) && late > 0,
        "a tenth more shows in a short run, too: {code:?}, {late}"
    );
    let last = found["runs"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["why"], &last["held"]), (&"confirm".into(), &true.into()));
    let page = String::from_utf8(dir.read("found/report.html")).unwrap();
    for wanted in [
        &*format!("Holds {most} streams of xdcam422."),
        "How sure",
        "1 in ",
        &format!("<p class=\"value\">{}</p>", most + 1),
        "asked for",
        "in time",
        "Where and when",
    ] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
    // In the plots of the confirming run, too, is the line of what is in time.
    let confirming = &page[page.find("The confirming run").unwrap()..];
    assert!(confirming.contains("in time"), "{confirming}");
    // Every run has its log, and says the same.
    let again = dir.json("meter report found");
    let counted = again["runs"].as_array().unwrap();
    assert_eq!(counted.len(), found["runs"].as_array().unwrap().len());
    let last = counted.last().unwrap();
    assert_eq!((&last["streams"], &last["late"]), (&most.into(), &0.into()));
    assert_eq!(again["summary_agrees"], true, "{again}");
    let page = String::from_utf8(dir.read("found/recount.html")).unwrap();
    assert!(page.contains("What came, by number of streams") && page.contains("Round by round"));
    let environment: serde_json::Value =
        serde_json::from_slice(&dir.read("found/environment.json")).unwrap();
    assert!(environment["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 24));
    let few = dir.json(&format!("meter capacity {SIMULATED} --max-streams 2 --confirm 1min"));
    assert_eq!((&few["streams"], &few["at_limit"]), (&2.into(), &true.into()));
    let last = few["runs"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["why"], &last["frames"]), (&"endure".into(), &3000.into()), "{few}");
}

#[test]
fn transfers_are_told_of_and_watched_while_they_run() {
    let dir = TestDir::new();
    let line = "meter transfers --profile ebu3362-read --target sim:ssd-sata --transfers 40";
    // A SATA disk moves some 4 Gb/s and not 100.
    let below = format!("{line} --threshold 100Gbps --threshold-window 100ms --out slow --json");
    let below = dir.run(&below);
    assert_eq!(below.code, Some(3), "{}", below.err);
    let below: serde_json::Value = serde_json::from_str(&below.out).unwrap();
    let said = &below["threshold"];
    assert_eq!(said["crossings"][0]["below"], true, "{said}");
    assert!(
        dir.json(&format!("{line} --threshold 1kbps --threshold-window 100ms"))["threshold"]["crossings"]
            .as_array()
            .is_some_and(Vec::is_empty)
    );
    let page = String::from_utf8(dir.read("slow/report.html")).unwrap();
    assert!(page.contains("Blocks over time") && page.contains("Rate by block size"));
    dir.write(
        "day.log",
        "fio version 3 iolog\n1 /a add\n2 /a open\n3 /a read 0 65536\n9 /a write 65536 512\n",
    );
    dir.write("day.toml", dir.ok("meter profile-from day.log --name day"));
    let drawn = dir.json(&line.replace("ebu3362-read", "day.toml"));
    let sizes: Vec<u64> = drawn["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["block"].as_u64().unwrap())
        .collect();
    assert!(sizes.iter().all(|size| [512, 65536].contains(size)), "{drawn}");
    assert_eq!(drawn["all"]["transfers"], 40);
    let block = format!("{} --block 4KiB", line.replace("ebu3362-read", "day.toml"));
    dir.fails(&block, 2, "profile day says all sizes itself");
}

#[test]
fn whole_files_are_written_anew_and_take_the_place_of_the_old_ones() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("films")).unwrap();
    let line = "meter transfers --profile ebu3362-write --block 64KiB --replace --file-per-client \
                --clients 2 --transfers 3 --size 24MiB --target";
    let done = dir.json(&format!("{line} films"));
    assert_eq!(done["all"]["transfers"], 6, "{done}");
    assert_eq!(done["all"]["bytes"], 6 * (12 << 20), "each writes all of its file");
    assert_eq!(std::fs::read_dir(dir.path("films")).unwrap().count(), 0);
    dir.write("one.bin", vec![7; 1 << 20]);
    dir.fails(&format!("{line} one.bin --destroy"), 2, "only where files are made");
}

#[test]
fn counts_can_be_scraped_while_streams_run() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("films")).unwrap();
    let line = "meter run --profile audio-16ch --target films --size 4MiB --duration 60s --json \
                --metrics 127.0.0.1:0";
    let mut child = program(&dir.path("."))
        .args(line.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut note = String::new();
    said.read_line(&mut note).unwrap();
    let address = note.trim().strip_prefix("note: metrics at http://").expect(&note);
    let address = address.strip_suffix("/metrics").expect(&note);
    // The files are filled first: asked until some frame is over.
    let text = loop {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("# EOF\n"), "{text}");
        if !text.contains("tenuto_meter_frames_total 0") {
            break text;
        }
    };
    assert!(text.contains("tenuto_meter_clients 1") && text.contains("tenuto_meter_runs_total 1"));
    let documented = include_str!("../../../../docs/reference/metrics.md");
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = line.split(' ').next().unwrap();
        assert!(documented.contains(name), "{name} is not in docs/reference/metrics.md");
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

/// With two streams at most no stage is at its end; how late this machine is says nothing here.
/// Clients buffer little, because the run that confirms a number is a multiple of what they buffer.
#[test]
fn the_ladder_goes_from_the_meter_alone_to_the_storage() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("films")).unwrap();
    let line = "meter bottleneck --profile audio-16ch --target films --size 2MiB --max-streams 2 \
                --buffer-frames 1 --duration 80ms --out way --json";
    let run = dir.run(line);
    assert!([Some(0), Some(3), Some(5)].contains(&run.code), "{}", run.err);
    let said: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let stages: Vec<&str> =
        said["stages"].as_array().unwrap().iter().map(|r| r["stage"].as_str().unwrap()).collect();
    assert_eq!((stages[0], *stages.last().unwrap()), ("client", "cold"), "{said}");
    assert_eq!(std::fs::read_dir(dir.path("films")).unwrap().count(), 0);
    let page = String::from_utf8(dir.read("way/report.html")).unwrap();
    assert!(page.contains("Streams held on each stage") && page.contains("Stage cold"));
    let simulated = "meter bottleneck --profile audio-16ch --target sim:hdd-20tb";
    dir.fails(simulated, 2, "a simulated disk has no way to it");
}

/// With one stream at most none is at its end; how late this machine is says nothing here. Which
/// ways there are is the kernel's and the disk's to say: each is tried, or named with the reason
/// why not.
#[test]
fn each_way_of_reading_is_searched_on_the_same_file() {
    let dir = TestDir::new();
    dir.write("here.bin", vec![7; 1 << 20]);
    let here = FileDevice::open(&dir.path("here.bin"), OpenOptions::default()).unwrap();
    let (works, refused): (Vec<_>, Vec<_>) =
        here.methods().into_iter().partition(|(_, allowed)| allowed.is_ok());
    std::fs::create_dir(dir.path("films")).unwrap();
    let line = "meter methods --profile audio-16ch --size 2MiB --buffer-frames 1";
    let on = format!("{line} --target films --max-streams 1 --duration 80ms --out ways --json");
    let run = dir.run(&on);
    assert!([Some(0), Some(3), Some(5)].contains(&run.code), "{}", run.err);
    let said: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let named = |list: &str| {
        let list = said[list].as_array().unwrap().iter();
        list.map(|way| way["method"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let names =
        |ways: &[(Method, _)]| ways.iter().map(|(way, _)| way.to_string()).collect::<Vec<_>>();
    assert_eq!((named("methods"), named("refused")), (names(&works), names(&refused)), "{said}");
    for way in said["methods"].as_array().unwrap() {
        let by = way["done_by"].as_str().unwrap();
        assert!(!by.is_empty() && !by.contains("(no "), "another way instead: {way}");
    }
    for (way, reason) in &refused {
        let reason = reason.as_ref().unwrap_err().to_string();
        assert!(run.err.contains(&format!("{way} is left out: {reason}")), "{}", run.err);
    }
    assert_eq!(std::fs::read_dir(dir.path("films")).unwrap().count(), 0);
    let page = String::from_utf8(dir.read("ways/report.html")).unwrap();
    assert!(page.contains("Streams held by each way of reading") && page.contains("mmap-all"));
    for elsewhere in ["sim:hdd-20tb", "null:"] {
        dir.fails(&format!("{line} --target {elsewhere}"), 2, "for a single file or device");
    }
    dir.fails(&format!("{line} --target films --method pread"), 2, "the command tries all methods");
}

/// How late this machine is says nothing here: a run that is not valid leaves as little.
#[test]
fn a_directory_is_left_as_it_was_and_a_file_is_only_read() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("films")).unwrap();
    dir.write("films/mine.mkv", vec![7; 3 << 20]);
    let line = "meter run --profile audio-16ch --duration 200ms --size 2MiB --streams 2 --json";
    for target in ["films", "films/mine.mkv"] {
        for method in ["best", "pread"] {
            let done = dir.run(&format!("{line} --target {target} --method {method}"));
            let report: serde_json::Value = serde_json::from_str(&done.out).unwrap();
            assert_eq!((&report["frames"], &report["failed"]), (&10.into(), &0.into()), "{report}");
        }
    }
    for layout in ["shared-file", "file-per-stream", "file-per-frame"] {
        let done = dir.run(&format!("{line} --target films --layout {layout}"));
        let report: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!((&report["frames"], &report["failed"]), (&10.into(), &0.into()), "{report}");
        assert_eq!(report["bytes_written"], 0);
    }
    let inside: Vec<_> = std::fs::read_dir(dir.path("films")).unwrap().collect();
    assert_eq!(inside.len(), 1, "{inside:?}");
    assert!(dir.read("films/mine.mkv") == vec![7; 3 << 20]);
}

/// Frames that came: a disk that is busy with others may stand still for longer than the run.
fn came(report: &serde_json::Value) -> u64 {
    report["frames"].as_u64().unwrap() - report["never_came"].as_u64().unwrap()
}

#[test]
fn cameras_write_to_files_of_the_meters_own_and_elsewhere_only_with_destroy() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("films")).unwrap();
    dir.write("films/mine.mkv", vec![7; 16 << 20]);
    let line = "meter run --profile ingest-xavc300-25 --duration 200ms --size 16MiB --json";
    for layout in ["one-file", "shared-file", "file-per-stream", "file-per-frame"] {
        let done = dir.run(&format!("{line} --streams 2 --target films --layout {layout}"));
        let report: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!((&report["frames"], &report["bytes_read"]), (&10.into(), &0.into()), "{report}");
        assert_eq!(report["bytes_written"], came(&report) * 1_230_500, "{report}");
    }
    dir.fails(&format!("{line} --target films/mine.mkv"), 2, "would be overwritten");
    assert!(dir.read("films/mine.mkv") == vec![7; 16 << 20]);
    let named = format!("{line} --target films/mine.mkv --destroy");
    let report: serde_json::Value = serde_json::from_str(&dir.run(&named).out).unwrap();
    assert_eq!(report["frames"], 5);
    assert_eq!(report["bytes_written"], came(&report) * 1_230_500, "{report}");
    assert!(dir.read("films/mine.mkv") != vec![7; 16 << 20]);
    let inside: Vec<_> = std::fs::read_dir(dir.path("films")).unwrap().collect();
    assert_eq!(inside.len(), 1, "{inside:?}");
}

#[test]
fn transfers_are_counted_by_the_ebus_formulas_and_logged_block_by_block() {
    let dir = TestDir::new();
    let line = "meter transfers --profile ebu3362-edit --target sim:ssd-sata --clients 2 \
                --transfers 40 --duration 1h";
    let report = dir.json(&format!("{line} --out edit"));
    assert_eq!((&report["all"]["transfers"], &report["complete"]), (&80.into(), &true.into()));
    let rows = report["rows"].as_array().unwrap();
    let sum = |name: &str| rows.iter().map(|row| row[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("transfers"), sum("blocks")), (80, report["log"]["records"].as_u64().unwrap()));
    let counted = recount(read(&dir.path("edit")).unwrap()).unwrap();
    assert_eq!(counted.bytes.values().sum::<u64>(), sum("bytes"));
    assert_eq!(counted.frames, 0, "nothing has a deadline");
    let page = String::from_utf8(dir.read("edit/report.html")).unwrap();
    assert!(page.contains("Rate by block size") && page.contains("sequential write"));
    std::fs::create_dir(dir.path("films")).unwrap();
    dir.write("films/mine.mkv", vec![7; 16 << 20]);
    let line = "meter transfers --profile ebu3362-edit --length 1MiB --size 16MiB --transfers 5 \
                --duration 1min";
    for more in
        ["", " --file-per-client --clients 3", " --files 2 --no-repeat --think 1ms", " --buffered"]
    {
        let report = dir.json(&format!("{line} --target films{more}"));
        assert_eq!(report["failed"], 0, "{report}");
    }
    dir.fails(&format!("{line} --target films/mine.mkv"), 2, "would be overwritten");
    let small = "meter transfers --profile ebu3362-edit --target films --size 1MiB";
    dir.fails(small, 2, "make --size larger");
    dir.fails(&format!("{line} --target films --frames 2"), 2, "has no frames");
    dir.fails(&format!("{line} --target films/mine.mkv --files 2"), 2, "is one file");
    assert!(dir.read("films/mine.mkv") == vec![7; 16 << 20]);
    assert_eq!(std::fs::read_dir(dir.path("films")).unwrap().count(), 1);
}

#[test]
fn data_that_is_not_as_it_was_written_is_named_with_its_place() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::fs::FileExt;
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("films")).unwrap();
    let moved = dir.json(
        "meter transfers --profile ebu3362-edit --target films --size 24MiB --clients 2 \
         --transfers 20 --verify",
    );
    assert_eq!(moved["verify"]["differ"], 0, "{moved}");
    assert!(moved["verify"]["pages"].as_u64().unwrap() > 0, "{moved}");
    let line = "meter run --profile dvcpro50 --size 16MiB --duration 1s --verify --target";
    dir.fails(&format!("{line} sim:ssd-sata"), 2, "--verify is for files that the meter makes");
    let mut child = crate::program::program(&dir.path("."))
        .args(line.split_whitespace())
        .args(["films", "--layout", "file-per-stream", "--hold", "--json"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while line != "ready\n" {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended before it was ready");
    }
    // The third frame's first page, behind the back of the meter.
    let made = std::fs::read_dir(dir.path("films")).unwrap().next().unwrap().unwrap().path();
    let file = std::fs::OpenOptions::new().write(true).open(made.join("00000000")).unwrap();
    let third = 2 * 290_816;
    file.write_all_at(&[0; 4096], third).unwrap();
    file.sync_all().unwrap();
    // Open until the end: the end of its input would stop the run.
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"begin\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{:?}", std::io::read_to_string(said));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["verify"]["differ"], 1, "{found}");
    let first = &found["verify"]["first"][0];
    assert_eq!((&first["file"], &first["offset"]), (&0.into(), &third.into()), "{found}");
    assert_eq!(first["what"], "zeros");
    assert_eq!(found["failed"], 1, "a frame with other data was not delivered");
}

#[test]
fn a_ramp_has_a_step_for_each_number_of_clients() {
    let dir = TestDir::new();
    let line = "meter ramp ebu-single-edit --target sim:ssd-sata --step 1s";
    let report = dir.json(&format!("{line} --out ramp"));
    let steps = report["steps"].as_array().unwrap();
    let clients: Vec<u64> = steps.iter().map(|step| step["clients"].as_u64().unwrap()).collect();
    assert_eq!(clients, (1..=10).collect::<Vec<u64>>());
    let total = |step: &serde_json::Value| step["total_bits_per_s"].as_u64().unwrap();
    assert!(total(&steps[9]) > total(&steps[0]), "{report}");
    assert_eq!(report, dir.json(line), "the same from the same seed");
    let other = dir.run(&format!("{line} --seed 2 --threshold 1000Gbps --json"));
    assert_eq!(other.code, Some(3), "not held: {}", other.err);
    let other: serde_json::Value = serde_json::from_str(&other.out).unwrap();
    assert_ne!(total(&steps[9]), total(&other["steps"][9]));
    let crossed = &other["steps"][9]["threshold"]["crossings"][0];
    assert_eq!(crossed["below"], true, "each number of clients is watched by itself: {other}");
    let page = String::from_utf8(dir.read("ramp/report.html")).unwrap();
    assert!(page.contains("Mean latency, by number of clients"));
    let counted = recount(read(&dir.path("ramp/clients-010")).unwrap()).unwrap();
    assert_eq!(counted.records, steps[9]["all"]["blocks"].as_u64().unwrap());
    let again = dir.json("meter report ramp");
    assert_eq!(
        (again["runs"].as_array().unwrap().len(), &again["summary_agrees"]),
        (10, &true.into())
    );
    std::fs::create_dir(dir.path("films")).unwrap();
    let own = dir.ok("meter ramp ebu-multi-file-write --toml");
    dir.write("own.toml", own.replace("from = 4, to = 40, by = 4", "from = 1, to = 2, by = 1"));
    let report = dir.json("meter ramp own.toml --target films --size 8MiB --step 200ms");
    assert_eq!(report["steps"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(std::fs::read_dir(dir.path("films")).unwrap().count(), 0);
    dir.fails("meter ramp ebu --target films", 2, "there is no script 'ebu'");
    dir.fails("meter ramp own.toml", 2, "--target is missing");
}

#[test]
fn the_ebus_procedure_is_one_command_with_one_report() {
    let dir = TestDir::new();
    let line = "meter ebu --target sim:st39183w --step 200ms --repeats 1 --out all";
    let report = dir.json(line);
    let parts = report["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 20, "{report}");
    let part = |name: &str| parts.iter().find(|part| part["name"] == name).unwrap();
    let read = part("ebu-multi-read");
    assert_eq!(read["summary"]["steps"].as_array().unwrap().len(), 10);
    assert!(read["found"][0].as_str().unwrap().contains("mean latency"), "{read}");
    // A simulated disk has no network and no page cache, and nothing says where a second node is.
    assert!(part("cache")["left_out"].as_str().unwrap().contains("no page cache"), "{report}");
    assert!(part("network")["left_out"].as_str().unwrap().contains("in this machine"), "{report}");
    assert!(part("nodes")["left_out"].as_str().unwrap().contains("second node"), "{report}");
    assert!(part("position")["found"][0].is_string(), "{report}");
    let page = String::from_utf8(dir.read("all/report.html")).unwrap();
    for words in ["A file for each client", "Largest latency of a transfer", "Fragmentation"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!dir.read("all/ebu-single-edit/report.html").is_empty());
    dir.fails("meter ebu", 2, "--target is missing");
}

#[test]
fn a_study_says_what_is_so_and_leaves_nothing() {
    let dir = TestDir::new();
    let line = "meter study position --target sim:hdd-20tb --size 10TB --duration 2s";
    let report = dir.json(&format!("{line} --out inwards"));
    assert_eq!(report["answers"][0]["verdict"], "yes", "{report}");
    assert_eq!(report["settings"].as_array().unwrap().len(), 5);
    assert_eq!(report["runs"].as_array().unwrap().len(), 5 * 6);
    let page = String::from_utf8(dir.read("inwards/report.html")).unwrap();
    assert!(page.contains("the outer tracks of a disk are faster than the inner ones"));
    let text = dir.ok(line).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("(6.8, figures 37 and 38 (drawings)): yes. Here"), "{text}");
    std::fs::create_dir(dir.path("films")).unwrap();
    let line = "meter study fragmentation --target films --size 16MiB --duration 10ms --repeats 1";
    let report = dir.json(line);
    assert_eq!(report["answers"][0]["verdict"], "no difference shown", "one run proves nothing");
    assert_eq!(std::fs::read_dir(dir.path("films")).unwrap().count(), 0);
    let whole = dir.json("meter study position --target sim:hdd-20tb --duration 2s");
    assert_eq!(whole["answers"][0]["verdict"], "yes", "{whole}");
    assert_eq!(whole["scenario"]["size"], dir.json("disk models hdd-20tb")["size"], "{whole}");
    dir.fails("meter study cache --target sim:hdd-20tb", 2, "no page cache");
    dir.fails("meter study nodes --target films", 2, "--second");
    dir.fails("meter study writes --target films --size 1MiB", 2, "make --size larger");
    dir.fails("meter study writes", 2, "--target is missing");
}

/// A gate of which nothing was compared would be open to every storage.
#[test]
fn a_threshold_whose_window_is_longer_than_the_run_is_refused() {
    let dir = TestDir::new();
    let longer = "--threshold would never be checked: its window of";
    let abr = "meter run --profile abr-hd --target sim:ssd-sata --threshold 99Gbps";
    let ramp = "meter ramp ebu-single-read --target sim:ssd-sata --threshold 400Gbps";
    let transfers =
        "meter transfers --profile ebu3362-read --target sim:ssd-sata --threshold 99Gbps";
    dir.write(
        "gate.toml",
        "[[group]]\nname = \"play\"\nprofile = \"abr-hd\"\ntarget = \"sim:ssd-sata\"\n\
         streams = 1\nthreshold = \"99Gbps\"\n",
    );
    for (line, words) in [
        (
            format!("{abr} --duration 40s"),
            "48.0 s is longer than 40.0 s\nhint: take a --duration of 48.0 s",
        ),
        (
            format!("{ramp} --step 5s --threshold-window 10s"),
            "hint: take a --step of 10.0 s at least",
        ),
        (
            format!("{transfers} --duration 5s --threshold-window 10s"),
            "a --threshold-window of 5.0 s",
        ),
        ("meter run gate.toml --duration 40s".to_owned(), "group play: --threshold would never"),
    ] {
        dir.fails(&line, 2, words);
        dir.fails(&line, 2, longer);
    }
    // As long as the window, and where the program chooses the length, it is compared.
    for line in [
        format!("{abr} --duration 48s"),
        format!("{abr} --threshold-window 15min"),
        format!("{ramp} --step 10s --threshold-window 10s"),
        format!("{transfers} --duration 10s --threshold-window 10s"),
        "meter run gate.toml".to_owned(),
    ] {
        let run = dir.run(&line);
        assert_eq!(run.code, Some(3), "{line}: {}", run.err);
    }
    assert_eq!(dir.run("meter run gate.toml --out job").code, Some(3));
    dir.fails("meter compare job job", 1, "compare a group of the job: job/runs/001-play");
    // Who makes one transfer is done before the window is full.
    let over = dir.run(&format!("{transfers} --duration 10s --transfers 1"));
    assert_eq!(over.code, Some(5), "{}", over.err);
    assert!(over.err.contains("--threshold was not checked once"), "{}", over.err);
}

#[test]
fn a_threshold_is_told_when_it_is_crossed_and_a_changed_log_is_noticed() {
    let dir = TestDir::new();
    let line = "meter run --profile xdcam422 --target sim:hdd-20tb --streams 3 --duration 4s";
    let told = dir.run(&format!("{line} --threshold 1Gbps --threshold-window 1s --json"));
    let report: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(told.code, Some(3), "{}", told.err);
    let crossings = report["threshold"]["crossings"].as_array().unwrap();
    assert_eq!(crossings.len(), 1, "three streams never move so much: {report}");
    assert_eq!(crossings[0]["below"], true);
    assert!(told.err.lines().any(|line| line.contains(r#""event":"threshold""#)), "{}", told.err);
    let quiet = dir.json(&format!("{line} --threshold 100Mbps --threshold-window 1s"));
    assert_eq!(quiet["threshold"]["crossings"].as_array().unwrap().len(), 0, "{quiet}");
    let each = dir.run(&format!("{line} --threshold 1Gbps --threshold-window 1s --threshold-each"));
    for stream in 0..3 {
        let words = format!("note: stream {stream}: below 1 Gb/s");
        assert!(each.err.contains(&words), "{words}: {}", each.err);
    }
    let fine =
        dir.json(&format!("{line} --threshold 40Mbps --threshold-window 1s --threshold-each"));
    assert_eq!(fine["threshold"]["crossings"].as_array().unwrap().len(), 0, "50 Mb/s each: {fine}");
    dir.fails(&format!("{line} --threshold-window 1s"), 2, "--threshold-window is for --threshold");
    dir.fails(&format!("{line} --threshold-each"), 2, "--threshold-each is for --threshold");
    dir.json(&format!("{line} --out run"));
    let summary = String::from_utf8(dir.read("run/summary.json")).unwrap();
    dir.write("run/summary.json", summary.replace("\"late\": 0", "\"late\": 17"));
    let changed = dir.run("meter report run");
    assert!(changed.err.contains("says something else than the log"), "{}", changed.err);
    std::fs::remove_file(dir.path("run/summary.json")).unwrap();
    assert!(dir.ok("meter report run").contains("did not come to its end"));
    dir.fails("meter report nowhere", 1, "name a run's directory");
}

/// How late this machine is says nothing here, either.
#[test]
fn without_any_storage_all_that_is_late_is_the_meters_or_the_machines() {
    let dir = TestDir::new();
    let line = "meter run --profile xdcam422 --target null: --streams 50 --duration 1s --json";
    let done = dir.run(&format!("{line} --out null"));
    let report: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let log = (&report["log"]["records"], &report["log"]["lost"]);
    assert_eq!((&report["frames"], &report["failed"]), (&1250.into(), &0.into()), "{report}");
    assert_eq!(log, (&1250.into(), &0.into()), "{report}");
    assert_eq!(report["bytes_read"].as_u64().unwrap() % 250_000, 0, "{report}");
    dir.fails(&format!("{line} --buffered"), 2, "no file of this machine's");
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is_written() {
    let dir = TestDir::new();
    std::fs::File::create(dir.path("holes.bin")).unwrap().set_len(64 << 20).unwrap();
    let refused = [
        ("meter run --target sim:ssd-sata", 2, "--profile is missing"),
        ("meter run --profile xdcam422", 2, "--target is missing"),
        ("meter run --profile xdcam422 --target holes.bin", 1, "no place on disk"),
        ("meter run --profile xdcam422 --target nothing", 1, "nothing: No such file"),
        ("meter run --profile xdcam422 --target sim:floppy", 2, "no disk model 'floppy'"),
        ("meter run --profile dpx10-hd --target holes.bin", 2, "file-per-frame takes many"),
        (
            "meter run --profile xdcam422 --target . --layout file-per-stream --method mmap",
            2,
            "single",
        ),
        ("meter run --profile xdcam422 --target . --fill-level 99 --size 1KiB", 2, "too small"),
        ("meter run --profile xdcam422 --target holes.bin --fill-level 99", 2, "for a directory"),
        (
            "meter run --profile xdcam422 --target sim:ssd-sata --fill-level 9",
            2,
            "no file of this machine's",
        ),
        ("meter capacity --profile ebu3362-edit --target .", 2, "it has no fps"),
        ("meter run --profile xdcam422 --target . --size 1KiB", 2, "too small for 1 stream"),
        ("meter run --profile abr-hd --target sim:ssd-sata --duration 1s", 2, "too short"),
        ("meter run --profile xdcam422 --target /proc", 1, "cannot make a file in /proc"),
    ];
    for (line, code, words) in refused {
        dir.fails(line, code, words);
    }
    let inside: Vec<_> = std::fs::read_dir(dir.path(".")).unwrap().collect();
    assert_eq!(inside.len(), 1, "{inside:?}");
}
