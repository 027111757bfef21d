//! What programs find in a mounted store, and what is told of their files.

use super::handles::noted;
use super::*;
use media::{IndexPart, TrackDescription, TrackKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::{
    BackgroundIo, FormatOptions, IngestReport, SoleOwner, StoreAccess, TitleId, TitleLeave,
    TitleRecorder,
};
use units::{ByteCount, Timescale};

/// The files of a store of its own in a folder of its own, and what they tell people.
struct TestFiles {
    files: StoreFiles,
    told: Arc<Mutex<Vec<String>>>,
    folder: PathBuf,
}

impl TestFiles {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tenuto-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let told = Arc::<Mutex<Vec<String>>>::default();
        let files = StoreFiles::new(Self::owner(&folder), Self::options(&folder, &told));
        Self { files, told, folder }
    }

    fn owner(folder: &Path) -> Arc<dyn TitleOwner> {
        let path = folder.join("a.store");
        let size = Some(ByteCount(SIZE));
        Store::format(&path, &FormatOptions { size, ..<_>::default() }).unwrap();
        Arc::new(SoleOwner(Store::open(&path).unwrap()))
    }

    fn options(folder: &Path, told: &Arc<Mutex<Vec<String>>>) -> StoreMountOptions {
        let told = Arc::clone(told);
        let tell = Arc::new(move |line: &str| locked(&told).push(line.to_owned()));
        StoreMountOptions { read_only: false, spool: folder.to_owned(), rate: None, tell }
    }

    fn take_told(&self) -> Vec<String> {
        std::mem::take(&mut locked(&self.told))
    }

    /// Writes a file at once, as a program that makes or empties it.
    fn write(&self, path: &str, bytes: &[u8]) -> FsResult<()> {
        let access = FileAccess { writes: true, truncates: true };
        let (_, _, (handle, _)) = self.files.create(path, access, false)?;
        let file = self.files.opened(handle)?;
        if !bytes.is_empty() {
            self.files.write(&file, 0, bytes)?;
        }
        let closed = self.files.flush(&file);
        self.files.release(handle);
        closed
    }

    fn read(&self, path: &str) -> FsResult<Vec<u8>> {
        let (number, about) = self.files.look_up(path)?;
        let (handle, _) = self.files.open(number, FileAccess::default())?;
        let bytes = self
            .files
            .opened(handle)
            .and_then(|file| self.files.read(&file, 0, usize::try_from(about.bytes).unwrap()));
        self.files.release(handle);
        bytes
    }

    fn names(&self, path: &str) -> Vec<String> {
        self.files.list(path).into_iter().map(|(name, _)| name).collect()
    }

    #[track_caller]
    fn fails(&self, result: FsResult<()>, errno: Errno) {
        assert_eq!(result.unwrap_err().code(), errno.code(), "{:?}", self.take_told());
    }
}

/// A store that takes titles until its disk is drained.
#[derive(Debug)]
struct DrainedOwner {
    store: SoleOwner,
    is_draining: Arc<AtomicBool>,
    /// The files that are to become titles.
    running: Arc<AtomicU64>,
    /// Where the last file waits that has waited.
    waits: Arc<Mutex<Option<String>>>,
}

/// Counts a file that is to become a title, and has where it waits.
#[derive(Debug)]
struct Running(Arc<AtomicU64>, Arc<Mutex<Option<String>>>);

impl TitleLeave for Running {
    fn waits(&self, path: Option<&str>) {
        *locked(&self.1) = path.map(str::to_owned);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl StoreAccess for DrainedOwner {
    fn store(&self) -> &Store {
        self.store.store()
    }

    fn background_io(&self) -> &dyn BackgroundIo {
        self.store.background_io()
    }
}

impl TitleOwner for DrainedOwner {
    fn free_hidden(&self, id: TitleId) {
        self.store.free_hidden(id);
    }

    fn begin_title(&self, _: &str) -> Result<Box<dyn TitleLeave>, StoreError> {
        if self.is_draining.load(Ordering::Relaxed) {
            let (store, hint) = ("a.store".into(), "copy it elsewhere".to_owned());
            return Err(StoreError::Draining { store, hint });
        }
        self.running.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Running(Arc::clone(&self.running), Arc::clone(&self.waits))))
    }
}

/// What a test does to a [`DrainedOwner`], and sees of it.
#[derive(Default)]
struct DrainedParts {
    is_draining: Arc<AtomicBool>,
    running: Arc<AtomicU64>,
    waits: Arc<Mutex<Option<String>>>,
}

/// Files of a store whose disk may be drained.
fn drained(name: &str) -> (TestFiles, DrainedParts) {
    let (mut it, parts) = (TestFiles::new(name), DrainedParts::default());
    let path = it.folder.join("b.store");
    let size = Some(ByteCount(SIZE));
    Store::format(&path, &FormatOptions { size, ..<_>::default() }).unwrap();
    let owner = DrainedOwner {
        store: SoleOwner(Store::open(&path).unwrap()),
        is_draining: Arc::clone(&parts.is_draining),
        running: Arc::clone(&parts.running),
        waits: Arc::clone(&parts.waits),
    };
    it.files = StoreFiles::new(Arc::new(owner), TestFiles::options(&it.folder, &it.told));
    (it, parts)
}

#[test]
fn a_file_that_waits_says_where_until_its_user_goes_on_with_it() {
    let (it, DrainedParts { is_draining, running, waits }) = drained("waits");
    let state = || (running.load(Ordering::Relaxed), locked(&waits).clone());
    let at = |path: &str| (1, Some(path.to_owned()));
    it.write(".ingest/.a.mp4", b"no film").unwrap();
    is_draining.store(true, Ordering::Relaxed);
    assert_eq!(state(), at(".ingest/.a.mp4"));
    it.files.rename(".ingest/.a.mp4", ".ingest/.b.mp4", false).unwrap();
    assert_eq!(state(), at(".ingest/.b.mp4"));
    it.fails(it.files.rename(".ingest/.b.mp4", ".ingest/c.mp4", false), Errno::EINVAL);
    assert_eq!(state(), at(".ingest/.b.mp4"), "it is no film, and waits on");
    it.files.rename(".ingest/.b.mp4", "words", false).unwrap();
    assert_eq!((it.read("words").unwrap(), state()), (b"no film".to_vec(), (0, None)));

    is_draining.store(false, Ordering::Relaxed);
    it.write(".ingest/empty.mp4", b"").unwrap();
    is_draining.store(true, Ordering::Relaxed);
    assert_eq!(state(), at(".ingest/empty.mp4"));
    it.files.unlink(".ingest/empty.mp4").unwrap();
    assert_eq!(running.load(Ordering::Relaxed), 0);
}

#[test]
fn no_file_begins_on_a_disk_that_is_drained_and_open_ones_become_titles() {
    let (it, DrainedParts { is_draining, running, .. }) = drained("drained");
    let running = || running.load(Ordering::Relaxed);
    let access = FileAccess { writes: true, truncates: true };
    let (_, _, (handle, _)) = it.files.create("open", access, false).unwrap();
    assert_eq!(running(), 1);
    is_draining.store(true, Ordering::Relaxed);
    it.fails(it.write("new", b"words"), Errno::EROFS);
    assert_eq!(
        it.take_told(),
        ["a.store is drained: its disk is to be taken out; copy it elsewhere"]
    );
    let file = it.files.opened(handle).unwrap();
    it.files.write(&file, 0, b"words").unwrap();
    it.files.flush(&file).unwrap();
    drop(file);
    it.files.release(handle);
    assert_eq!((running(), it.names("")), (0, vec![".ingest".to_owned(), "open".to_owned()]));
    assert_eq!(it.read("open").unwrap(), b"words");
    // Nor is a title replaced there.
    it.fails(it.write("open", b"other"), Errno::EROFS);
    assert_eq!(it.read("open").unwrap(), b"words");
}

impl Drop for TestFiles {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Bytes of a store for tests.
const SIZE: u64 = 32 << 20;

#[test]
fn a_failed_rename_of_what_waits_changes_nothing() {
    let it = TestFiles::new("rename");
    it.write("h2.mp4", b"there").unwrap();
    it.write("full", b"old").unwrap();
    let text = b"no film".as_slice();
    it.write(".ingest/.a.mp4", text).unwrap();
    let long = format!(".ingest/{}", "n".repeat(256));
    let large = vec![7; usize::try_from(SIZE).unwrap()];
    it.write(".ingest/.large", &large).unwrap();
    for (from, to, errno) in [
        // No media; a name that no title can have; more than the store has room for, also in
        // the place of a file.
        (".ingest/.a.mp4", ".ingest/h3.mp4", Errno::EINVAL),
        (".ingest/.a.mp4", long.as_str(), Errno::ENAMETOOLONG),
        (".ingest/.a.mp4", ".ingest/folder/a.mp4", Errno::ENOENT),
        (".ingest/.large", "large", Errno::ENOSPC),
        (".ingest/.large", "full", Errno::ENOSPC),
        (".ingest/.large", ".ingest/.a.mp4/x", Errno::ENOENT),
    ] {
        it.fails(it.files.rename(from, to, false), errno);
        assert_eq!(it.names(".ingest"), [".a.mp4", ".large"], "{to}");
        assert_eq!(it.names(""), [".ingest", "full", "h2.mp4"], "{to}");
        assert!(it.read(".ingest/.a.mp4").unwrap() == text);
        assert!(it.read(".ingest/.large").unwrap() == large);
        assert_eq!(it.read("full").unwrap(), b"old");
    }
    // It waits on: under another name, then as a file in the place of another, then it is gone.
    it.files.rename(".ingest/.a.mp4", ".ingest/.b.mp4", false).unwrap();
    it.files.rename(".ingest/.b.mp4", "full", false).unwrap();
    assert_eq!(it.read("full").unwrap(), text);
    it.files.unlink(".ingest/.large").unwrap();
    assert_eq!(it.names(".ingest"), [""; 0]);
    assert_eq!(it.names(""), [".ingest", "full", "h2.mp4"]);
    let titles = it.files.store().titles();
    let named = |name: &str| titles.iter().filter(|title| title.name == name).count();
    assert_eq!((titles.len(), named("full"), named("h2.mp4")), (2, 1, 1));
}

#[test]
fn an_empty_file_waits_for_its_bytes() {
    let it = TestFiles::new("empty");
    it.write(".ingest/zero.mov", b"").unwrap();
    assert_eq!(it.names(".ingest"), ["zero.mov"]);
    assert_eq!(it.read(".ingest/zero.mov").unwrap(), b"");
    // Once only: programs make a file, and write it when they have opened it again.
    it.write(".ingest/zero.mov", b"").unwrap();
    let told = it.take_told();
    assert_eq!(told, [".ingest/zero.mov is empty: it waits until something is written to it"]);
    it.files.rename(".ingest/zero.mov", ".ingest/one.mov", false).unwrap();
    assert_eq!(it.names(".ingest"), ["one.mov"]);
    // What is written is taken in at the close, or refused as ever.
    it.fails(it.write(".ingest/one.mov", b"no film"), Errno::EINVAL);
    assert_eq!(it.names(".ingest"), [""; 0]);
    it.write(".ingest/one.mov", b"").unwrap();
    it.files.unlink(".ingest/one.mov").unwrap();
    assert_eq!(it.names(".ingest"), [""; 0]);
    // Under a name outside it is an empty file title.
    it.write(".ingest/zero.mov", b"").unwrap();
    it.files.rename(".ingest/zero.mov", "empty", false).unwrap();
    assert_eq!((it.names(".ingest").len(), it.read("empty").unwrap()), (0, Vec::new()));
    assert_eq!(it.files.store().titles()[0].name, "empty");
}

#[test]
fn no_title_gets_a_name_in_the_ingest_folder() {
    let it = TestFiles::new("ingest");
    it.files.make_folder("folder").unwrap();
    it.write("folder/file", b"text").unwrap();
    it.files.make_folder("empty").unwrap();
    for (from, to) in [
        ("folder", ".ingest/folder"),
        ("empty", ".ingest/empty"),
        ("folder", ".ingest/.hidden"),
        ("folder/file", ".ingest/file"),
    ] {
        it.fails(it.files.rename(from, to, false), Errno::EINVAL);
    }
    it.fails(it.files.make_folder(".ingest/folder"), Errno::EINVAL);
    // A command can give such a name; from there it can be taken back.
    it.files.store().rename("folder/file", ".ingest/deep/file").unwrap();
    it.fails(it.files.rename("empty", ".ingest/deep/empty", false), Errno::EINVAL);
    it.fails(it.files.make_folder(".ingest/deep/folder"), Errno::EINVAL);
    it.fails(it.write(".ingest/deep/new", b""), Errno::EINVAL);
    it.files.rename(".ingest/deep", "deep", false).unwrap();
    assert_eq!(it.read("deep/file").unwrap(), b"text");
}

#[test]
fn files_that_waited_in_vain_are_named_once() {
    let it = TestFiles::new("lost");
    it.files.tell_lost();
    it.write("file", b"text").unwrap();
    it.write(".ingest/.a.mp4", b"text").unwrap();
    it.write(".ingest/.b", b"").unwrap();
    it.files.tell_lost();
    it.files.tell_lost();
    let lost = "unmounted: what waited in .ingest is lost: .ingest/.a.mp4, .ingest/.b";
    assert_eq!(it.take_told(), [lost]);
    assert_eq!(it.names(".ingest"), [""; 0]);
}

#[test]
fn what_is_to_be_said_on_a_title_is_one_line() {
    let it = TestFiles::new("notes");
    it.write("news", b"text").unwrap();
    let title = it.files.store().titles().remove(0);
    let said = |left_out: &[&str], notes: &[&str]| {
        let [left_out, notes] =
            [left_out, notes].map(|of| of.iter().map(|it| (*it).to_owned()).collect());
        noted(&IngestReport { title: title.clone(), left_out, notes })
    };
    assert_eq!(said(&[], &[]), None);
    let whole = said(&["data stream 2", "data stream 3"], &["begins late", "FFmpeg: a\nb"]);
    let wanted = "news: left out: data stream 2, data stream 3; begins late; FFmpeg: a b";
    assert_eq!(whole.unwrap(), wanted);
}

#[test]
fn a_title_is_there_beside_an_empty_folder_of_its_name() {
    let it = TestFiles::new("beside");
    it.write("b", b"bytes").unwrap();
    let id = it.files.store().titles()[0].id.0;
    it.files.make_folder("a").unwrap();
    it.files.make_folder("a/inside").unwrap();
    // By a server, which knows no folders.
    it.files.store().rename("b", "a").unwrap();
    let other = format!("a ({id})");
    assert_eq!(it.names(""), [".ingest", "a", &*other]);
    assert_eq!(it.read(&other).unwrap(), b"bytes");
    assert_eq!(it.files.about("").unwrap().links, 2 + 2);
    // The last title in a folder leaves the folder there.
    it.write("a/inside/c", b"more").unwrap();
    it.files.unlink("a/inside/c").unwrap();
    it.files.rename("a/inside", "inside", false).unwrap();
    assert_eq!(it.names(""), [".ingest", "a", &*other, "inside"]);
    assert_eq!(it.names("a"), [""; 0]);
    it.files.remove_folder("a").unwrap();
    assert_eq!(it.names(""), [".ingest", "a", "inside"]);
    assert_eq!(it.read("a").unwrap(), b"bytes");
}

#[test]
fn a_recording_that_changes_twice_between_two_looks_is_there() {
    let it = TestFiles::new("twice");
    assert_eq!(it.names(""), [".ingest"]);
    let writer = it.files.store().begin("camera", TitleKind::Media).unwrap();
    let tracks = [TrackDescription::plain(TrackKind::Video, Timescale(25))];
    let mut recorder = TitleRecorder::start(writer, &tracks, None).unwrap();
    recorder.describe(&mut |_, track| track.codec = "avc3.64001f".to_owned());
    recorder.commit(&mut |_, _, _| IndexPart::default()).unwrap();
    assert_eq!(it.names(""), [".ingest", "camera.growing.mp4"]);
}

#[test]
fn who_has_a_file_open_reads_it_to_its_end_whatever_commands_make_of_its_name() {
    let it = TestFiles::new("replaced");
    let bytes = |seed: u8| (0..4 << 20).map(|at: u32| seed ^ (at % 251) as u8).collect::<Vec<_>>();
    let elsewhere = |change: &dyn Fn(&Store)| {
        change(it.files.store());
        // Whatever is free is used, so that nothing else can be read by luck.
        let mut filled = 0;
        while it.write(&format!("filler {filled}"), &bytes(99)).is_ok() {
            filled += 1;
        }
        it.take_told();
        filled
    };
    let remove = |store: &Store, name: &str| {
        let title = store.hide(name).unwrap();
        it.files.owner.free_hidden(title.id);
    };
    it.write("film", &bytes(1)).unwrap();
    let (number, about) = it.files.look_up("film").unwrap();
    let (handle, _) = it.files.open(number, FileAccess::default()).unwrap();
    let read = || {
        let file = it.files.opened(handle)?;
        it.files.read(&file, 0, usize::try_from(about.bytes).unwrap())
    };
    let filled = elsewhere(&|store| remove(store, "film"));
    assert!(filled > 0, "there was room for others");
    assert_eq!(read().unwrap(), bytes(1));
    // Another title gets the name: it is another file.
    elsewhere(&|store| store.rename("filler 0", "film").unwrap());
    let (newer, _) = it.files.look_up("film").unwrap();
    assert_ne!(newer, number);
    assert_eq!(
        it.files.open(number, FileAccess::default()).unwrap_err().code(),
        Errno::ESTALE.code()
    );
    let old = it.files.about_number(number).unwrap();
    assert_eq!((old.bytes, old.links), (about.bytes, 0));
    assert_eq!((read().unwrap(), it.read("film").unwrap()), (bytes(1), bytes(99)));
    // A name that a command gives it is another path, too.
    let (handle_of_newer, _) = it.files.open(newer, FileAccess::default()).unwrap();
    it.files.store().rename("film", "film 2").unwrap();
    let (moved, _) = it.files.look_up("film 2").unwrap();
    assert_ne!(moved, newer);
    it.files.release(handle_of_newer);
    // One that the mount gives it takes the number along.
    let (again, _) = it.files.open(moved, FileAccess::default()).unwrap();
    it.files.rename("film 2", "film 3", false).unwrap();
    assert_eq!(it.files.look_up("film 3").unwrap().0, moved);
    it.files.release(again);
    assert_eq!(read().unwrap(), bytes(1));
    let free = || it.files.store().info().free_chunks * it.files.store().info().chunk.0;
    let before = free();
    it.files.release(handle);
    assert!(free() >= before + (4 << 20), "the space is free after the last reader");
}
