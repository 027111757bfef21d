//! `meter rounds` and `reproduce`: what they count in virtual time, and what they refuse.

use crate::program::{TestDir, program};
use serde_json::Value;
use std::process::{Command, Stdio};

#[test]
fn rounds_on_a_simulated_disk_are_always_the_same() {
    let dir = TestDir::new();
    let line = "meter rounds sim:st39183w --block 1MB --rate 1.5Mbps --rounds 20 --streams";
    let few = dir.json(&format!("{line} 40"));
    assert_eq!((&few["holds"], &few["late_rounds"]), (&true.into(), &0.into()));
    assert_eq!(few["rounds"].as_array().unwrap().len(), 20);
    assert_eq!((&few["bytes"], &few["memory"]), (&800_000_000.into(), &80_000_000.into()));
    assert_eq!(few, dir.json(&format!("{line} 40")));
    let run = dir.run(&format!("{line} 80 --json"));
    assert_eq!(run.code, Some(3), "not held: {}", run.err);
    let many: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&many["holds"], &many["late_rounds"]), (&false.into(), &20.into()));
    let both = dir.json(&format!("{line} 40 --order arrival").replace("w ", "w sim:hdd-20tb "));
    assert_eq!((&both["streams"], &both["holds"]), (&80.into(), &true.into()));
}

/// Simulated disks share nothing: together each does what it does alone, and memory adds up.
#[test]
fn several_disks_at_once_are_told_apart_beside_each_alone() {
    let dir = TestDir::new();
    let line = "meter rounds sim:st39183w sim:hdd-20tb --streams 50 --block 1MB --rate 1.5Mbps \
                --rounds 10 --iodepth 4";
    let plain = dir.json(line);
    assert_eq!((&plain["streams"], &plain["memory"]), (&100.into(), &200_000_000.into()));
    let both = dir.json(&format!("{line} --alone"));
    for (number, target) in ["sim:st39183w", "sim:hdd-20tb"].iter().enumerate() {
        let [plain, both] = [&plain, &both].map(|report| &report["each"][number]);
        assert_eq!((&both["target"], &plain["alone"]), (&(*target).into(), &Value::Null));
        assert_eq!((&both["alone"], &both["together"]), (&plain["together"], &plain["together"]));
    }
    let mean =
        |number: usize| both["each"][number]["alone"]["round_time"]["mean"].as_f64().unwrap();
    assert!(mean(1) < mean(0), "thirty years lie between them: {both}");
    let page = dir.ok(&format!("{line} --alone"));
    let rows = page.lines().filter(|line| line.starts_with("sim:")).count();
    assert_eq!(rows, 4, "{page}");
}

#[test]
fn rounds_on_a_file_by_every_method_read_all_there_is_to_read() {
    let dir = TestDir::new();
    dir.write("film.bin", vec![7; 3 << 20]);
    for method in ["best", "threads", "pread", "mmap-all", "posix-aio"] {
        let line = format!(
            "meter rounds film.bin --method {method} --streams 3 --block 100KB --iodepth 3 \
             --rounds 5 --unpaced"
        );
        let report = dir.json(&line);
        assert_eq!(report["bytes"], 1_500_000, "{method}: {report}");
        assert_eq!((&report["failed_blocks"], &report["complete"]), (&0.into(), &true.into()));
    }
}

#[test]
fn what_cannot_be_measured_is_refused_with_a_reason() {
    let dir = TestDir::new();
    dir.write("small.bin", vec![7; 1 << 20]);
    std::fs::File::create(dir.path("holes.bin")).unwrap().set_len(64 << 20).unwrap();
    let refused = [
        ("meter rounds small.bin --streams 2", 1, "2 streams with a block each: at least 2"),
        ("meter rounds holes.bin", 1, "parts of holes.bin have no place on disk"),
        ("meter rounds nothing.bin", 1, "cannot open nothing.bin"),
        ("meter rounds .", 1, "hint: "),
        ("meter rounds sim:floppy", 2, "there is no disk model 'floppy'"),
        ("meter rounds sim:hdd-20tb --method pread", 2, "leave out --method and --buffered"),
        ("meter rounds small.bin --block 0B --streams 1", 2, "is no block to read"),
        ("meter rounds small.bin --rate 0bps --streams 1", 2, "a stream plays something"),
    ];
    for (line, code, words) in refused {
        dir.fails(line, code, words);
    }
}

#[test]
fn reproductions_are_listed_made_and_never_overwritten_unasked() {
    let dir = TestDir::new();
    let list = dir.json("reproduce");
    let names: Vec<&str> = list["reproductions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].as_str().unwrap())
        .collect();
    for name in ["alderman-bounds", "alderman-table1", "lee-streams"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let bounds = dir.ok("reproduce alderman-bounds");
    let row = bounds.lines().find(|line| line.contains("inner tracks as assumed")).unwrap();
    assert!(row.split_whitespace().collect::<Vec<_>>().ends_with(&["120.0", "70", "70"]), "{row}");
    dir.ok("reproduce lee-streams --out charts");
    let svg = String::from_utf8(dir.read("charts/lee-streams-cycle.svg")).unwrap();
    assert!(svg.contains("Length of the service cycle"));
    let page = String::from_utf8(dir.read("charts/lee-streams.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("Most streams of 540 KB/s"));
    dir.fails("reproduce lee-streams --out charts", 1, "allow it with --destroy");
    std::fs::remove_file(dir.path("charts/lee-streams.html")).unwrap();
    dir.fails("reproduce lee-streams --out charts", 1, "lee-streams-cycle.svg would be");
    let kept = std::fs::read(dir.path("charts/lee-streams-cycle.svg")).unwrap();
    assert_eq!(kept, svg.as_bytes());
    dir.ok("reproduce lee-streams --out charts --destroy");
    dir.fails("reproduce --out charts", 2, "--out needs the name");
    dir.write("file", "");
    dir.fails("reproduce alderman-bounds --out file", 1, "cannot make file");
    dir.fails("plan --model ssd-sata --rate 5Mbps --plot charts", 1, "charts is a directory");
}

#[test]
fn a_report_is_printed_also_where_its_files_cannot_be_written() {
    let dir = TestDir::new();
    // Whatever the user: /proc has no files for others to make.
    for (line, words, file) in [
        ("plan --model ssd-sata --rate 5Mbps --plot /proc/a.svg", "S_max", "/proc/a.svg"),
        ("reproduce lee-streams --out /proc", "Most streams of 540 KB/s", "/proc/lee-streams-"),
        ("reproduce lee-streams --out /proc --json", "\"tables\"", "/proc/lee-streams-"),
    ] {
        let run = dir.run(line);
        assert_eq!(run.code, Some(1), "`{line}`: {run:?}");
        assert!(run.out.contains(words), "`{line}`: {run:?}");
        assert!(run.err.contains(&format!("cannot write {file}")), "`{line}`: {run:?}");
    }
}

#[test]
fn a_signal_ends_a_simulation_with_a_documented_code() {
    let dir = TestDir::new();
    for line in ["simulate ageing --months 120", "simulate admission", "reproduce makaroff-figure2"]
    {
        let mut command = program(&dir.path("."));
        command.args(line.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        while !catches_sigterm(child.id()) {
            assert!(child.try_wait().unwrap().is_none(), "`{line}` ended by itself");
            std::thread::yield_now();
        }
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let (out, err) = (output.stdout, String::from_utf8(output.stderr).unwrap());
        // A run of the simulation may have been complete.
        match output.status.code() {
            Some(1) => {
                assert!(out.is_empty() && err.contains("before there was a result"), "{err}");
            }
            Some(5) => assert!(!out.is_empty() && err.contains("interrupted: "), "{err}"),
            other => panic!("`{line}`: {other:?}, {err}"),
        }
    }
}

/// Whether this process has a handler for SIGTERM, which is signal 15.
fn catches_sigterm(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << 14 != 0)
}

#[test]
fn a_run_says_what_the_machine_did_and_two_runs_are_compared() {
    let dir = TestDir::new();
    dir.write("film.bin", vec![7; 8 << 20]);
    let line =
        "meter run --profile dvcpro50 --target film.bin --streams 1 --duration 2s --out real";
    let real = dir.run(&format!("{line} --json"));
    let real: serde_json::Value = serde_json::from_str(&real.out).unwrap();
    assert!(!real["blame"]["broke_first"]["sentence"].as_str().unwrap().is_empty());
    assert!(!real["blame"]["seconds"].as_array().unwrap().is_empty());
    let page = String::from_utf8(dir.read("real/report.html")).unwrap();
    assert!(page.contains("What broke first"));
    for (out, streams) in [("a", 20), ("b", 20), ("c", 110)] {
        dir.run(&format!(
            "meter run --profile xdcam422 --target sim:ssd-sata --streams {streams} --duration 30s --out {out}"
        ));
    }
    let same = dir.json("meter compare a b");
    assert_eq!(same["scenarios_differ_in"], serde_json::json!([]));
    let verdicts = |said: &serde_json::Value| -> Vec<String> {
        let figures = said["comparison"]["figures"].as_array().unwrap().clone();
        figures.iter().map(|figure| figure["verdict"].as_str().unwrap().to_owned()).collect()
    };
    assert!(verdicts(&same).iter().all(|verdict| verdict == "no-difference-shown"), "{same}");
    let worse = dir.json("meter compare a c");
    assert_eq!(verdicts(&worse)[0], "worse", "{worse}");
    assert_eq!(dir.json("meter compare a b"), same, "the same two, the same verdict");
    dir.fails("meter compare a nowhere", 1, "cannot read nowhere/summary.json");
    dir.fails("meter compare a real", 1, "too short to tell");
}

#[test]
fn a_trace_becomes_a_profile_that_can_be_read_again() {
    let dir = TestDir::new();
    let mut text = "fio version 3 iolog\n1 /mnt/a add\n2 /mnt/a open\n".to_owned();
    for n in 0..1000 {
        let what = if n % 4 == 0 { "write" } else { "read" };
        text += &format!("{} /mnt/a {what} {} 65536\n", 10 + n * 5000, n * 65_536);
    }
    dir.write("day.log", &text);
    let said = dir.json("meter profile-from day.log --out shape");
    let figures = String::from_utf8(dir.read("shape/tables/figures.csv")).unwrap();
    assert!(figures.contains("profile_read_percent"), "{figures}");
    assert_eq!((&said["operations"], &said["format"]), (&1000.into(), &"fio".into()));
    let drawn = &said["profile"]["drawn"];
    assert_eq!(drawn["reads_per_million"], 750_000);
    assert_eq!(drawn["operations_per_1000_s"], 200_000);
    dir.write("editor.toml", dir.ok("meter profile-from day.log --name editor"));
    let again = dir.json("meter profiles editor.toml --verify");
    assert_eq!(again["profiles"][0]["drawn"], *drawn);
    dir.write("cut.log", &text[..text.len() - 9]);
    dir.fails("meter profile-from cut.log", 1, "line 1003 is no line of fio's iolog");
    dir.write("noise", [0xffu8; 100]);
    dir.fails("meter profile-from noise", 1, "not a trace of fio");
    dir.fails("meter profile-from day.log --only /mnt/b", 1, "the text of --only");
    dir.fails("meter profile-from nowhere", 1, "cannot read nowhere");
}

#[test]
fn profiles_and_recounts_are_tables_too() {
    let dir = TestDir::new();
    let text = |name: &str| String::from_utf8(dir.read(name)).unwrap();
    dir.ok("meter profiles --out formats");
    let formats = text("formats/tables/profiles.csv");
    let (head, rows) = formats.split_once('\n').unwrap();
    let column = |name: &str| head.split(',').position(|found| found == name).unwrap();
    let row = rows.lines().find(|row| row.contains("xdcam422")).unwrap();
    assert_eq!(row.split(',').nth(column("bytes")), Some("250000"), "{head}\n{row}");
    assert!(dir.read("formats/tables/profiles.parquet").starts_with(b"PAR1"));
    assert!(text("formats/summary.json").contains("\"xdcam422\""));
    dir.fails("meter profiles xdcam422 --toml --out two", 2, "--out is not for --toml");
    dir.fails("meter profiles --out formats", 1, "formats is not empty");

    let own = dir.ok("meter profiles xavc300-25 --toml").replace("1_230_500", "1_400_000");
    dir.write("own.toml", own);
    let edited = dir.run("meter run --profile own.toml --target sim:ssd-nvme --duration 10s");
    let noted = "profile xavc300-25 has 1400000 bytes a frame, and the built-in one";
    assert!(edited.err.contains(noted), "{}", edited.err);

    dir.ok("meter run --profile xdcam422 --target sim:ssd-sata --duration 10s --out ran");
    dir.ok("meter report ran --out again");
    assert!(text("again/tables/figures.csv").contains("frames"));
}

#[test]
fn a_bucket_that_cannot_be_reached_is_named() {
    let dir = TestDir::new();
    let line = "meter run --profile xdcam422 --target s3://films/a";
    dir.fails(line, 2, "nothing says where the bucket is");
    dir.fails(&format!("{line} --endpoint https://127.0.0.1:1"), 1, "is the endpoint right");
    let file = format!("{line} --endpoint https://127.0.0.1:1 --ca-file nowhere");
    dir.fails(&file, 2, "nowhere: No such file");
    dir.fails(&format!("{line} --endpoint http://127.0.0.1:1"), 1, "is the endpoint right");
    dir.fails(&format!("{line} --endpoint http://h --buffered"), 2, "no file of this machine's");
    dir.fails("meter run --profile xdcam422 --target ftp://h/a", 2, "nothing that can be measured");
}

#[test]
fn reports_say_what_caches_there_were() {
    let dir = TestDir::new();
    dir.write("film.bin", vec![7; 8 << 20]);
    let caches = |words: &str| {
        let line = "meter run --profile dvcpro50 --target film.bin --duration 1s --json";
        let run = dir.run(&format!("{line} {words}"));
        let said: serde_json::Value = serde_json::from_str(&run.out).expect(&run.err);
        said["caches"].as_str().unwrap().to_owned()
    };
    assert!(caches("--buffered").starts_with("warm"));
    assert!(caches("--buffered --drop-caches").starts_with("cold"));
}
