//! Wrappers of devices: their effect on times and bytes.

use device::{
    Access, BlockDevice, Completion, Direction, Fault, FaultRule, MemoryDevice, PacedDevice, Pool,
    Queue, SimulatedDisk,
};
use disk::DiskModel;
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount, Moment};

fn memory(mib: u64) -> Arc<MemoryDevice> {
    let device = MemoryDevice::new(ByteCount::mib(mib));
    for i in 0..mib {
        device.write_at(i << 20, &vec![u8::try_from(i % 251).unwrap(); 1 << 20]).unwrap();
    }
    Arc::new(device)
}

fn pool() -> Pool {
    Pool::new(ByteCount::mib(32), ByteCount::mib(1))
}

/// Completions in their order, with their results.
fn drain(queue: &mut dyn Queue) -> Vec<Completion> {
    let mut done = Vec::new();
    while queue.in_flight() > 0 {
        queue.wait(Duration::from_secs(20), &mut done).unwrap();
    }
    done
}

fn tags(done: &[Completion]) -> Vec<u64> {
    done.iter().map(|completion| completion.tag).collect()
}

#[test]
fn a_throttle_is_never_faster_than_its_rate() {
    let slow = PacedDevice::throttled(memory(8), BitRate(8 << 20) /* 1 MiB/s */);
    let start = Instant::now();
    slow.write_at(0, &[0; 32 << 10]).unwrap();
    slow.read_at(0, &mut [0; 32 << 10]).unwrap();
    assert!(start.elapsed() >= Duration::from_micros(62_500), "{:?}", start.elapsed());
    let pool = pool();
    let mut queue = slow.queue(4, &pool).unwrap();
    let start = Instant::now();
    for tag in 0..4 {
        queue.submit(tag, tag * 32768, pool.take(32 << 10).unwrap()).unwrap();
    }
    assert_eq!(tags(&drain(&mut *queue)), [0, 1, 2, 3]);
    assert!(start.elapsed() >= Duration::from_millis(125), "{:?}", start.elapsed());
    assert!(queue.method().starts_with("throttled to 8.39 Mb/s, over memory"));
}

/// The wall clock may only be behind the model: each read takes at least the time of the modelled
/// disk from the best possible head position.
#[test]
fn a_modelled_disk_is_never_early_and_completes_in_order() {
    let model = DiskModel::preset("hdd-20tb").unwrap();
    let disk = PacedDevice::as_disk(memory(64), &model);
    assert!(disk.geometry().rotational);
    let pool = pool();
    let mut queue = disk.queue(8, &pool).unwrap();
    let start = Instant::now();
    let places = [63, 0, 32, 1, 62, 5, 40, 20];
    for (tag, place) in places.into_iter().enumerate() {
        queue.submit(tag as u64, place << 20, pool.take(1 << 20).unwrap()).unwrap();
    }
    let done = drain(&mut *queue);
    assert_eq!(tags(&done), [0, 1, 2, 3, 4, 5, 6, 7], "one after another, as submitted");
    for (completion, place) in done.iter().zip(places) {
        assert!(completion.result.is_ok());
        assert!(completion.buffer.iter().all(|byte| u64::from(*byte) == place));
    }
    let scaled = model.scaled_to(ByteCount::mib(64));
    let mut head = scaled.head();
    let (mut least, mut now) = (Duration::ZERO, Moment::ZERO);
    for place in places {
        let service = head.serve(now, place << 20, 1 << 20, false);
        least += service.overhead + service.seek + service.transfer;
        now = service.finish;
    }
    assert!(start.elapsed() >= least, "{:?} is less than {least:?}", start.elapsed());
}

#[test]
fn pass_through_fills_a_store_without_the_models_time() {
    let disk = PacedDevice::as_disk(memory(8), &DiskModel::preset("st39183w").unwrap());
    let far = disk.geometry().size.0 - 4096;
    disk.set_pass_through(true);
    let start = Instant::now();
    for _ in 0..2000 {
        disk.write_at(0, &[1; 4096]).unwrap();
        disk.write_at(far, &[1; 4096]).unwrap();
    }
    let strokes = Duration::from_millis(17) * 4000;
    assert!(start.elapsed() < strokes, "the model would take more than {strokes:?}");
    disk.set_pass_through(false);
    let start = Instant::now();
    disk.write_at(far, &[2; 4096]).unwrap();
    disk.write_at(0, &[2; 4096]).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(33), "two strokes at least");
    let mut into = [0; 4096];
    disk.read_at(far, &mut into).unwrap();
    assert_eq!(into, [2; 4096]);
}

fn faulty(rules: &[(Access, std::ops::Range<u64>, u32, Fault)]) -> SimulatedDisk {
    let device = SimulatedDisk::new(&DiskModel::preset("ssd-sata").unwrap());
    for (access, area, times, fault) in rules.iter().cloned() {
        device.add(FaultRule { access, area, times, fault });
    }
    device
}

#[test]
fn a_bad_place_fails_blocking_and_queued_reads_alike() {
    let device = faulty(&[(Access::Read, 4096..4097, 2, Fault::Errno(libc::EIO))]);
    let said = device.read_at(0, &mut [0; 8192]).unwrap_err().to_string();
    assert!(
        said.starts_with("reading 8192 bytes at 0 of (simulated): Input/output error"),
        "{said}"
    );
    let pool = pool();
    let mut queue = device.queue(4, &pool).unwrap();
    for tag in 0..3 {
        queue.submit(tag, tag * 4096, pool.take(4096).unwrap()).unwrap();
    }
    let mut done = drain(&mut *queue);
    done.sort_by_key(|completion| completion.tag);
    let good: Vec<bool> = done.iter().map(|completion| completion.result.is_ok()).collect();
    assert_eq!(good, [true, false, true]);
    assert!(device.read_at(0, &mut [0; 8192]).is_ok(), "twice is over");
}

#[test]
fn a_failure_below_is_returned_in_its_turn() {
    let model = DiskModel::preset("ssd-sata").unwrap();
    let rule = (Access::Read, 0..1, 1, Fault::Errno(libc::EIO));
    let above: [(&str, Arc<dyn BlockDevice>); 2] = [
        (
            "as disk",
            Arc::new(PacedDevice::as_disk(Arc::new(faulty(std::slice::from_ref(&rule))), &model)),
        ),
        (
            "throttled",
            Arc::new(PacedDevice::throttled(Arc::new(faulty(&[rule])), BitRate(1 << 33))),
        ),
    ];
    for (name, device) in above {
        let pool = pool();
        let mut queue = device.queue(4, &pool).unwrap();
        for tag in 0..3 {
            queue.submit(tag, tag << 20, pool.take(1 << 20).unwrap()).unwrap();
        }
        let mut done = drain(&mut *queue);
        done.sort_by_key(|completion| completion.tag);
        let said = done[0].result.as_ref().unwrap_err().to_string();
        assert!(said.contains("Input/output error"), "{name}: {said}");
        assert!(done[1..].iter().all(|completion| completion.result.is_ok()), "{name}");
        device.read_at(0, &mut [0; 4096]).unwrap();
    }
}

#[test]
fn flipped_bits_are_read_and_a_torn_write_keeps_its_front() {
    let rot = Fault::BitRot { at: (1 << 20) + 5, bits: 0b100 };
    let device = faulty(&[
        (Access::Read, (1 << 20)..(2 << 20), 1, rot),
        (Access::Write, 0..8192, 1, Fault::Torn { kept: 5000 }),
    ]);
    device.write_at(1 << 20, &[1; 4096]).unwrap();
    let mut into = [0; 4096];
    device.read_at(1 << 20, &mut into).unwrap();
    assert_eq!(into[4..7], [1, 0b101, 1]);
    device.read_at(1 << 20, &mut into).unwrap();
    assert_eq!(into[4..7], [1, 1, 1], "once is over");

    device.write_at(0, &[9; 8192]).unwrap_err();
    let mut into = [0; 8192];
    device.read_at(0, &mut into).unwrap();
    assert!(into[..5000].iter().all(|b| *b == 9) && into[5000..].iter().all(|b| *b == 0));
    device.write_at(0, &[9; 8192]).unwrap();
}

/// The script of the test of blocking writes.
#[test]
fn a_queued_write_can_fail_be_torn_and_be_late() {
    let stall = Duration::from_millis(50);
    let disk = faulty(&[
        (Access::Write, 0..1, 1, Fault::Errno(libc::ENOSPC)),
        (Access::Write, 1 << 20..2 << 20, 1, Fault::Torn { kept: 5000 }),
        (Access::Write, 2 << 20..3 << 20, 1, Fault::Stall(stall)),
    ]);
    let pool = pool();
    let mut queue = disk.queue(4, &pool).unwrap();
    for tag in 0..4 {
        let mut buffer = pool.take(8192).unwrap();
        buffer.fill(9);
        queue.submit_write(tag, tag << 20, buffer).unwrap();
    }
    let mut done = drain(&mut *queue);
    assert_eq!(done.last().unwrap().tag, 3, "a stalled write delays those after it: {done:?}");
    assert!(disk.now().since(Moment::ZERO) > stall);
    done.sort_by_key(|completion| completion.tag);
    let said: Vec<String> = done
        .iter()
        .map(|c| c.result.as_ref().map_or_else(ToString::to_string, |()| "good".into()))
        .collect();
    assert!(said[0].contains("No space left on device"), "{said:?}");
    assert!(said[1].contains("Input/output error"), "{said:?}");
    assert_eq!(said[2..], ["good", "good"]);
    let mut into = [0; 8192];
    disk.read_at(1 << 20, &mut into).unwrap();
    assert!(into[..5000].iter().all(|b| *b == 9) && into[5000..].iter().all(|b| *b == 0));
    disk.read_at(2 << 20, &mut into).unwrap();
    assert!(into.iter().all(|byte| *byte == 9));
}

/// A disk of 20 TB with a write-back cache of 64 MiB, in real time and in virtual time.
#[test]
fn a_write_cache_accepts_writes_immediately_and_the_flush_takes_their_time() {
    let text = DiskModel::preset_text("hdd-20tb").unwrap();
    let text = text.replacen("bus_mb_s", "write_back = \"64MiB\"\nbus_mb_s", 1);
    let model = DiskModel::new(disk::Parameters::parse(&text).unwrap()).unwrap();
    let write_all = |device: &dyn BlockDevice| {
        let pool = pool();
        let mut queue = device.queue(16, &pool).unwrap();
        let far = device.geometry().size.0 / 16 / 4096 * 4096;
        for tag in 0..16 {
            queue.submit_write(tag, tag * 7 % 16 * far, pool.take(4096).unwrap()).unwrap();
        }
        assert!(drain(&mut *queue).iter().all(|completion| completion.result.is_ok()));
    };
    let simulated = SimulatedDisk::new(&model);
    write_all(&simulated);
    let done = simulated.now();
    simulated.flush().unwrap();
    let (wrote, flushed) = (done.since(Moment::ZERO), simulated.now().since(done));
    assert!(wrote < Duration::from_millis(6), "16 times overhead and bus: {wrote:?}");
    assert!(flushed > Duration::from_millis(60), "16 places to go to: {flushed:?}");

    let disk = PacedDevice::as_disk(memory(64), &model);
    let start = Instant::now();
    write_all(&disk);
    disk.flush().unwrap();
    assert!(start.elapsed() > Duration::from_millis(60), "{:?}", start.elapsed());
}

#[test]
fn the_time_of_a_write_is_known_without_writing() {
    let disk = SimulatedDisk::new(&DiskModel::preset("ssd-nvme").unwrap());
    let read = disk.ask(Direction::Read, 0, 1 << 20).unwrap().since(disk.now());
    disk.advance_to(Moment::ZERO + Duration::from_secs(1));
    let write = disk.ask(Direction::Write, 0, 1 << 20).unwrap().since(disk.now());
    assert!(write > read, "flash writes slower than it reads: {write:?} {read:?}");
    assert!(disk.ask(Direction::Write, disk.geometry().size.0, 1).is_err(), "beyond the end");
    disk.add(FaultRule {
        access: Access::Write,
        area: 0..1,
        times: 1,
        fault: Fault::Torn { kept: 1 },
    });
    let said = disk.ask(Direction::Write, 0, 4096).unwrap_err().to_string();
    assert!(said.contains("writing 4096 bytes at 0 of (simulated): Input/output error"), "{said}");
}

#[test]
fn a_read_can_be_short_and_every_third_can_be_late() {
    let late = Duration::from_millis(30);
    let device = faulty(&[
        (Access::Read, 0..1, 1, Fault::Short { kept: 100 }),
        (Access::Read, 1 << 20..8 << 20, u32::MAX, Fault::Tail { one_in: 3, longer: late }),
    ]);
    let said = device.read_at(0, &mut [0; 8192]).unwrap_err().to_string();
    assert!(said.contains("it ends after 100 of them"), "{said}");
    let takes = |place: u64| {
        let before = device.now();
        device.read_at(place, &mut [0; 4096]).unwrap();
        device.now().since(before)
    };
    let slow: Vec<u64> = (1..=6).filter(|tag| takes(tag << 20) >= late).collect();
    assert_eq!(slow, [3, 6]);
}

#[test]
fn a_modelled_disk_counts_its_lateness() {
    let disk = PacedDevice::as_disk(memory(8), &DiskModel::preset("ssd-nvme").unwrap());
    assert_eq!(disk.lateness().unwrap().requests, 0);
    let pool = pool();
    let mut queue = disk.queue(4, &pool).unwrap();
    for tag in 0..4 {
        queue.submit(tag, tag << 20, pool.take(1 << 20).unwrap()).unwrap();
    }
    drain(&mut *queue);
    disk.read_at(0, &mut [0; 4096]).unwrap();
    let lateness = disk.lateness().unwrap();
    assert_eq!(lateness.requests, 5);
    assert!(lateness.median <= lateness.p99 && lateness.p99 <= lateness.longest, "{lateness:?}");
    disk.set_pass_through(true);
    disk.read_at(0, &mut [0; 4096]).unwrap();
    assert_eq!(disk.lateness().unwrap().requests, 5, "what passes through is not counted");
}

#[test]
fn a_flush_can_fail() {
    let device = faulty(&[(Access::Flush, 0..0, 2, Fault::Errno(libc::EIO))]);
    assert!(device.flush().is_err() && device.flush().is_err());
    device.flush().unwrap();
}
