//! Processor time of a direct read by io_uring, beside fio's with the same options: the figures of
//! `docs/reference/figures.md`.
//!
//! ```text
//! cargo bench -p device --bench processor -- FILE [--depth 8] [--size 1024] [--turns 9] [--huge]
//! ```
//!
//! Both read FILE (made and filled, 1 GiB, if it is not there) from its front to its end, four
//! times a turn, in pieces of `--size` KiB with `--depth` of them under way: past the page cache,
//! one registered file, registered buffers. Ours lie in huge pages wherever the kernel has some to
//! spare; fio's with `--huge`, which takes some that were put aside for it (`sysctl
//! vm.nr_hugepages=64`). They take turns, so that what else the machine does falls on both. Neither
//! side's beginning is counted: fio leaves it out of what it says of its job; ours (probes, ring,
//! and memory touched for the first time and registered) is told at the end. Of ours the whole
//! process is counted, with what the kernel's workers did for it; of fio, as it reports it, the
//! thread that reads.
//!
//! Needs fio. It is not a test: nothing is judged, all is printed.

#![expect(clippy::print_stdout, reason = "a bench prints")]

mod fio;
mod ours;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// What one side used for a turn.
#[derive(Clone, Copy, Debug)]
struct Used {
    /// Microseconds of processor time, user's and system's, for each read.
    micros: f64,
    /// Bytes that came in a second.
    rate: f64,
    /// Processor time before the first read that counts, where it is known.
    beginning: Option<Duration>,
}

/// What is read, and how.
#[derive(Clone, Debug)]
struct Course {
    file: PathBuf,
    depth: u32,
    /// Bytes of a read.
    size: u64,
    times: u64,
    huge_pages: bool,
}

fn main() {
    // cargo adds --bench.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let Some(file) = words.next() else {
        println!("skipped; say which FILE to read, the head of the bench says how");
        return;
    };
    let mut course =
        Course { file: file.into(), depth: 8, size: 1 << 20, times: 4, huge_pages: false };
    let mut turns = 9;
    while let Some(word) = words.next() {
        let mut number = || -> u64 {
            let number = words.next().and_then(|word| word.parse().ok());
            number.unwrap_or_else(|| panic!("{word} takes a number"))
        };
        match word.as_str() {
            "--depth" => course.depth = u32::try_from(number()).expect("a queue of that depth"),
            "--size" => course.size = number() << 10,
            "--turns" => turns = number(),
            "--huge" => course.huge_pages = true,
            _ => panic!("'{word}' is nothing to say here; the head of the bench says what is"),
        }
    }
    make(&course.file);
    compare(&course, turns);
}

/// A file whose every block has been written, so that all of it is read from the disk.
fn make(file: &Path) {
    if file.exists() {
        return;
    }
    let mut rng = fastrand::Rng::with_seed(1);
    let mut bytes = vec![0; 1 << 20];
    let mut out = std::fs::File::create(file).expect("a file can be made there");
    for _ in 0..1024 {
        rng.fill(&mut bytes);
        std::io::Write::write_all(&mut out, &bytes).expect("there is room for 1 GiB");
    }
    out.sync_all().expect("the disk takes it");
}

fn compare(course: &Course, turns: u64) {
    let Course { depth, size, .. } = course;
    println!("us of processor time for a read of {} KiB, {depth} under way", size >> 10);
    println!("| turn | ours | GB/s | fio | GB/s | ours / fio |");
    println!("|---|---|---|---|---|---|");
    let mut pairs = Vec::new();
    for turn in 0..turns {
        // Who comes first changes, too.
        let (ours, theirs) = if turn % 2 == 0 {
            let ours = ours::turn(course);
            (ours, fio::turn(course))
        } else {
            let theirs = fio::turn(course);
            (ours::turn(course), theirs)
        };
        let ratio = ours.micros / theirs.micros;
        let side = |Used { micros, rate, .. }: Used| format!("{micros:.1} | {:.2}", rate / 1e9);
        println!("| {} | {} | {} | {ratio:.2} |", turn + 1, side(ours), side(theirs));
        pairs.push((ours, theirs, ratio));
    }
    let of = |pick: &dyn Fn(&(Used, Used, f64)) -> f64| median(pairs.iter().map(pick).collect());
    let beginning = |(ours, ..): &(Used, Used, f64)| {
        ours.beginning.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    };
    println!(
        "medians: ours {:.1} us, fio {:.1} us; ratio, pair by pair, {:.2}; our beginning {:.1} ms; {}; load {}",
        of(&|(ours, ..)| ours.micros),
        of(&|(_, theirs, _)| theirs.micros),
        of(&|(.., ratio)| *ratio),
        of(&beginning),
        ours::method(course),
        load()
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    values.get(middle).copied().unwrap_or(f64::NAN)
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("?").to_owned()
}
