//! Titles that are being recorded, as files of a mounted store: what programs read of them while
//! they grow, and when they have ended.

use crate::mounted::{LeftMount, Mounted, run};
use crate::program::{TestDir, program};
use rustix::fs::{XattrFlags, getxattr, setxattr};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// A recording of a named pipe that the test writes into.
struct Camera {
    recording: Child,
    pipe: Option<File>,
    bytes: Vec<u8>,
    sent: usize,
}

impl Camera {
    /// 16 seconds of pictures and sound that are to be sent, at rates at which a span of 64 KiB is
    /// less than two seconds.
    fn start(dir: &TestDir, words: &str) -> Self {
        Self::of(dir, "testsrc2=s=320x180:r=25:d=16,noise=alls=20", "anoisesrc=d=16", words)
    }

    fn of(dir: &TestDir, pictures: &str, sound: &str, words: &str) -> Self {
        let source = format!(
            "-f lavfi -i {pictures} -f lavfi -i {sound} -c:v libx264 -preset ultrafast -g 25 -c:a \
             mp2 -b:a 384k -f mpegts"
        );
        let how: Vec<&str> = source.split_whitespace().collect();
        testkit::clips::make(&dir.path("live.ts"), &how).expect("FFmpeg makes it");
        let pipe = dir.path("live.pipe");
        run(&["mkfifo", pipe.to_str().unwrap()]);
        let mut command = program(&dir.path(""));
        command.args(words.split_whitespace()).arg(&pipe).args(["--silence", "60s"]);
        let recording = command.stdout(Stdio::null()).spawn().expect("tenuto records");
        // Waits until it is read.
        let pipe = fs::OpenOptions::new().write(true).open(pipe).expect("it is read");
        Self { recording, pipe: Some(pipe), bytes: dir.read("live.ts"), sent: 0 }
    }

    /// Sends this part of what is there, from its beginning on.
    fn send(&mut self, part: f64) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part")]
        #[expect(clippy::cast_precision_loss, reason = "a megabyte")]
        let end = (self.bytes.len() as f64 * part) as usize;
        let mut pipe = self.pipe.as_ref().expect("it goes on");
        pipe.write_all(&self.bytes[self.sent..end]).expect("it is read");
        self.sent = end;
    }

    fn end(mut self) {
        self.pipe = None;
        assert!(self.recording.wait().expect("it ends").success());
    }
}

impl Drop for Camera {
    fn drop(&mut self) {
        let _ = self.recording.kill();
        let _ = self.recording.wait();
    }
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        sleep(Duration::from_millis(50));
    }
}

/// What FFmpeg decodes of a file, without a complaint: of each stream a line for each frame.
#[track_caller]
fn decoded(path: &str) -> BTreeMap<String, Vec<String>> {
    let text =
        run(&["ffmpeg", "-nostdin", "-v", "error", "-i", path, "-map", "0", "-f", "framemd5", "-"]);
    let mut streams = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let stream = line.split(',').next().unwrap().to_owned();
        streams.entry(stream).or_insert_with(Vec::new).push(line.to_owned());
    }
    streams
}

/// Asserts that the frames of `part` are the first ones of `whole`, at least so many of each
/// stream.
#[track_caller]
fn assert_begins(
    part: &BTreeMap<String, Vec<String>>,
    whole: &BTreeMap<String, Vec<String>>,
    least: usize,
) {
    assert_eq!(part.len(), whole.len(), "streams");
    for (stream, frames) in part {
        let of_whole = &whole[stream];
        assert!((least..=of_whole.len()).contains(&frames.len()), "{} frames", frames.len());
        for (found, wanted) in frames.iter().zip(of_whole) {
            assert_eq!(found, wanted);
        }
    }
}

fn attribute(path: &str, name: &str) -> Result<String, Errno> {
    let mut value = [0; 200];
    let got = getxattr(path, format!("user.tenuto.{name}"), &mut value)?;
    Ok(String::from_utf8_lossy(&value[..got]).into_owned())
}

fn names(folder: &PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

#[test]
fn a_recording_is_a_file_that_grows() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(96);
    let _left = LeftMount(dir.path("mnt/a.store"));
    let _server = dir.serve("--mount mnt --grace 1s");
    let mut camera = Camera::start(&dir, "record a.store sport/match");
    camera.send(0.6);
    let folder = dir.path("mnt/a.store/sport");
    until("it is in the mount", || names(&folder) == ["match.growing.mp4"]);
    let growing = folder.join("match.growing.mp4").to_str().unwrap().to_owned();
    let seconds = || attribute(&growing, "duration").map_or(0.0, |it| it.parse().unwrap());
    until("four seconds of it are there", || seconds() >= 4.0);

    // A program that follows it from now on, and one that copies what there is.
    let followed = File::create(dir.path("followed.mp4")).unwrap();
    let tail = Command::new("tail").args(["-c", "+1", "-f", &growing]).stdout(followed).spawn();
    let mut tail = tail.expect("tail runs");
    let mut open = File::open(&growing).unwrap();
    let copy = dir.path("copy.mp4");
    let copy = copy.to_str().unwrap();
    run(&["cp", &growing, copy]);
    let first = fs::read(copy).unwrap();
    let part = decoded(copy);
    run(&["ffprobe", "-v", "error", "-show_streams", &growing]);
    let about = open.metadata().unwrap();
    assert!(about.len() >= first.len() as u64);
    let age = SystemTime::now().duration_since(about.modified().unwrap()).unwrap();
    assert!(age < Duration::from_secs(120), "{age:?}");
    assert_eq!(attribute(&growing, "title").as_deref(), Ok("sport/match"));
    assert_eq!(attribute(&growing, "codecs").unwrap().split(',').count(), 2);

    // What cannot be done to it.
    let code =
        |result: io::Result<()>| result.unwrap_err().raw_os_error().map(Errno::from_raw_os_error);
    let write = fs::OpenOptions::new().write(true).open(&growing).map(drop);
    assert_eq!(code(write), Some(Errno::PERM));
    assert_eq!(code(fs::remove_file(&growing)), Some(Errno::BUSY));
    assert_eq!(code(fs::rename(&growing, folder.join("other.mp4"))), Some(Errno::BUSY));
    assert_eq!(code(fs::rename(&folder, dir.path("mnt/a.store/s"))), Some(Errno::BUSY));
    let rate = setxattr(&growing, "user.tenuto.rate", b"title", XattrFlags::empty());
    assert_eq!(rate, Err(Errno::OPNOTSUPP));

    // It has more when more has come: not one byte has changed.
    camera.send(0.8);
    until("it has grown", || fs::metadata(&growing).unwrap().len() > first.len() as u64);
    let mut bytes = Vec::new();
    open.read_to_end(&mut bytes).unwrap();
    assert!(bytes.starts_with(&first) && bytes.len() > first.len());
    assert_eq!(open.read_at(&mut [0; 10], bytes.len() as u64 + 1_000_000).unwrap(), 0);

    // When it has ended, the title is in its place, and who has it open gets the rest.
    camera.send(1.0);
    camera.end();
    until("the title is there", || names(&folder) == ["match.mp4"]);
    open.read_to_end(&mut bytes).unwrap();
    assert!(bytes.starts_with(&first));
    assert_eq!(open.metadata().unwrap().len(), bytes.len() as u64);
    until("the program that follows it has all", || dir.read("followed.mp4") == bytes);
    tail.kill().unwrap();
    tail.wait().unwrap();
    assert_eq!(open.stream_position().unwrap(), bytes.len() as u64);
    let whole = decoded(folder.join("match.mp4").to_str().unwrap());
    assert_begins(&part, &whole, 100);
    let followed = decoded(dir.path("followed.mp4").to_str().unwrap());
    assert_begins(&followed, &whole, 400);
    // Its title may be removed while it is open.
    fs::remove_file(folder.join("match.mp4")).unwrap();
    let mut again = vec![0; bytes.len()];
    open.read_exact_at(&mut again, 0).unwrap();
    assert!(again == bytes);
}

/// The pictures are there without it, and what there is of it when the recording has ended.
#[test]
fn a_sound_that_pauses_keeps_no_picture_back() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(96);
    let _left = LeftMount(dir.path("mnt/a.store"));
    let _server = dir.serve("--mount mnt --grace 1s");
    let pictures = "testsrc2=s=160x90:r=25:d=50,noise=alls=40";
    let mut camera = Camera::of(&dir, pictures, "anoisesrc=d=4", "record a.store match");
    camera.send(0.95);
    let growing = dir.path("mnt/a.store/match.growing.mp4").to_str().unwrap().to_owned();
    let seconds = || attribute(&growing, "duration").map_or(0.0, |it| it.parse().unwrap());
    until("thirty seconds more than of the sound are there", || seconds() >= 40.0);
    let first = fs::read(&growing).unwrap();
    let part = decoded(&growing);
    assert!(part["0"].len() >= 1000 && part["1"].len() < 170, "{:?}", part["0"].len());
    let mut open = File::open(&growing).unwrap();
    camera.send(1.0);
    camera.end();
    let mut bytes = Vec::new();
    until("the rest is there", || {
        open.read_to_end(&mut bytes).unwrap();
        names(&dir.path("mnt/a.store")) == ["match.mp4"]
    });
    open.read_to_end(&mut bytes).unwrap();
    assert!(bytes.starts_with(&first) && bytes.len() > first.len());
    dir.write("all.mp4", bytes);
    let all = decoded(dir.path("all.mp4").to_str().unwrap());
    let whole = decoded(dir.path("mnt/a.store/match.mp4").to_str().unwrap());
    assert_begins(&all, &whole, 160);
    assert_eq!((all["0"].len(), all["1"].len()), (whole["0"].len(), whole["1"].len()));
}

#[test]
fn parts_of_a_series_are_files_and_the_last_one_grows() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(96);
    let _left = LeftMount(dir.path("mnt/a.store"));
    let _server = dir.serve("--mount mnt --grace 1s");
    let mut camera = Camera::start(&dir, "record a.store door --keep 1h --part 6s");
    camera.send(0.7);
    let folder = dir.path("mnt/a.store/door");
    let growing = |names: &[String]| names.iter().filter(|it| it.ends_with(".growing.mp4")).count();
    // The next part begins while a title is made of the one before.
    until("one part has ended and one grows", || {
        let names = names(&folder);
        let about = names.last().and_then(|name| fs::metadata(folder.join(name)).ok());
        names.len() == 2 && growing(&names) == 1 && about.is_some_and(|about| about.len() > 0)
    });
    for part in &names(&folder) {
        let streams = decoded(folder.join(part).to_str().unwrap());
        assert!(streams.len() == 2 && streams["0"].len() >= 25, "{part}");
    }
    camera.send(1.0);
    camera.end();
    until("all are titles", || {
        let names = names(&folder);
        names.len() == 3 && growing(&names) == 0
    });
}

/// In a store that must not be changed no title is made of it.
#[test]
fn a_recording_that_was_interrupted_is_a_file_of_what_it_had() {
    testkit::needs!(Root, Fuse, Mount);
    let dir = TestDir::with_store_of(32);
    dir.ok("format b.store --size 32MiB");
    let mut camera = Camera::start(&dir, "record b.store cut");
    camera.send(0.8);
    until("something of it is durable", || {
        let process = Pid::from_child(&camera.recording);
        // A copy takes a while, in which nothing may be written.
        kill_process(process, Signal::STOP).unwrap();
        fs::copy(dir.path("b.store"), dir.path("a.store")).unwrap();
        kill_process(process, Signal::CONT).unwrap();
        let mounted = Mounted::start(&dir, "--read-only");
        let cut = mounted.path("cut.growing.mp4");
        // Whatever is durable decodes; of the sound there may be more than of the pictures.
        let is_there = fs::metadata(&cut).is_ok_and(|about| about.len() > 300_000)
            && decoded(&cut)["0"].len() >= 100;
        assert_eq!(mounted.stop().0, Some(0));
        is_there
    });
}
