//! A store with titles in a temporary directory, and servers on it.

use crate::client::Client;
use server::control::Request;
use server::{Server, ServerConfig};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use store::{BackgroundIo, FormatOptions, IngestOptions, Store, Unthrottled, copy_title};
use units::ByteCount;

/// Small media files, made once for all tests of a run.
pub(crate) struct Media {
    /// 6 s of H.264 with B-frames and AAC, about 1.5 Mb/s, a key frame each second.
    pub(crate) film: PathBuf,
    /// 4 s of audio without video.
    pub(crate) song: PathBuf,
    /// 4 s of large video frames, about 45 MB: more than sockets buffer.
    pub(crate) large: PathBuf,
    /// 4 s of H.264, about 20 MB.
    pub(crate) heavy: PathBuf,
}

pub(crate) fn media() -> &'static Media {
    static MEDIA: OnceLock<Media> = OnceLock::new();
    MEDIA.get_or_init(|| {
        // The next run makes the same files again: one that ends cannot remove them.
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("serve-media");
        std::fs::create_dir_all(&directory).unwrap();
        let film = directory.join("film.mp4");
        ffmpeg(
            "-f lavfi -i testsrc2=s=480x270:r=25:d=6,noise=alls=12:allf=t \
             -f lavfi -i sine=440:d=6 \
             -c:v libx264 -preset veryfast -b:v 1400k -g 25 -sc_threshold 0 -bf 2 \
             -c:a aac -b:a 96k",
            &film,
        );
        let song = directory.join("song.m4a");
        ffmpeg("-f lavfi -i sine=330:d=4 -c:a aac", &song);
        let large = directory.join("large.mov");
        ffmpeg(
            "-f lavfi -i testsrc2=s=1280x720:r=25:d=4,noise=alls=40:allf=t -c:v mjpeg -q:v 2",
            &large,
        );
        let heavy = directory.join("heavy.mp4");
        ffmpeg(
            "-f lavfi -i testsrc2=s=640x360:r=25:d=4,noise=alls=60:allf=t \
             -c:v libx264 -preset ultrafast -qp 10 -g 25",
            &heavy,
        );
        Media { film, song, large, heavy }
    })
}

pub(crate) fn ffmpeg(arguments: &str, out: &Path) {
    let words: Vec<&str> =
        "-fflags +bitexact".split(' ').chain(arguments.split_whitespace()).collect();
    testkit::clips::make(out, &words).unwrap_or_else(|said| panic!("{}: {said}", out.display()));
}

/// The size of a test's store.
const STORE: ByteCount = ByteCount::mib(128);

/// A store with a title for each media file, from which those of tests' stores are copied: an
/// ingest starts FFmpeg twice.
fn library() -> &'static Store {
    static LIBRARY: OnceLock<Store> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let Media { film, song, large, heavy } = media();
        let path = directory().join("library.store");
        let options = FormatOptions { size: Some(STORE), ..FormatOptions::default() };
        Store::format(&path, &options).unwrap();
        let store = Store::open(&path).unwrap();
        // It is there for as long as it is open.
        std::fs::remove_dir_all(path.parent().expect("the directory")).unwrap();
        ingest(&store, &[film, song, large, heavy].map(PathBuf::clone), &IngestOptions::default());
        store
    })
}

fn ingest(store: &Store, files: &[PathBuf], options: &IngestOptions) {
    let never = AtomicBool::new(false);
    for outcome in store::ingest(store, files, options, &Unthrottled, &mut |_| {}, &never) {
        outcome.result.unwrap();
    }
}

// A directory that is removed with the store in it, unless the test fails.
fn directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tenuto-serve-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A store in a file.
pub(crate) struct TestStore {
    pub(crate) directory: PathBuf,
    pub(crate) path: PathBuf,
}

impl TestStore {
    /// A store of 128 MiB with a title for each file, named by its stem, and the calibration of a
    /// fast disk.
    pub(crate) fn with(files: &[&Path]) -> Self {
        let directory = directory();
        let path = directory.join("a.store");
        let options = FormatOptions { size: Some(STORE), ..FormatOptions::default() };
        Store::format(&path, &options).unwrap();
        let fixture = Self { directory, path };
        fixture.add(files);
        let store = Store::open(&fixture.path).unwrap();
        let disk = disk::DiskModel::preset("ssd-sata").unwrap();
        let sizes = [ByteCount::kib(256), ByteCount::MIB];
        let slot = ServerConfig::default().slot;
        store.set_calibration(&disk::Calibration::from_model(&disk, slot, &sizes)).unwrap();
        fixture
    }

    /// Ingests more files while the store is not served.
    pub(crate) fn add(&self, files: &[&Path]) {
        let store = Store::open(&self.path).unwrap();
        let at_once: &dyn BackgroundIo = &Unthrottled;
        for file in files {
            if file.parent() != media().film.parent() {
                ingest(&store, &[(*file).to_owned()], &IngestOptions::default());
                continue;
            }
            let title = file.file_stem().and_then(OsStr::to_str).expect("a title");
            let (to, from) = ((&store, at_once), (library(), at_once));
            copy_title(&to, &[&from], title, &mut |_| {}, &AtomicBool::new(false)).unwrap();
        }
    }

    /// Ingests more files with these options while the store is not served.
    pub(crate) fn add_with(&self, files: &[&Path], options: &IngestOptions) {
        let store = Store::open(&self.path).unwrap();
        let files: Vec<PathBuf> = files.iter().map(|file| (*file).to_owned()).collect();
        ingest(&store, &files, options);
    }

    pub(crate) fn config(&self) -> ServerConfig {
        ServerConfig {
            stores: vec![self.path.clone()],
            listen: "127.0.0.1:0".parse().unwrap(),
            memory: Some(ByteCount::mib(64)),
            // A test that is about waiting says so.
            wait: Duration::ZERO,
            ..ServerConfig::default()
        }
    }

    pub(crate) fn serve(&self) -> TestServer {
        self.serve_with(|_| {})
    }

    pub(crate) fn serve_with(&self, change: impl FnOnce(&mut ServerConfig)) -> TestServer {
        let mut config = self.config();
        change(&mut config);
        TestServer { server: Server::start(config).unwrap() }
    }
}

impl Drop for TestStore {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

/// A running server on the store of a test.
pub(crate) struct TestServer {
    pub(crate) server: Server,
}

impl TestServer {
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.server.address())
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }

    /// A number in `/status`, by its JSON pointer.
    pub(crate) fn status(&self, pointer: &str) -> u64 {
        let status = self.client().get("/status").json();
        status.pointer(pointer).and_then(serde_json::Value::as_u64).expect(pointer)
    }
}

/// The request to take in these files, as a command without options makes it.
pub(crate) fn ingest_request(files: Vec<PathBuf>) -> Request {
    Request::Ingest {
        files,
        as_file: false,
        title: None,
        allow_damaged: false,
        renditions: false,
        program: None,
        subtitles: Vec::new(),
        thumbnails: None,
        fps: None,
    }
}

/// Waits until a condition holds. The limit is long enough for a loaded machine; a test that
/// reaches it fails.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
