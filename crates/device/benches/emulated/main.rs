//! What file systems and Tenuto's rounds make of the same disk: the figures of
//! `docs/reference/figures.md` on the emulated ST39183W.
//!
//! ```text
//! cargo bench -p device --bench emulated -- streams [--backing FILE] [ext4,xfs,...]
//! cargo bench -p device --bench emulated -- capacity [--backing FILE]
//! ```
//!
//! `streams`: 60 readers of 30 MiB each at once, on Tenuto's rounds (direct reads in the order of
//! place; `rounds-1MiB-4` are reads of 1 MiB, 4 in the disk at once), and on ext2, ext4, XFS and btrfs with a read-ahead of 128 KiB and with the kernel's own;
//! all within the same first 2.7 GB of the disk, each on a disk filled anew, files one after the
//! other. Takes about three minutes a line. `capacity`: the most streams of 1.5 Mb/s in rounds of
//! 1 MB, by the arithmetic of the model and on the emulated disk; takes about half an hour.
//!
//! Needs root, /dev/fuse, 9.1 GB of disk, and the file systems' programs (e2fsprogs, xfsprogs,
//! btrfs-progs). It is not a test: nothing is judged, all is printed.

#![expect(clippy::print_stdout, reason = "a bench prints")]

mod capacity;
mod file_system;
mod rounds;
mod spread;

use device::{DiskStatistics, EmulateOptions, EmulatedDisk};
use disk::DiskModel;
use file_system::FileSystem;
use spread::Spread;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The paper's, and the bytes that all systems may use of its front.
const MODEL: &str = "st39183w";
const RANGE: u64 = 2_700_000_000 / (1 << 20) * (1 << 20);
const STREAMS: usize = 60;
const FILE: u64 = 30 << 20;

fn main() {
    // cargo adds --bench.
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
        Some("capacity") => capacity::compare(&backing),
        _ => println!("skipped; say `streams` or `capacity`, the head of the file says how"),
    }
}

fn streams(backing: &Path, only: Option<&str>) {
    let wanted = |name: &str| only.is_none_or(|list| list.split(',').any(|word| word == name));
    println!(
        "| system | read-ahead | wall s | MB/s | mean s | sd | min | max | longest gap s | disk late p50, p99, max | load |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (mib, in_flight) in [(1, 2), (1, 4), (1, 8), (2, 8)] {
        let name = format!("rounds-{mib}MiB-{in_flight}");
        if wanted(&name) {
            let disk = start(backing);
            disk.set_fast(false);
            disk.reset_statistics();
            let spread = rounds::read_all(&disk, STREAMS, FILE, mib << 20, in_flight);
            say(&name, "none, direct", &spread, &disk.statistics());
        }
    }
    for kind in FileSystem::ALL {
        if !wanted(kind.name()) {
            continue;
        }
        for read_ahead in [Some(128), None] {
            let disk = start(backing);
            let mut mounted = kind.make(disk.device().expect("attached"), RANGE);
            mounted.fill(STREAMS, FILE);
            let kib = mounted.mount_cold(read_ahead);
            disk.set_fast(false);
            disk.reset_statistics();
            let spread = mounted.read_all(STREAMS);
            let statistics = disk.statistics();
            disk.set_fast(true);
            drop(mounted);
            let how = if read_ahead.is_some() { "" } else { ", the kernel's own" };
            say(kind.name(), &format!("{kib} KiB{how}"), &spread, &statistics);
        }
    }
}

fn start(backing: &Path) -> EmulatedDisk {
    let model = DiskModel::preset(MODEL).expect("it comes along");
    let options = EmulateOptions {
        size: Some(model.capacity()),
        attach: true,
        fast: true,
        ..EmulateOptions::new(backing)
    };
    let disk = EmulatedDisk::start(&model, &options).unwrap_or_else(|error| panic!("{error}"));
    if let Err(why) = disk.realtime() {
        println!("not in real time: {why}");
    }
    disk
}

fn say(name: &str, read_ahead: &str, spread: &Spread, disk: &DiskStatistics) {
    let ms = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
    println!(
        "| {name} | {read_ahead} | {:.1} | {:.2} | {:.1} | {:.2} | {:.1} | {:.1} | {:.2} | {}, {}, {} ms | {} |",
        spread.wall(),
        (STREAMS as u64 * FILE) as f64 / spread.wall() / 1e6,
        spread.mean(),
        spread.sd(),
        spread.min(),
        spread.wall(),
        spread.longest_gap(),
        ms(disk.late_p50),
        ms(disk.late_p99),
        ms(disk.late_max),
        load(),
    );
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
