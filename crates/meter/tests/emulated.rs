//! Published results on an emulated disk, from making the first file system to removing the last
//! mount: on a disk of 64 MiB that runs twenty times as fast, so that it takes seconds. The number
//! of streams is not judged, because it depends on the machine.
//!
//! Needs root, /dev/fuse and e2fsprogs; without them the tests are skipped.

use device::DiskStop;
use meter::emulated::{
    EmulatedOptions, EmulatedProgress, FileSystem, ParkOptions, Reproduction, System, TitlesOnDisk,
    TitlesPlan,
};
use meter::{MeterError, MeterErrorKind};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use units::{ByteCount, Hinted};

/// A lock that runs these tests one at a time: each searches the whole list of mounts for
/// leftovers.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_interrupted(error: &MeterError) -> bool {
    error.kind == MeterErrorKind::Interrupted
}

fn options(name: &str) -> EmulatedOptions {
    let backing = format!("tenuto-made-again-{name}-{}", std::process::id());
    EmulatedOptions {
        backing: std::env::temp_dir().join(backing),
        size: Some(ByteCount::mib(64)),
        systems: vec![System::Raw, System::On(FileSystem::Ext2)],
        rounds: 5,
        block: ByteCount(64_000),
        speed: 20,
        park: ParkOptions { streams: vec![1, 3], units: vec![ByteCount::kib(32)], alone: 2 },
        titles: Some(make_titles),
        program: None,
    }
}

/// In place of a store: titles one after another on the device itself. Its mount is a directory
/// with files.
struct TitlesInARow {
    device: PathBuf,
    len: u64,
    mounted: Option<PathBuf>,
}

fn make_titles(
    device: &Path,
    plan: TitlesPlan,
    go_on: &mut dyn FnMut(u32) -> bool,
) -> Result<Box<dyn TitlesOnDisk>, MeterError> {
    for number in 0..plan.count {
        if !go_on(number) {
            return Err(MeterError::new("ended"));
        }
    }
    Ok(Box::new(TitlesInARow { device: device.into(), len: plan.len.0, mounted: None }))
}

impl TitlesOnDisk for TitlesInARow {
    fn readers(&mut self, titles: &[u32]) -> Result<Vec<Box<dyn Read + Send>>, MeterError> {
        let opened = titles.iter().map(|title| {
            let mut file = File::open(&self.device).unwrap();
            file.seek(SeekFrom::Start(u64::from(*title) * self.len)).unwrap();
            Box::new(file.take(self.len)) as Box<dyn Read + Send>
        });
        Ok(opened.collect())
    }

    fn mount_cold(&mut self, at: &Path) -> Result<(), MeterError> {
        self.mounted = Some(at.into());
        for title in 0..3 {
            std::fs::write(self.file(title), vec![1; usize::try_from(self.len).unwrap()]).unwrap();
        }
        Ok(())
    }

    fn file(&self, title: u32) -> PathBuf {
        self.mounted.as_ref().unwrap().join(title.to_string())
    }
}

impl Drop for TitlesInARow {
    fn drop(&mut self) {
        if self.mounted.is_some() {
            (0..3).for_each(|title| std::fs::remove_file(self.file(title)).unwrap());
        }
    }
}

fn nothing_is_left(backing: &Path) {
    assert!(!backing.exists(), "the file that was made for it");
    let folder = PathBuf::from(format!("{}.emulated", backing.display()));
    assert!(!folder.exists(), "{}", folder.display());
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let ours = backing.display().to_string();
    assert!(!mounts.contains(&ours), "{mounts}");
    let mounted = format!("tenuto-mounted-{}", std::process::id());
    assert!(!mounts.contains(&mounted), "{mounts}");
}

#[test]
fn tables_are_complete_and_nothing_is_left() {
    testkit::needs!(Root, Fuse, Loop, Program("mkfs.ext2"));
    let _alone = alone();
    for (name, rows) in [
        ("alderman-table1", [12, 13, 2].as_slice()),
        ("alderman-rounds", &[2]),
        ("lee-drift", &[40]),
        // Two numbers of streams, and one alone, on the store, its mount, and ext2 with two
        // read-aheads; figure 6 of both ways of the store and the paper; both beside ext2.
        ("park-figures", &[8, 4, 3, 4]),
    ] {
        let mut options = options(name);
        if name == "park-figures" {
            options.systems[0] = System::Store;
            options.systems.push(System::StoreMount);
        }
        let mut found = Vec::new();
        let mut hear = |progress: EmulatedProgress<'_>| {
            assert!((0.0..=1.0).contains(&progress.done), "{progress:?}");
            if progress.found {
                found.push(progress.what.to_owned());
            }
        };
        let one = Reproduction::named(name).unwrap();
        let made = one.run(&options, &mut hear, &DiskStop::default()).unwrap();
        assert!(made.ended.is_none());
        let tables = &made.report.tables;
        assert_eq!(tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), rows);
        // One alone is a result as well.
        let alone = tables.iter().find(|table| table.name == "alone").map_or(0, |it| it.rows.len());
        assert_eq!(found.len(), rows[0] + alone, "{found:?}");
        let charted = made.report.figures.iter().all(|figure| figure.plot.svg().is_ok());
        assert!(charted && !made.report.figures.is_empty());
        let late = made.report.notes.iter().any(|note| note.contains("the longest of all was"));
        assert!(late, "the emulation's own lateness is told: {:?}", made.report.notes);
        nothing_is_left(&options.backing);
    }
}

/// Interrupted as by Ctrl-C: immediately, and after a first result on a mounted file system.
#[test]
fn an_interrupted_run_reports_its_results_and_leaves_nothing() {
    testkit::needs!(Root, Fuse, Loop, Program("mkfs.ext2"));
    let _alone = alone();
    let one = Reproduction::named("alderman-table1").unwrap();
    let options =
        EmulatedOptions { systems: vec![System::On(FileSystem::Ext2)], ..options("interrupted") };
    let asked = DiskStop::default();
    asked.ask();
    let at_once = one.run(&options, &mut |_| {}, &asked);
    assert!(at_once.as_ref().is_err_and(is_interrupted), "{at_once:?}");
    nothing_is_left(&options.backing);

    let stop = DiskStop::default();
    let mut at_the_first = |progress: EmulatedProgress<'_>| {
        if progress.found {
            stop.ask();
        }
    };
    let made = one.run(&options, &mut at_the_first, &stop).unwrap();
    assert!(made.ended.as_ref().is_some_and(is_interrupted));
    assert_eq!(made.report.tables[0].rows.len(), 1);
    assert!(made.report.notes[0].contains("ended early"), "{:?}", made.report.notes);
    nothing_is_left(&options.backing);
}

/// Interrupted as by three Ctrl-C, 50 ms apart, in any phase.
#[test]
fn a_run_interrupted_three_times_ends_in_any_phase_and_leaves_nothing() {
    testkit::needs!(Root, Fuse, Loop, Program("mkfs.ext2"));
    let _alone = alone();
    let one = Reproduction::named("alderman-table1").unwrap();
    for (system, at) in [
        (System::Raw, "making the disk"),
        (System::Raw, "streams: "),
        (System::On(FileSystem::Ext2), "making ext2"),
        (System::On(FileSystem::Ext4), "filling ext4: 20 of"),
        (System::On(FileSystem::Xfs), "one after another"),
        (System::On(FileSystem::Btrfs), "streams: "),
    ] {
        if matches!(system, System::On(kind) if kind.available().is_err()) {
            continue;
        }
        // The smallest disk on which the largest of the file systems can be made.
        let size = Some(ByteCount::mib(320));
        let systems = vec![system];
        let options = EmulatedOptions { size, systems, ..options("hurried") };
        let (stop, (told, hear)) = (&DiskStop::default(), channel());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                hear.recv().expect("the run reaches this phase");
                stop.ask();
                for _ in 0..2 {
                    std::thread::sleep(Duration::from_millis(50));
                    stop.pull().unwrap();
                }
            });
            let mut there = move |progress: EmulatedProgress<'_>| {
                if progress.what.contains(at) {
                    // The receiver may be gone after the first message.
                    let _ = told.send(());
                }
            };
            let ended = match one.run(&options, &mut there, stop) {
                Ok(made) => made.ended,
                Err(error) => Some(error),
            };
            let interrupted = ended.as_ref().is_some_and(is_interrupted);
            assert!(interrupted, "{} at {at}: {ended:?}", system.name());
        });
        nothing_is_left(&options.backing);
    }
}

/// Killed while its own threads wait for its own disk, with a file system mounted from it.
#[test]
fn a_killed_run_ends_and_the_next_one_removes_its_remains() {
    testkit::needs!(Root, Fuse, Loop, Program("mkfs.ext2"));
    let _alone = alone();
    for systems in ["raw", "ext2"] {
        let mut child = killed_later(systems);
        let mut told = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("streams: ") {
            line.clear();
            assert!(told.read_line(&mut line).unwrap() > 0, "it ended before it was killed");
        }
        child.kill().unwrap();
        let ended = (0..LOOKS).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            child.try_wait().unwrap().is_some()
        });
        assert!(ended, "{systems}: it hangs in the kernel");
    }
    let one = Reproduction::named("alderman-rounds").unwrap();
    let next = EmulatedOptions { systems: vec![System::Raw], ..options("next") };
    one.run(&next, &mut |_| {}, &DiskStop::default()).unwrap();
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains("tenuto-made-again-killed"), "{mounts}");
    assert!(!mounts.contains("/tenuto-mounted-"), "{mounts}");
    nothing_is_left(&next.backing);
}

/// Starts this program again as the process to be killed.
fn killed_later(systems: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "is_killed", "--ignored", "--nocapture"])
        .env(KILLED, systems)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "the test of a killed one runs it"]
fn is_killed() {
    let Ok(systems) = std::env::var(KILLED) else { return };
    let systems = vec![systems.parse().unwrap()];
    // At the disk's own speed, so that every reader waits.
    let options = EmulatedOptions { systems, speed: 1, ..options("killed") };
    let one = Reproduction::named("alderman-table1").unwrap();
    let mut tell = |progress: EmulatedProgress<'_>| {
        let _ = writeln!(std::io::stdout(), "{}", progress.what);
    };
    let _ = one.run(&options, &mut tell, &DiskStop::default());
}

/// The variable that gives [`is_killed`] its systems.
const KILLED: &str = "TENUTO_TEST_SYSTEMS";

/// The number of checks whether the process has ended.
const LOOKS: u32 = 600;

#[test]
fn what_cannot_be_read_is_refused_before_anything_is_made() {
    let one = Reproduction::named("park-figures").unwrap();
    let on = |systems, park| EmulatedOptions { systems, park, ..options("not-read") };
    let store = || vec![System::Store];
    let usual = ParkOptions::default;
    for (options, what) in [
        (on(vec![System::Raw], usual()), "does not measure 'raw'"),
        (on(store(), ParkOptions { streams: Vec::new(), ..usual() }), "1 to 200 streams"),
        (on(store(), ParkOptions { streams: vec![10, 0], ..usual() }), "1 to 200 streams"),
        (on(store(), ParkOptions { streams: vec![201], ..usual() }), "1 to 200 streams"),
        (on(store(), ParkOptions { units: Vec::new(), ..usual() }), "one or two sizes"),
        (on(store(), ParkOptions { units: vec![ByteCount(0)], ..usual() }), "one or two sizes"),
        (on(store(), ParkOptions { units: vec![ByteCount(1); 3], ..usual() }), "one or two sizes"),
    ] {
        let said = one.run(&options, &mut |_| {}, &DiskStop::default()).unwrap_err();
        assert_eq!(said.kind, MeterErrorKind::Usage, "{said:?}");
        assert!(said.one_line().contains(what), "{said:?}");
        nothing_is_left(&options.backing);
    }
}

#[test]
fn rounds_longer_than_a_streams_file_are_refused_before_anything_is_made() {
    let one = Reproduction::named("alderman-rounds").unwrap();
    let many = EmulatedOptions { rounds: 100, ..options("refused") };
    for (options, what) in [
        (EmulatedOptions { rounds: 100, ..many.clone() }, "100 rounds of 64 kB"),
        (EmulatedOptions { block: ByteCount::ZERO, ..many }, "100 rounds of 0 B"),
    ] {
        let said = one.run(&options, &mut |_| {}, &DiskStop::default()).unwrap_err().one_line();
        assert!(said.starts_with(what) && said.contains("a stream's file"), "{said}");
        nothing_is_left(&options.backing);
    }
}
