//! Processor time of a direct read by io_uring, beside that of fio with the same options: the
//! figures of `docs/reference/figures.md`.
//!
//! ```text
//! cargo bench -p device --bench processor -- FILE [--depth 8] [--size 1024] [--turns 9] [--huge]
//! ```
//!
//! Both read FILE (made and filled with 1 GiB if it does not exist) from its front to its end, four
//! times a turn, in pieces of `--size` KiB with `--depth` of them in flight: direct I/O, one
//! registered file, registered buffers. Our buffers are in huge pages wherever the kernel has some;
//! those of fio with `--huge`, which takes reserved ones (`sysctl vm.nr_hugepages=64`). The sides
//! alternate, so that other work of the machine affects both. Start-up is not counted: fio leaves
//! it out of its report; ours (probes, ring, memory touched for the first time and registered) is
//! printed at the end. Our figure covers the whole process including the kernel's workers for it;
//! that of fio, as in its report, the reading thread.
//!
//! Needs fio. It is not a test: it prints figures and judges none.

#![expect(clippy::print_stdout, reason = "a bench prints")]

mod fio;
mod ours;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// The cost of one turn on one side.
#[derive(Clone, Copy, Debug)]
struct Used {
    /// Microseconds of processor time, user and system, for each read.
    micros: f64,
    /// Bytes read per second.
    rate: f64,
    /// Processor time before the first counted read, where it is known.
    beginning: Option<Duration>,
}

/// The parameters of a turn.
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
    // cargo passes `--bench` as an argument.
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

/// Makes a file whose every block is written, so that all of it is read from the disk.
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
        // The order of the sides alternates, too.
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
