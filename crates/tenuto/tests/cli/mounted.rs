//! A mounted store, used by the programs that people use: what they read, what they write, and what
//! is refused.

use crate::program::{TestDir, program};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

/// A file server that shares a mount, until it is dropped. A signal stops it with the processes
/// that it has started for its clients.
pub(crate) struct FileServer(Child);

impl FileServer {
    /// Starts it, and waits until it takes connections at the port. `log`: where it says why not.
    pub(crate) fn start(mut command: Command, port: u16, log: &Path) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Self(command.spawn().expect("it starts"));
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.0.try_wait().expect("it runs");
            let said = || fs::read(log).unwrap_or_default();
            assert!(ended.is_none(), "{command:?}: {}", String::from_utf8_lossy(&said()));
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        let process = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// A port of this machine that nothing listens on.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").port()
}

/// A mounted store, until it is dropped.
pub(crate) struct Mounted {
    pub(crate) child: Child,
    at: PathBuf,
}

impl Mounted {
    pub(crate) fn start(dir: &TestDir, words: &str) -> Self {
        let at = dir.path("mnt");
        fs::create_dir_all(&at).expect("a directory");
        let mut command = program(&dir.path(""));
        command.args(["mount", "a.store", "mnt"]).args(words.split_whitespace());
        if !words.contains("--spool") {
            command.args(["--spool", "."]);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
        let mut child = command.spawn().expect("tenuto mounts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("text");
        if !line.contains("is mounted on mnt") {
            let _ = child.kill();
            panic!("'{line}': {}", text_of(child.stderr.take()));
        }
        Self { child, at }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.at.join(name).to_str().expect("UTF-8").to_owned()
    }

    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at.join(folder)).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn signal(&self) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("it runs");
    }

    /// Unmounts it by a signal; its exit code, and what it said. That it waited for a copy is left
    /// out: a test with a mount namespace that runs meanwhile has one of every mount.
    pub(crate) fn stop(mut self) -> (Option<i32>, String) {
        self.signal();
        let (code, said) = self.end();
        let lines = said.split_inclusive('\n').filter(|line| !line.contains("has a copy of it"));
        (code, lines.collect())
    }

    pub(crate) fn end(&mut self) -> (Option<i32>, String) {
        let code = self.child.wait().expect("it ends").code();
        (code, text_of(self.child.stderr.take()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Also where a test fails: nothing else may wait for a mount without a server.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = rustix::mount::unmount(&self.at, rustix::mount::UnmountFlags::DETACH);
    }
}

/// Takes off what a server that was killed has left, after a test that has failed.
pub(crate) struct LeftMount(pub(crate) PathBuf);

impl Drop for LeftMount {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

fn text_of(pipe: Option<ChildStderr>) -> String {
    let mut text = String::new();
    pipe.expect("piped").read_to_string(&mut text).expect("text");
    text
}

/// Runs a program that must succeed; gives what it printed.
#[track_caller]
pub(crate) fn run(words: &[&str]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", words[0]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    assert_eq!(said, "", "{words:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Bytes without a pattern that zeros or repetitions could imitate.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(19);
    std::iter::repeat_with(|| random.u8(..)).take(length).collect()
}

#[test]
fn programs_read_titles_as_files() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(96);
    dir.film("film.mp4");
    dir.write("master.bin", noise(3_000_000));
    dir.ok("ingest a.store film.mp4 --title news/monday");
    dir.ok("ingest a.store master.bin --as file --title master.bin");
    dir.ok("export a.store news/monday out.mp4");
    let mounted = Mounted::start(&dir, "--read-only");
    assert_eq!(mounted.names(""), ["master.bin", "news"]);
    assert_eq!(mounted.names("news"), ["monday.mp4"]);
    let film = mounted.path("news/monday.mp4");
    // As `export` has it, with true sizes; also in parts, from many places at a time.
    let whole = dir.read("out.mp4");
    assert_eq!(fs::metadata(&film).unwrap().len(), whole.len() as u64);
    assert_eq!(fs::read(&film).unwrap(), whole);
    assert_eq!(fs::read(mounted.path("master.bin")).unwrap(), dir.read("master.bin"));
    let file = fs::File::open(&film).unwrap();
    std::thread::scope(|scope| {
        for part in 0..8u64 {
            let (file, whole) = (&file, &whole);
            scope.spawn(move || {
                let from = whole.len() as u64 * part / 8;
                let mut bytes = vec![0; 5000];
                let got = file.read_at(&mut bytes, from).unwrap();
                let from = usize::try_from(from).unwrap();
                assert_eq!(bytes[..got], whole[from..from + got], "from {from}");
            });
        }
    });
    // What FFmpeg finds in it; mpv plays it to its end.
    let frames = ["-f", "framemd5", "-"];
    let decoded = |path: &str| run(&[&["ffmpeg", "-v", "error", "-i", path], &frames[..]].concat());
    assert_eq!(decoded(&film), decoded(dir.path("film.mp4").to_str().unwrap()));
    run(&["mpv", "--no-config", "--really-quiet", "--vo=null", "--ao=null", "--untimed", &film]);
    // A unit by its number: its place is where FFmpeg's demuxer has it.
    let table = fs::read_to_string(format!("{film}.index")).unwrap();
    let entries = "packet=pos,size,flags,dts_time";
    let packets = run(&[
        "ffprobe",
        "-v",
        "error",
        "-select_streams",
        "v:0",
        "-show_entries",
        entries,
        "-of",
        "csv=p=0",
        &film,
    ]);
    let ours: Vec<(String, String, bool)> = table
        .lines()
        .filter_map(|line| line.strip_prefix("0,"))
        .map(|line| line.split(',').collect::<Vec<_>>())
        .map(|it| (it[3].to_owned(), it[4].to_owned(), it[5] == "1"))
        .collect();
    let theirs: Vec<(String, String, bool)> = packets
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.split(',').collect::<Vec<_>>())
        .map(|it| (it[2].to_owned(), it[1].to_owned(), it[3].starts_with('K')))
        .collect();
    assert_eq!(theirs.len(), 100, "{packets}");
    assert_eq!(ours, theirs);
    let mut value = [0; 100];
    let got = rustix::fs::getxattr(&film, "user.tenuto.title", &mut value).unwrap();
    assert_eq!(&value[..got], b"news/monday");
    let got = rustix::fs::getxattr(&film, "user.tenuto.codecs", &mut value).unwrap();
    assert!(value[..got].starts_with(b"avc1."));
    // Nothing can be changed.
    let refused = [
        fs::write(mounted.path("new"), "x").unwrap_err(),
        fs::remove_file(&film).unwrap_err(),
        fs::create_dir(mounted.path("folder")).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem, "{error}");
    }
    drop(file);
    assert_eq!(mounted.stop(), (Some(0), String::new()));
}

/// Pictures that were numbered files are such files again, byte for byte.
#[test]
fn each_frame_of_a_title_of_pictures_is_a_file() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(96);
    let kinds = ["jpg", "png", "dpx", "exr", "tiff", "jp2", "j2k"];
    for kind in kinds {
        // Without a file format around it, JPEG 2000 is another kind of file.
        let form = if kind == "j2k" { "-format j2k " } else { "" };
        let source = "-f lavfi -i testsrc2=s=64x48:r=24:d=0.25";
        let pictures = format!("{kind}-%06d.{kind}");
        let ffmpeg = |words: &str| {
            let mut command = Command::new("ffmpeg");
            command.current_dir(dir.path("")).args(["-nostdin", "-v", "error"]);
            assert!(command.args(words.split(' ')).status().expect("ffmpeg runs").success());
        };
        ffmpeg(&format!("{source} {form}{pictures}"));
        dir.ok(&format!("ingest a.store {pictures} --fps 24 --title shots/{kind}"));
    }
    dir.film("film.mp4");
    dir.ok("ingest a.store film.mp4 --title film");
    let mounted = Mounted::start(&dir, "");
    for kind in kinds {
        let folder = format!("shots/{kind}.mp4.frames");
        let wanted: Vec<String> = (1..=6).map(|it| format!("{it:06}.{kind}")).collect();
        assert_eq!(mounted.names(&folder), wanted);
        // From the last to the first: each can be read at random.
        for name in wanted.iter().rev() {
            let path = mounted.path(&format!("{folder}/{name}"));
            let source = dir.read(&format!("{kind}-{}.{kind}", &name[..6]));
            assert_eq!(fs::metadata(&path).unwrap().len(), source.len() as u64, "{path}");
            assert!(fs::read(&path).unwrap() == source, "{path}");
        }
        assert!(fs::metadata(mounted.path(&folder)).unwrap().is_dir());
    }
    // They are listed nowhere else, and no other title has them.
    assert_eq!(mounted.names("shots").len(), kinds.len());
    for path in ["film.mp4.frames", "shots/png.mp4.frames/000007.png", "shots/png.frames"] {
        let error = fs::metadata(mounted.path(path)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{path}");
    }
    // They are made of the title, and go with it.
    let frame = mounted.path("shots/png.mp4.frames/000003.png");
    for error in [
        fs::write(&frame, "x").unwrap_err(),
        fs::remove_file(&frame).unwrap_err(),
        fs::rename(&frame, mounted.path("third.png")).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    }
    assert!(fs::write(mounted.path("shots/png.mp4.frames/new.png"), "x").is_err());
    assert!(fs::remove_dir(mounted.path("shots/png.mp4.frames")).is_err());
    let open = fs::File::open(&frame).unwrap();
    fs::remove_file(mounted.path("shots/png.mp4")).unwrap();
    let mut bytes = vec![0; 100_000];
    let got = open.read_at(&mut bytes, 0).unwrap();
    assert!(bytes[..got] == dir.read("png-000003.png"), "it is there for those who have it open");
    drop(open);
    assert!(fs::File::open(&frame).is_err());
    assert_eq!(mounted.stop(), (Some(0), String::new()));
    assert_eq!(dir.json("check a.store --scrub")["clean"], serde_json::json!(true));
}

#[test]
fn what_programs_write_becomes_titles() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(128);
    dir.film("film.mp4");
    dir.write("a.bin", noise(2_500_000));
    let (film, bytes) = (dir.path("film.mp4"), dir.path("a.bin"));
    let (film, bytes) = (film.to_str().unwrap(), bytes.to_str().unwrap());
    let mounted = Mounted::start(&dir, "");
    let at = |name: &str| mounted.path(name);
    run(&["cp", bytes, &at("copied.bin")]);
    run(&["rsync", "-a", "--inplace", bytes, &at("synced.bin")]);
    run(&["rsync", "-a", bytes, film, &at("")]);
    run(&["mkdir", "-p", &at("news/old")]);
    // FFmpeg writes the file's header last, in front of the rest.
    run(&["ffmpeg", "-v", "error", "-i", film, "-c", "copy", &at("news/remuxed.mp4")]);
    run(&["sh", "-c", &format!("cat {bytes} > {0}; echo more >> {0}", at("shell.bin"))]);
    run(&["touch", &at("empty")]);
    // Media, by the name of the file.
    run(&["cp", film, &at(".ingest/monday.mp4")]);
    run(&["rsync", "-a", film, &at(".ingest/tuesday.mp4")]);
    run(&["mv", &at("monday.mp4"), &at("news/monday.mp4")]);
    run(&["mv", &at("copied.bin"), &at("news/moved.bin")]);
    run(&["mv", &at("news"), &at("archive")]);
    // A file in the place of another one.
    run(&["cp", film, &at("synced.bin")]);
    fs::write(at("replaced"), "old").unwrap();
    fs::write(at("replacing"), "new").unwrap();
    fs::rename(at("replacing"), at("replaced")).unwrap();
    fs::File::options().write(true).open(at("a.bin")).unwrap().set_len(1000).unwrap();
    // A file that is removed while it is read stays readable, and its space is not reused.
    let gone = fs::File::open(at("tuesday.mp4")).unwrap();
    run(&["rm", &at("tuesday.mp4")]);
    fs::write(at("after"), noise(1_000_000)).unwrap();
    let mut read = Vec::new();
    (&gone).read_to_end(&mut read).unwrap();
    assert!(read.len() > 50_000, "{}", read.len());
    drop(gone);
    let names = [".ingest", "a.bin", "after", "archive", "empty", "film.mp4", "replaced"];
    assert_eq!(mounted.names(""), [&names[..], &["shell.bin", "synced.bin"]].concat());
    assert_eq!(mounted.names("archive"), ["monday.mp4", "moved.bin", "old", "remuxed.mp4"]);
    assert_eq!(fs::read_to_string(at("replaced")).unwrap(), "new");
    assert_eq!(mounted.stop(), (Some(0), String::new()));
    // What the store has, without the mount.
    let expected = [
        ("a.bin", noise(2_500_000)[..1000].to_vec()),
        ("after", noise(1_000_000)),
        ("archive/moved.bin", noise(2_500_000)),
        ("empty", Vec::new()),
        ("film.mp4", dir.read("film.mp4")),
        ("replaced", b"new".to_vec()),
        ("shell.bin", [noise(2_500_000), b"more\n".to_vec()].concat()),
        ("synced.bin", dir.read("film.mp4")),
    ];
    for (title, bytes) in expected {
        dir.ok(&format!("export a.store {title} out --destroy"));
        assert!(dir.read("out") == bytes, "{title}");
    }
    let titles = dir.json("ls a.store");
    let media: Vec<&str> = titles["titles"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|title| title["kind"] == "media")
        .map(|title| title["name"].as_str().unwrap())
        .collect();
    assert_eq!(media, ["archive/monday"]);
    dir.ok("check a.store --scrub");
    let spooled = fs::read_dir(dir.path("")).unwrap().flatten();
    let spooled = spooled.filter(|it| it.path().extension().is_some_and(|it| it == "spool"));
    assert_eq!(spooled.count(), 0);
}

#[test]
fn what_cannot_be_a_title_is_refused() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(64);
    dir.film("film.mp4");
    dir.ok("ingest a.store film.mp4 --title film");
    fs::create_dir_all(dir.path("full/inside")).unwrap();
    dir.fails("mount a.store full", 1, "it is not empty");
    dir.fails("mount a.store nowhere", 1, "mkdir -p");
    dir.fails("mount a.store a.store", 1, "cannot mount on a.store");
    dir.fails("mount film.mp4 full", 1, "not a Tenuto store");
    let mounted = Mounted::start(&dir, "");
    let at = |name: &str| mounted.path(name);
    dir.fails("mount a.store full/inside", 1, "in use by another process\nhint: if a server has");
    dir.fails("serve a.store --listen 127.0.0.1:0", 1, "in use by another process");
    let kinds = [
        ("a media title's bytes", fs::write(at("film.mp4"), "x"), ErrorKind::PermissionDenied),
        ("a hard link", fs::hard_link(at("film.mp4"), at("b")), ErrorKind::PermissionDenied),
        (
            "a symbolic link",
            std::os::unix::fs::symlink("film.mp4", at("b")),
            ErrorKind::PermissionDenied,
        ),
        ("another extension", fs::rename(at("film.mp4"), at("film.avi")), ErrorKind::InvalidInput),
        ("no such folder", fs::write(at("no/such"), "x"), ErrorKind::NotFound),
        ("a long name", fs::write(at(&"n".repeat(256)), "x"), ErrorKind::InvalidFilename),
        ("a folder over a file", fs::create_dir(at("film.mp4")), ErrorKind::AlreadyExists),
        ("a file as a folder", fs::read_dir(at("film.mp4")).map(drop), ErrorKind::NotADirectory),
        ("a full folder", fs::remove_dir(at(".ingest")), ErrorKind::ResourceBusy),
    ];
    for (what, result, kind) in kinds {
        assert_eq!(result.unwrap_err().kind(), kind, "{what}");
    }
    // Errors of a close reach the program that closes, and leave nothing.
    dir.write("large", vec![7; 80 << 20]);
    dir.write("text.mp4", "no film");
    for (from, to, said) in [
        ("large", "large", "No space left on device"),
        ("text.mp4", ".ingest/text.mp4", "Invalid argument"),
        ("film.mp4", ".ingest/film.mp4", "File exists"),
    ] {
        let copy = Command::new("cp").arg(dir.path(from)).arg(at(to)).output().unwrap();
        let words = String::from_utf8_lossy(&copy.stderr).into_owned();
        assert!(!copy.status.success() && words.contains(said), "{from}: {words}");
    }
    assert_eq!(mounted.names(""), [".ingest", "film.mp4"]);
    assert_eq!(mounted.names(".ingest"), [""; 0]);
    fs::write(at("a.bin"), noise(8_000_000)).unwrap();
    // In use, it is not unmounted; a second signal does not wait.
    let used = fs::File::open(at("a.bin")).unwrap();
    mounted.signal();
    let mut mounted = mounted;
    let mut said = BufReader::new(mounted.child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("a second signal unmounts it at once") {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "it waits");
    }
    mounted.signal();
    assert_eq!(mounted.child.wait().unwrap().code(), Some(1));
    let mut byte = [0];
    assert!(used.read_at(&mut byte, 7_000_000).is_err(), "an error, and no waiting");
    drop(used);
    dir.ok("check a.store --scrub");
}

#[test]
fn a_killed_mount_loses_nothing_and_damage_is_an_error() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(64);
    dir.write("a.bin", noise(3_000_000));
    let bytes = dir.path("a.bin");
    let mut mounted = Mounted::start(&dir, "");
    run(&["cp", bytes.to_str().unwrap(), &mounted.path("a.bin")]);
    let open = fs::File::create(mounted.path("unfinished")).unwrap();
    open.write_all_at(&[1; 1000], 0).unwrap();
    mounted.child.kill().unwrap();
    mounted.child.wait().unwrap();
    let dead = fs::read(mounted.path("a.bin")).unwrap_err();
    assert_eq!(dead.raw_os_error(), Some(rustix::io::Errno::NOTCONN.raw_os_error()));
    dir.fails("mount a.store mnt", 1, "umount -l");
    drop((open, mounted));
    // One byte of the title, wherever it is.
    let mut store = dir.read("a.store");
    let wanted = &noise(3_000_000)[2_000_000..2_000_064];
    let place = store.windows(64).position(|bytes| bytes == wanted).expect("it is stored");
    store[place] ^= 1;
    fs::write(dir.path("a.store"), store).unwrap();
    let mounted = Mounted::start(&dir, "");
    assert_eq!(mounted.names(""), [".ingest", "a.bin"]);
    let file = fs::File::open(mounted.path("a.bin")).unwrap();
    let mut part = vec![0; 1_000_000];
    file.read_exact_at(&mut part, 0).unwrap();
    assert_eq!(part, noise(3_000_000)[..1_000_000]);
    let damaged = fs::read(mounted.path("a.bin")).unwrap_err();
    assert_eq!(damaged.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    drop(file);
    let (code, said) = mounted.stop();
    assert!(code == Some(0) && said.contains("damaged data in title 'a.bin'"), "{said}");
    assert!(!Path::new(&dir.path("mnt/a.bin")).exists());
}

/// A mount that is in use stays until its users have ended, or until it is asked for again.
#[test]
fn a_mount_in_use_is_busy_and_is_unmounted_when_it_is_free() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store();
    dir.write("a.bin", noise(300_000));
    dir.ok("ingest a.store a.bin --as file --title a.bin");
    let unmount = |at: &Path| rustix::mount::unmount(at, rustix::mount::UnmountFlags::empty());
    let mut mounted = Mounted::start(&dir, "");
    let open = fs::File::open(mounted.path("a.bin")).unwrap();
    assert_eq!(unmount(&mounted.at), Err(rustix::io::Errno::BUSY));
    mounted.signal();
    let mut said = BufReader::new(mounted.child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for programs that use mnt") && line.contains("busy"), "{line}");
    // It goes on for those that use it.
    let mut bytes = vec![0; 300_000];
    open.read_exact_at(&mut bytes, 0).unwrap();
    assert!(bytes == noise(300_000));
    assert_eq!(fs::read(mounted.path("a.bin")).unwrap().len(), 300_000);
    assert!(mounted.child.try_wait().unwrap().is_none(), "it waits");
    drop(open);
    assert_eq!(mounted.child.wait().unwrap().code(), Some(0));
    drop((mounted, said));

    let mut mounted = Mounted::start(&dir, "");
    // By a program of its own: where another test starts one meanwhile, that has a file of this
    // process for a moment, and closes it.
    let mut writer = Command::new("tee")
        .arg(mounted.path("new.bin"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut into, mut out) = (writer.stdin.take().unwrap(), writer.stdout.take().unwrap());
    for _ in 0..2 {
        // It has written the bytes of the first round when those of the second come out.
        into.write_all(&[1; 5000]).unwrap();
        out.read_exact(&mut [0; 5000]).unwrap();
    }
    mounted.signal();
    let mut said = BufReader::new(mounted.child.stderr.take().unwrap());
    line.clear();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("a second signal unmounts it at once"), "{line}");
    mounted.signal();
    assert_eq!(mounted.child.wait().unwrap().code(), Some(1));
    line.clear();
    said.read_to_string(&mut line).unwrap();
    assert!(line.contains("files that were being written are lost"), "{line}");
    into.write_all(&[1; 5000]).unwrap();
    drop(into);
    assert!(!writer.wait().unwrap().success());
    assert_eq!(dir.ok("ls a.store"), "a.bin\n");
    assert_eq!(dir.json("check a.store --scrub")["clean"], true);
}

#[test]
fn a_served_store_is_mounted_beside_its_viewers() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(96);
    dir.film("film.mp4");
    dir.ok("ingest a.store film.mp4 --title film");
    let _left = LeftMount(dir.path("mnt/a.store"));
    let refused = dir.run("serve a.store --mount mnt --mount-spool spool --check-config");
    assert!(refused.err.starts_with("error: --mount-spool: spool is no directory"), "{refused:?}");
    fs::create_dir(dir.path("spool")).unwrap();
    let server = dir.serve("--mount mnt --mount-spool spool --grace 1s");
    let at = |name: &str| dir.path(&format!("mnt/a.store/{name}")).to_str().unwrap().to_owned();
    let start = std::time::Instant::now();
    while !Path::new(&at("film.mp4")).exists() {
        assert!(start.elapsed().as_secs() < 30, "it is mounted soon after the start");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let mut written = fs::File::create(at(".ingest/monday.mp4")).unwrap();
    written.write_all(&fs::read(dir.path("film.mp4")).unwrap()).unwrap();
    assert_eq!(fs::read_dir(dir.path("spool")).unwrap().count(), 1);
    drop(written);
    dir.ok("rename a.store film sunday");
    let fetched = dir.path("fetched.mp4");
    let fetched = fetched.to_str().unwrap();
    for title in ["monday", "sunday"] {
        // A name that the kernel has looked up may be there for a second more.
        run(&["curl", "-sfL", &format!("{}/t/{title}.mp4", server.origin), "-o", fetched]);
        assert_eq!(fs::read(at(&format!("{title}.mp4"))).unwrap(), fs::read(fetched).unwrap());
    }
    let open = fs::File::open(at("monday.mp4")).unwrap();
    run(&["rm", &at("monday.mp4")]);
    let gone = format!("{}/t/monday.mp4", server.origin);
    assert!(!Command::new("curl").args(["-sfL", "-o", fetched, &gone]).status().unwrap().success());
    assert!(open.metadata().unwrap().len() > 50_000);
    drop(open);
    // Who has a title open reads it to its end, though a command has given it another name.
    let expected = fs::read(at("sunday.mp4")).unwrap();
    let mut open = fs::File::open(at("sunday.mp4")).unwrap();
    let mut bytes = vec![0; 1000];
    open.read_exact(&mut bytes).unwrap();
    dir.ok("rename a.store sunday saturday");
    while Path::new(&at("sunday.mp4")).exists() {
        assert!(start.elapsed().as_secs() < 60, "the kernel keeps a name for a second");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(open.metadata().unwrap().len(), expected.len() as u64);
    open.read_to_end(&mut bytes).unwrap();
    assert!(bytes == expected, "{} bytes of {}", bytes.len(), expected.len());
    drop(open);
    dir.ok("rename a.store saturday sunday");
    let space = run(&["stat", "-f", "-c", "%c %d", &at("")]);
    let (inodes, free) = space.trim().split_once(' ').unwrap();
    assert!(inodes.parse::<u64>().unwrap() > free.parse::<u64>().unwrap(), "{space}");
    let titles = dir.json("ls a.store");
    assert_eq!(titles["titles"].as_array().unwrap().len(), 1, "{titles}");
    assert_eq!(server.stop(), Some(0));
    assert!(!Path::new(&at("sunday.mp4")).exists(), "it is unmounted");
    // A second signal waits for nobody, and leaves nothing mounted.
    let mut command = program(&dir.path(""));
    command.stderr(Stdio::piped());
    let mut server = dir.serve_by(command, "--mount mnt --grace 1min");
    while !Path::new(&at("sunday.mp4")).exists() {
        assert!(start.elapsed().as_secs() < 60, "it is mounted soon after the start");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let open = fs::File::open(at("sunday.mp4")).unwrap();
    let id = server.child.id().to_string();
    run(&["kill", "-INT", &id]);
    let said = BufReader::new(server.child.stderr.take().unwrap());
    let waits = said.lines().any(|line| line.unwrap().contains("stopping: "));
    assert!(waits, "it has taken the first signal");
    run(&["kill", "-INT", &id]);
    assert_eq!(server.child.wait().unwrap().code(), Some(1));
    assert_eq!(fs::read_dir(dir.path("mnt/a.store")).unwrap().count(), 0, "it is unmounted");
    drop(open);
    dir.ok("check a.store --scrub");
}
