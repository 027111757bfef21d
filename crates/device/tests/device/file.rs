//! Files and block devices: what opening them finds out and refuses.

use crate::scratch::Scratch;
use device::{BlockDevice, DeviceError, DeviceKind, FileDevice, OpenOptions, preallocate};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use units::ByteCount;

fn open(path: &Path, options: OpenOptions) -> Result<FileDevice, DeviceError> {
    FileDevice::open(path, options)
}

fn said(result: Result<impl std::fmt::Debug, DeviceError>) -> String {
    result.unwrap_err().to_string()
}

const ALONE: OpenOptions = OpenOptions { direct: true, write: true, exclusive: true };

#[test]
fn a_file_tells_its_size_in_whole_blocks() {
    let scratch = Scratch::new("size");
    let path = scratch.path().join("store");
    std::fs::write(&path, vec![7; 10_000]).unwrap();
    let geometry = open(&path, OpenOptions::default()).unwrap().geometry();
    let block = u64::from(geometry.block);
    assert!(block == 512 || block == 4096, "{geometry:?}");
    assert_eq!((geometry.size.0, geometry.kind), (10_000 - 10_000 % block, DeviceKind::File));
}

#[test]
fn where_direct_io_is_refused_the_page_cache_is_used_and_named() {
    let path = Path::new("/dev/shm").join(format!("tenuto-device-{}", std::process::id()));
    preallocate(&path, ByteCount::MIB).unwrap();
    let device = open(&path, ALONE).unwrap();
    let pool = device::Pool::new(ByteCount::MIB, ByteCount::MIB);
    let method = device.queue(1, &pool).unwrap().method();
    let about = std::fs::metadata(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    // Newer kernels do direct I/O on tmpfs; then there is nothing to refuse.
    assert_eq!(method.contains("buffered"), !device.is_direct(), "{method}");
    assert_eq!(device.geometry().size, ByteCount(about.size()));
}

#[test]
fn one_process_alone_has_a_file() {
    let scratch = Scratch::new("alone");
    let path = scratch.path().join("store");
    preallocate(&path, ByteCount::MIB).unwrap();
    let first = open(&path, ALONE).unwrap();
    let second = open(&path, ALONE);
    assert!(matches!(second, Err(DeviceError::InUse { .. })), "{second:?}");
    assert!(said(second).contains("store is in use: another process holds its lock"));
    assert!(open(&path, OpenOptions::default()).is_ok(), "looking in is allowed");
    drop(first);
    assert!(open(&path, ALONE).is_ok(), "the lock went with its holder");
}

#[test]
fn what_cannot_be_a_device_is_named() {
    let scratch = Scratch::new("named");
    let missing = said(open(&scratch.path().join("nothing"), ALONE));
    assert!(missing.contains("nothing") && missing.contains("tenuto format"), "{missing}");
    let directory = said(open(scratch.path(), ALONE));
    assert!(directory.contains("it is a directory"), "{directory}");
    let null = said(open(Path::new("/dev/null"), ALONE));
    assert!(null.contains("no file and no block device"), "{null}");
}

#[test]
fn room_is_made_for_all_of_a_file_and_kept_contents_stay() {
    let scratch = Scratch::new("room");
    let path = scratch.path().join("store");
    preallocate(&path, ByteCount::MIB).unwrap();
    let about = std::fs::metadata(&path).unwrap();
    assert_eq!((about.len(), about.blocks() * 512 >= 1 << 20), (1 << 20, true));
    std::fs::write(&path, b"kept").unwrap();
    preallocate(&path, ByteCount::mib(2)).unwrap();
    preallocate(&path, ByteCount::MIB).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!((bytes.len(), &bytes[..4]), (2 << 20, &b"kept"[..]), "never smaller");
}

#[test]
fn a_full_disk_is_said_with_figures_and_leaves_nothing_behind() {
    let scratch = Scratch::new("full");
    let path = scratch.path().join("store");
    let error = said(preallocate(&path, ByteCount(8 << 40)));
    assert!(error.contains("8 TiB"), "{error}");
    assert!(!path.exists(), "no half-made file");
    std::fs::write(&path, b"kept").unwrap();
    preallocate(&path, ByteCount(8 << 40)).unwrap_err();
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
}

#[test]
fn places_never_written_are_known() {
    let scratch = Scratch::new("written");
    let path = scratch.path().join("store");
    preallocate(&path, ByteCount::mib(8)).unwrap();
    let device = open(&path, ALONE).unwrap();
    let whole = 0..8 << 20;
    let shown = |area| {
        let ranges = device.written(area).unwrap();
        ranges.iter().map(|range| format!("{range:?}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(whole.clone()), "");
    device.write_at(2 << 20, &vec![1; 1 << 20]).unwrap();
    device.flush().unwrap();
    assert_eq!(shown(whole), "2097152..3145728");
    let half = 0..(2 << 20) + (512 << 10);
    assert_eq!(shown(half), "2097152..2621440");
}
