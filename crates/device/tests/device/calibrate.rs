//! Calibration by real reads: its refusals, and that its guarantees are within the device's
//! ability.

use crate::scratch::TempDir;
use device::{
    Access, BlockDevice, CalibrateOptions, DeviceError, DiskAccess, Fault, FaultRule, FileDevice,
    MemoryDevice, OpenOptions, PacedDevice, Pool, SimulatedDisk, calibrate, preallocate,
};
use disk::{Calibration, DiskModel, MeasuredPart};
use std::sync::Arc;
use std::time::Duration;
use units::ByteCount;

fn quick() -> CalibrateOptions {
    CalibrateOptions {
        slot: Duration::from_millis(100),
        read_sizes: vec![ByteCount::kib(64), ByteCount::kib(256)],
        budget: Duration::from_millis(600),
        ..CalibrateOptions::default()
    }
}

fn run(device: &dyn BlockDevice, options: &CalibrateOptions) -> Result<Calibration, DeviceError> {
    let pool = Pool::new(ByteCount::mib(32), ByteCount::mib(1));
    let result = calibrate(device, &pool, options, DiskAccess::Exclusive, &mut |_| {});
    assert_eq!(pool.used(), ByteCount::ZERO, "every buffer came back");
    result
}

fn said(device: &dyn BlockDevice, options: &CalibrateOptions) -> String {
    run(device, options).unwrap_err().to_string()
}

/// The modelled disk is never early, so that no guarantee can exceed its rate without seeks and
/// rotation in its fastest zone.
#[test]
fn a_modelled_disk_gets_no_larger_guarantee_than_it_can_keep() {
    let model = DiskModel::preset("hdd-20tb").unwrap();
    let disk = PacedDevice::as_disk(Arc::new(MemoryDevice::new(ByteCount::mib(256))), &model);
    let calibration = run(&disk, &quick()).unwrap();
    let outermost = model.zones()[0].1;
    for g in &calibration.guarantees {
        let most = calibration.slot.as_secs_f64() / g.read_size.time_at(outermost).as_secs_f64();
        assert!(f64::from(g.min_read) <= g.mean_read && g.mean_read <= most, "{g:?}, {most}");
        assert!(g.longest_read >= g.read_size.time_at(outermost), "{g:?}");
    }
    assert!(calibration.method.starts_with("as slow as hdd-20tb, over memory; slowest of "));
    assert!(calibration.zones.is_sorted() && calibration.measured_at > 1_700_000_000);
}

#[test]
fn only_the_written_part_of_a_file_is_measured_and_reported() {
    let scratch = TempDir::new("calibrate");
    let path = scratch.path().join("store");
    preallocate(&path, ByteCount::mib(64)).unwrap();
    let options = OpenOptions { write: true, exclusive: false, ..OpenOptions::default() };
    let device = FileDevice::open(&path, options).unwrap();
    let error = said(&device, &quick());
    assert!(error.contains("nothing was ever written there in a piece of 64 KiB"), "{error}");
    device.write_at(40 << 20, &vec![1; 128 << 10]).unwrap();
    device.flush().unwrap();
    let sizes: Vec<ByteCount> =
        run(&device, &quick()).unwrap().guarantees.iter().map(|g| g.read_size).collect();
    assert_eq!(sizes, [ByteCount::kib(64)], "of 256 KiB nothing was written");
    device.write_at(16 << 20, &vec![1; 8 << 20]).unwrap();
    device.flush().unwrap();
    let calibration = run(&device, &quick()).unwrap();
    let method = &calibration.method;
    assert!(method.contains("; only the 8 MiB of 64 MiB that were ever written; "), "{method}");
    assert!(calibration.zones.iter().all(|(at, _)| (16 << 20..24 << 20).contains(&at.0)));
    assert_eq!(calibration.guarantees.len(), 2);
    let part = MeasuredPart { bytes: ByteCount::mib(8), whole: ByteCount::mib(64) };
    assert_eq!(calibration.measured, Some(part));
    assert!(calibration.is_provisional());
    device.write_at(24 << 20, &vec![1; 24 << 20]).unwrap();
    device.flush().unwrap();
    assert!(!run(&device, &quick()).unwrap().is_provisional(), "half of a small file");
}

/// Whatever answers: the page cache or memory is no faster for small reads than for an endless one.
#[test]
fn no_guarantee_is_above_the_measured_rate_of_an_endless_read() {
    let device = MemoryDevice::new(ByteCount::kib(512));
    let calibration = run(&device, &quick()).unwrap();
    let rate = calibration.endless_rate().expect("a rate, however small the device");
    let most = rate.bytes_in(calibration.slot).0;
    for g in &calibration.guarantees {
        assert!(u64::from(g.min_read) * g.read_size.0 <= most, "{g:?}, {rate}");
    }
}

/// Nothing is written except in the range that may be overwritten.
#[test]
fn only_the_scratch_is_written() {
    let device = MemoryDevice::new(ByteCount::mib(64));
    for mib in 0..64 {
        device.write_at(mib << 20, &vec![7; 1 << 20]).unwrap();
    }
    let before = device.snapshot();
    assert_eq!(run(&device, &quick()).unwrap().writing, None);
    assert!(device.snapshot() == before);
    let scratch = 30 << 20..34 << 20;
    let options = CalibrateOptions { scratch: Some(scratch.clone()), ..quick() };
    let cost = run(&device, &options).unwrap().writing.unwrap();
    assert_eq!(cost.write_size, ByteCount::MIB);
    let after = device.snapshot();
    let part = |at: u64| usize::try_from(at).unwrap();
    let (from, to) = (part(scratch.start), part(scratch.end));
    assert!(after[..from] == before[..from] && after[to..] == before[to..]);
    assert!(after[from..to] != before[from..to], "the writer was there");
}

#[test]
fn a_shared_disk_is_asked_for_a_permit_for_every_few_reads() {
    let device = MemoryDevice::new(ByteCount::mib(64));
    let (asked, held) = (std::cell::Cell::new(0u64), std::rc::Rc::new(()));
    let permit = |bytes: ByteCount| -> Option<Box<dyn std::any::Any>> {
        assert!(bytes <= ByteCount::mib(4), "{bytes} in one turn");
        assert_eq!(std::rc::Rc::strong_count(&held), 1, "one turn at a time");
        asked.set(asked.get() + 1);
        Some(Box::new(std::rc::Rc::clone(&held)))
    };
    let shared = DiskAccess::Shared { permit: &permit, turn: ByteCount::mib(4) };
    let pool = Pool::new(ByteCount::mib(32), ByteCount::mib(1));
    calibrate(&device, &pool, &quick(), shared, &mut |_| {}).unwrap();
    assert!(asked.get() > 20, "{}", asked.get());
    let refused = DiskAccess::Shared { permit: &|_| None, turn: ByteCount::mib(4) };
    let ended = calibrate(&device, &pool, &quick(), refused, &mut |_| {}).unwrap_err();
    assert!(ended.to_string().contains("ended before it was complete"), "{ended}");
}

#[test]
fn impossible_calibrations_are_refused_with_the_reason() {
    let device = MemoryDevice::new(ByteCount::mib(4));
    let large = CalibrateOptions { read_sizes: vec![ByteCount::mib(8)], ..quick() };
    assert!(said(&device, &large).contains("4 MiB is too little to calibrate reads of 8 MiB in"));
    let beyond = CalibrateOptions { area: 8 << 20..16 << 20, ..quick() };
    assert!(said(&device, &beyond).contains("0 B is too little"));
    let none = CalibrateOptions { read_sizes: vec![], ..quick() };
    assert!(said(&device, &none).contains("needs a slot and at least one read size"));
    let model = DiskModel::preset("ssd-sata").unwrap();
    let faulty = SimulatedDisk::new(&model.scaled_to(ByteCount::mib(4)));
    let fault = Fault::Errno(libc::EIO);
    faulty.add(FaultRule { access: Access::Read, area: 0..4 << 20, times: u32::MAX, fault });
    assert!(said(&faulty, &quick()).contains("Input/output error"));
}
