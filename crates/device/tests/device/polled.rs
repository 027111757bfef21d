//! Polling: refused where it would have no effect, and used where the disk has queues for it.

use crate::methods::{all, new_file, pattern, pool, said};
use crate::scratch::TempDir;
use device::{BlockDevice, Completion, FileDevice, Method, OpenOptions, Pool, describe};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use units::ByteCount;

fn opened(path: &Path, direct: bool) -> FileDevice {
    FileDevice::open(path, OpenOptions { direct, ..OpenOptions::default() }).unwrap()
}

#[test]
fn polling_is_refused_with_the_reason_where_it_has_no_effect() {
    let scratch = TempDir::new("polls");
    let path = new_file(scratch.path(), "file");
    let polls = describe(&path).unwrap().disk.is_some_and(|disk| disk.queue.polls);
    for (direct, why) in [
        (true, "(no io_uring-poll: the disk has no queues that are polled)"),
        (false, "(no io_uring-poll: only direct reads can be polled for)"),
    ] {
        let device = opened(&path, direct);
        if direct && (polls || !device.is_direct()) {
            continue;
        }
        let pool = pool();
        let mut queue = device.queue_by(Method::UringPoll, 1, &pool).unwrap();
        assert!(queue.method().contains(why), "{}", queue.method());
        queue.submit(0, 0, pool.take(4096).unwrap()).unwrap();
        assert_eq!(said(&all(&mut *queue)), ["good"]);
    }
}

/// Reads a disk of the user's with such queues (`nvme.poll_queues=1`, or `modprobe null_blk
/// poll_queues=1`): `TENUTO_POLLED=/dev/nvme0n1 cargo test -p device polled -- --ignored
/// --nocapture`.
#[test]
#[ignore = "needs a disk with queues that are polled"]
#[expect(clippy::print_stdout, reason = "by hand, and what it says is what is wanted")]
fn polled_reads_match_pread_and_cause_no_interrupts() {
    let path = std::env::var("TENUTO_POLLED").expect("TENUTO_POLLED names the disk");
    let device = opened(Path::new(&path), true);
    let pool = Pool::new(ByteCount::mib(4), ByteCount::kib(64));
    for method in [Method::Pread, Method::Preadv2, Method::Uring, Method::UringPoll] {
        let before = interrupts();
        let mut queue = device.queue_by(method, 4, &pool).unwrap();
        let mut read = BTreeMap::new();
        for from in (0..READS).step_by(4) {
            for tag in from..from + 4 {
                queue.submit(tag, place(tag), pool.take(LEN).unwrap()).unwrap();
            }
            for Completion { tag, buffer, result, .. } in all(&mut *queue) {
                result.unwrap();
                read.insert(tag, buffer.to_vec());
            }
        }
        let interrupted = interrupts() - before;
        println!("{}: {READS} reads, {interrupted} interrupts", queue.method());
        assert_eq!(read.len() as u64, READS);
        let mut same = vec![0; LEN];
        for (tag, bytes) in read {
            device.read_at(place(tag), &mut same).unwrap();
            assert!(bytes == same, "{method}: read {tag}");
        }
        if method == Method::UringPoll {
            assert!(queue.method().ends_with(", polling"), "{}", queue.method());
            assert!(interrupted < READS / 10, "it was told by interrupts");
        }
    }
}

/// Needs a disk with polled queues whose first 4 MiB may be overwritten:
/// `TENUTO_POLLED_DESTROY=/dev/nvme0n1 cargo test -p device polled -- --ignored`.
#[test]
#[ignore = "needs a disk with queues that are polled, and overwrites it"]
fn polled_writes_are_there_for_pread() {
    let path = std::env::var("TENUTO_POLLED_DESTROY").expect("it names the disk");
    let options = OpenOptions { write: true, exclusive: true, ..OpenOptions::default() };
    let device = FileDevice::open(Path::new(&path), options).unwrap();
    let pool = Pool::new(ByteCount::mib(4), ByteCount::kib(64));
    let mut queue = device.queue_by(Method::UringPoll, 4, &pool).unwrap();
    assert!(queue.method().ends_with(", polling"), "{}", queue.method());
    for tag in 0..64 {
        let mut buffer = pool.take(LEN).unwrap();
        buffer.copy_from_slice(&pattern(place(tag), LEN));
        queue.submit_write(tag, place(tag), buffer).unwrap();
        if tag % 4 == 3 {
            // Submitted first, so that nothing is cancelled: a wait without time makes progress.
            let mut done = Vec::new();
            queue.wait(Duration::ZERO, &mut done).unwrap();
            queue.cancel().unwrap();
            while queue.in_flight() > 0 {
                queue.wait(Duration::ZERO, &mut done).unwrap();
            }
            assert_eq!(said(&done), ["good"; 4]);
        }
    }
    device.flush().unwrap();
    let mut back = vec![0; LEN];
    for tag in 0..64 {
        device.read_at(place(tag), &mut back).unwrap();
        assert!(back == pattern(place(tag), LEN), "write {tag}");
    }
}

/// The interrupts of all NVMe queues so far; those of other disks are unknown.
fn interrupts() -> u64 {
    let text = std::fs::read_to_string("/proc/interrupts").unwrap_or_default();
    let lines = text.lines().filter(|line| line.contains("nvme"));
    lines
        .flat_map(|line| line.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok()))
        .sum()
}

fn place(tag: u64) -> u64 {
    tag % 64 * LEN as u64
}

const READS: u64 = 400;
const LEN: usize = 65_536;
