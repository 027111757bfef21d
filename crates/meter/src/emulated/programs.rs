//! Programs that a reproduction runs as a user would: to their end, or in the background until they
//! are stopped. None outlives the process that started it, however that ends.

use super::bench::Bench;
use crate::error::MeterError;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A directory for the files of a run, removed when dropped.
pub(super) struct RunFolder(PathBuf);

impl RunFolder {
    /// Makes it, and removes those of killed runs.
    pub(super) fn make() -> Result<Self, MeterError> {
        for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let process = name.to_str().and_then(|name| name.strip_prefix(FOLDER));
            if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let at = std::env::temp_dir().join(format!("{FOLDER}{}", std::process::id()));
        fs::create_dir_all(&at).map_err(MeterError::cannot("make", &at))?;
        Ok(Self(at))
    }

    /// The path of a file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a program to its end, or until the user stops the run, and returns its standard output.
/// `may_end` are the exit codes of success; standard error goes to a file in `folder`.
pub(super) fn output(
    bench: &mut Bench<'_>,
    folder: &RunFolder,
    program: &Path,
    arguments: &[OsString],
    may_end: &[i32],
) -> Result<Vec<u8>, MeterError> {
    let mut running = Running::start(folder, program, arguments)?;
    let mut stdout = running.child.stdout.take().expect("it is a pipe");
    // Read beside it: a program that fills the pipe waits for its reader.
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).map(|_| bytes)
    });
    let failed = |error: std::io::Error| MeterError::cannot("run", program)(error);
    let status = loop {
        if let Some(status) = running.child.try_wait().map_err(failed)? {
            break status;
        }
        bench.still()?;
        std::thread::sleep(LOOK_AGAIN);
    };
    let bytes = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    if status.code().is_some_and(|code| may_end.contains(&code)) {
        return bytes.map_err(failed);
    }
    Err(running.failure())
}

/// A program in the background, in a process group of its own, so that Ctrl-C in a terminal reaches
/// this program only. Dropped, it is stopped.
pub(super) struct Running {
    child: Child,
    line: String,
    log: PathBuf,
}

impl Running {
    /// Starts a program. Its standard output is a pipe, its standard error a file in `folder`.
    pub(super) fn start(
        folder: &RunFolder,
        program: &Path,
        arguments: &[OsString],
    ) -> Result<Self, MeterError> {
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
        let words = arguments.iter().map(|word| word.to_string_lossy());
        let line = std::iter::once(name.clone()).chain(words.take(WORDS_SHOWN));
        let (line, log) = (line.collect::<Vec<_>>().join(" "), folder.file(&format!("{name}.log")));
        let errors = File::create(&log).map_err(MeterError::cannot("write", &log))?;
        let start = |mut command: Command| {
            command.args(arguments).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
            command.stderr(errors.try_clone()?).spawn()
        };
        // Where this program is killed, the kernel ends the other one.
        let mut guarded = Command::new("setpriv");
        guarded.args(["--pdeathsig", "KILL"]).arg(program);
        let child = start(guarded).or_else(|_| start(Command::new(program)));
        let child = child.map_err(|error| MeterError::cannot("run", program)(error))?;
        Ok(Self { child, line, log })
    }

    /// Reads the JSON object that the program prints when it is ready.
    pub(super) fn ready(&mut self) -> Result<serde_json::Value, MeterError> {
        let mut object = String::new();
        if let Some(stdout) = self.child.stdout.take() {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            for line in lines {
                object += &line;
                // The object ends with a brace on a line of its own.
                if line == "}" {
                    break;
                }
            }
        }
        serde_json::from_str(&object).map_err(|_| self.failure())
    }

    /// Asks the program to end, and waits for its end.
    fn stop(&mut self) {
        // An error means that it has ended in the meantime.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && start.elapsed() < TO_STOP {
            std::thread::sleep(LOOK_AGAIN);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The error of a program that failed, with the end of its standard error.
    fn failure(&self) -> MeterError {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let said = lines[lines.len().saturating_sub(LINES_SHOWN)..].join("; ");
        MeterError::new(format!("`{}` failed: {said}", self.line))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}

/// The prefix of directories in the directory for temporary files; the process follows.
const FOLDER: &str = "tenuto-reproduced-";

/// Words of a command line in an error.
const WORDS_SHOWN: usize = 6;

/// Last lines of a program's standard error in an error.
const LINES_SHOWN: usize = 3;

/// The time between two looks whether a program has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The time in which a program ends that is asked to; then it is killed.
const TO_STOP: Duration = Duration::from_secs(15);
