//! A comparison of file systems and Tenuto's rounds on one disk: the figures of
//! `docs/reference/figures.md` on the emulated ST39183W.
//!
//! ```text
//! cargo bench -p meter --bench emulated -- streams [--backing FILE] [ext4,rounds-1MiB-4,...]
//! cargo bench -p meter --bench emulated -- model [--backing FILE] [speed, ...]
//! ```
//!
//! `model` measures how close the emulated disk is to the simulated one, round by round; it takes
//! half a minute, divided by the speed. `streams` starts 60 readers of 30 MiB each at once, on
//! Tenuto's rounds and on ext2, ext4, XFS and btrfs with a read-ahead of 128 KiB and with the
//! kernel's default. The rounds use direct reads in SCAN order; `rounds-1MiB-4` means reads of
//! 1 MiB with 4 in flight and the last read of each stream halved, `-whole` leaves it whole. All
//! use the first 2.7 GB of a newly filled disk, files one after the other. A line takes about
//! three minutes.
//!
//! Needs root, /dev/fuse, 9.1 GB of disk, and the file systems' programs (e2fsprogs, xfsprogs,
//! btrfs-progs). It is not a test: it prints figures and judges none. `tenuto reproduce
//! alderman-table1 --emulated` counts the streams that are held, by arithmetic and emulated.

#![expect(clippy::print_stdout, reason = "a bench prints")]

mod model;
mod readers;

use device::{DiskStatistics, EmulateOptions, EmulatedDisk};
use disk::DiskModel;
use meter::emulated::FileSystem;
use meter::rounds::{RoundsStreamStats, Spread};
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::ByteCount;

/// The disk model of the paper, and the number of bytes at its front that all systems may use.
const MODEL: &str = "st39183w";
const RANGE: ByteCount = ByteCount(units::align_down(2_700_000_000, 1 << 20));
const STREAMS: u32 = 60;
const FILE: ByteCount = ByteCount::mib(30);

/// Read size in MiB, queue depth, and whether the last read of each stream is halved. All streams
/// begin and end together here, and halves let them end closer together.
const ROUNDS: [(u64, u32, bool); 5] =
    [(1, 4, true), (1, 4, false), (1, 2, false), (1, 8, false), (2, 8, false)];

fn main() {
    // cargo passes `--bench` as an argument.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let mut backing = PathBuf::from("target/emulated-disk.img");
    let mut rest = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--backing" => backing = words.next().expect("--backing FILE").into(),
            _ => rest.push(word),
        }
    }
    match rest.first().map(String::as_str) {
        Some("streams") => streams(&backing, rest.get(1).map(String::as_str)),
        Some("model") => {
            let speeds = rest.get(1).map_or("1", String::as_str).split(',');
            let speed = |text: &str| text.parse().expect("a speed is a whole number");
            speeds.for_each(|text| model::against_the_model(&backing, speed(text)));
        }
        _ => println!("skipped: `streams` or `model` expected; see the header of this file"),
    }
}

fn streams(backing: &Path, only: Option<&str>) {
    let wanted = |name: &str| only.is_none_or(|list| list.split(',').any(|word| word == name));
    println!(
        "| system | read-ahead | wall s | MB/s | mean s | sd | min | max | longest gap s | disk late p50, p99, max | load |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (mib, at_once, halved) in ROUNDS {
        let name = format!("rounds-{mib}MiB-{at_once}{}", if halved { "" } else { "-whole" });
        if wanted(&name) {
            let disk = start(backing, 1);
            disk.set_fast(false);
            disk.reset_statistics();
            let streams = readers::in_rounds(&disk, ByteCount::mib(mib), at_once, halved);
            say(&name, "none, direct", &streams, &disk.statistics());
        }
    }
    for kind in FileSystem::ALL {
        if !wanted(kind.name()) {
            continue;
        }
        for read_ahead in [Some(128), None] {
            let disk = start(backing, 1);
            let device = disk.device().expect("attached");
            let mut mounted = kind.make(device, RANGE.0).unwrap_or_else(|error| panic!("{error}"));
            let files = readers::fill(&mounted);
            let kib = mounted.mount_cold(read_ahead).unwrap_or_else(|error| panic!("{error}"));
            disk.set_fast(false);
            disk.reset_statistics();
            let streams = readers::of_files(&files);
            let statistics = disk.statistics();
            disk.set_fast(true);
            drop(mounted);
            let how = if read_ahead.is_some() { "" } else { ", the kernel's own" };
            say(kind.name(), &format!("{kib} KiB{how}"), &streams, &statistics);
        }
    }
}

/// Starts the emulated disk in fast mode.
fn start(backing: &Path, speed: u32) -> EmulatedDisk {
    let model = DiskModel::preset(MODEL).expect("a built-in model");
    let options = EmulateOptions {
        size: Some(model.capacity()),
        attach: true,
        fast: true,
        speed,
        ..EmulateOptions::new(backing)
    };
    let disk = EmulatedDisk::start(&model, &options).unwrap_or_else(|error| panic!("{error}"));
    if let Err(why) = disk.realtime() {
        println!("not in real time: {why}");
    }
    disk
}

fn say(name: &str, read_ahead: &str, streams: &[RoundsStreamStats], disk: &DiskStatistics) {
    let ms = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
    let Spread { mean, sd, min, max } = Spread::of(streams.iter().map(|stream| stream.last));
    let gap = streams.iter().map(|stream| stream.longest_gap).max().unwrap_or_default();
    println!(
        "| {name} | {read_ahead} | {max:.1} | {:.2} | {mean:.1} | {sd:.2} | {min:.1} | {max:.1} | {:.2} | {}, {}, {} ms | {} |",
        f64::from(STREAMS) * FILE.0 as f64 / max / 1e6,
        gap.as_secs_f64(),
        ms(disk.late_p50),
        ms(disk.late_p99),
        ms(disk.late_max),
        load(),
    );
}

/// The load average of the last minute, which shows other work on the machine.
fn load() -> String {
    let all = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    all.split(' ').next().unwrap_or_default().to_owned()
}
