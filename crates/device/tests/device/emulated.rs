//! An emulated disk from outside: its files, its block device with a file system on it, its
//! refusals, and its remains.
//!
//! Needs root and /dev/fuse, and is counted as skipped without them. Times are only checked not to
//! be early.

use crate::scratch::TempDir;
use device::{DeviceError, DiskStatistics, EmulateOptions, EmulatedDisk};
use disk::DiskModel;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use units::{ByteCount, Hinted};

fn model(name: &str) -> DiskModel {
    DiskModel::preset(name).unwrap()
}

/// Stops a disk that nothing uses: the child of another test may have its file open for a moment,
/// until it becomes another program.
fn stop(disk: &mut EmulatedDisk) {
    for _ in 0..50 {
        match disk.stop() {
            Err(DeviceError::InUse { .. }) => std::thread::sleep(Duration::from_millis(20)),
            stopped => return stopped.unwrap(),
        }
    }
    disk.stop().unwrap();
}

fn options(room: &TempDir, size: ByteCount) -> EmulateOptions {
    EmulateOptions { size: Some(size), ..EmulateOptions::new(room.path().join("bytes")) }
}

fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes
}

#[test]
fn its_file_returns_written_bytes_and_takes_the_models_time() {
    testkit::needs!(Root, Fuse);
    let room = TempDir::new("emulated file");
    let mut disk =
        EmulatedDisk::start(&model("hdd-20tb"), &options(&room, ByteCount::mib(16))).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(disk.file()).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 16 << 20);
    let start = Instant::now();
    let bytes = pattern(3 << 20, 1);
    file.write_all_at(&bytes, 5000).unwrap();
    file.write_all_at(b"the end", (16 << 20) - 7).unwrap();
    let mut back = vec![0; bytes.len()];
    file.read_exact_at(&mut back, 5000).unwrap();
    assert!(back == bytes, "what was written");
    assert_eq!(file.read_at(&mut back, (16 << 20) - 7).unwrap(), 7, "reads end where it ends");
    assert_eq!(file.read_at(&mut back, 16 << 20).unwrap(), 0);
    assert!(file.write_at(b"more", 16 << 20).is_err(), "there is nothing beyond the end");

    let s = disk.statistics();
    assert_eq!(s.written_bytes, ByteCount((3 << 20) + 7));
    assert_eq!(s.read_bytes, ByteCount((3 << 20) + 7));
    assert_eq!(s.overhead + s.seek + s.rotation + s.transfer, s.busy);
    assert!(s.positioned >= 3 && s.positioned <= s.reads + s.writes, "{s:?}");
    assert!(s.busy <= start.elapsed(), "never early: {s:?}");
    assert!(s.late_p50 <= s.late_p90 && s.late_p90 <= s.late_p99 && s.late_p99 <= s.late_max);

    file.set_len(4096).unwrap_err();
    drop(file);
    stop(&mut disk);
    assert!(!disk.file().exists() && !EmulatedDisk::folder_of(&room.path().join("bytes")).exists());
    let mut kept = vec![0; bytes.len()];
    File::open(room.path().join("bytes")).unwrap().read_exact_at(&mut kept, 5000).unwrap();
    assert!(kept == bytes, "the backing file has it");
}

/// A faster disk takes the model's time by its statistics and a part of it by the clock.
#[test]
fn a_faster_disk_reports_the_models_times() {
    testkit::needs!(Root, Fuse);
    let room = TempDir::new("emulated faster");
    let options = EmulateOptions { speed: 20, ..options(&room, ByteCount::mib(4)) };
    let disk = EmulatedDisk::start(&model("st39183w"), &options).unwrap();
    let file = OpenOptions::new().write(true).open(disk.file()).unwrap();
    let start = Instant::now();
    for _ in 0..10 {
        file.write_all_at(&[1; 4096], 0).unwrap();
        file.write_all_at(&[1; 4096], (4 << 20) - 4096).unwrap();
    }
    let (took, s) = (start.elapsed(), disk.statistics());
    assert!(s.seek >= Duration::from_millis(16 * 19), "nearly a full stroke each: {s:?}");
    assert!(s.busy <= took * 20, "never early: {took:?}, {s:?}");
}

#[test]
fn its_control_file_reports_and_accepts_commands() {
    testkit::needs!(Root, Fuse);
    let room = TempDir::new("emulated control");
    let mut options = options(&room, ByteCount::mib(4));
    options.fast = true;
    let disk = EmulatedDisk::start(&model("st39183w"), &options).unwrap();
    let told = || std::fs::read_to_string(disk.control()).unwrap();
    let file = OpenOptions::new().write(true).open(disk.file()).unwrap();
    let ends = || {
        (0..10).for_each(|_| {
            file.write_all_at(&[1; 4096], 0).unwrap();
            file.write_all_at(&[1; 4096], (4 << 20) - 4096).unwrap();
        });
    };
    ends();
    assert!(
        told().starts_with("model st39183w\nsize 4194304\nqueue 32\nspeed 1\npriority "),
        "{}",
        told()
    );
    assert!(told().contains("\nfast on\n"), "{}", told());
    assert_eq!((disk.statistics().writes, disk.statistics().fast_requests), (0, 20));
    std::fs::write(disk.control(), "fast off\nreset\n").unwrap();
    let start = Instant::now();
    ends();
    assert!(start.elapsed() >= Duration::from_millis(17 * 19), "a full stroke each");
    let said: DiskStatistics = told().parse().unwrap();
    assert_eq!((said.writes, said.fast_requests, said.positioned), (20, 0, 20));
    assert_eq!(said.seek, disk.statistics().seek);
    std::fs::write(disk.control(), "slower please").unwrap_err();
    drop(file);
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().expect(program);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
}

#[test]
fn a_file_system_on_its_block_device_returns_written_files() {
    testkit::needs!(Root, Fuse, Loop, Program("mkfs.ext4"), Program("mount"), Program("umount"));
    let room = TempDir::new("emulated ext4");
    let mut options = options(&room, ByteCount::mib(64));
    options.attach = true;
    options.fast = true;
    let mut disk = EmulatedDisk::start(&model("hdd-20tb"), &options).unwrap();
    let device = disk.device().unwrap().to_owned();
    let queue = Path::new("/sys/block").join(device.file_name().unwrap()).join("queue");
    let says = |what: &str| std::fs::read_to_string(queue.join(what)).unwrap();
    assert_eq!(says("rotational"), "1\n");
    let (device, mount) = (device.to_str().unwrap().to_owned(), room.path().join("mnt"));
    std::fs::create_dir(&mount).unwrap();
    run("mkfs.ext4", &["-q", "-F", &device]);
    run("mount", &[&device, mount.to_str().unwrap()]);
    disk.set_fast(false);
    disk.reset_statistics();
    let start = Instant::now();
    let film = pattern(4 << 20, 2);
    let mut file = File::create(mount.join("film")).unwrap();
    file.write_all(&film).unwrap();
    file.sync_all().unwrap();
    let s = disk.statistics();
    assert!(s.written_bytes >= ByteCount::mib(4), "{s:?}");
    assert_eq!(s.overhead + s.seek + s.rotation + s.transfer, s.busy);
    assert!(s.busy <= start.elapsed(), "never early: {s:?}");

    // A busy disk stays as it is and names the user.
    let busy = disk.stop().unwrap_err().to_string();
    assert!(busy.contains("mnt is in use: a program has a file"), "{busy}");
    drop(file);
    stop(&mut disk);
    assert!(!mount.join("film").exists(), "it was unmounted");

    // The next disk finds the file and reads it from the disk.
    options.size = None;
    options.fast = false;
    let mut disk = EmulatedDisk::start(&model("hdd-20tb"), &options).unwrap();
    let device = disk.device().unwrap().to_str().unwrap().to_owned();
    run("mount", &["-o", "ro", &device, mount.to_str().unwrap()]);
    assert!(std::fs::read(mount.join("film")).unwrap() == film);
    assert!(disk.statistics().read_bytes >= ByteCount::mib(4));
    stop(&mut disk);
}

#[test]
fn an_unsuitable_disk_is_refused_with_the_reason() {
    testkit::needs!(Root, Fuse);
    let room = TempDir::new("emulated refusals");
    let refusal = |options: &EmulateOptions| {
        EmulatedDisk::start(&model("st39183w"), options).map(drop).unwrap_err().one_line()
    };
    let holds = |said: String, words: &str| assert!(said.contains(words), "'{words}': {said}");
    let good = options(&room, ByteCount::mib(1));
    holds(refusal(&EmulateOptions { size: None, ..good.clone() }), "say --size to make it");
    let large = EmulateOptions { size: Some(ByteCount(1 << 40)), ..good.clone() };
    holds(refusal(&large), "1 TiB are more than a st39183w has (8.5 GiB, 9105018880 bytes)");
    holds(
        refusal(&EmulateOptions { size: Some(ByteCount(4095)), ..good.clone() }),
        "at least 4096",
    );
    assert!(!good.backing.exists(), "nothing was made");

    File::create(&good.backing).unwrap().set_len(1 << 20).unwrap();
    holds(refusal(&good), "it is sparse: 1 MiB of it have no place on disk");
    std::fs::write(&good.backing, vec![7; 1 << 20]).unwrap();
    let larger = EmulateOptions { size: Some(ByteCount::mib(2)), ..good.clone() };
    holds(refusal(&larger), "it has 1 MiB and 2 MiB are asked for");
    let folder = EmulateOptions { backing: room.path().to_owned(), ..good.clone() };
    holds(refusal(&folder), "it is no regular file");

    let full = room.path().join("full");
    std::fs::create_dir_all(full.join("of things")).unwrap();
    let over = EmulateOptions { at: Some(full), ..good.clone() };
    holds(refusal(&over), "it is not empty; name another folder with --at");
    let nowhere = EmulateOptions { at: Some(room.path().join("no/where")), ..good.clone() };
    holds(refusal(&nowhere), "must be there");

    let disk = EmulatedDisk::start(&model("st39183w"), &good).unwrap();
    holds(refusal(&good), "that still runs, stop that one");
    let twice = EmulateOptions { at: Some(room.path().join("other")), ..good.clone() };
    holds(refusal(&twice), "is in use");
    drop(disk);
    EmulatedDisk::start(&model("st39183w"), &good).unwrap();
}

#[test]
fn a_used_disk_is_not_stopped_and_a_dropped_one_is_removed() {
    testkit::needs!(Root, Fuse);
    let room = TempDir::new("emulated use");
    let good = options(&room, ByteCount::mib(1));
    let mut disk = EmulatedDisk::start(&model("ssd-nvme"), &good).unwrap();
    let file = File::open(disk.file()).unwrap();
    let said = disk.stop().unwrap_err().to_string();
    assert!(said.contains("a program has a file or directory there open"), "{said}");
    file.read_exact_at(&mut [0; 4096], 0).unwrap();
    drop(disk);
    assert!(!EmulatedDisk::folder_of(&good.backing).join("disk").exists(), "off the list");
    drop(file);
    EmulatedDisk::start(&model("ssd-nvme"), &good).expect("the last user has let go of the bytes");
}
