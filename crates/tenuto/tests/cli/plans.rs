//! Disk models and plans.

use crate::program::TestDir;

#[test]
fn a_disk_of_ones_own_is_described_and_planned_with() {
    let dir = TestDir::new();
    let theirs = dir.ok("disk models hdd-20tb --toml");
    let mine = theirs.replace("\"hdd-20tb\"", "\"mine\"").replace("rpm = 7200", "rpm = 5400");
    std::fs::write(dir.path("mine.toml"), &mine).unwrap();
    let page = dir.ok("disk models mine.toml");
    assert!(page.starts_with("mine: 20 TB nearline disk"), "{page}");
    for line in ["revolution       11.11 ms (5400 rpm)", "\nseeks\n", "\nzones\n", "Exos X20"] {
        assert!(page.contains(line), "{line} is missing in {page}");
    }
    // As docs/concepts/disks.md cites them.
    let theirs = dir.ok("disk models hdd-20tb");
    for longest in ["24.89 ms", "31.80 ms", "53.89 ms"] {
        assert!(theirs.contains(longest), "{longest} is missing in {theirs}");
    }
    let streams = |model: &str| {
        let plan = dir.json(&format!("plan --model {model} --rate 5.55Mbps"));
        let row = plan["rows"][6].clone();
        assert_eq!(row["read_size"], 4 << 20, "{row}");
        let number = |name: &str| row[name].as_u64().unwrap();
        (number("zone_exact"), number("usual"), plan["best"]["streams"].as_u64().unwrap())
    };
    let (today, slower) = (streams("hdd-20tb"), streams("mine.toml"));
    assert!(today.0 as f64 >= 0.85 * today.1 as f64, "{today:?}");
    assert!(slower.0 < today.0 && slower.1 < today.1 && slower.2 < today.2, "{slower:?}");
}

/// As `meter capacity` that finds not one stream.
#[test]
fn a_plan_without_a_stream_is_a_refusal() {
    let run = TestDir::new().run("plan --model hdd-20tb --rate 2Gbps");
    assert_eq!(run.code, Some(3), "{}", run.err);
    assert!(run.out.contains("none: no stream is admitted"), "{}", run.out);
}

#[test]
fn what_cannot_be_planned_is_named() {
    let dir = TestDir::with_store();
    std::fs::write(dir.path("bad.toml"), "name = \"x\"\nrmp = 3\n").unwrap();
    std::fs::write(dir.path("bad.json"), "{\"slot\": \"long\"}").unwrap();
    for (line, code, error, hint) in [
        ("plan --rate 5Mbps", 2, "no disk to plan with", "`tenuto disk models` lists"),
        ("plan --model hdd-20tb", 2, "no streams to plan for", "--rate 5Mbps"),
        (
            "plan --model hdd-20tb --rate 1",
            2,
            "--rate: 1 b/s is not the rate of a stream",
            "8 kb/s",
        ),
        ("plan --model floppy --rate 5Mbps", 2, "there is no disk model 'floppy'", "`tenuto disk"),
        ("plan --model bad.toml --rate 5Mbps", 2, "unknown field `rmp`", "--toml"),
        (
            "plan --calibration bad.json --rate 5Mbps",
            1,
            "bad.json is not a calibration",
            "calibrate STORE",
        ),
        ("plan --calibration a.store --rate 5Mbps", 1, "a.store is not calibrated", "`tenuto"),
        ("plan --model ssd-sata --title a.store", 2, "has no colon", "film.store:Nosferatu"),
        ("plan --model ssd-sata --title b.store:x", 1, "no store at b.store", "film.store"),
        ("plan --model ssd-sata --title a.store:x", 1, "no title 'x'", ""),
        ("plan --model ssd-sata --rate 5Mbps --startup 2h", 2, "--startup: an hour", "seconds"),
        ("plan --model ssd-sata --rate 5Mbps --plot bad.toml", 1, "be overwritten", "--destroy"),
        ("disk models --toml", 2, "needs the name of a disk model", "`tenuto disk models`"),
        ("disk models floppy --toml", 2, "no built-in disk model 'floppy'", "`tenuto disk"),
        ("disk models floppy", 2, "there is no disk model 'floppy'", "`tenuto disk"),
        (
            "disk models bad.toml",
            2,
            "bad.toml: no parameter file of a disk: line 2: unknown field `rmp`, expected",
            "--toml",
        ),
    ] {
        let run = dir.run(line);
        assert_eq!(run.code, Some(code), "{line}: {}", run.err);
        assert!(run.out.is_empty(), "{line} prints {}", run.out);
        assert!(run.err.contains(error) && run.err.contains(hint), "{line}: {}", run.err);
    }
}

#[test]
fn a_plan_is_drawn_and_more_disks_hold_more() {
    let dir = TestDir::new();
    let one = dir.json("plan --model ssd-sata --rate 200Mbps --plot plan.svg");
    let svg = std::fs::read_to_string(dir.path("plan.svg")).unwrap();
    assert!(svg.contains("streams of one disk") && svg.contains("transfer alone"), "{svg}");
    let three = dir.json("plan --model ssd-sata --rate 200Mbps --disks 3");
    let (one, three) = (&one["best"], &three["best"]);
    assert_eq!(three["streams"], one["streams"]);
    assert_eq!(three["streams_in_all"].as_u64(), one["streams"].as_u64().map(|n| 3 * n));
    let little = dir.json("plan --model ssd-sata --rate 200Mbps --memory 256MiB");
    assert_eq!(little["best"]["short_of"], "memory", "{little}");
    let none = dir.run("plan --model ssd-sata --rate 200Mbps --memory 64KiB");
    assert_eq!(
        (none.code, none.out.contains("held            none")),
        (Some(3), true),
        "{}",
        none.out
    );
}

#[test]
fn a_title_and_a_calibration_are_planned_with() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");
    let plan = dir.json("plan --model hdd-20tb --title a.store:film");
    let info = dir.json("info a.store film");
    let rate = info["bit_rate"].as_u64().unwrap();
    assert!(plan["bit_rate"].as_u64().unwrap().abs_diff(rate) <= rate / 20, "{plan}");
    assert!(plan["best"]["streams"].as_u64().unwrap() > 100, "a small film: {plan}");

    dir.write("disk.json", CALIBRATION);
    let plan = dir.json("plan --calibration disk.json --rate 8Mbps");
    let rows = plan["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "the sizes that were measured");
    assert_eq!(rows[0]["zone_exact"], serde_json::Value::Null);
    // 500 ms play 500,000 bytes: 20 reads of 1 MiB hold 41 streams, 40 usual ones 83.
    let by_count = rows[0]["admitted"]["vbrsim"]["streams"].as_u64().unwrap();
    assert!((41..=42).contains(&by_count), "{plan}");
    assert_eq!(rows[0]["usual"], 83);
}

/// The calibration of a store with little in it: a cache has answered.
#[test]
fn no_plan_holds_more_than_the_transfer_alone() {
    let dir = TestDir::new();
    let cached = r#"{
      "slot": 0.5,
      "guarantees": [
        {"read_size": 262144, "min_read": 889, "mean_read": 950.0, "longest_read": 0.001,
         "longer": [0, 0, 0, 0, 0, 0], "pace": {"once": 0.000944, "each": 0.00056}},
        {"read_size": 1048576, "min_read": 300, "mean_read": 310.0, "longest_read": 0.002,
         "longer": [0, 0, 0, 0, 0, 0], "pace": {"once": 0.001833, "each": 0.00166}}
      ],
      "queue_depth": 32, "r0": 2000000000, "t0": 0.0, "zones": [],
      "method": "by hand", "measured_at": 0, "outliers": [], "measured": {"bytes": 475136, "whole": 209715200}
    }"#;
    dir.write("disk.json", cached);
    let plan = dir.json("plan --calibration disk.json --rate 5Mbps");
    assert_eq!(plan["ratio"], 400, "{plan}");
    for row in plan["rows"].as_array().unwrap() {
        for (policy, held) in row["admitted"].as_object().unwrap() {
            let streams = held["streams"].as_u64().unwrap();
            assert!((300..=400).contains(&streams), "{policy}: {row}");
        }
    }
    let page = dir.ok("plan --calibration disk.json --rate 5Mbps");
    let title = "a provisionally measured disk (by hand; limited to the rate of an endless read)";
    assert!(page.starts_with(title), "{page}");
    dir.write("none.json", cached.replace("2000000000", "0"));
    let run = dir.run("plan --calibration none.json --rate 5Mbps");
    assert!(run.err.contains("impossible rate of an endless read"), "{}", run.err);
}

#[test]
fn a_small_store_is_calibrated_provisionally_and_planned_with() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");
    let found = dir.json("calibrate a.store --time 300ms");
    assert_eq!(found["provisional"], true, "{found}");
    assert!(dir.ok("info a.store").contains("the guarantees are provisional"));
    assert!(dir.ok("calibrate a.store --time 300ms").contains("the guarantees are provisional"));
    let plan = dir.json("plan --calibration a.store --rate 5Mbps --memory 64MiB");
    let ratio = plan["ratio"].as_u64().unwrap();
    let held = plan["best"]["streams"].as_u64().unwrap();
    assert!(ratio > 0 && (1..=ratio).contains(&held), "{plan}");
}

/// As `tenuto calibrate --json` prints it.
const CALIBRATION: &str = r#"{
  "slot": 0.5,
  "guarantees": [
    {"read_size": 1048576, "min_read": 20, "mean_read": 40.0, "longest_read": 0.05,
         "longer": [0, 0, 0, 0, 0, 0], "pace": {"once": 0.025000, "each": 0.025000}},
    {"read_size": 4194304, "min_read": 9, "mean_read": 17.0, "longest_read": 0.08,
         "longer": [0, 0, 0, 0, 0, 0], "pace": {"once": 0.024444, "each": 0.055556}}
  ],
  "queue_depth": 4, "r0": 1640000000, "t0": 0.007,
  "zones": [{"offset": 0, "bit_rate": 2000000000}, {"offset": 1099511627776, "bit_rate": 1200000000}],
  "method": "by hand", "measured_at": 0, "outliers": []
}"#;
