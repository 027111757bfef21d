//! Files and block devices: the properties found on opening, and refusals.

#![expect(unsafe_code, reason = "a thread that gives up its rights")]

use crate::scratch::{LoopDevice, Mount, TempDir};
use device::{BlockDevice, DeviceError, DeviceKind, FileDevice, Links, OpenOptions, preallocate};
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use testkit::Need;
use units::{ByteCount, Hinted};

fn open(path: &Path, options: OpenOptions) -> Result<FileDevice, DeviceError> {
    FileDevice::open(path, options)
}

fn said(result: Result<impl std::fmt::Debug, DeviceError>) -> String {
    result.unwrap_err().one_line()
}

const ALONE: OpenOptions =
    OpenOptions { direct: true, write: true, exclusive: true, links: Links::Followed };

#[test]
fn a_file_reports_its_size_in_whole_blocks() {
    let scratch = TempDir::new("size");
    let path = scratch.path().join("store");
    std::fs::write(&path, vec![7; 10_000]).unwrap();
    let geometry = open(&path, OpenOptions::default()).unwrap().geometry();
    let block = u64::from(geometry.block);
    assert!(block == 512 || block == 4096, "{geometry:?}");
    assert_eq!((geometry.size.0, geometry.kind), (10_000 - 10_000 % block, DeviceKind::File));
}

#[test]
fn without_direct_io_the_page_cache_is_used_and_reported() {
    let path = Path::new("/dev/shm").join(format!("tenuto-device-{}", std::process::id()));
    preallocate(&path, ByteCount::MIB).unwrap();
    let device = open(&path, ALONE).unwrap();
    let pool = device::Pool::new(ByteCount::MIB, ByteCount::MIB);
    let method = device.queue(1, &pool).unwrap().method();
    let about = std::fs::metadata(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    // Newer kernels support direct I/O on tmpfs; then there is nothing to refuse.
    assert_eq!(method.contains("buffered"), !device.is_direct(), "{method}");
    assert_eq!(device.geometry().size, ByteCount(about.size()));
}

/// Discards the second of three MiB; what is read of each then, and whether it could.
fn discarded(path: &Path) -> (bool, [u8; 3]) {
    const MIB: usize = 1 << 20;
    let device = open(path, ALONE).unwrap();
    device.write_at(0, &vec![7; 3 * MIB]).unwrap();
    device.flush().unwrap();
    let could = device.discard(1 << 20..2 << 20).unwrap();
    let mut back = vec![0; 3 * MIB];
    device.read_at(0, &mut back).unwrap();
    let parts = [0, 1, 2].map(|part| &back[part * MIB..(part + 1) * MIB]);
    assert!(parts.iter().all(|part| part.iter().all(|byte| *byte == part[0])), "{path:?}");
    (could, parts.map(|part| part[0]))
}

#[test]
fn a_discarded_area_gives_its_space_back_and_the_rest_stays() {
    let scratch = TempDir::new("discard");
    let path = scratch.path().join("store");
    preallocate(&path, ByteCount::mib(3)).unwrap();
    assert_eq!(discarded(&path), (true, [7, 0, 7]));
    let about = std::fs::metadata(&path).unwrap();
    assert_eq!((about.len(), about.blocks() * 512), (3 << 20, 2 << 20));

    let reading = OpenOptions { write: false, ..ALONE };
    let refused = said(open(&path, reading).unwrap().discard(0..1 << 20));
    assert!(refused.contains("it is open for reading only"), "{refused}");
    let refused = said(open(&path, ALONE).unwrap().discard(2 << 20..4 << 20));
    assert!(refused.contains("it ends at"), "{refused}");

    let Some(disk) = LoopDevice::over(&path) else { return };
    let queue = Path::new("/sys/block").join(disk.path().file_name().unwrap()).join("queue");
    // Zero where an emulated disk was attached before: the kernel keeps that with the loop device.
    let most = std::fs::read_to_string(queue.join("discard_max_bytes")).unwrap();
    let expected = if most.trim() == "0" { (false, [7, 7, 7]) } else { (true, [7, 0, 7]) };
    assert_eq!(discarded(disk.path()), expected);
}

#[test]
fn only_one_process_can_have_a_file_exclusively() {
    let scratch = TempDir::new("alone");
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
fn a_block_device_that_is_mounted_or_used_by_another_is_refused() {
    let scratch = TempDir::new("mounted");
    let beneath = scratch.path().join("beneath");
    preallocate(&beneath, ByteCount::mib(8)).unwrap();
    let Some(disk) = LoopDevice::over(&beneath) else { return };
    let first = open(disk.path(), ALONE).unwrap();
    let second = open(disk.path(), ALONE);
    assert!(matches!(second, Err(DeviceError::InUse { .. })), "{second:?}");
    assert!(said(second).contains("another process has it to itself"));
    drop(first);

    let at = scratch.path().join("here");
    let Some(mount) = Mount::ext4(disk.path(), &at) else { return };
    let before = std::fs::read(&beneath).unwrap();
    let refused = open(disk.path(), ALONE);
    assert!(matches!(refused, Err(DeviceError::Occupied { .. })), "{refused:?}");
    let refused = said(refused);
    assert!(refused.contains(disk.path().to_str().unwrap()), "{refused}");
    assert!(
        refused.contains(&format!("it is mounted on {}; release it", at.display())),
        "{refused}"
    );
    assert!(std::fs::read(&beneath).unwrap() == before);
    assert!(open(disk.path(), OpenOptions::default()).is_ok(), "looking in is allowed");
    drop(mount);
    assert!(open(disk.path(), ALONE).is_ok());
}

/// Runs `body` in a thread without root's rights to files; not at all if the tests do not run as
/// root.
fn as_nobody<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if !rustix::process::geteuid().is_root() {
        testkit::skip(Need::Root, "only root can give up root's rights");
        return None;
    }
    let thread = std::thread::spawn(|| {
        // SAFETY: they change whose rights this thread has to files, nothing else.
        unsafe {
            libc::setfsgid(NOBODY);
            libc::setfsuid(NOBODY);
        }
        body()
    });
    Some(thread.join().unwrap())
}

const NOBODY: u32 = 65_534;

/// Number 6 in `/etc/group` is `disk` on Debian; elsewhere it may have no name.
#[test]
fn a_missing_permission_is_reported_with_its_holders() {
    let directory = std::env::temp_dir().join(format!("tenuto-rights-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("disk");
    preallocate(&path, ByteCount::MIB).unwrap();
    let refusals = [0o640, 0o600].map(|mode| {
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        [OpenOptions::default(), ALONE].map(|options| {
            // Without root nothing is changed, and the test is skipped.
            let _ = chown(&path, None, Some(6));
            let path = path.clone();
            as_nobody(move || said(open(&path, options)))
        })
    });
    std::fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
    let locked_out = {
        let path = path.clone();
        as_nobody(move || said(open(&path, ALONE)))
    };
    std::fs::remove_dir_all(&directory).unwrap();
    let refusals: Option<Vec<String>> = refusals.into_iter().flatten().collect();
    let (Some(refusals), Some(locked_out)) = (refusals, locked_out) else { return };
    let wanted = [
        ["to read it, be user 0 or in group ", " (mode 640), or run with sudo"],
        ["to read and write it, be user 0 (mode 640), or run with sudo", ""],
        ["to read it, be user 0 (mode 600), or run with sudo", ""],
        ["to read and write it, be user 0 (mode 600), or run with sudo", ""],
    ];
    for (refusal, wanted) in refusals.iter().zip(wanted) {
        assert!(wanted.iter().all(|part| refusal.contains(part)), "{refusal} {wanted:?}");
    }
    assert!(locked_out.contains("run as a user who may enter its directories"), "{locked_out}");
}

#[test]
fn a_path_that_is_no_device_is_refused_with_the_reason() {
    let scratch = TempDir::new("named");
    let missing = said(open(&scratch.path().join("nothing"), ALONE));
    assert!(missing.contains("nothing") && missing.contains("tenuto format"), "{missing}");
    let directory = said(open(scratch.path(), ALONE));
    assert!(directory.contains("it is a directory"), "{directory}");
    let null = said(open(Path::new("/dev/null"), ALONE));
    assert!(null.contains("no file and no block device"), "{null}");
}

#[test]
fn a_file_is_preallocated_completely_and_keeps_its_contents() {
    let scratch = TempDir::new("room");
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
fn a_full_disk_is_reported_with_figures_and_leaves_nothing_behind() {
    let scratch = TempDir::new("full");
    let path = scratch.path().join("store");
    let error = said(preallocate(&path, ByteCount(8 << 40)));
    assert!(error.contains("8 TiB"), "{error}");
    assert!(!path.exists(), "no half-made file");
    std::fs::write(&path, b"kept").unwrap();
    preallocate(&path, ByteCount(8 << 40)).unwrap_err();
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
}

#[test]
fn unwritten_places_are_known() {
    let scratch = TempDir::new("written");
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

#[test]
fn a_file_and_the_loop_device_over_it_are_not_opened_alone_at_the_same_time() {
    let scratch = TempDir::new("loop");
    let path = scratch.path().join("file");
    std::fs::write(&path, vec![0; 1 << 20]).unwrap();
    let Some(disk) = LoopDevice::over(&path) else { return };
    let one_by_one = [(disk.path(), path.as_path()), (path.as_path(), disk.path())];
    for (first, second) in one_by_one {
        let held = open(first, ALONE).unwrap();
        let error = open(second, ALONE).unwrap_err();
        let DeviceError::InUse { path: named, by } = &error else { panic!("{error}") };
        assert_eq!(named, second);
        assert!(by.message.contains("another process holds its lock"), "{error}");
        drop(held);
        open(second, ALONE).unwrap();
    }
}
