//! Random operations on a mounted store, each made on a directory of the local file system, too:
//! results, error numbers and bytes are the same. Afterwards the store is mounted again, and its
//! files are compared once more.
//!
//! `TENUTO_SEED=17 cargo test -p tenuto --test cli random_operations` runs that seed only;
//! `TENUTO_SEEDS=1000` more seeds.

use crate::mounted::Mounted;
use crate::program::TestDir;
use fastrand::Rng;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// One operation. Paths are relative to the thread's own folder; handles count from the oldest.
#[derive(Clone, Debug)]
enum Operation {
    Open { path: String, read: bool, write: bool, append: bool, create: Creation, empty: bool },
    Read { handle: usize, at: u64, bytes: usize },
    Write { handle: usize, at: u64, bytes: usize, fill: u8 },
    Append { handle: usize, bytes: usize, fill: u8 },
    SetLength { handle: usize, bytes: u64 },
    Length { handle: usize },
    Sync { handle: usize },
    Close { handle: usize },
    Unlink { path: String },
    Rename { from: String, to: String },
    MakeFolder { path: String },
    RemoveFolder { path: String },
    List { path: String },
    Stat { path: String },
    ReadAll { path: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Creation {
    No,
    IfMissing,
    New,
}

/// What an operation gives: numbers, names or bytes.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Number(u64),
    Names(Vec<String>),
    Bytes(Vec<u8>),
}

/// A folder that operations are made in, with the files that are open.
struct Side<'a> {
    root: &'a Path,
    open: Vec<File>,
}

impl Side<'_> {
    fn apply(&mut self, operation: &Operation) -> io::Result<Outcome> {
        use Operation::*;
        let at = |path: &str| self.root.join(path);
        Ok(match operation {
            Open { path, read, write, append, create, empty } => {
                let mut options = File::options();
                options.read(*read).write(*write).append(*append).truncate(*empty);
                options.create(*create == Creation::IfMissing);
                options.create_new(*create == Creation::New);
                let file = options.open(at(path))?;
                self.open.push(file);
                Outcome::Done
            }
            Read { handle, at, bytes } => {
                let mut buffer = vec![0; *bytes];
                let mut got = 0;
                while got < *bytes {
                    match self.open[*handle].read_at(&mut buffer[got..], at + got as u64)? {
                        0 => break,
                        more => got += more,
                    }
                }
                buffer.truncate(got);
                Outcome::Bytes(buffer)
            }
            Write { handle, at, bytes, fill } => {
                self.open[*handle].write_all_at(&content(*bytes, *fill), *at)?;
                Outcome::Done
            }
            Append { handle, bytes, fill } => {
                self.open[*handle].write_all(&content(*bytes, *fill))?;
                Outcome::Done
            }
            SetLength { handle, bytes } => {
                self.open[*handle].set_len(*bytes)?;
                Outcome::Done
            }
            Length { handle } => length(&self.open[*handle].metadata()?),
            Sync { handle } => {
                self.open[*handle].sync_all()?;
                Outcome::Done
            }
            Close { handle } => {
                drop(self.open.remove(*handle));
                Outcome::Done
            }
            Unlink { path } => done(fs::remove_file(at(path)))?,
            Rename { from, to } => done(fs::rename(at(from), at(to)))?,
            MakeFolder { path } => done(fs::create_dir(at(path)))?,
            RemoveFolder { path } => done(fs::remove_dir(at(path)))?,
            List { path } => {
                let entries = fs::read_dir(at(path))?.collect::<io::Result<Vec<_>>>()?;
                let names = entries.iter().map(|it| it.file_name().into_string().expect("UTF-8"));
                let mut names: Vec<String> = names.collect();
                names.sort();
                Outcome::Names(names)
            }
            Stat { path } => length(&fs::metadata(at(path))?),
            ReadAll { path } => Outcome::Bytes(fs::read(at(path))?),
        })
    }
}

/// The length of a file; a folder's is the file system's own affair.
fn length(about: &fs::Metadata) -> Outcome {
    Outcome::Number(if about.is_dir() { u64::MAX } else { about.len() })
}

fn done(result: io::Result<()>) -> io::Result<Outcome> {
    result.map(|()| Outcome::Done)
}

/// Bytes that differ with their place and with the operation that has written them.
fn content(bytes: usize, fill: u8) -> Vec<u8> {
    (0..=250).cycle().take(bytes).map(|step: u8| fill.wrapping_add(step)).collect()
}

/// A path of few, so that operations meet: files `f0` to `f3` and folders `d0` to `d2`, two deep.
fn path(random: &mut Rng) -> String {
    let folder = ["", "", "d0/", "d1/", "d0/d2/"][random.usize(..5)];
    let name = ["f0", "f1", "f2", "f3", "d0", "d1", "d2"][random.usize(..7)];
    format!("{folder}{name}")
}

/// A folder's path, mostly.
fn folder(random: &mut Rng) -> String {
    ["d0", "d1", "d2", "d0/d2", "d1/d2", "d0/d2/d1", "f0"][random.usize(..7)].to_owned()
}

fn operation(random: &mut Rng, open: usize) -> Operation {
    use Operation::*;
    let (at, bytes) = (random.u64(..LONGEST), random.usize(1..=100_000));
    let fill = random.u8(..);
    if open == 0 || open < MOST_OPEN && random.u8(..6) == 0 {
        let (read, write) = [(true, false), (true, true), (false, true)][random.usize(..3)];
        let append = write && random.u8(..4) == 0;
        // The standard library refuses to create or to empty a file that it does not write.
        let create = match random.u8(..5) {
            0 | 1 if write => Creation::IfMissing,
            2 if write => Creation::New,
            _ => Creation::No,
        };
        let empty = write && !append && random.u8(..4) == 0;
        return Open { path: path(random), read, write, append, create, empty };
    }
    let handle = random.usize(..open);
    match random.u8(..40) {
        0..=6 => Read { handle, at, bytes },
        7..=13 => Write { handle, at, bytes, fill },
        14..=15 => Append { handle, bytes: bytes / 4, fill },
        16..=18 => SetLength { handle, bytes: at },
        19..=20 => Length { handle },
        21 => Sync { handle },
        22..=25 => Close { handle },
        26..=27 => Unlink { path: path(random) },
        28..=30 => Rename { from: path(random), to: path(random) },
        31..=32 => MakeFolder { path: folder(random) },
        33 => RemoveFolder { path: folder(random) },
        34 => Rename { from: folder(random), to: folder(random) },
        35 => List { path: folder(random) },
        36..=37 => Stat { path: path(random) },
        _ => ReadAll { path: path(random) },
    }
}

/// Makes the operations of one thread in both folders. Returns what differed.
fn both(seed: u64, mounted: &Path, local: &Path) -> Result<(), String> {
    let mut random = Rng::with_seed(seed);
    let mut sides = [mounted, local].map(|root| Side { root, open: Vec::new() });
    let mut latest = VecDeque::new();
    for step in 0..STEPS {
        let operation = operation(&mut random, sides[0].open.len());
        latest.push_back(format!("{step}: {operation:?}"));
        if latest.len() > 40 {
            latest.pop_front();
        }
        let [ours, theirs] = sides.each_mut().map(|side| side.apply(&operation));
        let errno = |result: &io::Result<Outcome>| match result {
            Ok(_) => None,
            Err(error) => Some(error.raw_os_error()),
        };
        let is_same = match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            _ => errno(&ours) == errno(&theirs),
        };
        if !is_same {
            let latest = latest.make_contiguous().join("\n");
            let [ours, theirs] = [brief(&ours), brief(&theirs)];
            return Err(format!("{latest}\nmounted: {ours}\nlocal:   {theirs}"));
        }
    }
    Ok(())
}

/// A result in one line.
fn brief(result: &io::Result<Outcome>) -> String {
    match result {
        Ok(Outcome::Bytes(bytes)) => {
            let hash = bytes
                .iter()
                .fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)));
            format!("{} bytes, hash {hash:08x}", bytes.len())
        }
        other => format!("{other:?}"),
    }
}

/// The bytes of all files in a folder, by path.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(root).expect("inside").to_str().expect("UTF-8").to_owned();
            match path.is_dir() {
                true => folders.push(path),
                false => drop(found.insert(name, fs::read(&path).expect("a file"))),
            }
        }
    }
    found
}

#[track_caller]
fn assert_same(mounted: &Path, local: &Path, when: &str) {
    let [ours, theirs] = [mounted, local].map(files);
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&theirs), "{when}");
    for (name, bytes) in &ours {
        assert!(bytes == &theirs[name], "{when}: the bytes of {name} differ");
    }
}

fn run_seed(seed: u64) {
    let again = format!(
        "run it again: TENUTO_SEED={seed} cargo test -p tenuto --test cli random_operations"
    );
    let dir = TestDir::with_store_of(192);
    let mounted = Mounted::start(&dir, "");
    let roots = (0..THREADS).map(|thread| {
        let roots = [mounted.path(&format!("t{thread}")).into(), dir.path(&format!("l/t{thread}"))];
        roots.iter().for_each(|root| fs::create_dir_all(root).expect("a folder"));
        roots
    });
    let roots: Vec<_> = roots.collect();
    std::thread::scope(|scope| {
        let threads = (0..).zip(&roots).map(|(thread, [mounted, local])| {
            scope.spawn(move || both(seed * THREADS + thread, mounted, local))
        });
        for (thread, result) in threads.collect::<Vec<_>>().into_iter().enumerate() {
            let result = result.join().expect("no panic");
            result.unwrap_or_else(|what| panic!("seed {seed}, thread {thread}; {again}\n{what}"));
        }
    });
    for [mounted, local] in &roots {
        assert_same(mounted, local, &format!("seed {seed}, all closed; {again}"));
    }
    let (code, said) = mounted.stop();
    assert_eq!((code, said.as_str()), (Some(0), ""), "seed {seed}; {again}");
    let mounted = Mounted::start(&dir, "--read-only");
    let root = mounted.path("");
    assert_same(Path::new(&root), &dir.path("l"), &format!("seed {seed}, mounted again; {again}"));
    assert_eq!(mounted.stop().0, Some(0), "seed {seed}; {again}");
    dir.ok("check a.store --scrub");
}

#[test]
fn random_operations_do_what_a_local_file_system_does() {
    testkit::needs!(Root, Fuse, Mount);
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match number("TENUTO_SEED") {
        Some(seed) => run_seed(seed),
        None => (0..number("TENUTO_SEEDS").unwrap_or(SEEDS)).for_each(run_seed),
    }
}

/// Seeds of `make test`: a few seconds of processor time.
const SEEDS: u64 = 3;

/// Threads that work at a time, each in a folder of its own.
const THREADS: u64 = 3;

/// Operations of one thread.
const STEPS: u32 = 400;

/// Bytes of the longest file, nearly: a few requests of the kernel.
const LONGEST: u64 = 300_000;

/// Files that a thread has open at most, often the same file twice.
const MOST_OPEN: usize = 5;
