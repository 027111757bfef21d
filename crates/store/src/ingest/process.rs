//! FFmpeg's programs as restricted processes: no input but a file or each other, no writing of
//! files, bounded memory and processor time, their own process group so that they can be killed,
//! and an end with the thread that started them.
//!
//! `prlimit` and `setpriv` (util-linux) set the limits, where they are installed.

use crate::StoreError;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use units::Reason;

/// The end of a program.
#[derive(Debug)]
pub(super) struct Ended {
    /// The standard output; of a longer one than was allowed, one byte more than that.
    pub(super) output: io::Result<Vec<u8>>,
    /// The last lines of the standard error.
    pub(super) complaints: String,
    pub(super) status: io::Result<ExitStatus>,
}

/// A running program, killed with its group when dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    done: bool,
    /// Whether [`Process::kill`] was called before its end was seen.
    is_killed: bool,
}

impl Process {
    /// Starts `ffmpeg` or `ffprobe`; it is killed when it has used more processor time than `cpu`.
    pub(super) fn start(
        program: &'static str,
        arguments: &[OsString],
        cpu: Duration,
    ) -> Result<Self, StoreError> {
        Self::start_reading(Stdio::null(), program, arguments, cpu)
    }

    /// Starts a program like [`Process::start`], with an input to read.
    pub(super) fn start_reading(
        stdin: Stdio,
        program: &'static str,
        arguments: &[OsString],
        cpu: Duration,
    ) -> Result<Self, StoreError> {
        let failed = |hint| move |source| StoreError::Tool { program, hint, source };
        let Some(path) = find(program) else {
            let missing = io::Error::from(io::ErrorKind::NotFound);
            let hint = "install FFmpeg, for instance with `apt install ffmpeg`";
            return Err(failed(Some(hint))(missing));
        };
        let mut words: Vec<OsString> = Vec::new();
        // FFmpeg parses files of strangers: without privileges and with limits, where the machine
        // has the tools for that.
        for (wrapper, options) in [("setpriv", PRIVILEGES), ("prlimit", LIMITS)] {
            if let Some(path) = find(wrapper) {
                words.push(path.into());
                words.extend(options.iter().map(OsString::from));
                if wrapper == "prlimit" {
                    words.push(format!("--cpu={}", cpu.as_secs().max(1)).into());
                }
            }
        }
        words.push(path.into());
        words.extend_from_slice(arguments);
        // Its own process group can be killed as a whole, and gets no interrupt of the terminal.
        let child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: a kill reaches everything that FFmpeg started and none of our
            // processes.
            .process_group(0)
            .spawn()
            .map_err(failed(None))?;
        Ok(Self { child, done: false, is_killed: false })
    }

    /// Gives the program `input`, if it was started with a pipe for that, and reads at most `most`
    /// bytes of its output, until it ends. When `goes_on`, which is called often, is false, it is
    /// killed.
    pub(super) fn finish(
        mut self,
        input: &[u8],
        most: u64,
        mut goes_on: impl FnMut() -> bool,
    ) -> Ended {
        let stdin = self.child.stdin.take();
        let (stdout, stderr) = self.pipes();
        std::thread::scope(|scope| {
            // A program that ends early does not read all of it, and its status says why.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
            let output = scope.spawn(move || {
                let mut bytes = Vec::new();
                // When this ends early, the program cannot write any more and ends, too.
                stdout.take(most + 1).read_to_end(&mut bytes).map(|_| bytes)
            });
            let complaints = scope.spawn(move || tail(stderr));
            while !output.is_finished() {
                if !goes_on() {
                    self.kill();
                }
                std::thread::sleep(GLANCE);
            }
            let output = output.join().expect("it does not panic");
            let status = self.wait();
            let complaints = complaints.join().expect("it does not panic");
            Ended { output, complaints, status }
        })
    }

    /// The process's standard output and standard error; can be called once.
    pub(super) fn pipes(&mut self) -> (ChildStdout, ChildStderr) {
        let stdout = self.stdout();
        let stderr = self.stderr().expect("taken once");
        // A larger pipe means fewer, larger reads; it is no error if the kernel refuses.
        let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE);
        (stdout, stderr)
    }

    /// The process's standard output alone, for another process to read; can be called once.
    pub(super) fn stdout(&mut self) -> ChildStdout {
        self.child.stdout.take().expect("taken once")
    }

    /// The process's standard input, if it was started with a pipe for that; can be called once.
    pub(super) fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// The process's standard error alone; can be called once.
    pub(super) fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Kills it and all processes that it started.
    pub(super) fn kill(&mut self) {
        // After `wait` the number may belong to another process, so a finished one is left alone.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
            && !self.done
        {
            // Fails only if it has already ended.
            let _ = kill_process_group(group, Signal::KILL);
            self.is_killed = true;
        }
    }

    /// Waits for the end of a program that has closed its output; `None` if it does not end within
    /// some seconds, or was killed by [`Process::kill`].
    pub(super) fn end_of_itself(&mut self) -> Option<ExitStatus> {
        let begun = Instant::now();
        while !self.is_killed && begun.elapsed() < MOST_AFTER_OUTPUT {
            if let Some(status) = self.child.try_wait().ok()? {
                self.done = true;
                return Some(status);
            }
            std::thread::sleep(GLANCE);
        }
        None
    }

    /// Waits for its end.
    pub(super) fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.done = true;
        Ok(status)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.done {
            self.kill();
            let _ = self.wait();
        }
    }
}

/// The last lines of a program's standard error.
pub(super) fn tail(mut stderr: impl Read) -> String {
    let mut kept: Vec<u8> = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(got @ 1..) = stderr.read(&mut piece) {
        kept.extend_from_slice(&piece[..got]);
        // Reading goes on although the start is dropped: a program blocks on a pipe that nobody
        // empties.
        let surplus = kept.len().saturating_sub(TAIL);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).trim().to_owned()
}

/// The last messages of a program on one line, for the user.
pub(super) fn last_words(complaints: &str) -> String {
    let says = |line: &&str| !line.trim().is_empty() && !line.contains("Last message repeated");
    let lines: Vec<&str> = complaints.lines().filter(says).collect();
    let last = &lines[lines.len().saturating_sub(3)..];
    // `[mov,mp4 @ 0x55...] text`: the address has no meaning for the user.
    let said: Vec<&str> =
        last.iter().map(|line| line.split_once("] ").map_or(*line, |(_, said)| said)).collect();
    said.join("; ")
}

/// Why a program that was to end by itself has not done its work; `None` if it has.
pub(super) fn failure(what: &str, status: ExitStatus, said: &str) -> Option<Reason> {
    if status.success() {
        return None;
    }
    Some(match (status.signal(), said) {
        (Some(signal), _) => Reason::new(
            format!("{what} was killed by signal {signal}"),
            "where memory is short the system kills programs: look into its log (`dmesg`)",
        ),
        (None, "") => Reason::from(format!("{what} has failed ({status})")),
        (None, said) => Reason::from(format!("{what} has failed (FFmpeg's message: {said})")),
    })
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

const PRIVILEGES: &[&str] = &["--no-new-privs", "--pdeathsig", "KILL"];

/// The resource limits. Remuxing holds a few seconds of media in memory; 4 GiB leave room for
/// unusual files, and larger ones fail without affecting the machine. The program writes to a pipe,
/// never to a file.
const LIMITS: &[&str] = &["--as=4294967296", "--fsize=0", "--core=0", "--nofile=64"];

/// The size of the pipe: Linux allows all users up to 1 MiB.
const PIPE: usize = 1 << 20;

/// The interval at which it is seen that a program has ended or must end.
const GLANCE: Duration = Duration::from_millis(5);

/// The time in which a program that has closed its output ends.
const MOST_AFTER_OUTPUT: Duration = Duration::from_secs(5);

/// The largest part of standard error that is kept.
pub(super) const TAIL: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_killed_by_its_processor_time() {
        assert!(find("prlimit").is_some(), "util-linux is installed");
        let words = ["-c", "while :; do :; done"].map(OsString::from);
        let mut process = Process::start("sh", &words, Duration::from_secs(1)).unwrap();
        let status = process.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{status}");
    }
}
