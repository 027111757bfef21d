//! Running the program in a folder of its own that is gone when the test ends.

use disk::{Calibration, DiskModel};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use store::Store;
use units::ByteCount;

/// A temporary folder in which the program runs.
pub(crate) struct TestDir {
    dir: PathBuf,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("tenuto-cli-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder for the test");
        Self { dir }
    }

    /// With an empty store of 64 MiB, `a.store`.
    pub(crate) fn with_store() -> Self {
        Self::with_store_of(64)
    }

    /// With an empty store of this size, `a.store`.
    pub(crate) fn with_store_of(mebibytes: u32) -> Self {
        let dir = Self::new();
        dir.ok(&format!("format a.store --size {mebibytes}MiB"));
        dir
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("a file for the test");
    }

    /// A program of the folder, copied from another file. A process of its own copies it: while a
    /// file is open for writing here, a child that another test starts inherits the descriptor, and
    /// the program cannot be executed until that child has let go of it ("Text file busy").
    pub(crate) fn install(&self, from: impl AsRef<Path>, name: &str) {
        let mut install = Command::new("install");
        install.args(["-m", "755"]).arg(from.as_ref()).arg(self.path(name));
        assert!(install.status().expect("install runs").success(), "{name} is copied");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect(name)
    }

    /// Runs `tenuto` with these words.
    pub(crate) fn run(&self, line: &str) -> Run {
        self.run_words(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs `tenuto` with words that may have spaces in them.
    pub(crate) fn run_words(&self, words: &[&str]) -> Run {
        Run::from(program(&self.dir).args(words).output().expect("tenuto runs"))
    }

    /// Runs `tenuto`, which must succeed, and gives what it printed.
    #[track_caller]
    pub(crate) fn ok(&self, line: &str) -> String {
        let run = self.run(line);
        assert_eq!(run.code, Some(0), "tenuto {line}: {}", run.err);
        run.out
    }

    /// Runs `tenuto ... --json`, which must print one object.
    #[track_caller]
    pub(crate) fn json(&self, line: &str) -> Value {
        let out = self.ok(&format!("{line} --json"));
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{line}: {error}: {out}"))
    }

    /// Runs `tenuto`, which must end with this code and an error that contains these words.
    #[track_caller]
    pub(crate) fn fails(&self, line: &str, code: i32, words: &str) {
        let run = self.run(line);
        assert_eq!(run.code, Some(code), "tenuto {line}: {}", run.err);
        assert!(run.err.contains(words), "tenuto {line}: '{words}' is not in: {}", run.err);
        assert!(run.out.is_empty(), "tenuto {line} printed: {}", run.out);
    }

    /// A film of four seconds, made with FFmpeg.
    pub(crate) fn film(&self, name: &str) {
        self.film_of(4, name);
    }

    /// A film of so many seconds.
    pub(crate) fn film_of(&self, seconds: u32, name: &str) {
        let words = format!(
            "-f lavfi -i testsrc2=s=320x180:r=25:d={seconds} -f lavfi -i sine=440:d={seconds} \
             -c:v libx264 -preset ultrafast -g 25 -c:a aac"
        );
        let words: Vec<&str> = words.split(' ').collect();
        let made = testkit::clips::make(&self.path(name), &words);
        made.unwrap_or_else(|said| panic!("making {name}: {said}"));
    }

    /// Serves `a.store`, and further stores among the words, until the guard is dropped.
    pub(crate) fn serve(&self, words: &str) -> Served {
        let stores = words.split_whitespace().filter(|word| word.ends_with(".store"));
        ["a.store"].into_iter().chain(stores).for_each(|store| self.calibrate(store));
        self.serve_by(program(&self.dir), words)
    }

    /// Gives a store with titles the calibration of a fast disk, if it has none: a server would
    /// measure the disk when it starts, which takes a second of processor time.
    fn calibrate(&self, store: &str) {
        // Why it cannot be opened is told by the server.
        let Ok(store) = Store::open(&self.path(store)) else { return };
        if store.info().titles == 0 || store.calibration().is_some() {
            return;
        }
        let disk = DiskModel::preset("ssd-sata").expect("a built-in model");
        let sizes = [ByteCount::kib(64), ByteCount::kib(256), ByteCount::MIB, ByteCount::mib(4)];
        let calibration = Calibration::from_model(&disk, Duration::from_millis(500), &sizes);
        store.set_calibration(&calibration).expect("a store of the test");
    }

    /// As [`TestDir::serve`], with a command that may have been given an environment. The server
    /// measures the disk of a store that has no calibration.
    pub(crate) fn serve_by(&self, mut command: Command, words: &str) -> Served {
        command
            .args("serve a.store --listen 127.0.0.1:0".split(' '))
            .args(words.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("tenuto serves");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("text");
        let url = line.split_whitespace().find(|word| word.starts_with("http"));
        let Some(url) = url else {
            let _ = child.kill();
            panic!("no address in '{line}', {:?}", child.wait());
        };
        Served { child, origin: url.trim_end_matches("/console/").to_owned() }
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

/// A running server.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) origin: String,
}

impl Served {
    /// Sends SIGTERM and gives the exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal("-TERM");
        self.child.wait().expect("it ends").code()
    }

    /// Sends a signal that is named as `kill` names it.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().expect("kill runs");
        assert!(sent.success(), "the server is still there");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `tenuto`, ready to run in `dir`.
pub(crate) fn program(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenuto"));
    // Its own runtime folder: tests in parallel do not meet on control sockets.
    command.current_dir(dir).env("XDG_RUNTIME_DIR", dir);
    command
}
